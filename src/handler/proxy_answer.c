/* SPDX-License-Identifier: MIT */
/*
 * One attempt on the way back: bytes of the server through the reader to the client, as they come.
 *
 * Each turn reads once, as much as the client has lately shown to take: 16 KB at first, doubling to 256 KB while
 * writes complete, back to the start when they do not; more than 64 KB only with room in the client's socket. So at
 * most 64 KB is held for a client that takes nothing, and while it does not the server is not read. What is read
 * passes at once (HOW_PAUSE): an event of an event stream waits for nothing.
 *
 * Rules of what is passed: interim answers but 100 (RFC 9110 §15.2; weir has answered for 100 itself); a 101 only for
 * the handshake it belongs to; never a byte beyond the message (RFC 9112 §9.2: the connection is not used again);
 * never an end that the server did not send (§8). Of an answer that something else takes the place of nothing is passed
 * (proxy_instead.c).
 */
#include <errno.h>

#include "handler/proxy_try.h"
#include "serve/header_rules.h"
#include "upstream/health.h"

enum { INTERIM_MAX = 200 };

static void pass(struct proxy *p, struct str bytes, enum how how)
{
    if (respond_body(p->r, bytes, how) != IO_OK)
        p->t.is_blocked = true; /* or gone: then abort follows */
}

/* --- the head --- */

static void refuse_fields(struct proxy *p, enum proxy_fields_result result)
{
    if (result == PROXY_FIELDS_TOO_MANY)
        proxy_failed(p, FAIL_UPSTREAM_MALFORMED, 0, "too many fields named by Connection");
    else
        proxy_failed(p, FAIL_NO_MEMORY, 0, NULL);
}

static void interim(struct proxy *p)
{
    struct request *r = p->r;
    struct proxy_try *t = &p->t;
    uint16_t status = t->in.head.status;
    struct proxy_answer answer;
    t->interim_bytes += t->in.head_bytes;
    if (t->n_interim++ >= INTERIM_MAX || t->interim_bytes > p->limits.head_size) {
        proxy_failed(p, FAIL_UPSTREAM_MALFORMED, 0, "interim answers without end");
        return;
    }
    if (status != 100 && r->ops->interim != NULL && r->head->minor > 0) {
        enum proxy_fields_result result = proxy_answer_fields(&r->arena, &t->in.head, false, &answer);
        if (result != PROXY_FIELDS_OK) {
            refuse_fields(p, result);
            return;
        }
        r->ops->interim(r, status, &answer.fields);
    }
    h1_read_next(&t->in);
}

/* How long the connection may be kept when this answer is complete: as configured, else a second less than the
 * server says. */
static uint64_t idle_limit(const struct proxy *p, const struct proxy_answer *answer)
{
    struct server *s = p->t.server;
    if (answer->has_keep_alive) {
        uint64_t s_max = answer->keep_alive_s < 86400 ? answer->keep_alive_s : 86400;
        unsigned ms = s_max > 1 ? (unsigned)(s_max - 1) * 1000 : 1;
        if (atomic_load_explicit(&s->learnt_ms, memory_order_relaxed) != ms)
            atomic_store_explicit(&s->learnt_ms, ms, memory_order_relaxed);
    }
    if (p->conf->has_upstream_idle)
        return p->conf->upstream_idle;
    unsigned learnt = atomic_load_explicit(&s->learnt_ms, memory_order_relaxed);
    return learnt > 0 ? learnt : POOL_IDLE_MS;
}

/* Is it what a server says when it gives up an idle connection (RFC 9110 §15.5.9)? Said of the request that was on its
 * way meanwhile, it is the ordinary race, and no answer. */
static bool is_idle_end(const struct proxy *p, const struct head *h)
{
    return h->status == 408 && !h->keep_alive && proxy_may_replay(p);
}

/* 426 has to name the protocol that is asked for (RFC 9110 §15.5.22); there is one that could be had through weir. */
static void name_upgrade(struct request *r, const struct head *h)
{
    if (r->head->minor == 0 || !fields_have_token(&h->fields, F_UPGRADE, STR("websocket")))
        return;
    respond_field(r, F_CONNECTION, STR("Upgrade"));
    respond_field(r, F_UPGRADE, STR("websocket"));
}

