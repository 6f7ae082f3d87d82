/* SPDX-License-Identifier: MIT */
/*
 * The two clocks, as integers. Loops read them once per turn and everything in a turn uses that value;
 * only start-up code, threads without a loop and measurements call these directly.
 */
#include "base/clock.h"

#include <time.h>

static uint64_t read_us(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t); /* cannot fail for these two clocks */
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t clock_monotonic_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

uint64_t clock_monotonic_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

uint64_t clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}
