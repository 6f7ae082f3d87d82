/* SPDX-License-Identifier: MIT */
/* The server process: loops on threads, and the main thread that waits for signals. */
#ifndef PROC_SERVER_H
#define PROC_SERVER_H

#include "conf/conf.h"
#include "proc/listeners.h"
#include "serve/handler.h"

struct server_options {
    struct conf *conf;                     /* taken over */
    struct listeners *listeners;           /* the caller's; the server watches them, and changes them with reloads */
    const char *name;                      /* of the configuration, for the log */
    const char *path;                      /* the file that HUP loads again; NULL: there is none */
    const struct handler *const *handlers; /* by action_kind */
    const struct filter *const *filters;   /* ends with NULL */
    int orders_fd; /* orders.h; -1: none. The caller's. */
    int control_fd;                        /* listening control socket, taken over; -1: none */
    int control_error;                     /* why there is none; 0: nobody wants one */
    int link, calls;                       /* to the supervisor (sup_link.h) */
    uint64_t generation;                   /* of the configuration: it goes on counting where another server ended */
    unsigned restarts;                     /* crashes before this one */
};

/* Holds signals back until server_run reads them. Before the sockets are opened: whoever can connect may also send one.
 */
void server_catch_signals(void);
/* Serves until a signal ends it. The exit code: 0, or 1 when it could not start (logged). */
int server_run(const struct server_options *o);

#endif
