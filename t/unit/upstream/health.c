/* SPDX-License-Identifier: MIT */
/* When a server that fails is left alone, until when exactly, and when it never is. The time is the test's own. */
#include "pick_set.h"

#include <errno.h>

#include "base/clock.h"
#include "upstream/health.h"

enum { START = 1000000, WINDOW = 10000 };

static uint64_t now;

/* The linker sends every look at the clock here. */
uint64_t __wrap_clock_monotonic_ms(void);

uint64_t __wrap_clock_monotonic_ms(void)
{
    return now;
}

static void open_pool(struct rig *g, unsigned n)
{
    now = START;
    rig_open(g, &pick_round_robin, n, NULL);
    list_init(&g->u.servers);
    list_init(&g->u.queue.any);
    pthread_mutex_init(&g->u.queue.mutex, NULL);
    for (unsigned i = 0; i < n; i++) {
        g->servers[i].upstream = &g->u;
        list_init(&g->servers[i].waiting);
        list_append(&g->u.servers, &g->servers[i].link);
    }
}

static void close_pool(struct rig *g)
{
    pthread_mutex_destroy(&g->u.queue.mutex);
    rig_close(g);
}

static void failed(struct server *s, unsigned n)
{
    while (n-- > 0)
        health_failed(s, "CONNECT_FAILED", 0);
}

static void passed(struct server *s, unsigned n)
{
    while (n-- > 0)
        health_passed(s);
}

static uint64_t until(const struct server *s)
{
    return atomic_load(&s->ejected_until);
}

static void the_fifth_of_five(void **state)
{
    (void)state;
    struct rig g;
    open_pool(&g, 2);
    struct server *s = &g.servers[0];
    failed(s, 4);
    assert_int_equal(until(s), 0);
    failed(s, 1);
    assert_int_equal(until(s), START + 5000);
    assert_true(server_is_ejected(s));
    now = START + 4999;
    assert_true(server_is_ejected(s));
    now = START + 5000;
    assert_false(server_is_ejected(s));
    close_pool(&g);
}

/* Answers count from the first failure on. */
static void half_of_all_at_least(void **state)
{
    (void)state;
    struct rig g;
    open_pool(&g, 2);
    struct server *s = &g.servers[0];
    passed(s, 100); /* before any failure: not counted */
    failed(s, 1);
    passed(s, 6);
    failed(s, 4);
    assert_int_equal(until(s), 0); /* 5 of 11 */
    failed(s, 1);
    assert_int_equal(until(s), START + 5000); /* 6 of 12 */
    close_pool(&g);
}

static void what_is_older_than_ten_seconds_is_forgotten(void **state)
{
    (void)state;
    struct rig g;
    open_pool(&g, 2);
    struct server *s = &g.servers[0];
    failed(s, 4);
    now = START + WINDOW + 1;
    failed(s, 4); /* the first four count no more */
    assert_int_equal(until(s), 0);
    now += WINDOW;
    failed(s, 1); /* still in the window of those four */
    assert_int_equal(until(s), now + 5000);

    struct server *other = &g.servers[1];
    health_forgive(s);
    failed(other, 1);
    now += WINDOW + 1;
    passed(other, 1); /* begins anew, and nothing has failed since */
    assert_int_equal(atomic_load(&other->health.bad_now), 0);
    close_pool(&g);
}

/* Twice as long after each trial that fails, a minute at most; one good minute, and the next one is short again. */
static void trials(void **state)
{
    (void)state;
    struct rig g;
    open_pool(&g, 2);
    struct server *s = &g.servers[0];
    failed(s, 5);
    static const unsigned ms[] = { 10000, 20000, 40000, 60000, 60000 };
    for (unsigned i = 0; i < ARRAY_LEN(ms); i++) {
        now = until(s) - 1;
        failed(s, 10); /* what had begun before: not counted */
        assert_int_equal(until(s), now + 1);
        now = until(s);
        failed(s, 1); /* the trial: one is enough */
        assert_int_equal(until(s), now + ms[i]);
    }
    now = until(s);
    passed(s, 1);
    assert_int_equal(until(s), 0);
    now += 60 * 1000;
    failed(s, 5);
    assert_int_equal(until(s), now + 60000);
    now = until(s);
    passed(s, 1);
    now += 60 * 1000 + 1;
    failed(s, 5);
    assert_int_equal(until(s), now + 5000);
    close_pool(&g);
}

