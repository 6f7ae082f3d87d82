/* SPDX-License-Identifier: MIT */
#ifndef UPSTREAM_RESOLVE_H
#define UPSTREAM_RESOLVE_H

#include "base/addr.h"

/* The stream addresses of a name, in the system's order of preference, without repetitions; at most max. Blocks:
 * never call it on a loop's thread. 0 if there are none; *why then says so in words (a constant or
 * gai_strerror's). */
unsigned resolve_name(struct str host, uint16_t port, struct addr *out, unsigned max, const char **why);

#endif
