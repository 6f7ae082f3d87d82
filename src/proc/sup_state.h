/* SPDX-License-Identifier: MIT */
/*
 * What the supervisor knows, and hands to the next version of itself at an upgrade: as a text in a memory file, beside
 * the descriptors it names.
 */
#ifndef PROC_SUP_STATE_H
#define PROC_SUP_STATE_H

#include <stdio.h>
#include <sys/types.h>

#include "base/log.h"
#include "proc/listeners.h"

enum { SUP_SERVERS = 32 };

/* A server process. The last one in the list is the current one; those before it are draining. */
struct sup_server {
    pid_t pid;
    int link, calls; /* see sup_link.h; -1: closed */
    bool ready;      /* it has had a configuration in force */
    bool leaving;    /* another one has taken over */
    uint64_t started_ms;
    uint64_t generation; /* of the configuration it was started with; 0: by an earlier program */
    unsigned missed; /* pings in a row without an answer */
};

/* A file that the supervisor made and removes at the end, if it is still that one. */
struct sup_file {
    char *path; /* NULL: none */
    int fd;     /* -1: none */
    dev_t dev;
    ino_t ino;
};

struct sup_state {
    char *name, *path; /* of the configuration; path NULL: it stands in no file */
    char *error_log;
    enum log_style error_style;
    uint64_t generation; /* of the configuration in force; 0: none yet */
    int text_fd;         /* its text, sealed; -1: none yet */
    int orders_fd;       /* orders.h; -1: none */
    struct sup_file control, pid_file;
    struct listeners listeners;
    struct sup_server servers[SUP_SERVERS];
    unsigned n_servers;
    bool upgrade_asked; /* by the first server, which waits for the outcome */
};

void sup_state_init(struct sup_state *s);
void sup_server_close(struct sup_server *v);
/* Closes and frees what it holds. */
void sup_state_free(struct sup_state *s);
/* False: it could not be written. */
bool sup_state_print(FILE *f, const struct sup_state *s) MUST_USE;
/* Into an empty state. False: it is not a state of a version this one understands, or out of memory; `why` says which.
 */
bool sup_state_parse(struct sup_state *s, struct str text, const char **why) MUST_USE;
/* Calls act for every descriptor that the state names. */
void sup_state_each_fd(const struct sup_state *s, void (*act)(int fd));

#endif
