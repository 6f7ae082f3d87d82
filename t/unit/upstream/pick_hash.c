/* SPDX-License-Identifier: MIT */
/* By a key: the same server each time, shares by weight, and how few keys move when servers come, go or fail. */
#include "pick_set.h"

enum { KEYS = 20000 };

static struct pick_query query_of(unsigned key)
{
    return (struct pick_query){ .has_hash = true, .hash = pick_hash_of(&key, sizeof key) };
}

static int choose(struct rig *g, unsigned key)
{
    const struct pick_query q = query_of(key);
    return rig_choose(g, &q);
}

/* Keys whose server in b has another name than in a. */
static unsigned moved(struct rig *a, struct rig *b)
{
    unsigned n = 0;
    for (unsigned key = 0; key < KEYS; key++)
        n += !str_eq(a->servers[choose(a, key)].name, b->servers[choose(b, key)].name);
    return n;
}

static void the_rules_that_all_algorithms_keep(void **state)
{
    (void)state;
    for (unsigned key = 0; key < 20; key++)
        rig_check_rules(&pick_hash, query_of(key));
    rig_check_rules(&pick_hash, (struct pick_query){ 0 });
}

static void a_key_has_its_server_whoever_asks_in_whatever_order(void **state)
{
    (void)state;
    struct rig g, again, reversed;
    rig_open(&g, &pick_hash, 5, NULL);
    rig_open(&again, &pick_hash, 5, NULL);
    rig_open_from(&reversed, &pick_hash, 0, 5, NULL);
    for (unsigned i = 0; i < 5; i++)
        reversed.set.entries[i].server = &reversed.servers[4 - i];
    rig_prepare(&reversed);
    for (unsigned key = KEYS; key-- > 0;) {
        int at = choose(&g, key);
        assert_int_equal(choose(&again, key), at);
        assert_int_equal(choose(&reversed, key), at);
    }
    rig_close(&g);
    rig_close(&again);
    rig_close(&reversed);
}

static void shares_are_those_of_the_weights(void **state)
{
    (void)state;
    struct rig g;
    unsigned count[4] = { 0 };
    rig_open(&g, &pick_hash, 4, (unsigned[]){ 1, 2, 0, 5 });
    for (unsigned i = 0; i < 65537; i++)
        count[g.set.table[0][i]]++;
    assert_in_range(count[0], 8192 - 2, 8192 + 2);
    assert_in_range(count[1], 16384 - 2, 16384 + 2);
    assert_int_equal(count[2], 0);
    assert_in_range(count[3], 40960 - 2, 40960 + 2);
    count[0] = count[1] = count[3] = 0;
    for (unsigned key = 0; key < KEYS; key++)
        count[choose(&g, key)]++;
    assert_in_range(count[0], KEYS / 8 - 240, KEYS / 8 + 240); /* five standard deviations */
    assert_in_range(count[1], KEYS / 4 - 310, KEYS / 4 + 310);
    rig_close(&g);
}

static void light_ones_among_heavy_ones_have_a_place(void **state)
{
    (void)state;
    struct rig g;
    unsigned weights[1000], count[1000] = { 0 };
    for (unsigned i = 0; i < 1000; i++)
        weights[i] = i == 500 ? 1 : 256;
    rig_open(&g, &pick_hash, 1000, weights);
    for (unsigned i = 0; i < 65537; i++)
        count[g.set.table[0][i]]++;
    assert_int_equal(count[500], 1);
    for (unsigned i = 0; i < 1000; i++)
        if (i != 500)
            assert_in_range(count[i], 65, 66);
    rig_close(&g);
}

static void one_server_more_or_less_moves_little_more_than_its_share(void **state)
{
    (void)state;
    static const unsigned sizes[] = { 1, 2, 3, 4, 8, 20, 100 };
    for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
        struct rig few, many;
        unsigned n = sizes[i] + 1;
        rig_open(&few, &pick_hash, sizes[i], NULL);
        rig_open(&many, &pick_hash, n, NULL);
        unsigned percent = moved(&few, &many) * 100 / KEYS;
        assert_in_range(percent, 100 / n * 9 / 10, 100 / n + 4);
        rig_close(&few);
        rig_close(&many);
    }
}

