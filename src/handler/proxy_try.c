/* SPDX-License-Identifier: MIT */
/*
 * One attempt on the way out: a kept connection or a fresh one, the request's head, its body as it comes, and the one
 * deadline that is running.
 *
 * The head is written without waiting for the connect: on a connection that does not stand yet it is queued and goes
 * out when it does, so a fresh connection costs no turn of the loop, and "nothing was written" and "it failed to
 * connect" are one fact. All addresses of a server are tried before it has failed (a name is one server). The client
 * is asked for its body only when the server has taken the head: until then nothing of it can be lost, whatever the
 * method. When the connection breaks under a write, what the server has said before is still read (RFC 9112 §9.5: an
 * early 413 must reach the client).
 */
#include <errno.h>
#include <sys/socket.h>

#include "handler/proxy_try.h"
#include "http/h1_write.h"

enum { BACKLOG_DELAY_MS = 20 };

static void connect_next(struct proxy *p, int error);

static struct proxy *proxy_of(struct conn *c)
{
    struct proxy *p = upstream_conn_of(c)->user;
    MAGIC_CHECK(p, PROXY_MAGIC);
    return p;
}

/* --- deadlines --- */

static void on_deadline(struct deadline *d)
{
    struct proxy *p = container_of(d, struct upstream_conn, deadline)->user;
    MAGIC_CHECK(p, PROXY_MAGIC);
    struct proxy_try *t = &p->t;
    if (t->is_connected) {
        const char *setting = d->name == DEADLINE_SEND ? "timeouts.send" :
            d->name == DEADLINE_TUNNEL ? "timeouts.tunnel" : "timeouts.server";
        proxy_failed(p, FAIL_UPSTREAM_TIMEOUT, 0, setting);
    } else if (t->addr_at + 1 < t->n_addrs) {
        connect_next(p, ETIMEDOUT);
    } else {
        proxy_failed(p, FAIL_CONNECT_TIMEOUT, 0, NULL);
    }
}

void try_arm(struct proxy *p)
{
    struct proxy_try *t = &p->t;
    if (t->uc == NULL)
        return;
    const struct scope_conf *s = p->r->s;
    struct loop *l = p->loop->w->loop;
    enum deadline_name name = DEADLINE_NONE;
    uint64_t ms = 0;
    if (!t->is_connected) {
        name = DEADLINE_CONNECT;
        ms = s->timeouts.connect;
    } else if (conn_queued(&t->uc->c) > 0 && !t->send_broke) {
        name = DEADLINE_SEND;
        ms = s->timeouts.send;
    } else if (t->is_blocked || (!p->is_body_complete && !t->send_broke)) {
        ms = 0; /* the client's turn, under the client's deadlines */
    } else if (t->is_patient) {
        name = DEADLINE_TUNNEL;
        ms = s->timeouts.tunnel;
    } else {
        name = DEADLINE_RECV;
        ms = s->timeouts.server;
    }
    deadline_set(l, &t->uc->deadline, name, ms, on_deadline);
}

/* --- sending --- */

/* The client's turn again. */
static void resume_body(struct proxy *p)
{
    if (!p->is_body_paused)
        return;
    p->is_body_paused = false;
    request_body_resume(p->r);
}

/* After bytes have gone out: the first of them mean that the connection stands and the client's body is wanted. */
static void note_sent(struct proxy *p)
{
    struct proxy_try *t = &p->t;
    if (t->is_connected || t->uc->c.written == t->written_before)
        return;
    t->is_connected = true;
    t->connected_ms = p->loop->w->loop->now_ms;
    if (t->addr_at > 0)
        server_prefer(t->server, &t->addrs[t->addr_at]);
    p->r->doing = "waiting for the server's answer";
    if (!p->is_body_complete)
        request_want_body(p->r);
}

void try_send_broke(struct proxy *p, int error)
{
    struct proxy_try *t = &p->t;
    note_sent(p);
    if (t->is_connected) {
        t->send_broke = true;
        /* The socket is readable now, if only for its error. */
        conn_want_read(&t->uc->c, !t->is_blocked);
        resume_body(p); /* what else comes of the body is dropped */
        try_arm(p);
    } else if (t->is_reused) {
        proxy_failed(p, FAIL_UPSTREAM_CLOSED_REUSED, error, NULL);
    } else {
        connect_next(p, error);
    }
}

