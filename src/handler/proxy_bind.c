/* SPDX-License-Identifier: MIT */
/*
 * Whom a request belongs to: the key that a hash goes by, and for a sticky upstream the server that the client's
 * session lives on. Only what stands in the request and in the answer is dealt with here; who is chosen is pick.c's
 * business.
 *
 * What is learnt of a session is surer than the cookie: a browser has one cookie, but as many sessions as tabs, and
 * each lives where it was made. A bound server that takes no sessions any more (draining, gone from the configuration) is as
 * unknown as a forged cookie: the client is assigned anew. One that is out at the moment is left for another with
 * `redispatch`, and only with it. Each answer of another server than the cookie says brings a new cookie.
 *
 * A session's server is noted before anybody else can ask for it: that of SockJS, whose client makes up the name,
 * before the request goes out; that of socket.io, whose server does, before the answer that holds it is passed on.
 */
#include "handler/proxy_try.h"
#include "handler/sticky.h"
#include "serve/vars.h"
#include "upstream/affinity.h"

static struct str key_of(struct request *r, const struct upstream_conf *conf)
{
    switch (conf->balance) {
    case BALANCE_IP_HASH:
        return str_of((const char *)r->remote.b, r->remote.family == 0 ? 0 : r->remote.family == 4 ? 4 : 16);
    case BALANCE_URI_HASH:
        return r->target.path;
    case BALANCE_HASH:
        return vars_eval(r, &conf->hash);
    case BALANCE_ROUND_ROBIN:
    case BALANCE_LEAST_CONN:
    case BALANCE_RANDOM:
        break;
    }
    return STR_NONE;
}

/* By what it is known without a cookie. */
static struct server *by_session(struct proxy *p)
{
    struct request *r = p->r;
    struct str name = sticky_sid(r->target.query);
    if (name.n == 0) {
        p->is_handshake = sticky_is_handshake(r->target.query);
        name = sticky_sockjs(r->target.path);
        p->has_session = name.n > 0;
    }
    if (name.n == 0)
        return NULL;
    p->session = affinity_session(p->upstream, name);
    return affinity_by_session(p->upstream, p->session, p->loop->w->loop->now_ms);
}

static struct server *by_cookie(struct proxy *p)
{
    struct str values[STICKY_COOKIES];
    unsigned n = sticky_cookies(&p->r->head->fields, p->conf->sticky_cookie, values, STICKY_COOKIES);
    struct server *s = NULL;
    for (unsigned i = 0; i < n && s == NULL; i++)
        s = affinity_by_tag(p->upstream, values[i]);
    return s;
}

void bind_begin(struct proxy *p)
{
    struct pick_query *q = &p->query;
    const struct str key = key_of(p->r, p->conf);
    q->has_hash = key.n > 0;
    q->hash = q->has_hash ? pick_hash_of(key.p, key.n) : 0;
    if (p->conf->sticky == STICKY_OFF)
        return;
    struct server *s = p->conf->sticky == STICKY_AUTO ? by_session(p) : NULL;
    p->home = by_cookie(p);
    if (s == NULL)
        s = p->home;
    if (s != NULL && p->conf->redispatch && pick_is_out(p->upstream, s))
        s = NULL;
    q->bound = s;
}

void bind_sent(struct proxy *p, struct server *s)
{
    if (p->has_session)
        affinity_learn(p->upstream, p->session, s, p->loop->w->loop->now_ms);
}

void bind_head(struct proxy *p)
{
    struct request *r = p->r;
    if (p->conf->sticky == STICKY_OFF || p->home == p->t.server)
        return;
    struct str tag = affinity_tag(p->upstream, p->t.server);
    if (tag.n == 0) /* a reload has just taken the server away */
        return;
    struct str cookie = sticky_set_cookie(&r->arena, p->conf->sticky_cookie, tag, r->secure);
    if (cookie.p != NULL)
        respond_field(r, F_SET_COOKIE, cookie);
}

void bind_body(struct proxy *p, struct str piece)
{
    struct str sid;
    struct str all = piece;
    if (p->first.n > 0 && p->first.n + piece.n <= STICKY_BODY)
        all = arena_printf(&p->r->arena, "%.*s%.*s", STR_ARG(p->first), STR_ARG(piece));
    enum sticky_found found = p->r->resp.status == 200 ? sticky_find_sid(all, &sid) : STICKY_NONE;
    if (found == STICKY_FOUND)
        affinity_learn(p->upstream, affinity_session(p->upstream, sid), p->t.server, p->loop->w->loop->now_ms);
    if (found == STICKY_MORE)
        p->first = arena_dup(&p->r->arena, all);
    p->is_handshake = found == STICKY_MORE && p->first.n > 0;
}
