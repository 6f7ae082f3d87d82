/* SPDX-License-Identifier: MIT */
/*
 * The life of a request: a table of steps, one loop over it, one entrance for failures, one exit.
 *
 * A request is made at its first byte, so that a head that never completes is logged by the same exit as everything else.
 * It owns its arena and, through the handler, whatever that holds; it borrows the snapshot it began with (a hold, counted per
 * loop) and its client (through ops). Steps run only from request_run, which only the client calls: an event elsewhere says
 * request_wake. So nothing that a handler calls can free the request under it.
 *
 * Implements for every protocol: RFC 9110 §9.3.6-8 (CONNECT, TRACE and OPTIONS *), §10.1.1 (Expect), §7.2 (Host).
 */
#include "serve/request.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "http/forwarded.h"
#include "serve/access.h"
#include "serve/access_log.h"
#include "serve/filter.h"
#include "serve/handler.h"
#include "serve/respond.h"
#include "serve/route.h"

enum { REROUTES_MAX = 5, LOG_LINE = 4096 };

static enum step_result step_check(struct request *r);
static enum step_result step_route(struct request *r);
static enum step_result step_handle(struct request *r);
static enum step_result step_answer(struct request *r);

static const struct {
    enum step_result (*run)(struct request *r);
    const char *doing; /* the "while ..." of the error log */
} steps[STEP_COUNT] = {
    [STEP_CHECK] = { step_check, "reading the request" },
    [STEP_ROUTE] = { step_route, "choosing a location" },
    [STEP_ACCESS] = { access_check, "checking who asks" },
    [STEP_HANDLE] = { step_handle, "starting the answer" },
    [STEP_ANSWER] = { step_answer, "sending the answer" },
    [STEP_END] = { NULL, "ending the request" },
};

struct request *request_begin(struct worker *w, const struct client_ops *ops, void *client)
{
    struct request *r = block_take(&w->requests);
    if (r == NULL)
        return NULL;
    memset(r, 0, sizeof(*r));
    r->magic = REQUEST_MAGIC;
    r->w = w;
    r->hold = worker_hold(w);
    r->conf = r->hold->snapshot->conf;
    r->s = r->conf->s;
    r->ops = ops;
    r->client = client;
    r->fd = -1;
    arena_init(&r->arena, &w->loop->arenas);
    r->start_us = clock_monotonic_us();
    return r;
}

void request_move(struct request *r, struct hold *hold)
{
    hold->requests++;
    worker_release(r->w, r->hold);
    r->hold = hold;
    r->conf = hold->snapshot->conf;
}

enum step_result request_run(struct request *r)
{
    for (;;) {
        if (r->ended)
            r->step = STEP_ANSWER;
        enum step_result result = steps[r->step].run(r);
        if (result != STEP_NEXT)
            return result;
    }
}

const char *request_step_name(enum req_step step)
{
    return steps[step].doing;
}

void request_wake(struct request *r)
{
    r->ops->wake(r);
}

/* Own lower-case copy of the host that decides the site: from the target if it names one (RFC 9112 §3.2.2). */
static bool take_host(struct request *r)
{
    const struct field *host = fields_get(&r->head->fields, F_HOST);
    struct str value = r->target.authority.n > 0 ? r->target.authority : host ? host->value : STR_NONE;
    struct str name;
    uint16_t port;
    if (value.n == 0)
        return host == NULL; /* HTTP/1.0 without Host */
    if (!host_parse(value, &name, &port))
        return false;
    char *lower = arena_alloc(&r->arena, name.n + 1);
    if (lower == NULL)
        return false;
    for (size_t i = 0; i < name.n; i++)
        lower[i] = ascii_lower(name.p[i]);
    r->host = str_of(lower, name.n);
    if (r->host.n > 1 && str_ends(r->host, STR("."))) /* fully qualified: the same name (RFC 3986 §3.2.2) */
        r->host.n--;
    return true;
}

static enum step_result fail_now(struct request *r, enum fail f)
{
    request_fail(r, f, 0, NULL);
    return STEP_NEXT;
}

static enum step_result step_check(struct request *r)
{
    const struct head *h = r->head;
    if (h->method == METHOD_CONNECT) {
        r->resp.close = true;
        return fail_now(r, FAIL_CONNECT_REFUSED);
    }
    switch (target_parse(&r->target, h->target, h->method, &r->arena)) {
    case TARGET_OK:
        r->request_uri = r->target.raw;
        break;
    case TARGET_ABOVE_ROOT:
        return fail_now(r, FAIL_TARGET_ABOVE_ROOT);
    case TARGET_NO_MEMORY:
        return fail_now(r, FAIL_NO_MEMORY);
    case TARGET_BAD:
        return fail_now(r, FAIL_TARGET_MALFORMED);
    }
    if (!take_host(r))
        return fail_now(r, FAIL_BAD_HOST);
    const struct field *expect = fields_get(&h->fields, F_EXPECT);
    if (h->minor >= 1 && expect != NULL && !h->expect_continue && expect->value.n > 0)
        return fail_now(r, FAIL_EXPECTATION);
    r->step = STEP_ROUTE;
    return STEP_NEXT;
}

