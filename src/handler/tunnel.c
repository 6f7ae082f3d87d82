/* SPDX-License-Identifier: MIT */
/*
 * After a 101: two connections and the bytes between them, whatever they mean.
 *
 * A tunnel owns both sides: the client's descriptor, taken over from its client, and the server's upstream_conn. It
 * outlives the request (logged as 101 when it begins), its arena and its snapshot; idle it is this struct and the
 * upstream_conn, with one deadline that any traffic pushes on. It ends when both sides have closed, when one has
 * failed and what it said has been delivered, after timeouts.tunnel in silence, or with its loop. TCP keep-alive
 * finds peers that have vanished.
 *
 * Each direction stands alone: what one side cannot take is queued, and the other is not read until that is gone; a
 * FIN is passed on behind the bytes before it, while the other direction goes on.
 *
 * When the worker drains, every client gets a close frame of ours (RFC 6455 §5.5.1), some at a time, so that not all of
 * them connect again at once: 1012 if another server of this host has taken over, else 1001. It has to stand between
 * two frames of the server, whose bytes are followed only for that. What the server says afterwards is dropped; the
 * client's answer goes to the server, which ends its side by it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "handler/proxy_try.h"
#include "http/ws_frames.h"

enum {
    READ_MAX = 64 * 1024,
    LINGER_MS = 5000, /* for what is queued when the other side has failed, or for the answer to a close frame */
    DRAIN_TICK_MS = 100,
};

struct tunnel {
    struct conn client;
    struct upstream_conn *uc;
    struct worker *w;
    struct server *server;
    struct deadline deadline;
    struct list link;        /* proxy_loop->tunnels */
    struct later later;
    uint64_t timeout_ms;
    struct ws_frames from_server;
    bool client_ended, server_ended; /* FIN has been read */
    bool wants_close;                /* a close frame goes to the client at the next frame end */
    bool has_closed;                 /* it has gone */
    bool is_dying;                   /* one side has failed; the rest of the other's queue is being sent */
};

static const struct conn_events client_events, server_events;

static void tunnel_free(struct later *later)
{
    free(container_of(later, struct tunnel, later));
}

static void tunnel_close(struct tunnel *t)
{
    if (t->uc == NULL)
        return;
    struct worker *w = t->w;
    struct upstream_conn *uc = t->uc;
    t->uc = NULL;
    deadline_clear(&t->deadline);
    list_remove(&t->link);
    conn_close(&t->client);
    upstream_conn_close(uc);
    COUNT_ADD(w->counters.tunnels, (unsigned long long)-1);
    atomic_fetch_sub_explicit(&w->shared->clients, 1, memory_order_relaxed);
    t->later.free_fn = tunnel_free;
    loop_free_later(w->loop, &t->later);
    atomic_fetch_sub_explicit(&t->server->tunnels, 1, memory_order_release);
}

static void on_deadline(struct deadline *d)
{
    tunnel_close(container_of(d, struct tunnel, deadline));
}

static void touch(struct tunnel *t)
{
    if (!t->is_dying && !t->has_closed)
        deadline_set(t->w->loop, &t->deadline, DEADLINE_TUNNEL, t->timeout_ms, on_deadline);
}

static struct conn *other_of(struct tunnel *t, const struct conn *c)
{
    return c == &t->client ? &t->uc->c : &t->client;
}

/* One side is broken: the other still gets what was on its way to it. */
static void side_failed(struct tunnel *t, struct conn *c)
{
    struct conn *other = other_of(t, c);
    if (t->is_dying || conn_queued(other) == 0) {
        tunnel_close(t);
        return;
    }
    t->is_dying = true;
    conn_want_read(c, false);
    conn_want_read(other, false);
    conn_shutdown(other);
    deadline_set(t->w->loop, &t->deadline, DEADLINE_LINGER, LINGER_MS, on_deadline);
}