static void another_weight_moves_little_more_than_the_difference(void **state)
{
    (void)state;
    struct rig before, after;
    rig_open(&before, &pick_hash, 4, NULL);
    rig_open(&after, &pick_hash, 4, (unsigned[]){ 1, 1, 2, 1 });
    /* 25 % to 40 % */
    assert_in_range(moved(&before, &after), KEYS * 14 / 100, KEYS * 25 / 100);
    rig_close(&before);
    rig_close(&after);
}

static void a_failed_servers_keys_spread_and_come_home_the_others_stay(void **state)
{
    (void)state;
    struct rig g;
    static int home[KEYS];
    unsigned count[5] = { 0 };
    rig_open(&g, &pick_hash, 5, NULL);
    for (unsigned key = 0; key < KEYS; key++)
        home[key] = choose(&g, key);
    atomic_store(&g.servers[2].n_resolved, 0);
    for (unsigned key = 0; key < KEYS; key++) {
        int at = choose(&g, key);
        if (home[key] == 2)
            count[at]++;
        else
            assert_int_equal(at, home[key]);
    }
    assert_int_equal(count[2], 0);
    for (unsigned i = 0; i < 5; i++)
        if (i != 2)
            assert_in_range(count[i], KEYS / 20 - 170, KEYS / 20 + 170);
    atomic_store(&g.servers[2].n_resolved, 1);
    for (unsigned key = 0; key < KEYS; key++)
        assert_int_equal(choose(&g, key), home[key]);
    rig_close(&g);
}

static void the_full_server_is_waited_for(void **state)
{
    (void)state;
    struct rig g;
    bool is_full;
    const struct pick_query q = query_of(1), none = { 0 };
    rig_open(&g, &pick_hash, 5, NULL);
    int at = rig_take(&g, &q);
    assert_ptr_equal(pick_owner(&g.u, &q), &g.servers[at]);
    atomic_store(&g.servers[at].maxconn, 1);
    assert_null(pick_server(&g.u, &q, &is_full));
    assert_true(is_full);
    assert_ptr_equal(pick_owner(&g.u, &q), &g.servers[at]);
    assert_null(pick_owner(&g.u, &none));
    rig_close(&g);
}

static void without_a_key_it_is_round_robin(void **state)
{
    (void)state;
    struct rig g;
    unsigned count[3] = { 0 };
    rig_open(&g, &pick_hash, 3, NULL);
    for (unsigned i = 0; i < 30; i++)
        count[rig_choose(&g, &(struct pick_query){ 0 })]++;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(count[i], 10);
    rig_close(&g);
}

/* --- hash_balance_factor --- */

/* The servers of a key in its order: each is what is left when those before it have been tried. */
static void order_of(struct rig *g, unsigned key, unsigned *order)
{
    struct server *tried[16];
    struct pick_query q = query_of(key);
    unsigned factor = g->set.hash_factor;
    g->set.hash_factor = 0;
    q.tried = tried;
    for (unsigned i = 0; i < g->n; i++) {
        int at = rig_choose(g, &q);
        assert_true(at >= 0);
        order[i] = (unsigned)at;
        tried[q.n_tried++] = &g->servers[at];
    }
    g->set.hash_factor = factor;
}

