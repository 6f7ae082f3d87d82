/* SPDX-License-Identifier: MIT */
/*
 * Idle connections to backends, per loop and server, last in first out: the one used last is the least likely to be
 * closed by the other side, and the surplus ages away. At most `keepalive` of a server over all loops.
 *
 * An upstream_conn is made by pool_connect, belongs to the request (or tunnel) that has it, and to the pool between
 * pool_put and pool_take. It is freed at the end of the turn in which it is closed. Its read watcher stays armed
 * while it is idle: nothing may come then, so whatever makes it readable (FIN, a late byte of the last answer, a 408)
 * closes it at once, before another client's request could meet it (RFC 9112 §9.2, §9.5).
 */
#include "upstream/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void on_idle_readable(struct conn *c)
{
    upstream_conn_close(upstream_conn_of(c));
}

static void on_idle_failed(struct conn *c, int error)
{
    (void)error;
    upstream_conn_close(upstream_conn_of(c));
}

static void on_idle_drained(struct conn *c)
{
    (void)c;
}

static const struct conn_events idle_events = {
    .readable = on_idle_readable,
    .drained = on_idle_drained,
    .failed = on_idle_failed,
};

static void on_idle_deadline(struct deadline *d)
{
    upstream_conn_close(container_of(d, struct upstream_conn, deadline));
}

void pool_init(struct pool *pool, struct loop *loop)
{
    *pool = (struct pool){ .loop = loop };
}

void pool_close(struct pool *pool)
{
    for (unsigned i = 0; i < pool->n; i++)
        while (pool->lists[i].newest != NULL)
            upstream_conn_close(pool->lists[i].newest);
    free(pool->lists);
    *pool = (struct pool){ .loop = pool->loop };
}

/* Makes room for the server's list. */
static bool has_list(struct pool *pool, const struct server *s)
{
    if (s->id < pool->n)
        return true;
    unsigned n = s->id + 16;
    struct pool_list *lists = realloc(pool->lists, n * sizeof *lists);
    if (lists == NULL)
        return false;
    memset(lists + pool->n, 0, (n - pool->n) * sizeof *lists);
    pool->lists = lists;
    pool->n = n;
    return true;
}

static void unlink_idle(struct upstream_conn *uc)
{
    struct pool_list *list = &uc->pool->lists[uc->server->id];
    *(uc->newer != NULL ? &uc->newer->older : &list->newest) = uc->older;
    *(uc->older != NULL ? &uc->older->newer : &list->oldest) = uc->newer;
    uc->newer = uc->older = NULL;
    uc->is_idle = false;
    deadline_clear(&uc->deadline);
    atomic_fetch_sub_explicit(&uc->server->idle, 1, memory_order_release);
}

static void conn_free(struct later *later)
{
    free(container_of(later, struct upstream_conn, later));
}

void upstream_conn_close(struct upstream_conn *uc)
{
    if (!conn_is_open(&uc->c))
        return;
    deadline_clear(&uc->deadline);
    conn_close(&uc->c);
    uc->user = NULL;
    uc->later.free_fn = conn_free;
    loop_free_later(uc->pool->loop, &uc->later);
    if (uc->is_idle)
        unlink_idle(uc); /* last: from here on the server may be freed */
}

struct upstream_conn *pool_connect(struct pool *pool, struct server *s, const struct addr *to,
                                   const struct conn_events *events, void *user)
{
    int fd;
    if (conn_connect(to, &fd) == IO_ERROR)
        return NULL;
    struct upstream_conn *uc = calloc(1, sizeof *uc);
    if (uc == NULL) {
        close(fd);
        errno = ENOMEM;
        return NULL;
    }
    conn_open(&uc->c, pool->loop, fd, to->u.sa.sa_family != AF_UNIX, events);
    uc->pool = pool;
    uc->server = s;
    uc->user = user;
    uc->addrs_lost = atomic_load_explicit(&s->addrs_lost, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->connects, 1, memory_order_relaxed);
    return uc;
}

/* The name of its server may have another address by now, and what is there of the old one another's backend. */
static bool is_outdated(const struct upstream_conn *uc)
{
    return uc->addrs_lost != atomic_load_explicit(&uc->server->addrs_lost, memory_order_relaxed);
}

/* FIN or bytes may have come since the loop last looked. */
static bool is_silent(const struct upstream_conn *uc)
{
    char byte;
    return recv(uc->c.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

struct upstream_conn *pool_take(struct pool *pool, struct server *s, bool is_careful,
                                const struct conn_events *events, void *user)
{
    struct upstream_conn *uc;
    for (;;) {
        uc = s->id < pool->n ? pool->lists[s->id].newest : NULL;
        if (uc == NULL)
            return NULL;
        if (is_outdated(uc)) {
            upstream_conn_close(uc);
            continue;
        }
        if (!is_careful)
            break;
        if (pool->loop->now_ms - uc->idle_since_ms > POOL_SAFE_MS)
            return NULL;
        if (is_silent(uc))
            break;
        upstream_conn_close(uc);
    }
    unlink_idle(uc);
    uc->c.events = events;
    uc->user = user;
    atomic_fetch_add_explicit(&s->reuses, 1, memory_order_relaxed);
    return uc;
}

void pool_put(struct upstream_conn *uc, uint64_t idle_ms)
{
    struct pool *pool = uc->pool;
    struct server *s = uc->server;
    unsigned limit = atomic_load_explicit(&s->keepalive, memory_order_relaxed);
    bool is_wanted = limit > 0 && !atomic_load_explicit(&s->retired, memory_order_relaxed) && has_list(pool, s);
    if (!is_wanted || !conn_is_reading(&uc->c) || is_outdated(uc)) {
        upstream_conn_close(uc);
        return;
    }
    if (atomic_fetch_add_explicit(&s->idle, 1, memory_order_relaxed) >= limit) {
        if (pool->lists[s->id].oldest == NULL) { /* other loops have them all */
            atomic_fetch_sub_explicit(&s->idle, 1, memory_order_release);
            upstream_conn_close(uc);
            return;
        }
        upstream_conn_close(pool->lists[s->id].oldest);
    }
    struct pool_list *list = &pool->lists[s->id];
    uc->older = list->newest;
    uc->newer = NULL;
    *(uc->older != NULL ? &uc->older->newer : &list->oldest) = uc;
    list->newest = uc;
    uc->is_idle = true;
    uc->user = NULL;
    uc->c.events = &idle_events;
    uc->idle_since_ms = pool->loop->now_ms;
    deadline_set(pool->loop, &uc->deadline, DEADLINE_IDLE, idle_ms, on_idle_deadline);
}
