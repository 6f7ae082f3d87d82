/* SPDX-License-Identifier: MIT */
/* What the running server is doing now, as one JSON object. */
#ifndef PROC_STATUS_H
#define PROC_STATUS_H

#include <stdio.h>

#include "serve/worker.h"

struct status_facts {
    const struct snapshot *snapshot; /* in force */
    struct worker *const *workers;
    unsigned n_workers;
    const struct server_shared *shared;
    const char *name; /* of the configuration */
    const char *path; /* its file; NULL: there is none */
    uint64_t started_ms; /* clock_monotonic_ms */
    uint64_t log_lines_dropped;
    unsigned restarts; /* servers that crashed before this one */
    bool draining;
};

/* Writes the object without a newline. Loads the file at `path` to say whether it differs from what is in force. Main
 * thread. */
void status_print(FILE *f, const struct status_facts *facts);

#endif
