/* SPDX-License-Identifier: MIT */
/*
 * A client connection's life and its one loop, client_run: run the request in progress, take bytes for it or for the next one,
 * until something has to wait. Events (readable, drained, a deadline, a wake-up) only bring that loop to run again, so
 * requests never start from inside each other and 10,000 pipelined ones cost no stack.
 *
 * Owns: the connection, its deadline, the bytes read ahead (`pending`), and the struct request between request_begin and
 * request_finish. The struct itself is freed at the end of the turn in which `gone` was seen by client_run.
 *
 * Reading (RFC 9112 §9.3): the watcher stays armed while a request runs; what arrives then is pipelined and kept, up to
 * 16 KB, after which the watcher is stopped. On a fresh connection it is armed only when bytes are wanted or an answer
 * takes longer than WATCH_MS, so that a connection that is answered and closed soon costs no epoll_ctl. FIN before the
 * request is complete is an abort, afterwards a half-close: the answer goes out.
 * Lingering close (RFC 9112 §9.6): after an answer that left bytes of the client unread we shut our side down, and read and drop for a
 * bounded time, so that the kernel's RST does not destroy the answer on its way.
 */
#include "serve/client.h"

#include <errno.h>
#include <stdlib.h>

#include "serve/handler.h"
#include "serve/respond.h"

enum {
    READ_HEAD = 16 * 1024,
    READ_BODY = 64 * 1024,
    PIPELINE_MAX = 16 * 1024,
    REQUESTS_A_TURN = 32,
    DISCARD_MAX = 64 * 1024,
    LINGER_MS = 15 * 1000,
    WATCH_MS = 50,
    BLANKS_MAX = 64,     /* CR and LF skipped between requests; more are the reader's to refuse */
    BODY_RATE_MIN = 500, /* bytes per second of a body, once timeouts.body has passed */
};

static void client_run(struct client *c, struct str in);

static void free_client(struct later *later)
{
    struct client *c = container_of(later, struct client, later);
    free(c->proxied);
    block_give(&c->w->clients, c);
}

/* The last thing that happens to a client: off every list, memory at the end of the turn. */
static void bury(struct client *c)
{
    deadline_clear(&c->deadline);
    list_remove(&c->link);
    list_remove(&c->ready);
    buf_clear(&c->pending, &c->w->loop->blocks);
    worker_listener_left(c->listener);
    c->later.free_fn = free_client;
    loop_free_later(c->w->loop, &c->later);
}

void client_lost(struct client *c)
{
    if (c->gone)
        return;
    conn_close(&c->conn);
    atomic_fetch_sub_explicit(&c->w->shared->clients, 1, memory_order_relaxed);
    c->gone = true;
    if (c->is_idle) { /* it has made its room; until it is buried nobody may take it for another's */
        list_remove(&c->link);
        list_append(&c->w->busy, &c->link);
        c->is_idle = false;
    }
    client_wake(c);
}

void client_release(struct client *c)
{
    c->gone = true; /* the descriptor, and its place among shared->clients, belong to the tunnel now */
    client_wake(c);
}

void client_wake(struct client *c)
{
    if (c->in_run || list_is_linked(&c->ready))
        return;
    list_append(&c->w->ready, &c->ready);
    worker_stay_awake(c->w);
}

void client_run_ready(struct client *c)
{
    client_run(c, STR_NONE);
}

/* May bytes be taken now: for the next request, its head, or a body somebody reads or discards? */
static bool wants_bytes(const struct client *c)
{
    const struct request *r = c->r;
    if (r == NULL)
        return !c->close_after;
    if (!c->x->has_head)
        return true;
    if (r->body_complete || (c->x->body_blocked && !r->ended)) /* after the end nobody is left to say go on */
        return false;
    return r->body_wanted || (r->ended && r->drained && !c->close_after);
}

static enum deadline_name due(const struct client *c)
{
    const struct request *r = c->r;
    if (c->lingering)
        return DEADLINE_LINGER;
    if (r == NULL)
        return c->nth == 0 ? DEADLINE_HEAD : DEADLINE_IDLE;
    if (!c->x->has_head)
        return DEADLINE_HEAD;
    if (conn_queued(&c->conn) > 0)
        return DEADLINE_SEND;
    if (wants_bytes(c))
        return DEADLINE_BODY;
    return c->eof || conn_is_reading(&c->conn) ? DEADLINE_NONE : DEADLINE_WATCH;
}

static void on_deadline(struct deadline *d);

