/* SPDX-License-Identifier: MIT */
/* Round robin: exact shares, an even order, and what happens when some servers cannot be had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "upstream/pick.h"

enum { N = 3 };

struct group {
    struct upstream u;
    struct server_set set;
    struct server servers[N];
    struct set_entry entries[N];
};

static void group_open(struct group *g, const unsigned weights[N])
{
    *g = (struct group){ .set = { .pick = &pick_round_robin, .entries = g->entries, .n = N } };
    for (unsigned i = 0; i < N; i++) {
        atomic_store(&g->servers[i].n_resolved, 1);
        g->entries[i] = (struct set_entry){ .server = &g->servers[i], .weight = weights[i] };
    }
    atomic_store(&g->u.set, &g->set);
    assert_true(pick_round_robin.prepare(&g->set));
}

static void group_close(struct group *g)
{
    free(g->set.order[0]);
    free(g->set.order[1]);
}

/* Index of the server chosen, its slot given back; -1: none. */
static int choose(struct group *g, const struct pick_query *q)
{
    bool is_full;
    struct server *s = pick_server(&g->u, q, &is_full);
    if (s == NULL)
        return -1;
    server_give(s);
    return (int)(s - g->servers);
}

static void shares_are_exact_and_the_order_is_even(void **state)
{
    (void)state;
    struct group g;
    group_open(&g, (unsigned[N]){ 10, 2, 2 });
    unsigned count[N] = { 0 }, run = 0, longest = 0;
    int last = -1;
    for (unsigned i = 0; i < 70; i++) {
        int at = choose(&g, &(struct pick_query){ 0 });
        count[at]++;
        run = at == last ? run + 1 : 1;
        longest = run > longest ? run : longest;
        last = at;
    }
    assert_int_equal(count[0], 50);
    assert_int_equal(count[1], 10);
    assert_int_equal(count[2], 10);
    assert_true(longest <= 4); /* the end of one round and the start of the next: a a | a a at 5:1:1 */
    group_close(&g);
}

static void weight_0_and_draining_get_nothing(void **state)
{
    (void)state;
    struct group g;
    group_open(&g, (unsigned[N]){ 0, 1, 1 });
    g.entries[1].is_draining = true;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(choose(&g, &(struct pick_query){ 0 }), 2);
    group_close(&g);
}

static void tried_servers_are_not_chosen_again(void **state)
{
    (void)state;
    struct group g;
    group_open(&g, (unsigned[N]){ 1, 1, 1 });
    struct server *tried[N] = { &g.servers[0], &g.servers[2], &g.servers[1] };
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(choose(&g, &(struct pick_query){ .tried = tried, .n_tried = 2 }), 1);
    assert_int_equal(choose(&g, &(struct pick_query){ .tried = tried, .n_tried = 3 }), -1);
    group_close(&g);
}

static void full_servers_are_passed_over(void **state)
{
    (void)state;
    struct group g;
    group_open(&g, (unsigned[N]){ 1, 1, 1 });
    bool is_full;
    for (unsigned i = 0; i < N; i++)
        atomic_store(&g.servers[i].maxconn, 1);
    for (unsigned i = 0; i < N; i++)
        assert_non_null(pick_server(&g.u, &(struct pick_query){ 0 }, &is_full));
    assert_null(pick_server(&g.u, &(struct pick_query){ 0 }, &is_full));
    assert_true(is_full);
    server_give(&g.servers[1]);
    assert_ptr_equal(pick_server(&g.u, &(struct pick_query){ 0 }, &is_full), &g.servers[1]);
    group_close(&g);
}

static void backups_wait_until_no_primary_is_usable(void **state)
{
    (void)state;
    struct group g;
    group_open(&g, (unsigned[N]){ 1, 1, 1 });
    free(g.set.order[0]);
    g.set.order[0] = NULL;
    g.entries[2].is_backup = true;
    g.set.has_backup = true;
    assert_true(pick_round_robin.prepare(&g.set));
    bool is_full;
    for (unsigned i = 0; i < 6; i++)
        assert_int_not_equal(choose(&g, &(struct pick_query){ 0 }), 2);
    /* Full is not down. */
    atomic_store(&g.servers[0].maxconn, 1);
    atomic_store(&g.servers[1].maxconn, 1);
    assert_non_null(pick_server(&g.u, &(struct pick_query){ 0 }, &is_full));
    assert_non_null(pick_server(&g.u, &(struct pick_query){ 0 }, &is_full));
    assert_null(pick_server(&g.u, &(struct pick_query){ 0 }, &is_full));
    assert_true(is_full);
    struct server *tried[2] = { &g.servers[0], &g.servers[1] };
    assert_int_equal(choose(&g, &(struct pick_query){ .tried = tried, .n_tried = 2 }), 2);
    group_close(&g);
}

static void huge_weights_keep_their_proportion(void **state)
{
    (void)state;
    struct group g;
    group_open(&g, (unsigned[N]){ 3000001, 1000000, 1 });
    assert_true(g.set.n_order[0] <= (1u << 16) + N);
    unsigned count[N] = { 0 };
    for (unsigned i = 0; i < g.set.n_order[0]; i++)
        count[g.set.order[0][i]]++;
    assert_in_range(count[0] * 1000 / count[1], 2990, 3010);
    assert_int_equal(count[2], 1);
    group_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_exact_and_the_order_is_even),
        cmocka_unit_test(weight_0_and_draining_get_nothing),
        cmocka_unit_test(tried_servers_are_not_chosen_again),
        cmocka_unit_test(full_servers_are_passed_over),
        cmocka_unit_test(backups_wait_until_no_primary_is_usable),
        cmocka_unit_test(huge_weights_keep_their_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
