/* SPDX-License-Identifier: MIT */
/*
 * What one loop thread owns above the event loop: the snapshot in force, clients, handlers' per-loop state, counters, the log
 * ring. Everything is touched by the loop's own thread only, except the counters (relaxed atomics others may sum) and the mailbox.
 */
#ifndef SERVE_WORKER_H
#define SERVE_WORKER_H

#include "conf/conf.h"
#include "http/date.h"
#include "net/listen.h"
#include "net/loop.h"
#include "serve/fail.h"
#include "serve/log_ring.h"
#include "serve/snapshot.h"

struct handler;
struct filter;
struct request;
struct client;
struct auth;
struct limiter;

/* Shared by all workers of a server; atomics. */
struct server_shared {
    atomic_uint clients;       /* open client connections, tunnels included */
    atomic_uint clients_max;
    atomic_ullong connections; /* serial numbers */
    atomic_bool draining;    /* every answer is the last on its connection */
    atomic_bool unready;     /* balancers in front are to go elsewhere */
    atomic_bool handed_over; /* another server accepts on the same sockets */
    struct auth *auth;       /* who checks passwords; owned likewise; NULL: nobody may log in */
    struct limiter *limiter; /* counts of limits.requests and limits.in_flight; owned by whoever has this; NULL: no limits */
    atomic_ullong drain_ms;  /* how long draining may take; set before worker_stop */
};

/* Written by one loop, read by any thread. */
struct counters {
    atomic_ullong accepted, requests, bytes_in, bytes_out, tunnels, regex_limits;
    atomic_ullong fails[FAIL_COUNT];
    atomic_ullong status_class[6]; /* [2] counts 2xx */
};

/* One writer each, so a load and a store do; no locked instruction. */
#define COUNT_ADD(counter, n) \
    atomic_store_explicit(&(counter), atomic_load_explicit(&(counter), memory_order_relaxed) + (n), memory_order_relaxed)
#define COUNT(counter) COUNT_ADD(counter, 1)

/* One address a worker accepts on (worker_listen.c). Long-lived: a reload changes the `listen` it points to, not the
 * listener. */
struct worker_listener {
    struct listener l;
    const struct listen_conf *listen; /* of the snapshot in force, or of `hold` */
    struct hold *hold;                /* the last that has the address, when the one in force no longer does; else NULL */
    struct worker *w;
    char *text; /* the address, to find it again in a newer snapshot */
    unsigned clients;
    bool is_closed; /* accepts no more, for good */
};

enum { WORKER_FILTERS = 4 };

struct worker {
    struct loop *loop;
    unsigned index;
    struct server_shared *shared;
    struct hold *hold;          /* of the snapshot in force; older ones behind it */
    const struct handler *const *handlers; /* by action_kind */
    void *handler_state[ACTION_COUNT];
    const struct filter *const *filters; /* in the order bytes pass them */
    void *filter_state[WORKER_FILTERS];
    unsigned n_filters;
    struct list idle;           /* kept-alive clients between requests, oldest first */
    struct list busy;           /* all other clients */
    struct list ready;          /* clients to run before the loop sleeps */
    ev_idle awake;              /* active while `ready` is not empty: the loop does not sleep */
    struct worker_listener **listeners;
    unsigned n_listeners;
    _Atomic(struct snapshot *) next; /* handed over, not adopted yet */
    bool stopping;
    struct request *running; /* whose code is on the stack; only for the line about a crash */
    struct log_ring *ring;
    struct counters counters;
    struct h1_limits request_limits; /* of the snapshot in force */
    char date[HTTP_DATE];       /* of this second */
    uint64_t date_second;
    pcre2_match_data *match;
    pcre2_match_context *match_context; /* with the match limit */
    struct block_pool requests; /* free list of struct request */
    struct block_pool clients;
    uint64_t fault_second;      /* for the rate limit of client faults in the error log */
    unsigned fault_count;
    char log_time[40];          /* the access log's time text of this second */
    size_t log_time_n;
    uint64_t log_time_second;
    uint64_t random; /* state of request ids */
};

/* One worker on the calling thread's behalf: makes the loop, opens the handlers' state. NULL when memory or descriptors are out. */
struct worker *worker_new(unsigned index, struct server_shared *shared, struct snapshot *snapshot,
                          const struct handler *const *handlers) MUST_USE;
/* Before worker_run: answers go through these filters, a list that ends with NULL. False: out of memory. */
bool worker_filter(struct worker *w, const struct filter *const *filters) MUST_USE;
/* Takes over one listening socket of an address of the snapshot; before worker_run or from the loop's thread. False: no memory. */
bool worker_listen(struct worker *w, int fd, const struct listen_conf *listen) MUST_USE;
/* Any thread, after worker_adopt of the snapshot that has the address: takes over a socket of a new one. False: no
 * memory. */
bool worker_listen_later(struct worker *w, int fd, const char *text) MUST_USE;
/* Any thread, after worker_adopt of a snapshot without it: accepts no more there, closes its idle clients. False: no
 * memory. */
bool worker_unlisten_later(struct worker *w, const char *text) MUST_USE;
/* Runs the loop until worker_stop; the thread's main function. */
void worker_run(struct worker *w);
/* Any thread: hands over a newer snapshot, adopted between two turns. */
void worker_adopt(struct worker *w, struct snapshot *snapshot);
/* Any thread: stop accepting, answer what is running, close idle clients, then end; after `now` end at once. */
void worker_stop(struct worker *w, bool now);
/* Any thread: accept no more, for another server does; clients stay. */
void worker_hand_over(struct worker *w);
/* After worker_run has returned. */
void worker_free(struct worker *w);

/* May one more client fault go to the error log in this second? */
bool worker_may_log(struct worker *w);
/* The loop does not sleep before `ready` has been run. */
void worker_stay_awake(struct worker *w);
/* The Date value of this second, HTTP_DATE bytes. */
const char *worker_date(struct worker *w);
/* The conf in force. */
static inline const struct conf *worker_conf(const struct worker *w)
{
    return w->hold->snapshot->conf;
}
/* A request begins / ends under the snapshot in force. */
struct hold *worker_hold(struct worker *w);
void worker_release(struct worker *w, struct hold *h);

/* Between worker.c, worker_listen.c and client.c. */
void worker_adopt_now(struct worker *w);                                /* the snapshot that waits, if one does */
void worker_listeners_adopt(struct worker *w, struct hold *old);        /* of the snapshot in force; `old` was before */
void worker_accept_no_more(struct worker *w);
void worker_listener_left(struct worker_listener *wl);                  /* a client of it has gone; it may go too */
void worker_listeners_free(struct worker *w);

#endif
