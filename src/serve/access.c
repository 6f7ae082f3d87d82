/* SPDX-License-Identifier: MIT */
/*
 * Who may have what: allow and deny, limits.in_flight, limits.requests, basic_auth, in this order: what is cheapest to
 * refuse comes first, and a limit also holds for those who guess passwords.
 * All go by r->remote, the client's address as trusted peers say it. A request is counted once, by the location that it
 * comes to first; a further one (a rewrite, an error page) asks allow and deny again. What is refused by a limit is said in
 * the error log at level warn, 20 lines a second at most.
 *
 * The counts are the server's (serve/limit.c); a request owns its place among those in flight until access_release.
 */
#include "serve/access.h"

#include <openssl/crypto.h>

#include "serve/auth.h"
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

static enum step_result ask_for_password(struct request *r)
{
    const struct auth_conf *auth = r->s->basic_auth;
    char realm[256];
    size_t n = 0;
    for (size_t i = 0; i < auth->realm.n && n < sizeof(realm) - 2; i++) { /* quoted-string, RFC 9110 §5.6.4 */
        if (auth->realm.p[i] == '"' || auth->realm.p[i] == '\\')
            realm[n++] = '\\';
        realm[n++] = auth->realm.p[i];
    }
    struct str value = arena_printf(&r->arena, "Basic realm=\"%.*s\", charset=\"UTF-8\"", (int)n, realm);
    if (value.p == NULL)
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
    else {
        respond_field(r, F_WWW_AUTHENTICATE, value);
        request_fail(r, FAIL_UNAUTHORIZED, 0, NULL);
    }
    return STEP_NEXT;
}

static enum step_result after_auth(struct request *r, enum auth_result result)
{
    switch (result) {
    case AUTH_RIGHT:
        r->verified = r->s->basic_auth;
        r->step = STEP_HANDLE;
        return STEP_NEXT;
    case AUTH_WAIT:
        r->doing = "checking the password";
        return STEP_WAIT;
    case AUTH_BUSY:
        request_fail(r, FAIL_AUTH_BUSY, 0, NULL);
        return STEP_NEXT;
    case AUTH_WRONG:
        break;
    }
    return ask_for_password(r);
}

/* Asks for a password, waits for the answer about it, or goes on. */
static enum step_result check_user(struct request *r)
{
    struct credentials c;
    const struct field *f = fields_get(&r->head->fields, F_AUTHORIZATION);
    if (f == NULL || fields_next(&r->head->fields, f) != NULL || !credentials_parse(f->value, &c))
        return ask_for_password(r);
    struct str user = arena_dup(&r->arena, c.user);
    enum auth_result result = auth_ask(r, r->s->basic_auth, &c, &r->auth_job);
    if (result == AUTH_RIGHT || result == AUTH_WAIT)
        r->user = user;
    OPENSSL_cleanse(&c, sizeof(c));
    return after_auth(r, result);
}

enum step_result access_check(struct request *r)
{
    if (r->auth_job != NULL) {
        enum auth_result result = auth_answer(&r->auth_job);
        if (result != AUTH_WAIT)
            r->doing = NULL;
        if (result == AUTH_WRONG)
            r->user = STR_NONE;
        return after_auth(r, result);
    }
    if (is_denied(r)) {
        request_fail(r, FAIL_DENIED, 0, NULL);
        return STEP_NEXT;
    }
    if (!is_within_limits(r))
        return STEP_NEXT;
    if (UNLIKELY(r->s->basic_auth != NULL) && r->verified != r->s->basic_auth && r->trace == NULL)
        return check_user(r);
    r->step = STEP_HANDLE;
    return STEP_NEXT;
}

void access_release(struct request *r)
{
    auth_forget(&r->auth_job);
    if (r->in_flight_key != 0)
        limit_leave(r->w->shared->limiter, r->in_flight_key);
    r->in_flight_key = 0;
}
