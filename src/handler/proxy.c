/* SPDX-License-Identifier: MIT */
/*
 * The reverse proxy's view of one request: it is prepared once (fields, head), then attempts follow each other until
 * one answers or none may be made. Everything about a single attempt is in struct proxy_try, replaced whole.
 *
 * struct proxy lies in the request's arena and ends with it; what it holds beside memory (a connection, a slot, kept
 * body blocks, a timer) is let go in proxy_release alone, which every way out goes through: answered, failed,
 * aborted, upgraded.
 *
 * Retries (RFC 9110 §9.2.2): the row of the failure says when the same request may go out again; its body must still
 * be whole. A kept connection that dies before a byte of the answer is the ordinary race with the server's idle
 * timeout: it is replayed once on a fresh connection to the same server, and counts neither as a retry nor against
 * the server.
 */
#include "handler/proxy.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "handler/proxy_target.h"
#include "handler/proxy_try.h"
#include "http/h1_write.h"
#include "serve/header_rules.h"
#include "upstream/health.h"
#include "upstream/pick.h"

enum {
    ANSWER_FIELDS = 1000,    /* header lines of an answer */
};

/* --- the log --- */

struct str proxy_seconds(struct arena *a, uint64_t ms)
{
    char *text = arena_alloc(a, 24);
    if (text == NULL)
        return STR("-");
    char digits[20];
    size_t n = 0, at = 0;
    uint64_t whole = ms / 1000;
    do
        digits[n++] = (char)('0' + whole % 10);
    while ((whole /= 10) > 0);
    while (n > 0)
        text[at++] = digits[--n];
    text[at++] = '.';
    for (unsigned unit = 100; unit > 0; unit /= 10)
        text[at++] = (char)('0' + ms / unit % 10);
    return str_of(text, at);
}

/* The lists of several attempts are comma-separated, as nginx has them. */
static void append(struct arena *a, struct str *list, struct str item)
{
    if (list->n == 0) {
        *list = item;
        return;
    }
    struct str both = arena_printf(a, "%.*s, %.*s", STR_ARG(*list), STR_ARG(item));
    if (both.p != NULL)
        *list = both;
}

void proxy_note(struct proxy *p, uint16_t otherwise)
{
    struct request *r = p->r;
    const struct proxy_try *t = &p->t;
    uint16_t status = t->head_ms != 0 ? t->in.head.status : otherwise;
    const struct access_log_conf *log = r->s->access_log;
    if (log == NULL || log->format == LOG_FORMAT_COMBINED) /* which has no place for them */
        return;
    struct arena *a = &r->arena;
    uint64_t now = p->loop->w->loop->now_ms, start = t->start_ms;
    append(a, &r->upstream_status, status > 0 ? arena_printf(a, "%u", status) : STR("-"));
    append(a, &r->upstream_connect_time, t->connected_ms ? proxy_seconds(a, t->connected_ms - start) : STR("-"));
    append(a, &r->upstream_header_time, t->head_ms ? proxy_seconds(a, t->head_ms - start) : STR("-"));
    append(a, &r->upstream_response_time, proxy_seconds(a, now - start));
}

/* --- attempts --- */

void proxy_release(struct proxy *p, bool is_reusable)
{
    struct proxy_try *t = &p->t;
    struct upstream_conn *uc = t->uc;
    deadline_clear(&p->wait);
    if (p->entry != NULL) {
        queue_leave(p->entry);
        wait_over(p);
    }
    if (uc != NULL) {
        t->uc = NULL;
        deadline_clear(&uc->deadline);
        if (is_reusable && p->conf->proxy_protocol == 0) /* else it has named its client */
            pool_put(uc, t->idle_ms);
        else
            upstream_conn_close(uc);
    }
    if (t->server != NULL)
        server_give(t->server);
    t->server = NULL;
}

/* Nothing more will be sent to or read from a server for this request. */
static void end(struct proxy *p)
{
    proxy_release(p, false);
    buf_clear(&p->kept, &p->loop->w->loop->blocks);
    p->is_over = true;
}

