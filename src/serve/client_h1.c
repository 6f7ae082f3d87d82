/* SPDX-License-Identifier: MIT */
/*
 * client_ops for HTTP/1.x: how an answer becomes bytes on one connection. The head is held back until the first body bytes or
 * the end, so that a small answer is one writev; before a file range it goes out plainly (measured: MSG_MORE and corking
 * cost 2 to 3 times as much at 100 KB on loopback). Chunked framing to HTTP/1.1 clients when the length is unknown, close-delimited to
 * HTTP/1.0, where a cut answer is a reset so that it does not look complete (RFC 9112 §8).
 *
 * None of these calls back into a handler. When the connection breaks they say IO_CLOSED and client_run finds it.
 */
#include <errno.h>

#include "http/h1_write.h"
#include "http/status.h"
#include "serve/client.h"

enum {
    DISCARD_KEEP = 64 * 1024, /* an unread body up to this size is read and dropped, so that the connection lives on */
};

static struct client *client_of(const struct request *r)
{
    return r->client;
}

/* Can the connection be used again although the handler has not read the whole request? */
static bool is_body_affordable(const struct request *r, const struct exchange *x)
{
    if (r->body_complete)
        return true;
    if (x->continue_due || r->head->body != BODY_LENGTH)
        return false;
    return r->head->length - r->body_received <= DISCARD_KEEP;
}

static void h1_head(struct request *r)
{
    struct client *c = client_of(r);
    struct exchange *x = c->x;
    struct response *p = &r->resp;
    unsigned minor = r->head ? r->head->minor : 1;
    bool wants_keep = r->head && x->has_head && r->head->keep_alive;
    x->framing = h1_head_framing(p, minor);
    bool close = p->close || !wants_keep || c->close_after || x->framing == H1_FRAMING_CLOSE ||
                 !is_body_affordable(r, x) ||
                 atomic_load_explicit(&r->w->shared->draining, memory_order_relaxed);
    c->close_after |= close;
    x->held_head = h1_head_print(&r->arena, p, x->framing, close, !close && minor == 0, worker_date(r->w));
    if (x->held_head.p == NULL)
        client_lost(c);
    r->head_bytes_sent = x->held_head.n;
}

/* After a write: note whether everything is out, keep the deadline right. */
static enum io after_write(struct client *c, enum io io, enum how how)
{
    struct request *r = c->r;
    if (io != IO_OK && io != IO_AGAIN) {
        client_lost(c);
        return IO_CLOSED;
    }
    if (how == HOW_LAST) {
        r->ended = true;
        r->drained = io == IO_OK;
        request_wake(r);
    }
    if (io == IO_AGAIN)
        client_update(c);
    return io;
}

static enum io h1_data(struct request *r, struct str bytes, enum how how)
{
    struct client *c = client_of(r);
    struct exchange *x = c->x;
    struct iovec iov[5];
    int n = 0;
    char size[H1_CHUNK_HEAD];
    if (c->gone)
        return IO_CLOSED;
#define PIECE(s) (iov[n++] = (struct iovec){ .iov_base = (void *)(uintptr_t)(s).p, .iov_len = (s).n })
    if (x->held_head.n > 0)
        PIECE(x->held_head);
    x->held_head = STR_NONE;
    if (bytes.n > 0) {
        if (x->framing == H1_FRAMING_CHUNKED)
            PIECE(str_of(size, h1_chunk_head(size, bytes.n)));
        PIECE(bytes);
        if (x->framing == H1_FRAMING_CHUNKED)
            PIECE(how == HOW_LAST ? STR("\r\n0\r\n\r\n") : STR("\r\n"));
    } else if (how == HOW_LAST && x->framing == H1_FRAMING_CHUNKED) {
        PIECE(STR("0\r\n\r\n"));
    }
#undef PIECE
    return after_write(c, n > 0 ? conn_writev(&c->conn, iov, n) : conn_queued(&c->conn) > 0 ? IO_AGAIN : IO_OK, how);
}

static enum io h1_file(struct request *r, struct chunk file, enum how how)
{
    struct client *c = client_of(r);
    struct exchange *x = c->x;
    if (BUG_IF(x->framing == H1_FRAMING_CHUNKED) || c->gone) {
        if (file.lease.release)
            file.lease.release(file.lease.arg);
        client_lost(c);
        return IO_CLOSED;
    }
    if (x->held_head.n > 0) {
        struct str head = x->held_head;
        x->held_head = STR_NONE;
        enum io io = conn_write(&c->conn, head);
        if (io != IO_OK && io != IO_AGAIN) {
            if (file.lease.release)
                file.lease.release(file.lease.arg);
            return after_write(c, io, how);
        }
    }
    enum io io = conn_send_file(&c->conn, file);
    if (io == IO_ERROR && errno == ESPIPE) {
        request_fail(r, FAIL_FILE_TRUNCATED, 0, NULL);
        return IO_CLOSED;
    }
    return after_write(c, io, how);
}

