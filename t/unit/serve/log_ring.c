/* SPDX-License-Identifier: MIT */
/* The log ring: whole records in order, drops that are counted, one wake at a quarter full, memory handed back. */
#include "serve/log_ring.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>

struct seen {
    unsigned n;
    int target;
    uint64_t generation;
    size_t length;
    char text[LOG_RECORD_MAX];
};

static void keep(void *arg, int target, uint64_t generation, struct str line)
{
    struct seen *s = arg;
    s->n++;
    s->target = target;
    s->generation = generation;
    s->length = line.n;
    memcpy(s->text, line.p, line.n);
}

static struct seen seen;

static void a_record_comes_back_as_it_was(void **state)
{
    (void)state;
    struct log_ring *r = log_ring_new(4096);
    assert_non_null(r);
    seen = (struct seen){ 0 };
    assert_int_equal(log_ring_take(r, 10, keep, &seen), 0);
    assert_true(log_ring_put(r, LOG_TARGET_ERROR, 7, STR("one line\n")));
    assert_int_equal(log_ring_take(r, 10, keep, &seen), 1);
    assert_int_equal(seen.target, LOG_TARGET_ERROR);
    assert_int_equal(seen.generation, 7);
    assert_int_equal(seen.length, 9);
    assert_memory_equal(seen.text, "one line\n", 9);
    assert_int_equal(log_ring_take(r, 10, keep, &seen), 0);
    log_ring_free(r);
}

static void take_stops_at_its_limit(void **state)
{
    (void)state;
    struct log_ring *r = log_ring_new(4096);
    for (int i = 0; i < 5; i++)
        assert_true(log_ring_put(r, i, 1, STR("x\n")));
    seen = (struct seen){ 0 };
    assert_int_equal(log_ring_take(r, 3, keep, &seen), 3);
    assert_int_equal(seen.target, 2);
    assert_int_equal(log_ring_take(r, 3, keep, &seen), 2);
    assert_int_equal(seen.target, 4);
    log_ring_free(r);
}

/* Lengths that share no factor with the size bring every position to the end of memory. */
static void records_cross_the_end_of_memory(void **state)
{
    (void)state;
    struct log_ring *r = log_ring_new(1024);
    char line[200];
    for (unsigned i = 0; i < 5000; i++) {
        int n = snprintf(line, sizeof line, "%u %.*s\n", i, (int)(i % 190), "");
        size_t length = (size_t)n + i % 37;
        memset(line + n, 'a' + (int)(i % 26), i % 37);
        assert_true(log_ring_put(r, (int)i, i, str_of(line, length)));
        assert_int_equal(log_ring_take(r, 1, keep, &seen), 1);
        assert_int_equal(seen.target, (int)i);
        assert_int_equal(seen.length, length);
        assert_memory_equal(seen.text, line, length);
    }
    assert_int_equal(atomic_load(&r->dropped), 0);
    log_ring_free(r);
}

static void a_full_ring_drops_and_counts(void **state)
{
    (void)state;
    struct log_ring *r = log_ring_new(1024);
    unsigned put = 0;
    while (log_ring_put(r, 0, 1, STR("0123456789012345678901234567890\n")))
        put++;
    assert_int_equal(put, 1024 / (16 + 32));
    assert_false(log_ring_put(r, 0, 1, STR("0123456789012345678901234567890\n")));
    assert_int_equal(atomic_load(&r->dropped), 2);
    seen = (struct seen){ 0 };
    assert_int_equal(log_ring_take(r, 1000, keep, &seen), put);
    assert_true(log_ring_put(r, 9, 1, STR("again\n")));
    assert_int_equal(log_ring_take(r, 1000, keep, &seen), 1);
    assert_int_equal(seen.target, 9);
    log_ring_free(r);
}

static void a_long_record_is_cut_and_still_a_line(void **state)
{
    (void)state;
    struct log_ring *r = log_ring_new(LOG_RING_SIZE);
    static char line[LOG_RECORD_MAX + 100];
    memset(line, 'x', sizeof line);
    assert_true(log_ring_put(r, 0, 1, str_of(line, sizeof line)));
    assert_int_equal(log_ring_take(r, 1, keep, &seen), 1);
    assert_int_equal(seen.length, LOG_RECORD_MAX);
    assert_int_equal(seen.text[LOG_RECORD_MAX - 1], '\n');
    assert_int_equal(seen.text[LOG_RECORD_MAX - 2], 'x');
    log_ring_free(r);
}