static void start_deadline(struct client *c, enum deadline_name name)
{
    const struct conf *conf = worker_conf(c->w);
    const struct scope_conf *s = c->r ? c->r->s : conf->s;
    const uint64_t ms[] = {
        [DEADLINE_HEAD] = conf->timeouts.header, [DEADLINE_IDLE] = conf->timeouts.keepalive,
        [DEADLINE_SEND] = s->timeouts.send,      [DEADLINE_BODY] = s->timeouts.body,
        [DEADLINE_LINGER] = LINGER_MS,           [DEADLINE_WATCH] = WATCH_MS,
    };
    deadline_set(c->w->loop, &c->deadline, name, ms[name], on_deadline);
}

void client_update(struct client *c)
{
    if (c->gone)
        return;
    enum deadline_name name = due(c);
    if (name == DEADLINE_NONE)
        deadline_clear(&c->deadline);
    else if (name == DEADLINE_IDLE || c->deadline.list == NULL || c->deadline.name != name)
        start_deadline(c, name);
    if (!c->eof && (c->lingering || wants_bytes(c)))
        conn_want_read(&c->conn, true);
}

/* Progress was made: a deadline of this name starts again. */
static void restart_deadline(struct client *c, enum deadline_name name)
{
    if (c->deadline.list != NULL && c->deadline.name == name)
        start_deadline(c, name);
}

static bool begin(struct client *c)
{
    struct request *r = request_begin(c->w, &client_h1_ops, c);
    if (r == NULL)
        return false;
    c->r = r;
    c->w->running = r;
    c->x = arena_new(&r->arena, struct exchange);
    if (c->x == NULL) {
        c->r = NULL;
        request_finish(r);
        return false;
    }
    r->listen = c->listener->listen;
    if (c->listener->hold != NULL) { /* its address has left the configuration: the last one that had it answers */
        request_move(r, c->listener->hold);
        c->close_after = true;
    }
    r->s = r->listen->default_site->s;
    r->peer = r->remote = c->peer;
    r->proxied = c->proxied;
    r->fd = c->conn.fd;
    r->connection = c->serial;
    r->nth = ++c->nth;
    h1_read_init(&c->x->reader, H1_REQUEST, &c->w->request_limits, &r->arena);
    return true;
}

static void head_is_complete(struct client *c)
{
    struct exchange *x = c->x;
    c->r->head = &x->reader.head;
    x->has_head = true;
    x->continue_due = x->reader.head.expect_continue;
    c->r->head_bytes = x->reader.head_bytes;
    c->r->body_complete = x->reader.head.body == BODY_NONE;
}

/* A piece of the request's body, for the handler or for nobody. */
static void deliver(struct client *c, struct str bytes, bool last)
{
    struct request *r = c->r;
    r->body_received += bytes.n;
    r->body_complete |= last;
    if (r->s->limits.body_size > 0 && r->body_received > r->s->limits.body_size && !r->ended) {
        request_fail(r, FAIL_BODY_TOO_LARGE, 0, "limits.body_size");
        return;
    }
    if (r->ended || r->handler == NULL || r->handler->body == NULL) {
        c->x->discarded += (uint32_t)bytes.n;
        c->close_after |= c->x->discarded > DISCARD_MAX;
        return;
    }
    restart_deadline(c, DEADLINE_BODY);
    if (r->handler->body(r, bytes, last) == IO_AGAIN)
        c->x->body_blocked = true;
}

static void fail_bad(struct client *c)
{
    struct exchange *x = c->x;
    struct request *r = c->r;
    if (r->head == NULL && x->reader.head.method_text.n > 0)
        r->head = &x->reader.head;
    c->close_after = true;
    request_fail(r, fail_of_bad(x->reader.bad), 0, NULL);
    x->has_head = true; /* nothing more is read for it */
    r->body_wanted = false;
}

/* Chunks that have come together go on together, or each byte of a client could cost a write: from the first of them,
 * which the reader has just given, to where the bytes or the body end. They lie in a buffer of ours, their sizes between
 * them. */
static enum h1_event join_chunks(struct h1_read *reader, struct str s, size_t *used, struct str *piece)
{
    for (;;) {
        size_t n;
        enum h1_event event = h1_read_feed(reader, s.p + *used, s.n - *used, &n);
        *used += n;
        if (event != H1_BODY)
            return event;
        memmove((char *)(uintptr_t)piece->p + piece->n, reader->body.p, reader->body.n);
        piece->n += reader->body.n;
    }
}

