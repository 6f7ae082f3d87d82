/* SPDX-License-Identifier: MIT */
/*
 * What requests tell about a server, and what its checks (check.c) and an operator say: whether it may have more of
 * them. Each change is one line in the log: which event, until when.
 */
#ifndef UPSTREAM_HEALTH_H
#define UPSTREAM_HEALTH_H

#include "upstream/upstream.h"

/* A server that fails too often is left alone for a while, unless too few would remain. `what`: the failure's symbol;
 * error: an errno or 0. Any loop's thread, with a slot of the server taken. */
void health_failed(struct server *s, const char *what, int error);
/* It has answered. Costs two loads while all is well. */
void health_passed(struct server *s);
/* Sets or takes back one of BARRED_. `cause` is for people: status shows it while the bit stands. Logs a change. Those
 * who wait are looked at. Any thread. */
void health_bar(struct server *s, unsigned bit, bool is_on, const char *cause);
/* When the next ejection of a server of u ends (clock_monotonic_ms); 0: nobody is ejected. A loop's thread. */
uint64_t health_next_end(struct upstream *u, uint64_t now);
/* Ends what health_failed has begun. */
void health_forgive(struct server *s);

enum { HEALTH_CAUSE = 160 };
/* What a server is good for now, in words ("up", "down", "draining", "ejected", "unresolved"), and why. Any thread. */
const char *health_state(const struct set_entry *e, char cause[HEALTH_CAUSE]);

#endif