void proxy_give_up(struct proxy *p, enum fail f, int error, const char *detail)
{
    end(p);
    request_fail(p->r, f, error, detail);
}

static bool remember_tried(struct proxy *p, struct server *s)
{
    struct pick_query *q = &p->query;
    if (p->tried == NULL)
        p->tried = arena_array(&p->r->arena, struct server *, p->conf->retries + 1);
    if (p->tried == NULL)
        return false;
    p->tried[q->n_tried++] = s;
    q->tried = p->tried;
    return true;
}

/* May the request go out again after this failure? */
static bool may_repeat(const struct proxy *p, enum fail f, bool was_sent, bool has_answered)
{
    if (p->is_body_lost || p->r->head_sent)
        return false;
    switch (fail_row(f)->retry) {
    case RETRY_UNSENT:
        return !was_sent;
    case RETRY_REUSED:
        return !p->was_replayed && (p->is_idempotent || !was_sent);
    case RETRY_IDEMPOTENT:
        return !was_sent || (p->is_idempotent && !has_answered);
    default:
        return false;
    }
}

bool proxy_may_replay(const struct proxy *p)
{
    return p->t.is_reused && may_repeat(p, FAIL_UPSTREAM_CLOSED_REUSED, p->t.is_connected, false);
}

void proxy_failed(struct proxy *p, enum fail f, int error, const char *detail)
{
    struct proxy_try *t = &p->t;
    struct server *s = t->server;
    bool may = may_repeat(p, f, t->is_connected, t->has_answered);
    if (may && f == FAIL_UPSTREAM_CLOSED_REUSED) {
        p->was_replayed = true;
        t->server = NULL; /* its slot goes on to the next attempt */
        proxy_release(p, false);
        try_start(p, s, true);
        return;
    }
    proxy_note(p, fail_row(f)->status);
    if (fail_row(f)->side == SIDE_UPSTREAM && f != FAIL_NO_SERVER) {
        atomic_fetch_add_explicit(&s->failures, 1, memory_order_relaxed);
        health_failed(s, fail_row(f)->symbol, error);
        wait_look_later(p->loop, p->upstream);
    }
    proxy_release(p, false);
    p->query.is_retry = true;
    /* Whom nobody accepts may wait for long without using up its retries. */
    bool is_unaccepted = may && fail_row(f)->retry == RETRY_UNSENT;
    if (!may || p->retries >= p->conf->retries) {
        if (!is_unaccepted || !wait_hold(p))
            proxy_give_up(p, f, error, detail);
        return;
    }
    if (!p->conf->redispatch) {
        p->retries++;
        p->query.bound = s;
        request_log(p->r, LOG_WARN, error, "%s: the same server is asked again", fail_row(f)->symbol);
        wait_for_same(p);
        return;
    }
    p->query.bound = NULL;
    if (!remember_tried(p, s)) {
        proxy_give_up(p, FAIL_NO_MEMORY, 0, NULL);
        return;
    }
    if (!pick_is_possible(p->upstream, &p->query)) {
        p->retries += !is_unaccepted;
        if (!wait_hold(p))
            proxy_give_up(p, f, error, detail);
        return;
    }
    p->retries++;
    request_log(p->r, LOG_WARN, error, "%s: another server is asked", fail_row(f)->symbol);
    if (!wait_ask(p)) /* it has gone this very moment */
        proxy_give_up(p, f, error, detail);
}

/* --- the handler --- */

static enum fail fail_of_fields(enum proxy_fields_result result)
{
    return result == PROXY_FIELDS_TOO_MANY ? FAIL_BAD_FIELD : FAIL_NO_MEMORY;
}

/* The rule that has made this line of a request; else whoever sends it. */
static struct where where_of_line(const struct request *r, struct str name)
{
    for (unsigned i = 0; i < r->s->n_request_headers; i++)
        if (str_eq_nocase(r->s->request_headers[i].name, name))
            return r->s->request_headers[i].where;
    return r->action->where;
}