/* Feeds the reader, up to the next thing that is to be done. Returns the bytes taken. */
static size_t feed(struct client *c, struct str s)
{
    struct exchange *x = c->x;
    struct request *r = c->r;
    size_t used = 0;
    struct str piece = STR_NONE;
    enum h1_event event = h1_read_feed(&x->reader, s.p, s.n, &used);
    bool is_last = false;
    if (event == H1_BODY) {
        piece = x->reader.body;
        if (r->head->body == BODY_CHUNKED)
            event = join_chunks(&x->reader, s, &used, &piece);
        else
            is_last = r->body_received + piece.n == r->head->length;
    }
    COUNT_ADD(c->w->counters.bytes_in, used);
    if (event == H1_HEAD)
        head_is_complete(c);
    if (event == H1_END && x->reader.trailers.n > 0)
        r->trailers = &x->reader.trailers;
    is_last |= event == H1_END;
    if (piece.n > 0 || (is_last && !r->body_complete))
        deliver(c, piece, is_last);
    if (event == H1_BAD)
        fail_bad(c);
    return used;
}

static struct str skip_blanks(struct client *c, struct str s)
{
    while (s.n > 0 && (s.p[0] == '\r' || s.p[0] == '\n') && c->blanks < BLANKS_MAX) {
        s = str_skip(s, 1);
        c->blanks++;
    }
    return s;
}

/* A connection that should have begun with a PROXY header did not. */
static void lose_proxied(struct client *c, const char *why)
{
    char text[IP_TEXT];
    size_t n = ip_print(&c->peer, text);
    COUNT(c->w->counters.fails[FAIL_PROXY_HEADER]);
    if (worker_may_log(c->w))
        log_write(LOG_WARN, "PROXY_HEADER: %s: connection closed, client: %.*s, listen: %.*s", why, (int)n, text,
                  STR_ARG(c->listener->listen->text));
    client_lost(c);
}

static bool awaits_header(const struct client *c)
{
    return c->proxied != NULL && !c->proxied->is_read;
}

/* Returns the bytes that belong to the PROXY header. */
static size_t feed_header(struct client *c, struct str s)
{
    struct proxied *p = c->proxied;
    size_t used;
    switch (proxy_header_feed(&p->header, s.p, s.n, &used)) {
    case PROXY_HEADER_MORE:
        break;
    case PROXY_HEADER_DONE:
        p->is_read = true;
        if (p->header.has_addresses)
            c->peer = p->header.from;
        break;
    case PROXY_HEADER_BAD:
        lose_proxied(c, p->header.bad);
        break;
    }
    COUNT_ADD(c->w->counters.bytes_in, used);
    return used;
}

/* Takes bytes from `pending`, else from *in. False: there are none, or the client is lost. */
static bool take_bytes(struct client *c, struct str *in)
{
    struct block_pool *blocks = &c->w->loop->blocks;
    bool is_pending = c->pending.n > 0;
    struct str s = *in;
    if (is_pending) {
        struct chunk piece = buf_peek(&c->pending);
        s = str_of(piece.p, (size_t)piece.n);
    }
    size_t n = s.n;
    if (n > 0 && awaits_header(c))
        s = str_skip(s, feed_header(c, s));
    if (c->gone)
        return false;
    if (c->r == NULL)
        s = skip_blanks(c, s);
    size_t used = n - s.n;
    if (s.n > 0) {
        if (c->r == NULL && !begin(c)) {
            client_lost(c);
            return false;
        }
        used += feed(c, s);
    }
    if (is_pending)
        buf_skip(&c->pending, blocks, used);
    else
        *in = str_skip(*in, used);
    return n > 0;
}

static void start_linger(struct client *c)
{
    buf_clear(&c->pending, &c->w->loop->blocks);
    c->lingering = true;
    conn_shutdown(&c->conn);
}

/* The request has been answered and everything is out. */
static void finish(struct client *c, bool has_input)
{
    struct request *r = c->r;
    bool is_unread = !r->body_complete || has_input || c->pending.n > 0;
    c->r = NULL;
    c->x = NULL;
    request_finish(r);
    c->blanks = 0;
    if (!c->close_after || c->gone)
        return;
    if (is_unread && !c->eof)
        start_linger(c);
    else
        client_lost(c);
}