/* What a trusted peer says of the client that it speaks for. */
static void believe_peer(struct request *r)
{
    const struct fields *f = &r->head->fields;
    struct forwarded said = forwarded_read(f, &r->peer, r->site->trusted, r->site->n_trusted);
    r->remote = said.client;
    if (said.has_scheme)
        r->secure = said.is_https;
    const struct field *id = fields_get(f, F_X_REQUEST_ID);
    if (id != NULL && is_request_id(id->value))
        r->id = id->value;
}

static void choose_site(struct request *r)
{
    r->site = route_site(r->listen, r->host);
    r->s = r->site->s;
    r->peer_trusted = cidrs_have(r->site->trusted, r->site->n_trusted, &r->peer);
    if (r->peer_trusted)
        believe_peer(r);
    if (r->trace) {
        for (unsigned i = 0; i < r->listen->n_sites; i++)
            if (r->listen->sites[i] != r->site)
                request_note(r, "other site", r->listen->sites[i]->label, r->listen->sites[i]->where);
        request_note(r, "site", r->site->label, r->site->where);
    }
}

/* OPTIONS * asks about the server, not about a file beneath it. */
static enum step_result answer_for_server(struct request *r)
{
    respond_field(r, F_ALLOW, STR("GET, HEAD, OPTIONS"));
    respond_simple(r, 204, STR_NONE, STR_NONE);
    return STEP_NEXT;
}

