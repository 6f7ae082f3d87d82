/* SPDX-License-Identifier: MIT */
/* What an operator says of servers, and that a server process hears of what its predecessor was told. */
#ifndef PROC_ORDERS_H
#define PROC_ORDERS_H

#include "upstream/upstream.h"

/* A memory file for them, close-on-exec; the caller's. -1: errno; then they do not outlive the process. */
int orders_open(void) MUST_USE;
/* One order: "UPSTREAM/ADDRESS up", "... down", "... drain" or "... weight N". conf is the one in force. NULL, or why not. */
const char *orders_run(struct upstream_table *t, const struct conf *conf, struct str words) MUST_USE;
/* Writes those that hold now to the file, in the place of what it had. */
void orders_save(int fd, const struct upstream_table *t);
/* Gives those of the file once more, before any request. */
void orders_restore(int fd, struct upstream_table *t, const struct conf *conf);

#endif