/* Between two frames of the server. */
static void say_goodbye(struct tunnel *t)
{
    char frame[WS_CLOSE_FRAME];
    t->wants_close = false;
    if (t->from_server.is_over || t->is_dying || t->server_ended)
        return; /* it is about to end anyway */
    ws_close_frame(t->w->shared->handed_over ? WS_SERVICE_RESTART : WS_GOING_AWAY, frame);
    t->has_closed = true;
    deadline_set(t->w->loop, &t->deadline, DEADLINE_LINGER, LINGER_MS, on_deadline);
    switch (conn_write(&t->client, str_of(frame, sizeof frame))) {
    case IO_OK:
    case IO_AGAIN:
        break;
    default:
        side_failed(t, &t->client);
        break;
    }
}

/* Follows what the server says. Returns how much of it the client is to get; *goodbye: a close frame comes next. */
static struct str follow(struct tunnel *t, struct str got, bool *goodbye)
{
    *goodbye = false;
    if (t->has_closed)
        return str_take(got, 0);
    size_t n = ws_frames_feed(&t->from_server, got, t->wants_close);
    *goodbye = t->wants_close && ws_frames_between(&t->from_server);
    return str_take(got, n);
}

/* FIN of one side. */
static void side_ended(struct tunnel *t, struct conn *c)
{
    if (t->has_closed && c != &t->client) { /* both have said goodbye */
        side_failed(t, c);
        return;
    }
    *(c == &t->client ? &t->client_ended : &t->server_ended) = true;
    conn_want_read(c, false);
    conn_shutdown(other_of(t, c));
    if (t->client_ended && t->server_ended && conn_queued(&t->client) == 0 && conn_queued(&t->uc->c) == 0)
        tunnel_close(t);
}

static void side_readable(struct tunnel *t, struct conn *c)
{
    struct conn *other = other_of(t, c);
    if (conn_queued(other) > 0 || t->is_dying) {
        conn_want_read(c, false);
        return;
    }
    struct str got;
    switch (conn_read_scratch(c, READ_MAX, &got)) {
    case IO_OK:
        break;
    case IO_AGAIN:
        return;
    case IO_EOF:
        side_ended(t, c);
        return;
    default:
        side_failed(t, c);
        return;
    }
    if (c == &t->client)
        COUNT_ADD(t->w->counters.bytes_in, got.n);
    else
        COUNT_ADD(t->w->counters.bytes_out, got.n);
    touch(t);
    bool goodbye = false;
    if (c != &t->client)
        got = follow(t, got, &goodbye);
    switch (got.n > 0 ? conn_write(other, got) : IO_OK) {
    case IO_OK:
        break;
    case IO_AGAIN:
        conn_want_read(c, false);
        break;
    default:
        side_failed(t, other);
        return;
    }
    if (goodbye)
        say_goodbye(t);
}

static void side_drained(struct tunnel *t, struct conn *c)
{
    struct conn *other = other_of(t, c);
    bool other_ended = other == &t->client ? t->client_ended : t->server_ended;
    if (t->is_dying || (t->client_ended && t->server_ended && conn_queued(other) == 0)) {
        tunnel_close(t);
        return;
    }
    touch(t);
    if (!other_ended)
        conn_want_read(other, true);
}

static struct tunnel *of_client(struct conn *c)
{
    return container_of(c, struct tunnel, client);
}

static struct tunnel *of_server(struct conn *c)
{
    return upstream_conn_of(c)->user;
}

static void on_client_readable(struct conn *c)
{
    side_readable(of_client(c), c);
}

static void on_client_drained(struct conn *c)
{
    side_drained(of_client(c), c);
}

static void on_client_progress(struct conn *c)
{
    touch(of_client(c));
}

static void on_client_failed(struct conn *c, int error)
{
    (void)error;
    side_failed(of_client(c), c);
}

static void on_server_readable(struct conn *c)
{
    side_readable(of_server(c), c);
}

static void on_server_drained(struct conn *c)
{
    side_drained(of_server(c), c);
}

static void on_server_progress(struct conn *c)
{
    touch(of_server(c));
}