/* For explain: what would be sent, and to whom. Nothing is. */
static void explain(struct proxy *p, struct str target, const struct fields *fields)
{
    struct request *r = p->r;
    bool is_full;
    struct server *s = pick_server(p->upstream, &p->query, &is_full);
    request_note(r, "upstream", p->conf->name, p->conf->where);
    request_note(r, "server", s != NULL ? s->name : STR("none is usable"), p->conf->where);
    if (s != NULL)
        server_give(s);
    request_note(r, "target", target,
                 r->s->where[r->s->rewrite.n > 0 ? SET_body_rewrite : SET_body_strip_prefix]);
    for (unsigned i = 0; i < fields->n; i++)
        request_note(r, "header",
                     arena_printf(&r->arena, "%.*s: %.*s", STR_ARG(fields->v[i].name), STR_ARG(fields->v[i].value)),
                     where_of_line(r, fields->v[i].name));
    for (unsigned i = 0; i < r->s->n_request_headers; i++)
        if (fields_find(fields, r->s->request_headers[i].name) == NULL)
            request_note(r, "no header", r->s->request_headers[i].name, r->s->request_headers[i].where);
    end(p);
    respond_simple(r, 200, STR_NONE, STR_NONE);
}

static struct proxy *proxy_new(struct request *r)
{
    struct proxy *p = arena_new(&r->arena, struct proxy);
    if (p == NULL)
        return NULL;
    const struct conf *conf = r->conf;
    MAGIC_SET(p, PROXY_MAGIC);
    p->r = r;
    p->loop = r->w->handler_state[ACTION_PROXY];
    p->conf = r->action->u.proxy.upstream;
    p->upstream = r->hold->snapshot->upstreams[p->conf->index];
    p->limits = (struct h1_limits){
        .head_size = (uint32_t)conf->limits.response_header_size,
        .head_count = ANSWER_FIELDS,
    };
    p->is_websocket = r->ops->upgrade != NULL && head_is_websocket(r->head);
    p->query.is_tunnel = p->is_websocket;
    p->is_idempotent = method_is_idempotent(r->head->method);
    p->is_body_complete = r->head->body == BODY_NONE;
    p->is_chunked = r->head->body == BODY_CHUNKED;
    r->handler_data = p;
    return p;
}

/* RFC 9110 §7.6.2: the last hop that may be reached is this one. */
static bool is_last_hop(const struct request *r)
{
    if (r->head->method != METHOD_OPTIONS)
        return false;
    const struct field *left = fields_get(&r->head->fields, F_MAX_FORWARDS);
    return left != NULL && left->value.n > 0 && str_eq(left->value, str_take(STR("0000000000"), left->value.n));
}

/* A Host for requests without one (HTTP/1.0): the upstream's name, as long as it can be one. */
static struct str default_host(const struct upstream_conf *u)
{
    return str_starts(u->name, STR("unix:")) ? STR("localhost") : u->name;
}

/* Where the client connected to: by the PROXY header it came with, else the local address. */
static struct ip destination(const struct request *r)
{
    struct addr a = { .len = sizeof a.u };
    if (r->proxied != NULL && r->proxied->header.has_addresses)
        return r->proxied->header.to;
    if (r->fd < 0 || getsockname(r->fd, &a.u.sa, &a.len) != 0)
        return (struct ip){ 0 };
    return ip_of(&a.u.sa);
}

/* The head behind a PROXY header; each attempt has a connection of its own, and begins with it. */
static struct str with_proxy_header(struct request *r, unsigned version, struct str head)
{
    char header[PROXY_HEADER_V1];
    struct ip to = destination(r);
    size_t n = proxy_header_write(version, &r->remote, &to, header);
    char *text = arena_alloc(&r->arena, n + head.n);
    if (text == NULL)
        return STR_NONE;
    memcpy(text, header, n);
    memcpy(text + n, head.p, head.n);
    return str_of(text, n + head.n);
}