/* The first in the key's order that is below its bound; weights of 1 to 3, requests of all keys, some of which end. */
static void exactly_the_first_below_its_bound(void **state)
{
    (void)state;
    static const unsigned weights[] = { 1, 3, 2, 1, 1, 2 };
    static const unsigned factors[] = { 101, 125, 200, 1000 };
    for (unsigned k = 0; k < ARRAY_LEN(factors); k++) {
        struct rig g;
        unsigned load[ARRAY_LEN(weights)] = { 0 }, all = 0, order[ARRAY_LEN(weights)];
        rig_open(&g, &pick_hash, ARRAY_LEN(weights), weights);
        g.set.hash_factor = factors[k];
        srand(k);
        for (unsigned i = 0; i < 3000; i++) {
            unsigned key = (unsigned)rand() % 5, at = 0;
            order_of(&g, key, order);
            while (load[order[at]] * 100 * 10 >= factors[k] * (all + 1) * weights[order[at]])
                at++;
            assert_int_equal(rig_take(&g, &(struct pick_query){ .has_hash = true, .hash = query_of(key).hash }), order[at]);
            load[order[at]]++;
            all++;
            for (unsigned end = (unsigned)rand() % 3, s; end > 0 && all > 40; end--) {
                do
                    s = (unsigned)rand() % ARRAY_LEN(weights);
                while (load[s] == 0);
                server_give(&g.servers[s]);
                load[s]--;
                all--;
            }
        }
        rig_close(&g);
    }
}

/* One key alone: of 8 requests at once none has more than the bound, and with a single one it stays at home. */
static void one_hot_key_spreads(void **state)
{
    (void)state;
    struct rig g;
    unsigned order[4];
    static const unsigned wanted[] = { 0, 1, 2, 0, 1, 2, 0, 1 }; /* load < 125 * (L + 1) / 400, L = 0 ... 7 */
    rig_open(&g, &pick_hash, 4, NULL);
    g.set.hash_factor = 125;
    order_of(&g, 7, order);
    const struct pick_query q = query_of(7);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(rig_choose(&g, &q), order[0]);
    for (unsigned i = 0; i < ARRAY_LEN(wanted); i++)
        assert_int_equal(rig_take(&g, &q), order[wanted[i]]);
    rig_close(&g);
}

/* Others' servers are no reason to refuse the last one that it may have. */
static void whoever_has_few_to_choose_from_gets_one(void **state)
{
    (void)state;
    struct rig g;
    bool is_full;
    rig_open(&g, &pick_hash, 3, NULL);
    g.set.hash_factor = 101;
    for (unsigned i = 0; i < 50; i++)
        assert_true(server_take(&g.servers[2]));
    struct pick_query q = query_of(1);
    q.tried = (struct server *[]){ &g.servers[0], &g.servers[1] };
    q.n_tried = 2;
    assert_int_equal(rig_take(&g, &q), 2);
    q = query_of(1);
    q.bound = &g.servers[2];
    assert_int_equal(rig_take(&g, &q), 2);
    q = query_of(1);
    atomic_store(&g.servers[0].barred, BARRED_CHECK);
    atomic_store(&g.servers[1].barred, BARRED_CHECK);
    assert_int_equal(rig_take(&g, &q), 2);
    /* A full one is passed over, and nobody waits for it alone. */
    atomic_store(&g.servers[0].barred, 0);
    atomic_store(&g.servers[2].maxconn, 1);
    assert_int_equal(rig_take(&g, &q), 0);
    assert_null(pick_owner(&g.u, &q));
    atomic_store(&g.servers[0].maxconn, 1);
    assert_null(pick_server(&g.u, &q, &is_full));
    assert_true(is_full);
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rules_that_all_algorithms_keep),
        cmocka_unit_test(a_key_has_its_server_whoever_asks_in_whatever_order),
        cmocka_unit_test(shares_are_those_of_the_weights),
        cmocka_unit_test(light_ones_among_heavy_ones_have_a_place),
        cmocka_unit_test(one_server_more_or_less_moves_little_more_than_its_share),
        cmocka_unit_test(another_weight_moves_little_more_than_the_difference),
        cmocka_unit_test(a_failed_servers_keys_spread_and_come_home_the_others_stay),
        cmocka_unit_test(the_full_server_is_waited_for),
        cmocka_unit_test(without_a_key_it_is_round_robin),
        cmocka_unit_test(exactly_the_first_below_its_bound),
        cmocka_unit_test(one_hot_key_spreads),
        cmocka_unit_test(whoever_has_few_to_choose_from_gets_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
