/* SPDX-License-Identifier: MIT */
/* Time. Milliseconds of CLOCK_MONOTONIC for durations, CLOCK_REALTIME for what people read. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_monotonic_ms(void);
uint64_t clock_monotonic_us(void);
/* Milliseconds since 1970-01-01 UTC. */
uint64_t clock_wall_ms(void);

#endif