/* Nothing more can come from the client, and what is there does not make a request. */
static void end_of_input(struct client *c)
{
    if (c->r == NULL) {
        if (awaits_header(c) && c->proxied->header.n > 0)
            lose_proxied(c, "it ended within the header");
        else
            client_lost(c);
        return;
    }
    if (c->x->has_head && c->r->body_complete)
        return;
    request_fail(c->r, FAIL_CLIENT_ABORTED, 0, NULL);
    client_lost(c);
}

static void bury_with_request(struct client *c)
{
    if (c->r) {
        if (!(c->r->ended && c->r->drained))
            request_fail(c->r, FAIL_CLIENT_ABORTED, 0, NULL);
        request_finish(c->r);
        c->r = NULL;
    }
    bury(c);
}

static void settle(struct client *c)
{
    struct worker *w = c->w;
    if (c->r == NULL && !c->lingering && c->nth > 0) {
        list_remove(&c->link);
        list_append(&w->idle, &c->link);
    } else if (c->is_idle) {
        list_remove(&c->link);
        list_append(&w->busy, &c->link);
    }
    c->is_idle = c->r == NULL && !c->lingering && c->nth > 0;
    client_update(c);
}

static void client_run(struct client *c, struct str in)
{
    unsigned served = 0;
    c->in_run = true;
    list_remove(&c->ready);
    while (!c->gone && !c->lingering && served < REQUESTS_A_TURN) {
        c->w->running = c->r;
        if (c->r && c->x->has_head && request_run(c->r) == STEP_DONE && (c->r->body_complete || c->close_after)) {
            finish(c, in.n > 0);
            served++;
            continue;
        }
        if (c->gone || !wants_bytes(c))
            break;
        if (!take_bytes(c, &in))
            break;
    }
    if (!c->gone && !c->lingering && in.n > 0 && !buf_add(&c->pending, &c->w->loop->blocks, in))
        client_lost(c);
    if (!c->gone && c->eof && c->pending.n == 0)
        end_of_input(c);
    c->in_run = false;
    c->w->running = NULL;
    if (c->gone) {
        bury_with_request(c);
        return;
    }
    settle(c);
    if (served == REQUESTS_A_TURN && c->pending.n > 0)
        client_wake(c);
}

/* Too slow on average, once a first timeouts.body has passed? */
static bool is_body_too_slow(const struct client *c)
{
    const struct request *r = c->r;
    uint64_t ms = c->w->loop->now_ms - c->x->body_since_ms;
    uint64_t allowed = r->s->timeouts.body;
    if (allowed == 0 || ms <= allowed)
        return false;
    return (r->body_received - c->x->body_since_bytes) * 1000 < (ms - allowed) * BODY_RATE_MIN;
}

static void on_eof(struct client *c)
{
    c->eof = true;
    conn_want_read(&c->conn, false);
    client_run(c, STR_NONE);
}

/* Bytes while none may be taken: pipelined requests, or a body the handler has no room for. Kept up to a bound. */
static void read_ahead(struct client *c)
{
    struct str got;
    if (c->pending.n >= PIPELINE_MAX) {
        conn_want_read(&c->conn, false);
        return;
    }
    switch (conn_read_scratch(&c->conn, PIPELINE_MAX - (size_t)c->pending.n, &got)) {
    case IO_OK:
        if (!buf_add(&c->pending, &c->w->loop->blocks, got))
            client_lost(c);
        break;
    case IO_AGAIN:
        break;
    case IO_EOF:
        c->eof = true;
        conn_want_read(&c->conn, false);
        if (!c->r->body_complete) {
            request_fail(c->r, FAIL_CLIENT_ABORTED, 0, NULL);
            client_lost(c);
        }
        break;
    case IO_CLOSED:
    case IO_ERROR:
        client_lost(c);
        break;
    }
    loop_scratch_done(c->w->loop);
}

static void linger_read(struct client *c)
{
    struct str got;
    for (int i = 0; i < 4; i++) {
        enum io io = conn_read_scratch(&c->conn, LOOP_SCRATCH, &got);
        loop_scratch_done(c->w->loop);
        if (io == IO_AGAIN)
            return;
        if (io != IO_OK) {
            client_lost(c);
            return;
        }
    }
}

