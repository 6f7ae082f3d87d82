/* SPDX-License-Identifier: MIT */
/* The clocks agree with each other and with the system's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "base/clock.h"

static void monotonic_goes_on(void **state)
{
    (void)state;
    uint64_t ms = clock_monotonic_ms(), us = clock_monotonic_us();
    assert_true(us / 1000 >= ms && us / 1000 - ms < 1000);
    struct timespec t = { .tv_nsec = 5000000 };
    nanosleep(&t, NULL);
    assert_true(clock_monotonic_us() >= us + 5000);
    assert_true(clock_monotonic_ms() >= ms + 5);
}

static void wall_is_the_time_of_day(void **state)
{
    (void)state;
    time_t before = time(NULL);
    uint64_t now = clock_wall_ms() / 1000;
    assert_true(now + 1 >= (uint64_t)before && now <= (uint64_t)time(NULL) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_goes_on),
        cmocka_unit_test(wall_is_the_time_of_day),
    };
    return cmocka_run_group_tests_name("base/clock", tests, NULL, NULL);
}
