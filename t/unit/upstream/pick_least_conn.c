/* SPDX-License-Identifier: MIT */
/* Least connections: what is compared, by weight, and turns among equals. */
#include "pick_set.h"

static const struct pick_query any = { 0 };

static void the_rules_that_all_algorithms_keep(void **state)
{
    (void)state;
    rig_check_rules(&pick_least_conn, any);
}

static void the_least_loaded_is_chosen(void **state)
{
    (void)state;
    struct rig g;
    rig_open(&g, &pick_least_conn, 3, NULL);
    atomic_store(&g.servers[0].in_flight, 3);
    atomic_store(&g.servers[1].in_flight, 1);
    atomic_store(&g.servers[2].in_flight, 2);
    assert_int_equal(rig_choose(&g, &any), 1);
    atomic_store(&g.servers[1].tunnels, 2); /* a WebSocket is a load too */
    assert_int_equal(rig_choose(&g, &any), 2);
    atomic_store(&g.servers[2].maxconn, 2);
    assert_true(rig_choose(&g, &any) != 2);
    rig_close(&g);
}

static void a_weight_of_3_has_three_times_as_much_in_flight(void **state)
{
    (void)state;
    struct rig g;
    rig_open(&g, &pick_least_conn, 3, (unsigned[]){ 3, 1, 2 });
    for (unsigned i = 0; i < 60; i++)
        rig_take(&g, &any);
    assert_int_equal(atomic_load(&g.servers[0].in_flight), 30);
    assert_int_equal(atomic_load(&g.servers[1].in_flight), 10);
    assert_int_equal(atomic_load(&g.servers[2].in_flight), 20);
    rig_close(&g);
}

static void equals_take_turns_by_weight(void **state)
{
    (void)state;
    struct rig g;
    unsigned count[3] = { 0 };
    rig_open(&g, &pick_least_conn, 3, (unsigned[]){ 3, 1, 2 });
    for (unsigned i = 0; i < 60; i++)
        count[rig_choose(&g, &any)]++;
    assert_int_equal(count[0], 30);
    assert_int_equal(count[1], 10);
    assert_int_equal(count[2], 20);
    /* Those that are not equal are no part of it. */
    atomic_store(&g.servers[0].in_flight, 1);
    count[1] = count[2] = 0;
    for (unsigned i = 0; i < 30; i++)
        count[rig_choose(&g, &any)]++;
    assert_int_equal(count[1], 10);
    assert_int_equal(count[2], 20);
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rules_that_all_algorithms_keep),
        cmocka_unit_test(the_least_loaded_is_chosen),
        cmocka_unit_test(a_weight_of_3_has_three_times_as_much_in_flight),
        cmocka_unit_test(equals_take_turns_by_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