static void count_wake(void *arg)
{
    ++*(unsigned *)arg;
}

static void the_writer_is_woken_once_per_quarter(void **state)
{
    (void)state;
    unsigned woken = 0;
    struct log_ring *r = log_ring_new(1024);
    r->wake = count_wake;
    r->wake_arg = &woken;
    for (int i = 0; i < 5; i++)
        assert_true(log_ring_put(r, 0, 1, STR("0123456789012345678901234567890\n")));
    assert_int_equal(woken, 0);
    for (int i = 0; i < 10; i++)
        assert_true(log_ring_put(r, 0, 1, STR("0123456789012345678901234567890\n")));
    assert_int_equal(woken, 1);
    log_ring_take(r, 1000, keep, &seen);
    for (int i = 0; i < 6; i++)
        assert_true(log_ring_put(r, 0, 1, STR("0123456789012345678901234567890\n")));
    assert_int_equal(woken, 2);
    log_ring_free(r);
}

/* Three laps around the ring leave no more in memory than a few steps. */
static void what_was_read_costs_no_memory(void **state)
{
    (void)state;
    struct log_ring *r = log_ring_new(LOG_RING_SIZE);
    static char line[1000];
    memset(line, 'x', sizeof line);
    for (unsigned i = 0; i < 3u * LOG_RING_SIZE / 1000; i++) {
        assert_true(log_ring_put(r, 0, 1, str_of(line, sizeof line)));
        if (i % 50 == 0)
            log_ring_take(r, 1000, keep, &seen);
    }
    log_ring_take(r, 1000, keep, &seen);
    static unsigned char resident[LOG_RING_SIZE / 4096];
    assert_int_equal(mincore(r->bytes, LOG_RING_SIZE, resident), 0);
    unsigned pages = 0;
    for (size_t i = 0; i < sizeof resident; i++)
        pages += resident[i] & 1;
    assert_in_range(pages, 1, 64);
    log_ring_free(r);
}

enum { MANY = 200000 };

static void *produce(void *arg)
{
    struct log_ring *r = arg;
    char line[64];
    for (unsigned i = 0; i < MANY; i++) {
        int n = snprintf(line, sizeof line, "%u %.*s\n", i, (int)(i % 31), "abcdefghijklmnopqrstuvwxyzabcde");
        while (!log_ring_put(r, 0, i, str_of(line, (size_t)n)))
            sched_yield();
    }
    return NULL;
}

struct order {
    uint64_t next;
    bool broken;
};

static void check_order(void *arg, int target, uint64_t generation, struct str line)
{
    struct order *o = arg;
    char want[64];
    int n = snprintf(want, sizeof want, "%llu %.*s\n", (unsigned long long)o->next, (int)(o->next % 31),
                     "abcdefghijklmnopqrstuvwxyzabcde");
    o->broken |= target != 0 || generation != o->next || !str_eq(line, str_of(want, (size_t)n));
    o->next++;
}

static void two_threads_see_every_record_whole_and_in_order(void **state)
{
    (void)state;
    struct log_ring *r = log_ring_new(1024 * 1024);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, produce, r), 0);
    struct order o = { 0 };
    while (o.next < MANY && !o.broken)
        if (log_ring_take(r, 512, check_order, &o) == 0)
            sched_yield();
    assert_false(o.broken);
    pthread_join(t, NULL);
    assert_int_equal(log_ring_take(r, 512, check_order, &o), 0);
    log_ring_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_comes_back_as_it_was),
        cmocka_unit_test(take_stops_at_its_limit),
        cmocka_unit_test(records_cross_the_end_of_memory),
        cmocka_unit_test(a_full_ring_drops_and_counts),
        cmocka_unit_test(a_long_record_is_cut_and_still_a_line),
        cmocka_unit_test(the_writer_is_woken_once_per_quarter),
        cmocka_unit_test(what_was_read_costs_no_memory),
        cmocka_unit_test(two_threads_see_every_record_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
