/* SPDX-License-Identifier: MIT */
/*
 * The pools of backends at run time: what outlives a configuration. An upstream and its servers are made by the first
 * configuration that names them and found again by name by every later one, so that counts, learnt facts and
 * connections survive a reload. All loops share them: everything that changes is an atomic, or written by
 * upstream_table_* alone and handed over as one pointer (struct server_set).
 */
#ifndef UPSTREAM_UPSTREAM_H
#define UPSTREAM_UPSTREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/list.h"
#include "conf/conf.h"

enum { SERVER_ADDRS = 8 }; /* addresses of one name that are tried */

/* Why a server takes no requests. */
enum {
    BARRED_CHECK = 1, /* its health checks fail */
    BARRED_DOWN = 2,  /* an operator said so */
    BARRED_DRAIN = 4, /* an operator said so */
};

struct upstream;

/* What is known of a server's failures (health.c), under the queue's mutex. */
struct health {
    uint64_t window_ms, ejected_ms;
    unsigned ok, bad, ejections;
    atomic_uint bad_now; /* `bad`, for a look without the mutex */
    char ejected_cause[128], barred_cause[128];
};

/* One backend. A name with several addresses is still one server: they are tried in turn. */
struct server {
    uint32_t magic;
    unsigned serial;           /* no other server ever has it */
    unsigned id;               /* dense over all upstreams: the index of a loop's lists of idle connections */
    struct str name;           /* as written in the configuration; for logs and the control socket */
    struct endpoint endpoint;  /* its spans point into own memory */
    atomic_uint in_flight;     /* requests being answered; never above maxconn */
    atomic_uint idle;          /* kept connections without a request, over all loops */
    atomic_uint tunnels;
    atomic_uint maxconn;       /* 0: none */
    atomic_uint keepalive;     /* bound of `idle` */
    atomic_uint learnt_ms;     /* how long it keeps an idle connection, by its last Keep-Alive: timeout; 0: unknown */
    atomic_uint preferred;     /* index into addrs of the one that worked last */
    atomic_uint addrs_lost;    /* how often its name has lost an address: connections from before are not kept */
    atomic_uint n_resolved;    /* addresses known; 0: cannot be used */
    bool is_lost;              /* its name has not resolved lately, and that was said; the table's thread only */
    atomic_uint max_tunnels;   /* 0: none */
    atomic_uint queue_size;    /* requests bound to it that may wait */
    atomic_uint barred;        /* of BARRED_; 0: it may have requests */
    atomic_ullong ejected_until; /* it fails too often: not before then (clock_monotonic_ms); 0: it does not */
    atomic_uint probes;        /* checks under way or planned */
    atomic_int weight;         /* an operator's; -1: what the configuration says */
    unsigned conf_weight;      /* as it was when the operator changed it */
    struct health health;
    atomic_bool retired;       /* no configuration in force names it */
    atomic_ullong requests, connects, reuses, failures;
    pthread_mutex_t mutex;     /* of `addrs`, for names only */
    struct addr addrs[SERVER_ADDRS];
    struct list link;          /* upstream->servers */
    struct upstream *upstream;
    struct list waiting;       /* requests bound to it, under the queue's mutex */
    unsigned n_waiting;
};
#define SERVER_MAGIC 0x53525652u

struct pick;

/* One server with what the configuration in force says about it. */
struct set_entry {
    struct server *server;
    unsigned weight;
    bool is_backup, is_draining;
};

/* The servers of an upstream under the configuration in force; immutable. */
struct server_set {
    const struct pick *pick;
    struct set_entry *entries;
    unsigned n;
    bool has_backup;
    uint16_t *order[2];        /* round robin: indexes of entries, of the primaries and of the backups */
    unsigned n_order[2];
    uint16_t *table[2];        /* hash: the index of the entry for each place */
    unsigned hash_factor;      /* of the mean load, in percent, a server is given by a hash; 0: any */
    uint64_t seed;             /* random */
    struct affinity_tag *tags; /* sticky: of each entry, sorted */
    struct server_set *next;   /* of the retired ones */
};