static void on_server_failed(struct conn *c, int error)
{
    (void)error;
    side_failed(of_server(c), c);
}

static const struct conn_events client_events = {
    .readable = on_client_readable,
    .drained = on_client_drained,
    .progress = on_client_progress,
    .failed = on_client_failed,
};

static const struct conn_events server_events = {
    .readable = on_server_readable,
    .drained = on_server_drained,
    .progress = on_server_progress,
    .failed = on_server_failed,
};

/* Dead peers are found by the kernel; it fails silently on a unix socket, which has no such need. */
static void keep_alive(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
}

/* Reads this side unless what it says would have to wait. */
static bool side_open(struct conn *c, struct conn *other, struct str early)
{
    enum io io = early.n > 0 || conn_queued(other) > 0 ? conn_write(other, early) : IO_OK;
    conn_want_read(c, io == IO_OK);
    return io == IO_OK || io == IO_AGAIN;
}

bool tunnel_start(struct proxy_loop *loop, struct request *r, struct upstream_conn *uc, struct str early)
{
    struct upgraded up = { .fd = -1 };
    struct tunnel *t = calloc(1, sizeof *t);
    if (t == NULL)
        return false;
    if (!r->ops->upgrade(r, &up)) {
        free(t);
        return false;
    }
    t->w = loop->w;
    t->server = uc->server;
    t->timeout_ms = r->s->timeouts.tunnel;
    conn_open(&t->client, loop->w->loop, up.fd, r->peer.family != 0, &client_events);
    t->client.out = up.unsent;
    t->uc = uc;
    uc->user = t;
    uc->c.events = &server_events;
    keep_alive(t->client.fd);
    keep_alive(uc->c.fd);
    list_append(&loop->tunnels, &t->link);
    COUNT(t->w->counters.tunnels);
    touch(t);
    (void)ws_frames_feed(&t->from_server, early, false);
    if (!side_open(&uc->c, &t->client, early) || !side_open(&t->client, &uc->c, up.early))
        tunnel_close(t);
    else if (up.has_ended) /* a half-close, as it may come at any time: the FIN goes on behind what came before it */
        side_ended(t, &t->client);
    return true;
}

static void on_drain(struct ev_loop *ev, ev_timer *timer, int events)
{
    struct proxy_loop *loop = container_of(timer, struct proxy_loop, drain);
    uint64_t now = loop->w->loop->now_ms, ticks = 1, n = 0;
    if (events & EV_ERROR)
        return;
    if (loop->drain_until > now)
        ticks += (loop->drain_until - now) / DRAIN_TICK_MS;
    list_each_safe(it, next, &loop->tunnels)
        n++;
    for (n = (n + ticks - 1) / ticks; n > 0; n--) {
        struct tunnel *t = list_entry(loop->tunnels.next, struct tunnel, link);
        list_remove(&t->link);
        list_append(&loop->leaving, &t->link);
        t->wants_close = true;
        if (ws_frames_between(&t->from_server))
            say_goodbye(t);
    }
    (void)ev; /* it goes on: a handshake that is under way may add one more */
}

void tunnel_loop_init(struct proxy_loop *loop)
{
    list_init(&loop->tunnels);
    list_init(&loop->leaving);
    ev_init(&loop->drain, on_drain);
}

void tunnel_drain_all(struct proxy_loop *loop, uint64_t ms)
{
    loop->drain_until = loop->w->loop->now_ms + ms;
    ev_timer_set(&loop->drain, 0., DRAIN_TICK_MS / 1000.);
    ev_timer_start(loop->w->loop->ev, &loop->drain);
}

void tunnel_close_all(struct proxy_loop *loop)
{
    ev_timer_stop(loop->w->loop->ev, &loop->drain);
    while (!list_is_empty(&loop->tunnels))
        tunnel_close(list_entry(loop->tunnels.next, struct tunnel, link));
    while (!list_is_empty(&loop->leaving))
        tunnel_close(list_entry(loop->leaving.next, struct tunnel, link));
}