static struct iovec iov_of(struct str s)
{
    return (struct iovec){ .iov_base = (void *)(uintptr_t)s.p, .iov_len = s.n };
}

/* The frame around n bytes of body: `size` goes before them, the result after. */
static struct str body_frame(const struct proxy *p, size_t n, bool last, char *size, struct iovec *before)
{
    *before = (struct iovec){ 0 };
    if (!p->is_chunked)
        return STR_NONE;
    struct str end = p->chunk_end.n > 0 ? p->chunk_end : STR("\r\n0\r\n\r\n");
    if (n == 0)
        return last ? str_skip(end, 2) : STR_NONE;
    *before = iov_of(str_of(size, h1_chunk_head(size, n)));
    return last ? end : STR("\r\n");
}

/* What is kept, from where this attempt is in it; what does not go out in one write is for the next. */
enum { KEPT_IOV = PROXY_KEEP / LOOP_BLOCK + 2 }; /* a block holds a little less than its size */

static int kept_iov(struct proxy *p, struct iovec *iov, char *size)
{
    struct proxy_try *t = &p->t;
    int n = buf_iov_from(&p->kept, &t->kept_at, iov + 1, KEPT_IOV);
    size_t bytes = 0;
    for (int i = 1; i <= n; i++)
        bytes += iov[i].iov_len;
    t->n_kept_sent += bytes;
    t->has_sent_kept = t->n_kept_sent == p->kept.n;
    struct str after = body_frame(p, bytes, p->is_body_complete && t->has_sent_kept, size, &iov[0]);
    iov[n + 1] = iov_of(after);
    return n + 2;
}

/* What will not be sent a second time need not be kept. */
static void drop_sent(struct proxy *p)
{
    struct proxy_try *t = &p->t;
    if (p->is_idempotent || !t->is_connected || t->n_kept_sent == 0)
        return;
    p->is_body_lost = true;
    buf_skip(&p->kept, &p->loop->w->loop->blocks, t->n_kept_sent);
    t->n_kept_sent = 0;
    t->kept_at = (struct buf_at){ 0 };
}

/* What was written is out: the rest of what is kept, a bounded part of it in each turn, then what the client has. */
static void go_on(struct proxy *p)
{
    enum { PIECES = 16 };
    struct proxy_try *t = &p->t;
    char size[H1_CHUNK_HEAD];
    struct iovec iov[KEPT_IOV + 2];
    for (unsigned i = 0; !t->has_sent_kept && !t->send_broke; i++) {
        if (i == PIECES) {
            conn_want_drained(&t->uc->c);
            return;
        }
        drop_sent(p);
        enum io io = conn_writev(&t->uc->c, iov, kept_iov(p, iov, size));
        if (io != IO_OK && io != IO_AGAIN) {
            try_send_broke(p, errno);
            return;
        }
        note_sent(p);
        if (io == IO_AGAIN)
            return;
    }
    drop_sent(p);
    resume_body(p); /* it may have been stopped between two attempts */
}

static void after_write(struct proxy *p, enum io io)
{
    if (io != IO_OK && io != IO_AGAIN) {
        try_send_broke(p, errno);
        return;
    }
    note_sent(p);
    if (io == IO_OK)
        go_on(p);
    try_arm(p);
}

enum io try_send_body(struct proxy *p, struct str bytes, bool last)
{
    char size[H1_CHUNK_HEAD];
    struct iovec iov[3];
    struct str after = body_frame(p, bytes.n, last, size, &iov[0]);
    iov[1] = iov_of(bytes);
    iov[2] = iov_of(after);
    enum io io = conn_writev(&p->t.uc->c, iov, 3);
    after_write(p, io);
    return io;
}

/* The head, and of the body what has come already. */
static void send_request(struct proxy *p)
{
    char size[H1_CHUNK_HEAD];
    struct iovec iov[KEPT_IOV + 3];
    struct conn *c = &p->t.uc->c;
    iov[0] = iov_of(p->head);
    int n = 1 + kept_iov(p, iov + 1, size);
    conn_want_read(c, true);
    after_write(p, conn_writev(c, iov, n));
}

/* --- events of the connection --- */

static void on_readable(struct conn *c)
{
    answer_on_readable(proxy_of(c));
}

