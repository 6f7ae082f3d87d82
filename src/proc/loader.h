/* SPDX-License-Identifier: MIT */
/* The short-lived thread that loads a configuration again, or resolves names, while the server goes on. */
#ifndef PROC_LOADER_H
#define PROC_LOADER_H

#include <pthread.h>

#include "proc/generation.h"
#include "proc/listeners.h"
#include "proc/log_writer.h"

enum loader_job { LOADER_CONF, LOADER_NAMES };

/* Fill the first group, zero the rest. The main thread's. */
struct loader {
    const char *path; /* of the configuration; NULL: there is no file to load again */
    struct log_writer *logs;
    struct upstream_table *upstreams;
    unsigned n_loops;
    const struct listeners *listeners; /* in use; nobody changes them while a load runs */
    int calls;                         /* to the supervisor */
    int wake_fd; /* written to when the job is done */
    const struct handler *const *handlers; /* by action_kind */

    pthread_t thread;
    bool runs;
    atomic_bool done;
    enum loader_job job;
    const struct conf *in_force;
    uint64_t number;
    struct generation *result;
    char *findings; /* lines, of the last load; the loader's until the next one starts */
    struct listeners opened; /* addresses that the result has and `listeners` has not: whoever collects takes them */
    char *changes;  /* what it changed (conf/diff.h); NULL if it was refused */
};

/* Starts a job; only while none runs. in_force must live until it is collected; `number` is the generation that is to
 * come of it. False: errno. */
bool loader_start(struct loader *l, enum loader_job job, const struct conf *in_force, uint64_t number) MUST_USE;
/* The job has ended: its thread is joined. The new generation, or NULL: what was wrong has been logged. Waits if it is
 * not done. */
struct generation *loader_collect(struct loader *l);

/* Frees what the last load said. */
void loader_free(struct loader *l);
/* Logs every finding of a load, one record per line. */
void loader_log_findings(struct conf_result *r);

#endif
