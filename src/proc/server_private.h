/* SPDX-License-Identifier: MIT */
/* Between server.c, stages.c and commands.c only: the server process as its main thread sees it. */
#ifndef PROC_SERVER_PRIVATE_H
#define PROC_SERVER_PRIVATE_H

#include <pthread.h>

#include "proc/addresses.h"
#include "proc/control.h"
#include "proc/generation.h"
#include "proc/loader.h"
#include "proc/log_writer.h"
#include "proc/server.h"
#include "proc/sup_link.h"
#include "proc/watchdog.h"
#include "serve/worker.h"
#include "upstream/check.h"

enum stage { STAGE_SERVING, STAGE_LAME_DUCK, STAGE_DRAINING, STAGE_ENDING };

struct loop_thread {
    struct process *process;
    struct worker *worker;
    struct log_ring *ring;
    pthread_t thread;
    bool runs;
    char name[16];
    int cpu; /* -1: anywhere */
    atomic_bool accepts;
    atomic_bool ended;
    struct watched watched;
    struct mail accepts_no_more;
};

struct process {
    const struct server_options *o;
    struct server_shared shared;
    struct log_writer *logs;
    struct upstream_table *upstreams;
    struct checks *checks;
    struct generation *generations; /* newest first; the first one is in force */
    struct loop_thread *threads;
    unsigned n_threads;
    struct worker **workers; /* of the threads */
    struct addresses addresses;
    atomic_uint running; /* loop threads that have not ended */
    int signal_fd, wake_fd;
    struct loader loader;
    bool is_taking;    /* a new generation is in force, but some loop has not adopted it yet */
    bool reload_again; /* HUP came during a load */
    struct control *control;              /* NULL: no control socket */
    uint64_t started_ms;
    uint64_t descriptors; /* how many there may be */
    unsigned asked[CONTROL_CLIENTS];      /* who waits for the load that runs ... */
    unsigned asked_again[CONTROL_CLIENTS]; /* ... and for the one after it */
    unsigned n_asked, n_asked_again;
    enum stage stage;
    bool deaf;                    /* the sockets listen no more */
    bool told[2];                 /* to end: by a signal of its own, by one that the supervisor passed on */
    bool orphaned;                /* the supervisor has gone */
    bool handed_over;             /* another server has taken over */
    bool sent_no_more;            /* the loops have been told to accept no more */
    unsigned upgrade_asker;       /* waits for an upgrade; 0: nobody */
    uint64_t stage_until, end_at; /* 0: never */
    uint64_t resolve_at;          /* 0: no names */
    uint64_t resolve_delay;       /* the last one before that */
    uint64_t watch_at;
};

/* --- server.c */

static inline const struct conf *server_conf(const struct process *p)
{
    return p->generations->snapshot.conf;
}

/* What the load found is not yet told. */
static inline bool server_is_loading(const struct process *p)
{
    return p->loader.runs || p->is_taking;
}

static inline unsigned long long server_generation(const struct process *p)
{
    return (unsigned long long)p->generations->snapshot.generation;
}

void server_wake(const struct process *p);
void server_say(const struct process *p, enum link_kind kind);
/* What an operator said of servers, for the process that comes after this one. */
void server_save_orders(const struct process *p);
void server_stop_workers(struct process *p, bool now);
/* Why a reload cannot even begin; NULL: it can. */
const char *server_reload_obstacle(const struct process *p);
void server_reload(struct process *p);

/* --- stages.c */

/* Drains, or ends at once; so does a second call. */
void stages_stop(struct process *p, bool now);
/* Another server accepts on the same sockets. */
void stages_hand_over(struct process *p);
/* Moves on when it is time, or when no loop accepts any more. */
void stages_tick(struct process *p, uint64_t now);
/* When the next stage is due; UINT64_MAX: never. */
uint64_t stages_due(const struct process *p);

/* --- commands.c */

/* A control_fn; arg is the process. */
void commands_run(void *arg, enum control_verb verb, struct str words, unsigned who);
/* Tells everyone who asked for the load that has just ended. */
void commands_answer_reload(struct process *p, bool is_taken);
/* Tells who asked for an upgrade; `why` NULL: it has succeeded. */
void commands_answer_upgrade(struct process *p, const char *why);

#endif
