/* SPDX-License-Identifier: MIT */
/* When a loop is called silent and when dead: by questions without an answer that count. */
#include "proc/watchdog.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SILENT = WATCHDOG_SILENT_MS / WATCHDOG_TICK_MS, DEAD = WATCHDOG_DEAD_MS / WATCHDOG_TICK_MS };

/* The loop turns once. */
static void turn(struct loop *l)
{
    ev_run(l->ev, EVRUN_NOWAIT);
}

static void a_loop_that_turns_is_fine(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    struct watched w = { 0 };
    for (int i = 0; i < 3 * DEAD; i++) {
        assert_int_equal(watchdog_tick(&w, l, true), WATCH_FINE);
        turn(l);
    }
    loop_free(l);
}

static void one_that_does_not_is_silent_and_then_dead_once_each(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    struct watched w = { 0 };
    assert_int_equal(watchdog_tick(&w, l, true), WATCH_FINE); /* the question */
    for (int i = 1; i < 2 * DEAD; i++)
        assert_int_equal(watchdog_tick(&w, l, true), i == SILENT ? WATCH_SILENT : i == DEAD ? WATCH_DEAD : WATCH_FINE);
    loop_free(l);
}

static void one_that_turns_again_begins_anew(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    struct watched w = { 0 };
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SILENT; i++)
            assert_int_equal(watchdog_tick(&w, l, true), WATCH_FINE);
        turn(l);
    }
    loop_free(l);
}

static void time_in_which_the_process_stood_still_does_not_count(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    struct watched w = { 0 };
    for (int i = 0; i < 2 * DEAD; i++)
        assert_int_equal(watchdog_tick(&w, l, false), WATCH_FINE);
    assert_int_equal(w.missed, 0);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_turns_is_fine),
        cmocka_unit_test(one_that_does_not_is_silent_and_then_dead_once_each),
        cmocka_unit_test(one_that_turns_again_begins_anew),
        cmocka_unit_test(time_in_which_the_process_stood_still_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