static void on_progress(struct conn *c)
{
    struct proxy *p = proxy_of(c);
    note_sent(p);
    try_arm(p);
}

static void on_drained(struct conn *c)
{
    struct proxy *p = proxy_of(c);
    note_sent(p);
    go_on(p);
    try_arm(p);
}

static void on_failed(struct conn *c, int error)
{
    struct proxy *p = proxy_of(c);
    if (p->t.send_broke) /* it cannot even be read any more */
        proxy_failed(p, FAIL_UPSTREAM_SEND_FAILED, error, NULL);
    else
        try_send_broke(p, error);
}

static const struct conn_events try_events = {
    .readable = on_readable,
    .drained = on_drained,
    .progress = on_progress,
    .failed = on_failed,
};

/* --- the connection --- */

static void on_again(struct deadline *d);

/* A unix socket whose backlog is full: nothing would say when there is room (connect(2)). */
static bool wait_for_backlog(struct proxy *p, int error)
{
    struct proxy_try *t = &p->t;
    struct loop *l = p->loop->w->loop;
    uint64_t limit = p->r->s->timeouts.connect;
    if (error != EAGAIN || t->addrs[t->addr_at].u.sa.sa_family != AF_UNIX)
        return false;
    if (limit > 0 && l->now_ms - t->start_ms >= limit)
        proxy_failed(p, FAIL_CONNECT_TIMEOUT, error, NULL);
    else
        deadline_set(l, &p->wait, DEADLINE_CONNECT, BACKLOG_DELAY_MS, on_again);
    return true;
}

/* Tries the addresses from addr_at on; error: why the one before failed. */
static void connect_from(struct proxy *p, int error)
{
    struct proxy_try *t = &p->t;
    for (; t->addr_at < t->n_addrs; t->addr_at++) {
        t->uc = pool_connect(&p->loop->pool, t->server, &t->addrs[t->addr_at], &try_events, p);
        if (t->uc != NULL) {
            send_request(p);
            return;
        }
        error = errno;
        if (wait_for_backlog(p, error))
            return;
        if (error == EMFILE || error == ENFILE) {
            proxy_failed(p, FAIL_NO_DESCRIPTORS, error, NULL);
            return;
        }
    }
    proxy_failed(p, FAIL_CONNECT_FAILED, error, NULL);
}

static void on_again(struct deadline *d)
{
    connect_from(container_of(d, struct proxy, wait), 0);
}

static void connect_next(struct proxy *p, int error)
{
    upstream_conn_close(p->t.uc);
    p->t.uc = NULL;
    p->t.addr_at++;
    connect_from(p, error);
}

void try_start(struct proxy *p, struct server *s, bool must_be_fresh)
{
    struct request *r = p->r;
    struct loop *l = p->loop->w->loop;
    struct proxy_try *t = &p->t;
    *t = (struct proxy_try){ .server = s, .start_ms = l->now_ms, .read_size = PROXY_READ_MIN };
    h1_read_init(&t->in, H1_RESPONSE, &p->limits, &r->arena);
    h1_read_expect(&t->in, r->head->method);
    atomic_fetch_add_explicit(&s->requests, 1, memory_order_relaxed);
    bind_sent(p, s);
    struct str tried = STR_NONE;
    if (r->upstream_addr.n > 0)
        tried = arena_printf(&r->arena, "%.*s, %.*s", STR_ARG(r->upstream_addr), STR_ARG(s->name));
    r->upstream_addr = tried.p != NULL ? tried : s->name;
    r->doing = "connecting to the server";

    if (!must_be_fresh && p->conf->proxy_protocol == 0)
        t->uc = pool_take(&p->loop->pool, s, !p->is_idempotent, &try_events, p);
    if (t->uc != NULL) {
        t->is_reused = true;
        t->written_before = t->uc->c.written;
        send_request(p);
        return;
    }
    struct addr addrs[SERVER_ADDRS];
    t->n_addrs = server_addresses(s, addrs, SERVER_ADDRS);
    t->addrs = arena_array(&r->arena, struct addr, t->n_addrs);
    if (t->addrs == NULL) {
        proxy_failed(p, FAIL_NO_MEMORY, 0, NULL);
        return;
    }
    memcpy(t->addrs, addrs, t->n_addrs * sizeof *addrs);
    connect_from(p, 0);
}