static void final_head(struct proxy *p)
{
    struct request *r = p->r;
    struct proxy_try *t = &p->t;
    const struct head *h = &t->in.head;
    struct proxy_answer answer;
    if (UNLIKELY(is_idle_end(p, h))) {
        proxy_failed(p, FAIL_UPSTREAM_CLOSED_REUSED, 0, NULL);
        return;
    }
    bool has_trailers = h->body == BODY_CHUNKED && r->head->minor > 0;
    enum proxy_fields_result result = proxy_answer_fields(&r->arena, h, has_trailers, &answer);
    if (result != PROXY_FIELDS_OK) {
        refuse_fields(p, result);
        return;
    }
    t->head_ms = p->loop->w->loop->now_ms;
    t->idle_ms = idle_limit(p, &answer);
    t->is_patient = h->body == BODY_CHUNKED || h->body == BODY_UNTIL_CLOSE || answer.is_event_stream;
    r->resp.status = h->status;
    r->resp.reason = h->reason;
    r->resp.fields = answer.fields;
    r->resp.has_length = h->has_length && h->status != 204;
    r->resp.length = h->length;
    if (UNLIKELY(h->status == 426))
        name_upgrade(r, h);
    bind_head(p);
    enum proxy_instead instead = instead_of(r, h);
    if (UNLIKELY(instead != INSTEAD_NOTHING))
        instead_begin(p, instead);
    else
        respond_head(r);
}

/* The handshake has succeeded: both connections go to a tunnel. */
static void switch_protocol(struct proxy *p, struct str early)
{
    struct request *r = p->r;
    struct proxy_try *t = &p->t;
    struct proxy_answer answer;
    if (!p->is_websocket || !proxy_is_accepted(r->head, &t->in.head) || conn_queued(&t->uc->c) > 0) {
        proxy_failed(p, FAIL_UPSTREAM_UNSOLICITED_101, 0, NULL);
        return;
    }
    enum proxy_fields_result result = proxy_answer_fields(&r->arena, &t->in.head, false, &answer);
    if (result != PROXY_FIELDS_OK) {
        refuse_fields(p, result);
        return;
    }
    /* Others may have been faster since this server was chosen. Nothing of its answer is in the client's yet. */
    if (!server_take_tunnel(t->server)) {
        proxy_failed(p, FAIL_NO_SERVER, 0, "max_tunnels are open");
        return;
    }
    r->resp.status = 101;
    r->resp.reason = t->in.head.reason;
    r->resp.fields = answer.fields;
    header_rules_answer(r);
    respond_field(r, F_CONNECTION, STR("Upgrade"));
    respond_field(r, F_UPGRADE, STR("websocket"));
    bind_head(p);
    t->head_ms = p->loop->w->loop->now_ms;
    struct upstream_conn *uc = t->uc;
    deadline_clear(&uc->deadline);
    if (!tunnel_start(p->loop, r, uc, early)) {
        atomic_fetch_sub_explicit(&t->server->tunnels, 1, memory_order_release);
        proxy_failed(p, FAIL_CLIENT_ABORTED, 0, NULL);
        return;
    }
    proxy_note(p, 101);
    health_passed(t->server);
    t->uc = NULL; /* the tunnel's */
    proxy_release(p, false);
    p->is_over = true;
    request_wake(r);
}

static void on_head(struct proxy *p, struct str rest)
{
    uint16_t status = p->t.in.head.status;
    if (status == 101)
        switch_protocol(p, rest);
    else if (status < 200)
        interim(p);
    else
        final_head(p);
}

/* --- the end --- */

/* The server has said what counts. */
static void end_attempt(struct proxy *p, bool is_reusable)
{
    proxy_note(p, p->t.in.head.status);
    health_passed(p->t.server);
    proxy_release(p, is_reusable);
    buf_clear(&p->kept, &p->loop->w->loop->blocks);
    p->is_over = true;
}

/* The answer is complete; `last` is its last piece. is_clean: nothing came behind it and the connection is open. */
static void complete(struct proxy *p, struct str last, bool is_clean)
{
    struct request *r = p->r;
    struct proxy_try *t = &p->t;
    struct fields trailers = { 0 };
    if (t->in.trailers.n > 0 && proxy_trailer_fields(&r->arena, &t->in.trailers, &trailers) != PROXY_FIELDS_OK) {
        proxy_failed(p, FAIL_NO_MEMORY, 0, NULL);
        return;
    }
    bool is_reusable = is_clean && t->in.head.keep_alive && p->is_body_complete && t->has_sent_kept &&
        !t->send_broke && conn_queued(&t->uc->c) == 0;
    if (is_reusable && t->is_blocked)
        conn_want_read(&t->uc->c, true);
    end_attempt(p, is_reusable);
    if (UNLIKELY(p->instead != INSTEAD_NOTHING)) {
        instead_finish(p);
    } else if (trailers.n == 0) {
        pass(p, last, HOW_LAST);
    } else {
        pass(p, last, HOW_MORE);
        respond_end(r, &trailers);
    }
}

/* An answer that is not for the client, and of which more would have to be waited for. */
static void cut_short(struct proxy *p)
{
    end_attempt(p, false);
    instead_finish(p);
}

