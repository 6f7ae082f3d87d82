/* SPDX-License-Identifier: MIT */
/*
 * Requests that wait for a slot of an upstream: one FIFO for those that any server may serve, one for each server that
 * some are bound to. All under the upstream's one mutex, held for list operations and for choosing a server only.
 */
#ifndef UPSTREAM_QUEUE_H
#define UPSTREAM_QUEUE_H

#include "net/loop.h"
#include "upstream/pick.h"

enum queue_result {
    QUEUE_TOOK,      /* a slot was free after all: *server, its slot taken; NULL: there is no hope */
    QUEUE_WAITS,     /* *entry stands in the queue */
    QUEUE_REFUSED,   /* queue_size wait already */
    QUEUE_NO_MEMORY,
};

struct queue_entry;

/* A slot of `s` is the waiter's. NULL: no server that it could have is of use any more. On the waiter's loop; the entry
 * is gone. */
typedef void queue_granted_fn(void *user, struct server *s);

/* The query is borrowed and not to be touched until the entry has gone. query->bound says which FIFO; it becomes NULL
 * if that server is of no use any more and the upstream redispatches. is_retry: the request has waited its turn before:
 * it goes before the others and is never refused. `granted` is called on `loop`, the caller's own, never from inside
 * this call. */
enum queue_result queue_enter(struct upstream *u, struct pick_query *query, bool is_retry, struct loop *loop,
                              queue_granted_fn *granted, void *user, struct queue_entry **entry,
                              struct server **server) MUST_USE;
/* The waiter waits no more: the entry is gone for it. A slot that is on its way to it goes to the next in this very
 * step. On the waiter's loop, before `granted` was called. */
void queue_leave(struct queue_entry *e);

/* A slot of this server may have become free. Any thread. */
void queue_pass(struct server *s);
/* Anything about the upstream's servers has changed. Those bound to a server that is of no use any more wait for any
 * other (redispatch), or are told so, as are those for whom no server is left. Any thread. */
void queue_dispatch(struct upstream *u);

/* Does anyone wait? Without the mutex: who comes when nobody does may look for a free slot itself. */
static inline bool queue_has_waiters(struct upstream *u)
{
    return atomic_load_explicit(&u->queue.waiting, memory_order_relaxed) > 0;
}

#endif
