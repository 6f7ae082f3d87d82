/* SPDX-License-Identifier: MIT */
/* Deadlines: order, the sixteenth rule, clearing, re-setting from inside fire, reuse of lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "net/deadline.h"

enum { N = 40 };

/* The linker sends every calloc of the code under test here; it can run out of memory. */
static int allocations_left = -1; /* -1: no limit */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    if (allocations_left == 0)
        return NULL;
    if (allocations_left > 0)
        allocations_left--;
    return __real_calloc(n, size);
}

static struct loop *l;
static struct deadline ds[N];
static int order[64], fired;
static uint64_t fired_at[N];
static int stop_after;

static void fire(struct deadline *d)
{
    int i = (int)(d - ds);
    assert_null(d->list);
    fired_at[i] = l->now_ms;
    if (fired < 64)
        order[fired] = i;
    if (++fired == stop_after)
        loop_stop(l);
}

static int set_up(void **state)
{
    (void)state;
    l = loop_new(0);
    memset(ds, 0, sizeof ds);
    fired = 0;
    stop_after = 0;
    return l == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    loop_free(l);
    return 0;
}

static void set(int i, uint64_t ms)
{
    deadline_set(l, &ds[i], DEADLINE_RECV, ms, fire);
}

static void they_fire_in_order_and_in_time(void **state)
{
    (void)state;
    uint64_t start = l->now_ms;
    set(0, 60);
    set(1, 20);
    set(2, 40);
    set(3, 20);
    stop_after = 4;
    loop_run(l);
    static const int expected[] = { 1, 3, 2, 0 };
    assert_memory_equal(order, expected, sizeof expected);
    static const uint64_t ms[] = { 60, 20, 40, 20 };
    for (int i = 0; i < 4; i++) {
        assert_true(fired_at[i] >= start + ms[i]);
        assert_true(fired_at[i] < start + ms[i] + 500);
    }
}

static void progress_appends_again_only_after_a_sixteenth(void **state)
{
    (void)state;
    l->now_ms = 1000000;
    set(0, 1600);
    set(1, 1600);
    uint64_t due = ds[0].at_ms;
    assert_true(due == 1001600);
    l->now_ms += 99;
    set(0, 1600);
    assert_true(ds[0].at_ms == due); /* nothing moved */
    assert_ptr_equal(ds[0].link.next, &ds[1].link);
    l->now_ms += 1;
    set(0, 1600);
    assert_true(ds[0].at_ms == due + 100);
    assert_ptr_equal(ds[1].link.next, &ds[0].link); /* now the last */
    l->now_ms += 1;
    deadline_set(l, &ds[0], DEADLINE_SEND, 1600, fire); /* another name is another deadline */
    assert_true(ds[0].at_ms == due + 101);
    assert_int_equal(ds[0].name, DEADLINE_SEND);
    deadline_set(l, &ds[0], DEADLINE_SEND, 100, fire);
    assert_true(ds[0].at_ms == l->now_ms + 100);
}

static void cleared_ones_do_not_fire(void **state)
{
    (void)state;
    deadline_clear(&ds[0]); /* zeroed: harmless */
    set(0, 20);
    set(1, 20);
    set(2, 20);
    deadline_clear(&ds[1]);
    deadline_clear(&ds[1]);
    set(0, 0); /* no limit */
    assert_null(ds[0].list);
    stop_after = 1;
    loop_run(l);
    assert_int_equal(fired, 1);
    assert_int_equal(order[0], 2);
}

static void fire_clear_next(struct deadline *d)
{
    fire(d);
    deadline_clear(&ds[1]);
}

static void one_may_clear_another_that_is_due(void **state)
{
    (void)state;
    deadline_set(l, &ds[0], DEADLINE_HEAD, 20, fire_clear_next);
    set(1, 20);
    set(2, 20);
    stop_after = 2;
    loop_run(l);
    assert_int_equal(fired, 2);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 2);
}

static void fire_and_set(struct deadline *d)
{
    fire(d);
    deadline_set(l, d, DEADLINE_HEAD, 400, fire_and_set);
}

