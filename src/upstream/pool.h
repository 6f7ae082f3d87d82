/* SPDX-License-Identifier: MIT */
/*
 * Connections to backends on one loop: those in use by a request or a tunnel, and those kept idle for the next request.
 * Everything belongs to the loop's thread; only the servers' counts are shared.
 */
#ifndef UPSTREAM_POOL_H
#define UPSTREAM_POOL_H

#include "net/conn.h"
#include "net/deadline.h"
#include "upstream/upstream.h"

enum {
    POOL_IDLE_MS = 4000, /* how long a connection is kept whose server said nothing; Node closes after 5 s */
    POOL_SAFE_MS = 1000, /* an older idle connection is no place for a request that cannot be repeated */
};

struct pool;

struct upstream_conn {
    struct conn c;
    struct deadline deadline;  /* of whoever has the connection; the pool's while it is idle */
    struct pool *pool;
    struct server *server;
    void *user;                /* of whoever has it; NULL while idle */
    struct upstream_conn *newer, *older;
    struct later later;
    uint64_t idle_since_ms;
    unsigned addrs_lost;       /* the server's count when it was made */
    bool is_idle;
};

struct pool_list {
    struct upstream_conn *newest, *oldest;
};

struct pool {
    struct loop *loop;
    struct pool_list *lists; /* by server->id */
    unsigned n;
};

void pool_init(struct pool *pool, struct loop *loop);
/* Closes the idle connections. Those in use must be gone. */
void pool_close(struct pool *pool);

/* A new connection to one address, not reading yet. What is written before it stands is sent when it does; if it
 * cannot be made, the write fails or `failed` is called with nothing written. NULL: errno. */
struct upstream_conn *pool_connect(struct pool *pool, struct server *s, const struct addr *to,
                                   const struct conn_events *events, void *user) MUST_USE;
/* The connection that became idle last; it is reading. is_careful: for a request that cannot be repeated: only one that
 * became idle within POOL_SAFE_MS and shows no sign of its end (one system call). NULL: none. */
struct upstream_conn *pool_take(struct pool *pool, struct server *s, bool is_careful,
                                const struct conn_events *events, void *user);
/* Keeps it for idle_ms (0: without limit) if the server's keepalive allows, else closes it. It must be reading,
 * with nothing queued and nothing left unread. */
void pool_put(struct upstream_conn *uc, uint64_t idle_ms);
/* Idempotent. The memory goes at the end of the turn. */
void upstream_conn_close(struct upstream_conn *uc);

static inline struct upstream_conn *upstream_conn_of(struct conn *c)
{
    return container_of(c, struct upstream_conn, c);
}

#endif
