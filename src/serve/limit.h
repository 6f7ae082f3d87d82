/* SPDX-License-Identifier: MIT */
/* Counting what each key (a client's address, usually) has asked for: limits.requests and limits.in_flight. One table of each
 * for all loops of a server. */
#ifndef SERVE_LIMIT_H
#define SERVE_LIMIT_H

#include "base/addr.h"
#include "base/check.h"

enum { LIMIT_ENTRIES = 128 * 1024 }; /* keys of each table */

struct limiter;

/* NULL: no memory (or no randomness for the hash). Pages that are never used cost nothing. */
struct limiter *limiter_new(void) MUST_USE;
void limiter_free(struct limiter *l);

/* What is counted for a key of the limit with that id: never 0. limit_key_ip takes an IPv4 address whole and of IPv6 the /64. */
uint64_t limit_key(const struct limiter *l, uint64_t id, struct str key);
uint64_t limit_key_ip(const struct limiter *l, uint64_t id, const struct ip *ip);

/* A token bucket of `burst`, a token more every interval_us. True: one was taken. False: *wait_us until there is one. now_us is
 * a clock that all callers share, which may be a little behind. Any thread. */
bool limit_rate(struct limiter *l, uint64_t key, uint64_t burst, uint64_t interval_us, uint64_t now_us, uint64_t *wait_us) MUST_USE;

enum limit_entry { LIMIT_ENTERED, LIMIT_FULL, LIMIT_UNCOUNTED };
/* One more of the key at the same time. LIMIT_UNCOUNTED: the table had no room; let it pass. Any thread. */
enum limit_entry limit_enter(struct limiter *l, uint64_t key, uint64_t max) MUST_USE;
/* After LIMIT_ENTERED, once. */
void limit_leave(struct limiter *l, uint64_t key);

#endif