/* The list's timer must follow its head, not what fire() has appended. */
static void setting_from_inside_does_not_delay_the_next(void **state)
{
    (void)state;
    deadline_set(l, &ds[0], DEADLINE_HEAD, 400, fire_and_set);
    uint64_t first = l->now_ms;
    l->now_ms += 30;
    set(1, 400);
    stop_after = 2;
    loop_run(l);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 1);
    assert_true(fired_at[1] >= first + 430 && fired_at[1] < first + 430 + 300);
    assert_non_null(ds[0].list);
}

static void the_head_is_followed_after_a_clear(void **state)
{
    (void)state;
    uint64_t start = l->now_ms;
    set(0, 100);
    l->now_ms += 60;
    set(1, 100);
    deadline_clear(&ds[0]); /* the timer is set for this one */
    stop_after = 1;
    loop_run(l);
    assert_int_equal(order[0], 1);
    assert_true(fired_at[1] >= start + 160);
}

static void many_durations(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++)
        set(i, 10 + (uint64_t)((i * 17) % N)); /* all different, not in order */
    stop_after = N;
    loop_run(l);
    assert_int_equal(fired, N);
    /* Empty lists take new durations over, and what is set on them is right. */
    uint64_t start = l->now_ms;
    fired = 0;
    for (int round = 0; round < 1000; round++) {
        set(0, 1000 + (uint64_t)round);
        assert_true(ds[0].at_ms == start + 1000 + (uint64_t)round);
    }
    set(1, 5);
    stop_after = 1;
    loop_run(l);
    assert_int_equal(order[0], 1);
    deadline_clear(&ds[0]);
}

static ev_io reader;

static void on_readable(struct ev_loop *ev, ev_io *w, int revents)
{
    (void)revents;
    order[fired++] = 99;
    ev_io_stop(ev, w);
    deadline_clear(&ds[0]);
}

/* Bytes that have arrived count before the deadline that falls due in the same turn. */
static void io_comes_first(void **state)
{
    (void)state;
    set(0, 1);
    set(1, 2);
    ev_io_init(&reader, on_readable, l->mailbox.fd, EV_WRITE); /* an eventfd is always writable */
    ev_io_start(l->ev, &reader);
    ev_sleep(0.02);
    stop_after = 2;
    loop_run(l);
    assert_int_equal(order[0], 99);
    assert_int_equal(order[1], 1);
}

static void without_memory_the_nearest_longer_list_serves(void **state)
{
    (void)state;
    set(0, 30);
    uint64_t now = l->now_ms;
    allocations_left = 0;
    set(1, 20); /* would be due at 20 */
    set(2, 90000); /* longer than any */
    allocations_left = -1;
    assert_true(ds[1].at_ms == now + 30);
    assert_ptr_equal(ds[1].list, ds[0].list);
    assert_true(ds[2].at_ms == now + 60000);
    stop_after = 2;
    loop_run(l);
    assert_int_equal(order[1], 1);
    deadline_clear(&ds[2]);
    allocations_left = 0;
    assert_null(loop_new(1));
    allocations_left = 2;
    assert_null(loop_new(1));
    allocations_left = -1;
}

static void names(void **state)
{
    (void)state;
    for (int i = DEADLINE_NONE; i <= DEADLINE_TUNNEL; i++)
        assert_string_not_equal(deadline_name((enum deadline_name)i), "?");
    assert_string_equal(deadline_name(DEADLINE_CONNECT), "connect");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_fire_in_order_and_in_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(progress_appends_again_only_after_a_sixteenth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cleared_ones_do_not_fire, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_may_clear_another_that_is_due, set_up, tear_down),
        cmocka_unit_test_setup_teardown(setting_from_inside_does_not_delay_the_next, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_head_is_followed_after_a_clear, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_durations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(io_comes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_memory_the_nearest_longer_list_serves, set_up, tear_down),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests_name("net/deadline", tests, NULL, NULL);
}
