/* SPDX-License-Identifier: MIT */
/* Token buckets and counts of requests in flight: what passes, when, and what a full table does. */
#include "serve/limit.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { S = 1000 * 1000 };

static struct limiter *l;

static int setup(void **state)
{
    (void)state;
    l = limiter_new();
    return l == NULL;
}

static int teardown(void **state)
{
    (void)state;
    limiter_free(l);
    return 0;
}

static void a_bucket_fills_at_its_rate(void **state)
{
    uint64_t wait, now = 1000 * (uint64_t)S, key = limit_key(l, 1, STR("a"));
    (void)state;
    for (unsigned i = 0; i < 5; i++)
        assert_true(limit_rate(l, key, 5, S / 10, now, &wait));
    assert_false(limit_rate(l, key, 5, S / 10, now, &wait));
    assert_int_equal(wait, S / 10);
    assert_false(limit_rate(l, key, 5, S / 10, now + S / 10 - 1, &wait));
    assert_int_equal(wait, 1);
    assert_true(limit_rate(l, key, 5, S / 10, now + S / 10, &wait));
    assert_false(limit_rate(l, key, 5, S / 10, now + S / 10, &wait));
    for (unsigned i = 0; i < 5; i++) /* never more than burst, however long it rests */
        assert_true(limit_rate(l, key, 5, S / 10, now + 100 * S, &wait));
    assert_false(limit_rate(l, key, 5, S / 10, now + 100 * S, &wait));
}

static void a_lower_limit_does_not_punish_for_the_former(void **state)
{
    uint64_t wait, now = 1000 * (uint64_t)S, key = limit_key(l, 1, STR("a"));
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_true(limit_rate(l, key, 1000, 60 * (uint64_t)S, now, &wait));
    assert_false(limit_rate(l, key, 2, S, now, &wait));
    assert_in_range(wait, 1, S);
}

static void a_loop_whose_clock_is_behind_takes_nothing_from_the_burst(void **state)
{
    uint64_t wait, now = 1000 * (uint64_t)S, key = limit_key(l, 1, STR("a"));
    (void)state;
    assert_true(limit_rate(l, key, 3, 1800 * (uint64_t)S, now, &wait));
    assert_true(limit_rate(l, key, 3, 1800 * (uint64_t)S, now - 2000, &wait));
    assert_true(limit_rate(l, key, 3, 1800 * (uint64_t)S, now - 1000, &wait));
    assert_false(limit_rate(l, key, 3, 1800 * (uint64_t)S, now, &wait));
}

static void keys_and_limits_are_apart(void **state)
{
    uint64_t wait, now = 1000 * (uint64_t)S;
    const char *const keys[] = { "a", "b", "" };
    (void)state;
    for (uint64_t id = 1; id < 4; id++)
        for (unsigned i = 0; i < ARRAY_LEN(keys); i++) {
            assert_true(limit_rate(l, limit_key(l, id, str_c(keys[i])), 1, S, now, &wait));
            assert_false(limit_rate(l, limit_key(l, id, str_c(keys[i])), 1, S, now, &wait));
        }
}

static uint64_t of(const char *address)
{
    struct ip ip;
    assert_true(ip_parse(str_c(address), &ip));
    return limit_key_ip(l, 7, &ip);
}

static void ipv6_goes_by_its_64(void **state)
{
    (void)state;
    assert_true(of("2001:db8:0:1::1") == of("2001:db8:0:1:ffff::2"));
    assert_true(of("2001:db8:0:1::1") != of("2001:db8:0:2::1"));
    assert_true(of("192.0.2.1") != of("192.0.2.2"));
    assert_true(of("192.0.2.1") == of("::ffff:192.0.2.1"));
}

static void a_flood_of_keys_forgets_the_idle_ones_first(void **state)
{
    char name[32];
    uint64_t wait, now = 1000 * (uint64_t)S, busy = limit_key(l, 1, STR("busy"));
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        assert_true(limit_rate(l, busy, 100, S, now, &wait));
    for (unsigned i = 0; i < 4 * LIMIT_ENTRIES; i++) {
        snprintf(name, sizeof name, "%u", i);
        assert_true(limit_rate(l, limit_key(l, 1, str_c(name)), 100, S, now, &wait));
    }
    assert_false(limit_rate(l, busy, 100, S, now, &wait));
}

static void in_flight(void **state)
{
    uint64_t key = limit_key(l, 1, STR("a"));
    (void)state;
    assert_int_equal(limit_enter(l, key, 2), LIMIT_ENTERED);
    assert_int_equal(limit_enter(l, key, 2), LIMIT_ENTERED);
    assert_int_equal(limit_enter(l, key, 2), LIMIT_FULL);
    assert_int_equal(limit_enter(l, limit_key(l, 2, STR("a")), 1), LIMIT_ENTERED);
    limit_leave(l, key);
    assert_int_equal(limit_enter(l, key, 2), LIMIT_ENTERED);
    assert_int_equal(limit_enter(l, key, 2), LIMIT_FULL);
}

static void who_counts_is_never_forgotten(void **state)
{
    uint64_t *entered = malloc(3 * LIMIT_ENTRIES * sizeof *entered);
    unsigned n = 0;
    (void)state;
    assert_non_null(entered);
    for (unsigned i = 0; i < 3 * LIMIT_ENTRIES; i++) {
        uint64_t key = limit_key(l, 1, str_of((const char *)&i, sizeof i));
        if (limit_enter(l, key, 1) == LIMIT_ENTERED)
            entered[n++] = key;
    }
    assert_in_range(n, LIMIT_ENTRIES - LIMIT_ENTRIES / 100, LIMIT_ENTRIES); /* a few places draw no key */
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(limit_enter(l, entered[i], 1), LIMIT_FULL);
    for (unsigned i = 0; i < n; i++)
        limit_leave(l, entered[i]);
    assert_int_equal(limit_enter(l, entered[0], 1), LIMIT_ENTERED);
    free(entered);
}

enum { THREADS = 4, TRIES = 20000 };
static atomic_uint passed, inside;
static atomic_bool too_many;

static void *hammer(void *arg)
{
    uint64_t wait, key = *(const uint64_t *)arg;
    for (unsigned i = 0; i < TRIES; i++) {
        atomic_fetch_add(&passed, limit_rate(l, key, 1000, S, 1000 * (uint64_t)S, &wait) ? 1u : 0u);
        if (limit_enter(l, key, 2) != LIMIT_ENTERED)
            continue;
        if (atomic_fetch_add(&inside, 1) >= 2)
            atomic_store(&too_many, true);
        atomic_fetch_sub(&inside, 1);
        limit_leave(l, key);
    }
    return NULL;
}

static void exact_over_threads(void **state)
{
    pthread_t threads[THREADS];
    uint64_t key = limit_key(l, 1, STR("a"));
    (void)state;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &key), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(passed, 1000);
    assert_false(too_many);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_bucket_fills_at_its_rate),
        T(a_lower_limit_does_not_punish_for_the_former),
        T(a_loop_whose_clock_is_behind_takes_nothing_from_the_burst),
        T(keys_and_limits_are_apart),
        T(ipv6_goes_by_its_64),
        T(a_flood_of_keys_forgets_the_idle_ones_first),
        T(in_flight),
        T(who_counts_is_never_forgotten),
        T(exact_over_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
