/* SPDX-License-Identifier: MIT */
/* Tags and sessions: whom they name, for how long, and that memory and lies have bounds. */
#include "pick_set.h"
#include "upstream/affinity.h"

static const struct str app = { "app", 3 };

static void open_sticky(struct rig *g, struct str name, struct str key)
{
    const struct upstream_conf c = { .name = name, .sticky = STICKY_AUTO, .sticky_key = key };
    rig_open(g, &pick_round_robin, 3, NULL);
    for (unsigned i = 0; i < g->n; i++)
        g->servers[i].serial = i + 1;
    assert_true(affinity_prepare(&g->set, &c));
    assert_true(affinity_open(&g->u, &c));
}

static void close_sticky(struct rig *g)
{
    affinity_close(&g->u);
    free(g->set.tags);
    rig_close(g);
}

static void a_tag_names_its_server_and_is_nobody_elses(void **state)
{
    (void)state;
    struct rig g, same, other_key, other_name;
    open_sticky(&g, app, STR("k"));
    open_sticky(&same, app, STR("k"));
    open_sticky(&other_key, app, STR("l"));
    open_sticky(&other_name, STR("apq"), STR("k"));
    for (unsigned i = 0; i < g.n; i++) {
        struct str tag = affinity_tag(&g.u, &g.servers[i]);
        assert_int_equal(tag.n, AFFINITY_TAG);
        assert_ptr_equal(affinity_by_tag(&g.u, tag), &g.servers[i]);
        assert_ptr_equal(affinity_by_tag(&same.u, tag), &same.servers[i]);
        assert_null(affinity_by_tag(&other_key.u, tag));
        assert_null(affinity_by_tag(&other_name.u, tag));
        assert_null(affinity_by_tag(&g.u, str_take(tag, 21)));
    }
    assert_null(affinity_by_tag(&g.u, STR_NONE));
    assert_int_equal(affinity_tag(&g.u, &same.servers[0]).n, 0);
    close_sticky(&g);
    close_sticky(&same);
    close_sticky(&other_key);
    close_sticky(&other_name);
}

/* printf 'app\0s0:3000' | openssl dgst -sha256 -hmac k -binary | head -c 16 | base64, with - and _ */
static void the_tag_is_the_hmac(void **state)
{
    (void)state;
    struct rig g;
    open_sticky(&g, app, STR("k"));
    struct str tag = affinity_tag(&g.u, &g.servers[0]);
    assert_memory_equal(tag.p, "ZamNOJdI9jbRsp78Bb1T-A", AFFINITY_TAG);
    close_sticky(&g);
}

static void draining_servers_keep_nobody(void **state)
{
    (void)state;
    struct rig g;
    open_sticky(&g, app, STR("k"));
    struct str tag = affinity_tag(&g.u, &g.servers[1]);
    affinity_learn(&g.u, 7, &g.servers[1], 1000);
    atomic_store(&g.servers[1].barred, BARRED_DRAIN);
    assert_null(affinity_by_tag(&g.u, tag));
    assert_null(affinity_by_session(&g.u, 7, 1000));
    atomic_store(&g.servers[1].barred, BARRED_CHECK); /* that is not for ever: the caller decides */
    assert_ptr_equal(affinity_by_tag(&g.u, tag), &g.servers[1]);
    g.set.entries[1].is_draining = true;
    atomic_store(&g.servers[1].barred, 0);
    assert_null(affinity_by_tag(&g.u, tag));
    close_sticky(&g);
}

static void a_session_is_known_until_it_is_idle_for_an_hour(void **state)
{
    (void)state;
    struct rig g;
    enum { HOUR = 3600 * 1000 };
    open_sticky(&g, app, STR("k"));
    uint64_t one = affinity_session(&g.u, STR("one")), two = affinity_session(&g.u, STR("two"));
    assert_true(one != two);
    assert_null(affinity_by_session(&g.u, one, 5000));
    affinity_learn(&g.u, one, &g.servers[0], 5000);
    affinity_learn(&g.u, two, &g.servers[1], 5000);
    assert_ptr_equal(affinity_by_session(&g.u, one, HOUR), &g.servers[0]);
    assert_ptr_equal(affinity_by_session(&g.u, one, HOUR * 2 - 5000), &g.servers[0]);
    assert_null(affinity_by_session(&g.u, two, HOUR * 2 - 5000));
    affinity_learn(&g.u, one, &g.servers[2], HOUR * 2);
    assert_ptr_equal(affinity_by_session(&g.u, one, HOUR * 2), &g.servers[2]);
    close_sticky(&g);
}

static void another_server_at_the_same_address_in_memory_is_not_it(void **state)
{
    (void)state;
    struct rig g;
    open_sticky(&g, app, STR("k"));
    affinity_learn(&g.u, 7, &g.servers[1], 1000);
    g.servers[1].serial = 99;
    assert_null(affinity_by_session(&g.u, 7, 1000));
    close_sticky(&g);
}

static void of_too_many_in_a_row_the_longest_unasked_for_goes(void **state)
{
    (void)state;
    struct rig g;
    enum { ROWS = 16384, WAYS = 8 };
    open_sticky(&g, app, STR("k"));
    for (uint64_t i = 0; i < WAYS; i++)
        affinity_learn(&g.u, i * ROWS, &g.servers[0], 1000 * i);
    assert_ptr_equal(affinity_by_session(&g.u, 0, 100000), &g.servers[0]);
    affinity_learn(&g.u, WAYS * ROWS, &g.servers[1], 100000);
    assert_null(affinity_by_session(&g.u, ROWS, 100000));
    assert_ptr_equal(affinity_by_session(&g.u, WAYS * ROWS, 100000), &g.servers[1]);
    for (uint64_t i = 2; i < WAYS; i++)
        assert_ptr_equal(affinity_by_session(&g.u, i * ROWS, 100000), &g.servers[0]);
    assert_ptr_equal(affinity_by_session(&g.u, 0, 100000), &g.servers[0]);
    close_sticky(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tag_names_its_server_and_is_nobody_elses),
        cmocka_unit_test(the_tag_is_the_hmac),
        cmocka_unit_test(draining_servers_keep_nobody),
        cmocka_unit_test(a_session_is_known_until_it_is_idle_for_an_hour),
        cmocka_unit_test(another_server_at_the_same_address_in_memory_is_not_it),
        cmocka_unit_test(of_too_many_in_a_row_the_longest_unasked_for_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