static enum handled proxy_start(struct request *r)
{
    r->handler_data = NULL; /* abort may be called from here */
    if (r->target.tricky) {
        request_fail(r, FAIL_TARGET_AMBIGUOUS, 0, NULL);
        return HANDLED;
    }
    if (is_last_hop(r)) {
        respond_field(r, F_ALLOW, STR("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        respond_simple(r, 204, STR_NONE, STR_NONE);
        return HANDLED;
    }
    struct proxy *p = proxy_new(r);
    if (p == NULL) {
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
        return HANDLED;
    }
    const struct proxy_facts facts = {
        .head = r->head,
        .authority = r->target.authority,
        .default_host = default_host(p->conf),
        .peer = r->peer,
        .client = r->remote,
        .request_id = request_id(r),
        .is_verified = r->verified != NULL,
        .peer_trusted = r->peer_trusted,
        .secure = r->secure,
        .via = r->s->via,
        .websocket = p->is_websocket,
        .close = p->conf->proxy_protocol > 0 || (p->conf->n_servers > 0 && p->conf->servers[0].keepalive == 0),
    };
    struct fields fields;
    struct str target;
    enum fail why = proxy_target(r, &target);
    if (why != FAIL_NONE) {
        p->is_over = true;
        request_fail(r, why, 0, NULL);
        return HANDLED;
    }
    enum proxy_fields_result result = proxy_request_fields(&r->arena, &facts, &fields);
    if (result != PROXY_FIELDS_OK) {
        p->is_over = true;
        request_fail(r, fail_of_fields(result), 0, "too many fields named by Connection");
        return HANDLED;
    }
    if (UNLIKELY(r->s->n_request_headers > 0) && !header_rules_request(r, &fields)) {
        p->is_over = true;
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
        return HANDLED;
    }
    bind_begin(p);
    if (r->trace != NULL) {
        explain(p, target, &fields);
        return HANDLED;
    }
    struct str method = r->head->method == METHOD_GET ? STR("GET") : r->head->method_text; /* it may have become one */
    p->head = h1_write_request(&r->arena, method, target, &fields);
    if (p->head.p != NULL && p->conf->proxy_protocol > 0)
        p->head = with_proxy_header(r, p->conf->proxy_protocol, p->head);
    if (p->head.p == NULL)
        proxy_give_up(p, FAIL_NO_MEMORY, 0, NULL);
    else
        body_begin(p, target, &fields);
    return HANDLED;
}

static struct proxy *proxy_of(struct request *r)
{
    struct proxy *p = r->handler_data;
    MAGIC_CHECK(p, PROXY_MAGIC);
    return p;
}

static void proxy_resume(struct request *r)
{
    struct proxy *p = proxy_of(r);
    if (p->is_over || !p->t.is_blocked || p->t.uc == NULL)
        return;
    p->t.is_blocked = false;
    conn_want_read(&p->t.uc->c, true);
    answer_on_readable(p);
}

static void proxy_abort(struct request *r)
{
    struct proxy *p = r->handler_data;
    if (p == NULL)
        return;
    MAGIC_CHECK(p, PROXY_MAGIC);
    if (p->is_over)
        return;
    if (p->t.server != NULL)
        proxy_note(p, 0);
    end(p);
}

static void *proxy_open(struct worker *w)
{
    struct proxy_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return NULL;
    loop->w = w;
    wait_loop_init(loop);
    pool_init(&loop->pool, w->loop);
    tunnel_loop_init(loop);
    return loop;
}

static void proxy_close(struct worker *w, void *state)
{
    (void)w;
    struct proxy_loop *loop = state;
    wait_loop_close(loop);
    tunnel_close_all(loop);
    pool_close(&loop->pool);
    free(loop);
}

static void proxy_drain(struct worker *w, void *state, uint64_t ms)
{
    (void)w;
    tunnel_drain_all(state, ms);
}

const struct handler proxy_handler = {
    .name = "proxy",
    .open = proxy_open,
    .close = proxy_close,
    .drain = proxy_drain,
    .start = proxy_start,
    .body = body_take,
    .resume = proxy_resume,
    .abort = proxy_abort,
};