static void refuse(struct proxy *p)
{
    enum h1_bad bad = p->t.in.bad;
    if (bad == H1_BAD_NO_MEMORY) {
        proxy_failed(p, FAIL_NO_MEMORY, 0, NULL);
    } else if (bad == H1_BAD_HEAD_TOO_LARGE || bad == H1_BAD_TOO_MANY_FIELDS) {
        struct str detail = arena_printf(&p->r->arena, "limits.response_header_size is %u bytes", p->limits.head_size);
        proxy_failed(p, FAIL_UPSTREAM_HEAD_TOO_LARGE, 0, detail.p);
    } else {
        proxy_failed(p, FAIL_UPSTREAM_MALFORMED, 0, h1_bad_text(bad));
    }
}

/* FIN or an error where bytes were expected. */
static void closed(struct proxy *p, enum io io, int error)
{
    struct proxy_try *t = &p->t;
    if (io == IO_EOF && p->r->head_sent && h1_read_eof(&t->in) == H1_END) {
        complete(p, STR_NONE, false);
        return;
    }
    if (!t->is_connected)
        try_send_broke(p, error != 0 ? error : ECONNRESET);
    else if (t->is_reused && !t->has_answered)
        proxy_failed(p, FAIL_UPSTREAM_CLOSED_REUSED, error, NULL);
    else
        proxy_failed(p, t->send_broke && !t->has_answered ? FAIL_UPSTREAM_SEND_FAILED : FAIL_UPSTREAM_CLOSED, error,
                     NULL);
}

/* --- reading --- */

/* Small pieces of one read are joined (they lie in the loop's scratch buffer, chunk sizes between them), so that
 * each does not cost a write. True: `next` has become a part of `piece`. */
static bool join(struct str *piece, struct str next)
{
    enum { SMALL = 8 * 1024 };
    if (piece->n == 0 || next.n > SMALL)
        return false;
    memmove((char *)(uintptr_t)piece->p + piece->n, next.p, next.n);
    piece->n += next.n;
    return true;
}

/* Returns when the bytes are used up or the attempt is over. */
static void feed(struct proxy *p, struct str got)
{
    struct proxy_try *t = &p->t;
    struct str piece = STR_NONE; /* of the body, not passed on yet */
    bool has_head = false;
    while (!p->is_over && t->uc != NULL) {
        size_t used;
        enum h1_event event = h1_read_feed(&t->in, got.p, got.n, &used);
        got = str_skip(got, used);
        switch (event) {
        case H1_MORE:
            if (UNLIKELY(p->instead != INSTEAD_NOTHING))
                cut_short(p);
            else if (piece.n > 0 || has_head)
                pass(p, piece, HOW_PAUSE);
            return;
        case H1_HEAD: {
            const struct upstream_conn *uc = t->uc;
            on_head(p, got);
            if (t->uc != uc) /* failed, or another attempt has begun */
                return;
            has_head = p->r->head_sent;
            break;
        }
        case H1_BODY:
            if (UNLIKELY(p->instead != INSTEAD_NOTHING))
                break;
            if (p->is_handshake)
                bind_body(p, t->in.body);
            if (join(&piece, t->in.body))
                break;
            if (piece.n > 0)
                pass(p, piece, HOW_MORE);
            piece = t->in.body;
            break;
        case H1_END:
            complete(p, piece, got.n == 0);
            return;
        case H1_BAD:
            if (UNLIKELY(p->instead != INSTEAD_NOTHING)) {
                cut_short(p);
                return;
            }
            if (piece.n > 0 || has_head) /* what was right before it, however the bytes have come */
                pass(p, piece, HOW_PAUSE);
            refuse(p);
            return;
        }
    }
}

static size_t next_read(struct proxy *p)
{
    size_t n = p->t.read_size;
    if (n > PROXY_READ_BLIND && request_room(p->r) < n)
        n = PROXY_READ_BLIND;
    return n;
}

void answer_on_readable(struct proxy *p)
{
    struct proxy_try *t = &p->t;
    struct upstream_conn *uc = t->uc;
    if (t->is_blocked) { /* reading was to stop */
        conn_want_read(&uc->c, false);
        return;
    }
    size_t cap = next_read(p);
    struct str got;
    enum io io = conn_read_scratch(&uc->c, cap, &got);
    if (io == IO_AGAIN) {
        if (t->send_broke)
            proxy_failed(p, FAIL_UPSTREAM_SEND_FAILED, 0, NULL);
        return;
    }
    if (io != IO_OK) {
        closed(p, io, io == IO_ERROR ? errno : 0);
        return;
    }
    t->has_answered = true;
    feed(p, got);
    if (p->is_over || t->uc != uc)
        return;
    if (t->is_blocked) {
        t->read_size = PROXY_READ_MIN;
        conn_want_read(&uc->c, false);
    } else if (got.n == cap && cap == t->read_size && cap < LOOP_SCRATCH) {
        t->read_size *= 2;
    }
    try_arm(p);
}