static void on_readable(struct conn *conn)
{
    struct client *c = container_of(conn, struct client, conn);
    struct str got;
    if (c->lingering) {
        linger_read(c);
        return;
    }
    if (!wants_bytes(c)) {
        read_ahead(c);
        return;
    }
    bool in_body = c->r && c->x->has_head;
    switch (conn_read_scratch(conn, in_body ? READ_BODY : READ_HEAD, &got)) {
    case IO_OK:
        if (in_body && is_body_too_slow(c))
            request_fail(c->r, FAIL_CLIENT_BODY_TIMEOUT, 0, "below 500 bytes/s");
        client_run(c, got);
        loop_scratch_done(c->w->loop);
        break;
    case IO_AGAIN:
        client_update(c);
        break;
    case IO_EOF:
        on_eof(c);
        break;
    case IO_CLOSED:
    case IO_ERROR:
        client_lost(c);
        break;
    }
}

static void on_drained(struct conn *conn)
{
    struct client *c = container_of(conn, struct client, conn);
    struct request *r = c->r;
    c->w->running = r;
    if (r && r->ended)
        r->drained = true;
    else if (r)
        respond_resume(r);
    client_run(c, STR_NONE);
}

static void on_progress(struct conn *conn)
{
    restart_deadline(container_of(conn, struct client, conn), DEADLINE_SEND);
}

static void on_failed(struct conn *conn, int error)
{
    struct client *c = container_of(conn, struct client, conn);
    if (error == ESPIPE && c->r)
        request_fail(c->r, FAIL_FILE_TRUNCATED, 0, NULL);
    client_lost(c);
}

static void on_deadline(struct deadline *d)
{
    struct client *c = container_of(d, struct client, deadline);
    static const enum fail fails[] = {
        [DEADLINE_HEAD] = FAIL_CLIENT_HEAD_TIMEOUT,
        [DEADLINE_BODY] = FAIL_CLIENT_BODY_TIMEOUT,
        [DEADLINE_SEND] = FAIL_CLIENT_SEND_TIMEOUT,
    };
    if (c->r == NULL) {
        if (awaits_header(c))
            lose_proxied(c, "no complete header within timeouts.header");
        else
            client_lost(c);
        return;
    }
    if (d->name == DEADLINE_WATCH) {
        conn_want_read(&c->conn, true);
        return;
    }
    c->close_after = true;
    if (!c->x->has_head)
        c->x->has_head = true;
    request_fail(c->r, d->name < ARRAY_LEN(fails) && fails[d->name] ? fails[d->name] : FAIL_BUG, 0, NULL);
    client_run(c, STR_NONE);
}

void client_kill(struct client *c, enum fail why)
{
    if (c->r && !(c->r->ended && c->r->drained))
        request_fail(c->r, why, 0, NULL);
    client_lost(c);
}

void client_drain(struct client *c)
{
    if (c->r == NULL)
        client_lost(c);
    else
        c->close_after = true;
}

static const struct conn_events events = {
    .readable = on_readable,
    .drained = on_drained,
    .progress = on_progress,
    .failed = on_failed,
};

/* May this peer say whose a connection is? Every site of the address that trusts somebody must trust it: the header comes
 * before it is known which site is meant. */
static bool may_say_whose(const struct listen_conf *listen, const struct ip *peer)
{
    for (unsigned i = 0; i < listen->n_sites; i++) {
        const struct site_conf *site = listen->sites[i];
        if (site->n_trusted > 0 && !cidrs_have(site->trusted, site->n_trusted, peer))
            return false;
    }
    return true;
}

/* False: the connection has been closed. */
static bool expect_header(struct client *c)
{
    if (!may_say_whose(c->listener->listen, &c->peer)) {
        lose_proxied(c, "the peer is not in `trusted`");
        return false;
    }
    c->proxied = calloc(1, sizeof(*c->proxied));
    if (c->proxied == NULL) {
        client_lost(c);
        return false;
    }
    c->proxied->peer = c->peer;
    return true;
}

void client_open(struct worker *w, struct worker_listener *listener, int fd, const struct ip *peer)
{
    struct client *c = block_take(&w->clients);
    if (c == NULL) {
        close(fd);
        return;
    }
    memset(c, 0, sizeof(*c));
    c->w = w;
    c->listener = listener;
    listener->clients++;
    c->peer = *peer;
    c->serial = atomic_fetch_add_explicit(&w->shared->connections, 1, memory_order_relaxed) + 1;
    atomic_fetch_add_explicit(&w->shared->clients, 1, memory_order_relaxed);
    COUNT(w->counters.accepted);
    conn_open(&c->conn, w->loop, fd, false, &events); /* TCP_NODELAY is the listener's */
    list_append(&w->busy, &c->link);
    if (listener->listen->proxy_protocol && !expect_header(c))
        return;
    on_readable(&c->conn);
}