static void h1_end(struct request *r, const struct fields *trailers)
{
    struct client *c = client_of(r);
    struct exchange *x = c->x;
    if (c->gone)
        return;
    if (trailers == NULL || trailers->n == 0 || x->framing != H1_FRAMING_CHUNKED) {
        (void)!h1_data(r, STR_NONE, HOW_LAST);
        return;
    }
    struct str end = h1_chunk_end(&r->arena, trailers);
    struct iovec iov[2] = {
        { .iov_base = (void *)(uintptr_t)x->held_head.p, .iov_len = x->held_head.n },
        { .iov_base = (void *)(uintptr_t)end.p, .iov_len = end.n },
    };
    int skip = x->held_head.n == 0;
    x->held_head = STR_NONE;
    enum io io = end.p ? conn_writev(&c->conn, iov + skip, 2 - skip) : IO_CLOSED;
    (void)!after_write(c, io, HOW_LAST);
}

static void h1_abort(struct request *r)
{
    struct client *c = client_of(r);
    if (c->gone)
        return;
    c->close_after = true;
    if (c->x->held_head.n > 0) /* who gets nothing may take it for an idle connection's end, and ask again */
        (void)!conn_write(&c->conn, c->x->held_head);
    c->x->held_head = STR_NONE;
    if (c->x->framing == H1_FRAMING_CLOSE || r->fail == FAIL_CLIENT_SEND_TIMEOUT)
        conn_reset(&c->conn);
    else
        conn_close(&c->conn);
    client_lost(c);
}

static void h1_want_body(struct request *r)
{
    struct client *c = client_of(r);
    struct exchange *x = c->x;
    if (c->gone)
        return;
    if (x->continue_due && r->body_received == 0 && c->pending.n == 0 && !r->head_sent) {
        enum io io = conn_write(&c->conn, STR("HTTP/1.1 100 Continue\r\n\r\n"));
        if (io != IO_OK && io != IO_AGAIN) {
            client_lost(c);
            return;
        }
    }
    x->continue_due = false;
    x->body_since_ms = r->w->loop->now_ms;
    x->body_since_bytes = r->body_received;
    client_wake(c);
}

static void h1_interim(struct request *r, uint16_t status, const struct fields *f)
{
    struct client *c = client_of(r);
    if (c->gone || r->head_sent || r->head->minor == 0)
        return;
    struct str head = h1_write_response(&r->arena, status, status_reason(status), STR_NONE, f);
    enum io io = head.p ? conn_write(&c->conn, head) : IO_CLOSED;
    if (io != IO_OK && io != IO_AGAIN)
        client_lost(c);
}

/* The 101 head goes out (or into the queue that is given along), then the descriptor changes hands. */
static bool h1_upgrade(struct request *r, struct upgraded *out)
{
    struct client *c = client_of(r);
    if (c->gone || r->head_sent)
        return false;
    struct str head = h1_write_response(&r->arena, r->resp.status, r->resp.reason, r->resp.block, &r->resp.fields);
    char *early = c->pending.n > 0 ? arena_alloc(&r->arena, (size_t)c->pending.n) : NULL;
    if (head.p == NULL || (c->pending.n > 0 && early == NULL))
        return false;
    enum io io = conn_write(&c->conn, head);
    if (io != IO_OK && io != IO_AGAIN)
        return false;
    size_t n = 0;
    while (c->pending.n > 0) {
        struct chunk piece = buf_peek(&c->pending);
        memcpy(early + n, piece.p, (size_t)piece.n);
        n += (size_t)piece.n;
        buf_skip(&c->pending, &r->w->loop->blocks, piece.n);
    }
    out->early = str_of(early, n);
    out->has_ended = c->eof;
    r->head_bytes_sent = head.n;
    r->head_sent = r->ended = r->drained = true;
    out->fd = conn_detach(&c->conn, &out->unsent);
    client_release(c);
    return true;
}

static void h1_again(struct request *r)
{
    conn_want_drained(&client_of(r)->conn);
}

static void h1_wake(struct request *r)
{
    client_wake(client_of(r));
}

static void h1_body_resume(struct request *r)
{
    struct client *c = client_of(r);
    c->x->body_blocked = false;
    c->x->body_since_ms = r->w->loop->now_ms;
    c->x->body_since_bytes = r->body_received;
    client_wake(c);
}

static size_t h1_room(const struct request *r)
{
    const struct client *c = client_of(r);
    return c->gone ? 0 : conn_write_room(&c->conn);
}

static bool h1_is_open(const struct request *r)
{
    return !client_of(r)->gone;
}

const struct client_ops client_h1_ops = {
    .protocol = "HTTP/1.1",
    .head = h1_head,
    .data = h1_data,
    .file = h1_file,
    .end = h1_end,
    .abort = h1_abort,
    .want_body = h1_want_body,
    .interim = h1_interim,
    .upgrade = h1_upgrade,
    .again = h1_again,
    .wake = h1_wake,
    .body_resume = h1_body_resume,
    .room = h1_room,
    .is_open = h1_is_open,
};