/* Never the last usable half: how many of n go. */
static void some_are_left(void **state)
{
    (void)state;
    static const unsigned most[] = { 0, 0, 1, 1, 2, 2, 3, 3, 4 };
    for (unsigned n = 1; n < ARRAY_LEN(most); n++) {
        struct rig g;
        unsigned gone = 0;
        open_pool(&g, n);
        for (unsigned i = 0; i < n; i++) {
            failed(&g.servers[i], 20);
            gone += server_is_ejected(&g.servers[i]);
        }
        assert_int_equal(gone, most[n]);
        close_pool(&g);
    }
}

static void who_is_out_anyway_does_not_count(void **state)
{
    (void)state;
    struct rig g;
    open_pool(&g, 4);
    health_bar(&g.servers[2], BARRED_CHECK, true, "test");
    atomic_store(&g.servers[3].n_resolved, 0);
    failed(&g.servers[2], 20); /* barred: there is nothing to take from it */
    assert_false(server_is_ejected(&g.servers[2]));
    failed(&g.servers[0], 5);
    assert_true(server_is_ejected(&g.servers[0])); /* one of two */
    failed(&g.servers[1], 20);
    assert_false(server_is_ejected(&g.servers[1])); /* the last one */
    close_pool(&g);

    open_pool(&g, 4);
    g.set.entries[2].is_backup = g.set.entries[3].is_backup = g.set.has_backup = true;
    failed(&g.servers[0], 5);
    failed(&g.servers[1], 20);
    failed(&g.servers[2], 5);
    failed(&g.servers[3], 20);
    assert_true(server_is_ejected(&g.servers[0]) && !server_is_ejected(&g.servers[1]));
    assert_true(server_is_ejected(&g.servers[2]) && !server_is_ejected(&g.servers[3]));
    close_pool(&g);
}

static void the_next_end_of_an_ejection(void **state)
{
    (void)state;
    struct rig g;
    open_pool(&g, 4);
    assert_int_equal(health_next_end(&g.u, now), 0);
    failed(&g.servers[0], 5);
    now += 1000;
    failed(&g.servers[1], 5);
    assert_int_equal(health_next_end(&g.u, now), START + 5000);
    assert_int_equal(health_next_end(&g.u, START + 5000), START + 6000);
    assert_int_equal(health_next_end(&g.u, START + 6000), 0);
    health_forgive(&g.servers[0]);
    assert_int_equal(health_next_end(&g.u, now), START + 6000);
    health_forgive(&g.servers[1]);
    assert_int_equal(health_next_end(&g.u, now), 0);
    close_pool(&g);
}

static void states_in_words(void **state)
{
    (void)state;
    struct rig g;
    char cause[HEALTH_CAUSE];
    open_pool(&g, 4);
    const struct set_entry *e = &g.set.entries[0];
    assert_string_equal(health_state(e, cause), "up");
    assert_string_equal(cause, "");
    passed(e->server, 1);
    failed(e->server, 2);
    passed(e->server, 1);
    for (unsigned i = 0; i < 3; i++)
        health_failed(e->server, "CONNECT_FAILED", ECONNREFUSED);
    assert_string_equal(health_state(e, cause), "ejected");
    assert_string_equal(cause, "CONNECT_FAILED (Connection refused), 5 of 6 attempts failed");
    health_bar(e->server, BARRED_CHECK, true, "3 failed checks");
    assert_string_equal(health_state(e, cause), "down");
    assert_string_equal(cause, "3 failed checks");
    health_bar(e->server, BARRED_CHECK, false, "2 good checks");
    health_bar(e->server, BARRED_DRAIN, true, "an operator said so");
    assert_string_equal(health_state(e, cause), "draining");
    health_bar(e->server, BARRED_DRAIN, false, "an operator said so");
    now = until(e->server);
    assert_string_equal(health_state(e, cause), "up");
    atomic_store(&e->server->n_resolved, 0);
    assert_string_equal(health_state(e, cause), "unresolved");
    close_pool(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fifth_of_five),
        cmocka_unit_test(half_of_all_at_least),
        cmocka_unit_test(what_is_older_than_ten_seconds_is_forgotten),
        cmocka_unit_test(trials),
        cmocka_unit_test(some_are_left),
        cmocka_unit_test(who_is_out_anyway_does_not_count),
        cmocka_unit_test(the_next_end_of_an_ejection),
        cmocka_unit_test(states_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