/* Who waits for a slot (queue.c). */
struct queue {
    pthread_mutex_t mutex;
    atomic_uint waiting;       /* entries in all FIFOs; read without the mutex */
    struct list any;           /* those that any server may serve */
    unsigned n_any, n_bound;
    uint64_t arrivals;
    struct queue_entry *entering;
};

struct upstream {
    uint32_t magic;
    struct str name;
    _Atomic(struct server_set *) set;
    atomic_ullong position;    /* round robin's, shared by all loops */
    atomic_ullong retry_position;
    _Atomic(struct affinity *) affinity; /* sessions; NULL: none are learnt */
    atomic_uint queue_size;
    atomic_bool redispatch;
    atomic_ullong ejected_until; /* when the last ejection ends (clock_monotonic_ms); nobody is ejected afterwards */
    struct queue queue;
    struct list servers;       /* every server that is not freed yet; changed by the table's thread under queue.mutex */
    struct list link;          /* table->upstreams */
    bool is_seen;              /* by the configuration being applied */
};
#define UPSTREAM_MAGIC 0x55505354u

struct upstream_table;

struct upstream_table *upstream_table_new(void) MUST_USE;
/* Brings the table in line with conf and fills by_index[conf->n_upstreams]. On the main or the loader thread
 * (names are resolved here, which may block); one caller at a time. False: out of memory, the table is as it was. */
bool upstream_table_apply(struct upstream_table *t, const struct conf *conf, struct upstream **by_index) MUST_USE;
/* Are the names of new servers left to upstream_table_resolve? Until it has been there, such a server is not used. */
void upstream_table_names_later(struct upstream_table *t, bool later);
/* Resolves every name again; keeps the old addresses of those that fail. May block; not beside upstream_table_apply. */
void upstream_table_resolve(struct upstream_table *t);
/* Has every name in force an address? */
bool upstream_table_is_resolved(const struct upstream_table *t);
/* What an operator wants of a server; `who` is UPSTREAM/ADDRESS. Not beside upstream_table_apply; conf is the one in
 * force. NULL, or why not. */
enum server_order { SERVER_UP, SERVER_DOWN, SERVER_DRAIN, SERVER_WEIGHT };
const char *upstream_table_order(struct upstream_table *t, const struct conf *conf, struct str who,
                                 enum server_order order, unsigned weight) MUST_USE;
/* What operators have said and still holds, a line each, as UPSTREAM/ADDRESS and the order. */
void upstream_table_print_orders(FILE *f, const struct upstream_table *t);
/* Frees what no configuration in force names and nothing uses. Only when no snapshot older than the last applied
 * one exists. */
void upstream_table_sweep(struct upstream_table *t);
/* When no loop runs any more. */
void upstream_table_free(struct upstream_table *t);

/* Takes a slot for one request. False: maxconn are in flight. Exact over all threads. */
bool server_take(struct server *s) MUST_USE;
/* Gives it back, or on to whoever has waited longest. */
void server_give(struct server *s);
/* Requests in flight and open tunnels. */
static inline unsigned server_load(const struct server *s)
{
    return atomic_load_explicit(&s->in_flight, memory_order_relaxed) +
        atomic_load_explicit(&s->tunnels, memory_order_relaxed);
}
/* Counts one more tunnel. False: max_tunnels are open. */
bool server_take_tunnel(struct server *s) MUST_USE;
/* Does it fail too often to be used while there are others? */
bool server_is_ejected(struct server *s);
/* Copies the addresses to try, at most max, the one that worked last before the others. Any thread. */
unsigned server_addresses(struct server *s, struct addr *out, unsigned max);
/* This one has just worked where others have not. */
void server_prefer(struct server *s, const struct addr *a);

#endif