static enum step_result step_route(struct request *r)
{
    if (r->site == NULL)
        choose_site(r);
    const struct location_conf *location;
    if (!route_location(r, r->site, &location)) {
        request_note(r, "gave up", location->match, location->where);
        request_fail(r, FAIL_REGEX_LIMIT, 0, arena_dup(&r->arena, location->match).p);
        return STEP_NEXT;
    }
    r->location = location;
    if (r->location == NULL && r->target.form == TARGET_ASTERISK)
        return answer_for_server(r);
    if (r->location == NULL)
        return fail_now(r, FAIL_NOT_FOUND);
    r->s = &r->location->s;
    if (UNLIKELY(r->location->internal) && r->reroutes == 0) {
        request_note(r, "internal", STR("not for clients"), r->location->where);
        return fail_now(r, FAIL_NOT_FOUND);
    }
    request_note(r, "location", r->location->match, r->location->where);
    if (r->head->method == METHOD_TRACE) {
        respond_field(r, F_ALLOW, STR("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        return fail_now(r, FAIL_METHOD_REFUSED);
    }
    if (r->s->limits.body_size > 0 && r->head->body == BODY_LENGTH && r->head->length > r->s->limits.body_size)
        return fail_now(r, FAIL_BODY_TOO_LARGE);
    r->action_index = 0;
    r->step = STEP_ACCESS;
    return STEP_NEXT;
}

/* Does OPTIONS * stay here, because no backend is asked about itself? */
static bool is_for_server(const struct request *r)
{
    if (r->target.form != TARGET_ASTERISK)
        return false;
    for (unsigned i = 0; i < r->location->n_actions; i++)
        if (r->location->actions[i]->kind == ACTION_PROXY)
            return false;
    return true;
}

static enum step_result step_handle(struct request *r)
{
    if (is_for_server(r))
        return answer_for_server(r);
    while (r->action_index < r->location->n_actions) {
        r->action = r->location->actions[r->action_index++];
        const struct handler *h = r->w->handlers[r->action->kind];
        r->step = STEP_ANSWER;
        r->handler = h;
        if (h->start(r) == HANDLED)
            return STEP_NEXT;
        r->handler = NULL;
        r->step = STEP_HANDLE;
    }
    return fail_now(r, FAIL_NOT_FOUND);
}

static enum step_result step_answer(struct request *r)
{
    return r->ended && r->drained ? STEP_DONE : STEP_WAIT;
}

static void log_failure(struct request *r, enum fail f, int error, const char *detail)
{
    const struct fail_row *row = fail_row(f);
    enum log_level level = row->status == 429 ? LOG_WARN : row->side == SIDE_CLIENT ? LOG_INFO : LOG_ERROR;
    if (!log_is_on(level))
        return;
    if (row->side == SIDE_CLIENT && !worker_may_log(r->w))
        return;
    request_log(r, level, error, "%s: %s%s%s", row->symbol, row->text, detail ? ": " : "", detail ? detail : "");
}

void request_fail(struct request *r, enum fail f, int error, const char *detail)
{
    const struct fail_row *row = fail_row(f);
    if (r->ended && r->drained)
        return;
    r->fail = f;
    COUNT(r->w->counters.fails[f]);
    log_failure(r, f, error, detail);
    if (r->handler && r->handler->abort)
        r->handler->abort(r);
    r->handler = NULL;
    r->step = STEP_ANSWER;
    if (r->ended || r->head_sent || row->status == 0) {
        if (!r->head_sent)
            r->resp.status = 499;
        r->aborted = true;
        r->ended = true;
        r->drained = true;
        r->ops->abort(r);
        return;
    }
    if (f >= FAIL_BAD_SYNTAX || row->side == SIDE_CLIENT) {
        bool is_framing_intact = f == FAIL_NOT_FOUND || f == FAIL_FILE_NOT_FOUND || f == FAIL_FILE_FORBIDDEN ||
                                 f == FAIL_METHOD_REFUSED || f == FAIL_DENIED || row->status == 401 || row->status == 429;
        if (!is_framing_intact)
            r->resp.close = true;
    }
    if (row->status == 503)
        respond_field(r, F_RETRY_AFTER, STR("1"));
    r->resp.block = STR_NONE;
    respond_page(r, row->status);
}

void request_reroute_to(struct request *r, const struct target *to)
{
    if (BUG_IF(r->head_sent))
        return;
    if (r->handler && r->handler->abort)
        r->handler->abort(r);
    r->handler = NULL;
    if (++r->reroutes > REROUTES_MAX) {
        request_fail(r, FAIL_REROUTE_LOOP, 0, NULL);
        return;
    }
    struct str authority = r->target.authority;
    r->target = *to;
    r->target.authority = authority;
    r->resp = (struct response){ 0 };
    r->step = STEP_ROUTE;
    request_wake(r);
}

void request_reroute(struct request *r, struct str path)
{
    struct target to = r->target;
    if (target_make(&to, path, &r->arena))
        request_reroute_to(r, &to);
    else
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
}

void request_want_body(struct request *r)
{
    if (r->body_wanted)
        return;
    r->body_wanted = true;
    r->ops->want_body(r);
}

void request_body_resume(struct request *r)
{
    r->ops->body_resume(r);
}

/* SplitMix64: a distinct value for each step of the worker's counter, seeded by the kernel. */
static uint64_t next_random(struct worker *w)
{
    uint64_t z = w->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct str request_id(struct request *r)
{
    enum { DIGITS = 32 };
    if (r->id.n > 0)
        return r->id;
    char *text = arena_alloc(&r->arena, DIGITS);
    if (text == NULL)
        return STR_NONE;
    for (unsigned i = 0; i < DIGITS; i += 16) {
        uint64_t z = next_random(r->w);
        for (unsigned j = 0; j < 16; j++)
            text[i + j] = "0123456789abcdef"[z >> (60 - 4 * j) & 15];
    }
    return r->id = str_of(text, DIGITS);
}

/* The request line for logs, escaped; whatever of it is known. */
static size_t print_request_line(const struct request *r, char *out, size_t cap)
{
    if (r->head == NULL || r->head->method_text.n == 0)
        return 0;
    size_t n = log_escape(out, cap, r->head->method_text);
    if (n + 1 < cap)
        out[n++] = ' ';
    n += log_escape(out + n, cap - n, str_take(r->head->target, 1024));
    return n;
}

void request_log(const struct request *r, enum log_level level, int error, const char *fmt, ...)
{
    if (!log_is_on(level))
        return;
    char text[LOG_LINE], line[2048], client[IP_TEXT], cause[128] = "";
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (n < 0)
        return;
    size_t line_n = print_request_line(r, line, sizeof(line));
    size_t client_n = ip_print(&r->remote, client);
    if (error != 0)
        snprintf(cause, sizeof(cause), " (%d: %s)", error, strerrordesc_np(error) ? strerrordesc_np(error) : "unknown");
    struct str up = r->upstream_addr;
    log_write(level, "%s%s while %s, client: %.*s, site: %.*s, request: \"%.*s\"%s%.*s%s", text, cause,
              r->doing ? r->doing : steps[r->step].doing, (int)client_n, client,
              STR_ARG(r->site ? r->site->label : STR("-")), (int)line_n, line, up.n ? ", upstream: \"" : "", STR_ARG(up),
              up.n ? "\"" : "");
}

void request_finish(struct request *r)
{
    if (BUG_IF(r->magic != REQUEST_MAGIC))
        return;
    struct worker *w = r->w;
    if (r->handler && !r->ended && r->handler->abort)
        r->handler->abort(r);
    filter_release(r);
    access_release(r);
    COUNT(w->counters.requests);
    unsigned class = r->resp.status / 100u;
    if (class < ARRAY_LEN(w->counters.status_class))
        COUNT(w->counters.status_class[class]);
    COUNT_ADD(w->counters.bytes_out, r->body_sent + r->head_bytes_sent);
    if (r->trace == NULL)
        access_log_write(r);
    r->magic = 0;
    arena_reset(&r->arena);
    worker_release(w, r->hold);
    block_give(&w->requests, r);
}
