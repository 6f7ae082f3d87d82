/* SPDX-License-Identifier: MIT */
/*
 * Who may have what: allow and deny, limits.in_flight, limits.requests, in this order: what is cheapest to refuse first.
 * All go by r->remote, the client's address as trusted peers say it. A request is counted once, by the location that it
 * comes to first; a further one (a rewrite, an error page) asks allow and deny again. What is refused by a limit is said in
 * the error log at level warn, 20 lines a second at most.
 *
 * The counts are the server's (serve/limit.c); a request owns its place among those in flight until access_release.
 */
#include "serve/access.h"

#include "serve/limit.h"
#include "serve/respond.h"
#include "serve/vars.h"

static bool is_denied(const struct request *r)
{
    const struct scope_conf *s = r->s;
    if (cidrs_have(s->deny, s->n_deny, &r->remote))
        return true;
    return s->has_allow && !cidrs_have(s->allow, s->n_allow, &r->remote);
}

/* What the limit counts this request for; 0: nothing. A client on a unix socket has no address. */
static uint64_t key_of(struct request *r, const struct limit_conf *limit)
{
    const struct limiter *l = r->w->shared->limiter;
    if (l == NULL)
        return 0;
    if (limit->key.n == 0)
        return r->remote.family == 0 ? 0 : limit_key_ip(l, limit->id, &r->remote);
    struct str key = vars_eval(r, &limit->key);
    return key.n == 0 ? 0 : limit_key(l, limit->id, key);
}

/* True: the request has been refused. */
static bool refuse(struct request *r, const struct limit_conf *limit, enum fail f, uint64_t wait_s)
{
    if (limit->is_dry_run) {
        if (worker_may_log(r->w))
            request_log(r, LOG_WARN, 0, "%s: %s: passed, for dry_run", fail_row(f)->symbol, fail_row(f)->text);
        return false;
    }
    struct str seconds = arena_printf(&r->arena, "%llu", (unsigned long long)wait_s);
    if (seconds.p != NULL)
        respond_field(r, F_RETRY_AFTER, seconds);
    request_fail(r, f, 0, NULL);
    return true;
}

static bool is_over_in_flight(struct request *r, const struct limit_conf *limit)
{
    struct limiter *l = r->w->shared->limiter;
    uint64_t key = key_of(r, limit);
    if (key == 0)
        return false;
    switch (limit_enter(l, key, limit->burst)) {
    case LIMIT_ENTERED:
        r->in_flight_key = key;
        return false;
    case LIMIT_FULL:
        return refuse(r, limit, FAIL_TOO_MANY_IN_FLIGHT, 1);
    case LIMIT_UNCOUNTED:
        break;
    }
    return false;
}

static bool is_over_rate(struct request *r, const struct limit_conf *limit)
{
    enum { US = 1000 * 1000 };
    uint64_t wait_us, key = key_of(r, limit);
    if (key == 0 || limit_rate(r->w->shared->limiter, key, limit->burst, limit->interval_us, r->w->loop->now_ms * 1000, &wait_us))
        return false;
    return refuse(r, limit, FAIL_TOO_MANY_REQUESTS, (wait_us + US - 1) / US);
}

/* Counts it, once. False: the request has been refused. */
static bool is_within_limits(struct request *r)
{
    const struct scope_conf *s = r->s;
    if (r->is_counted || r->trace != NULL)
        return true;
    r->is_counted = true;
    if (UNLIKELY(s->limits.in_flight != NULL) && is_over_in_flight(r, s->limits.in_flight))
        return false;
    return LIKELY(s->limits.requests == NULL) || !is_over_rate(r, s->limits.requests);
}

enum step_result access_check(struct request *r)
{
    if (is_denied(r))
        request_fail(r, FAIL_DENIED, 0, NULL);
    else if (is_within_limits(r))
        r->step = STEP_HANDLE;
    return STEP_NEXT;
}

void access_release(struct request *r)
{
    if (r->in_flight_key != 0)
        limit_leave(r->w->shared->limiter, r->in_flight_key);
    r->in_flight_key = 0;
}
