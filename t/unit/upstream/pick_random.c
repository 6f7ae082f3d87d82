/* SPDX-License-Identifier: MIT */
/* Random of two: shares, what the second choice is for, and few usable among many. */
#include "pick_set.h"

static const struct pick_query any = { 0 };

static void the_rules_that_all_algorithms_keep(void **state)
{
    (void)state;
    rig_check_rules(&pick_random, any);
}

static void idle_servers_get_their_weights_share(void **state)
{
    (void)state;
    enum { PICKS = 120000 };
    struct rig g;
    unsigned count[3] = { 0 };
    rig_open(&g, &pick_random, 3, (unsigned[]){ 3, 1, 2 });
    for (unsigned i = 0; i < PICKS; i++)
        count[rig_choose(&g, &any)]++;
    assert_in_range(count[0], PICKS / 2 - 900, PICKS / 2 + 900); /* five standard deviations */
    assert_in_range(count[1], PICKS / 6 - 650, PICKS / 6 + 650);
    rig_close(&g);
}

static void of_two_servers_the_less_loaded_is_always_found(void **state)
{
    (void)state;
    struct rig g;
    unsigned wrong = 0;
    rig_open(&g, &pick_random, 2, NULL);
    atomic_store(&g.servers[0].in_flight, 1);
    for (unsigned i = 0; i < 1600; i++)
        wrong += rig_choose(&g, &any) == 0;
    assert_in_range(wrong, 1, 150); /* the first is drawn five times running: one in 32 */
    rig_close(&g);
}

/* With one choice the fullest of 100 servers would have about 20 of 1000 requests; with two, 13 at most. */
static void two_choices_keep_the_fullest_near_the_mean(void **state)
{
    (void)state;
    struct rig g;
    unsigned most = 0;
    rig_open(&g, &pick_random, 100, NULL);
    for (unsigned i = 0; i < 1000; i++)
        rig_take(&g, &any);
    for (unsigned i = 0; i < g.n; i++) {
        unsigned load = atomic_load(&g.servers[i].in_flight);
        most = load > most ? load : most;
    }
    assert_in_range(most, 10, 13);
    rig_close(&g);
}

static void the_only_free_one_of_1000_is_found(void **state)
{
    (void)state;
    struct rig g;
    rig_open(&g, &pick_random, 1000, NULL);
    for (unsigned i = 0; i < g.n; i++)
        if (i != 777)
            atomic_store(&g.servers[i].n_resolved, 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(rig_choose(&g, &any), 777);
    rig_close(&g);
}

static void another_seed_is_another_sequence(void **state)
{
    (void)state;
    struct rig g;
    int first[32], n_same = 0;
    rig_open(&g, &pick_random, 16, NULL);
    for (unsigned i = 0; i < 32; i++)
        first[i] = rig_choose(&g, &any);
    g.set.seed = 2;
    atomic_store(&g.u.position, 0);
    for (unsigned i = 0; i < 32; i++)
        n_same += first[i] == rig_choose(&g, &any);
    assert_in_range(n_same, 0, 12);
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rules_that_all_algorithms_keep),
        cmocka_unit_test(idle_servers_get_their_weights_share),
        cmocka_unit_test(of_two_servers_the_less_loaded_is_always_found),
        cmocka_unit_test(two_choices_keep_the_fullest_near_the_mean),
        cmocka_unit_test(the_only_free_one_of_1000_is_found),
        cmocka_unit_test(another_seed_is_another_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
