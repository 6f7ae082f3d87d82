/* SPDX-License-Identifier: MIT */
/*
 * Active health checks: one thread with a loop of its own asks each server that has `health`, once for the whole
 * process, whatever the number of loops. The thread exists from the first configuration on that needs it.
 */
#ifndef UPSTREAM_CHECK_H
#define UPSTREAM_CHECK_H

#include "upstream/upstream.h"

/* What a server's checks have shown so far. */
struct check_run {
    unsigned good, bad; /* in a row */
    bool is_down;
};

enum check_change { CHECK_SAME, CHECK_DOWN, CHECK_UP };

/* One more result: down after `fall` bad ones in a row, up again after `rise` good ones. */
enum check_change check_count(struct check_run *run, bool is_good, const struct health_conf *health);

struct checks;

struct checks *checks_new(void) MUST_USE;
/* Checks what this configuration says and nothing else; what is known of a server stays. Main thread, after
 * upstream_table_apply. False: errno, the checks are as they were. */
bool checks_apply(struct checks *c, const struct conf *conf, struct upstream *const *by_index) MUST_USE;
/* Ends the thread. Before upstream_table_free; c may be NULL. */
void checks_free(struct checks *c);

#endif
