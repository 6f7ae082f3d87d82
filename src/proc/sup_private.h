/* SPDX-License-Identifier: MIT */
/* Between supervisor.c and upgrade.c only. */
#ifndef PROC_SUP_PRIVATE_H
#define PROC_SUP_PRIVATE_H

#include "proc/supervisor.h"
#include "proc/sup_state.h"

enum { SUP_SAID = 2000 };

/* The `weir check` of an upgrade that is under way. */
struct sup_check {
    pid_t pid;   /* 0: none */
    int out;     /* what it prints; -1: closed */
    int asker;   /* link of the server that asked for it; -1: a signal did */
    uint64_t until;
    size_t n;
    char said[SUP_SAID];
};

struct supervisor {
    struct sup_state state;
    const struct handler *const *handlers;
    const struct filter *const *filters;
    int signal_fd;
    int outcome;        /* exit code at the end */
    bool stopping;
    bool is_server;     /* this is the process of a server, after fork */
    bool reload_waits;  /* HUP while there was no server */
    unsigned restarts;
    unsigned delay_ms;  /* before the last restart */
    uint64_t restart_at; /* 0: none is planned */
    uint64_t ping_at;
    unsigned ping_every_ms;
    bool has_watchdog;  /* the service manager wants to hear of it */
    int control_error;  /* why there is no control socket */
    struct sup_check check;
};

/* The server that serves, the newest that is ready and not leaving; NULL: none. */
struct sup_server *sup_current(struct supervisor *s);

/* Starts an upgrade; asker: as in sup_check. */
void upgrade_begin(struct supervisor *s, int asker);
/* The check's output can be read. */
void upgrade_read(struct supervisor *s);
/* The check has ended. Returns only if nothing came of it: the new version takes over this very process. */
void upgrade_checked(struct supervisor *s, int status);
/* The check takes too long, or the supervisor ends. */
void upgrade_give_up(struct supervisor *s);
/* Reads the state that the old version has left. False: logged. */
bool upgrade_take_state(struct sup_state *state) MUST_USE;

#endif
