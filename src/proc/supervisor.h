/* SPDX-License-Identifier: MIT */
/* `weir run`: the process that binds, starts servers and starts them again. */
#ifndef PROC_SUPERVISOR_H
#define PROC_SUPERVISOR_H

#include "conf/conf.h"
#include "serve/handler.h"

struct supervisor_options {
    struct conf *conf;                     /* taken over */
    const char *name;                      /* of the configuration, for the log */
    const char *path;                      /* the file that a reload loads again; NULL: there is none */
    const struct handler *const *handlers; /* by action_kind */
    const struct filter *const *filters;   /* ends with NULL */
};

/* Supervises until a signal ends it; returns the exit code (in the servers it forks too). */
int supervisor_run(const struct supervisor_options *o);

/* Is this process the new version of a supervisor that upgrades itself? Then only supervisor_resume must be called. */
bool supervisor_is_upgrade(void);
int supervisor_resume(const struct handler *const *handlers, const struct filter *const *filters);

/* What `weir check --upgrade N` is asked before an upgrade: would this version understand a state of that kind? */
bool supervisor_understands(const char *version);

#endif
