/* SPDX-License-Identifier: MIT */
/*
 * Active health checks.
 *
 * A probe belongs to one server and to the checks' thread. The main thread makes the probes of a configuration and
 * posts them as one list. The thread keeps an old probe of the same server that asks the same, or a check that takes
 * longer than the time between two reloads would never come to an end; else the new one takes over what is known of the
 * server. The others are dropped. A probe counts itself in server->probes from the making to the end, so that its server is not freed
 * under it.
 *
 * One check: connect (all addresses of a name in turn), for HTTP one GET with Host and Connection: close, RFC 9112
 * §3.2, for a backend refuses what has no Host. The status decides; the body is read, up to a bound, and dropped, so
 * that the backend does not see a broken client. The whole may take `timeout`. The next begins `interval` after this
 * one began, a tenth more or less (half after the first), so that many servers are not all asked at the same moment. A server is up until
 * `fall` checks in a row have failed, and down until `rise` have not.
 */
#include "upstream/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "http/h1_read.h"
#include "http/proxy_header.h"
#include "net/conn.h"
#include "upstream/health.h"

enum { BODY_MAX = 64 * 1024, CAUSE = 120, FIRST_MS = 200 };

static const double JITTER = 0.1, SPREAD = 0.5; /* SPREAD: what began together is then all over the interval */

struct probe {
    struct list link; /* checks->probes, or the list on its way */
    struct checks *checks;
    struct server *server;
    struct health_conf health; /* its path is in this block */
    struct str request;        /* in this block; empty: a connection is enough; for TCP a PROXY header at most */
    struct check_run run;

    /* the check that runs */
    ev_timer next, limit;
    struct conn conn;
    struct h1_read in;
    struct arena arena;
    struct addr addrs[SERVER_ADDRS];
    unsigned n_addrs, addr_at;
    uint64_t body;
    bool runs, has_status;
    bool is_spread; /* it has been asked once */
};

struct checks {
    struct loop *loop;
    pthread_t thread;
    struct list probes; /* the thread's */
    unsigned random;
};

static const struct h1_limits limits = { .head_size = 64 * 1024, .head_count = 1000 };

/* --- one check --- */

static void begin(struct ev_loop *ev, ev_timer *timer, int revents);

/* In seconds: ms, up to so much of it more or less. */
static double jittered(struct checks *c, uint64_t ms, double part)
{
    c->random = c->random * 1103515245u + 12345u;
    return (double)ms * (1 - part + 2 * part * (double)(c->random >> 16 & 0xfff) / 4096) / 1000;
}

static void drop_connection(struct probe *p)
{
    conn_close(&p->conn);
    arena_reset(&p->arena);
}

enum check_change check_count(struct check_run *run, bool is_good, const struct health_conf *health)
{
    run->good = is_good ? run->good + 1 : 0;
    run->bad = is_good ? 0 : run->bad + 1;
    if (run->is_down ? run->good < health->rise : run->bad < health->fall)
        return CHECK_SAME;
    run->is_down = !is_good;
    return is_good ? CHECK_UP : CHECK_DOWN;
}

static void report(struct probe *p, bool is_good, const char *cause)
{
    char text[HEALTH_CAUSE];
    enum check_change change = check_count(&p->run, is_good, &p->health);
    if (change == CHECK_UP) {
        snprintf(text, sizeof text, "%u good checks in a row", p->run.good);
        health_bar(p->server, BARRED_CHECK, false, text);
    } else if (change == CHECK_DOWN) {
        snprintf(text, sizeof text, "%u failed checks in a row, the last one: %s; until %u are good", p->run.bad, cause,
                 p->health.rise);
        health_bar(p->server, BARRED_CHECK, true, text);
    }
}

static void finish(struct probe *p, bool is_good, const char *cause)
{
    if (!p->runs)
        return;
    p->runs = false;
    ev_timer_stop(p->checks->loop->ev, &p->limit);
    drop_connection(p);
    report(p, is_good, cause);
}

static void finish_error(struct probe *p, const char *what, int error)
{
    char text[CAUSE];
    snprintf(text, sizeof text, "%s: %s", what, strerrordesc_np(error) ? strerrordesc_np(error) : "unknown error");
    finish(p, false, text);
}

static void connect_from(struct probe *p, int error);

static struct probe *probe_of(struct conn *c)
{
    return container_of(c, struct probe, conn);
}

/* The connection broke: before anything went out another address may do. */
static void broken(struct probe *p, int error)
{
    if (p->conn.written > 0 || p->has_status) {
        finish_error(p, "connection", error);
        return;
    }
    drop_connection(p);
    p->addr_at++;
    connect_from(p, error);
}

static void on_failed(struct conn *c, int error)
{
    broken(probe_of(c), error);
}

static void on_drained(struct conn *c)
{
    struct probe *p = probe_of(c);
    if (p->health.kind == HEALTH_HTTP)
        return;
    int error = conn_connect_result(c->fd);
    if (error == 0)
        finish(p, true, NULL);
    else
        broken(p, error);
}

static void on_status(struct probe *p)
{
    unsigned status = p->in.head.status;
    char text[CAUSE];
    if (status < 200 && status != 101) {
        h1_read_next(&p->in);
        return;
    }
    p->has_status = true;
    if (status >= p->health.expect_low && status <= p->health.expect_high)
        return;
    snprintf(text, sizeof text, "status %u, expected %u-%u", status, p->health.expect_low, p->health.expect_high);
    finish(p, false, text);
}

static void feed(struct probe *p, struct str got)
{
    while (p->runs) {
        size_t used;
        enum h1_event event = h1_read_feed(&p->in, got.p, got.n, &used);
        got = str_skip(got, used);
        if (event == H1_MORE)
            return;
        if (event == H1_HEAD)
            on_status(p);
        else if (event == H1_BODY)
            p->body += p->in.body.n;
        if (p->runs && (event == H1_END || p->body > BODY_MAX))
            finish(p, true, NULL);
        else if (p->runs && event == H1_BAD)
            finish(p, p->has_status, h1_bad_text(p->in.bad));
    }
}

static void on_readable(struct conn *c)
{
    struct probe *p = probe_of(c);
    struct str got;
    switch (conn_read_scratch(c, LOOP_BLOCK, &got)) {
    case IO_OK:
        feed(p, got);
        break;
    case IO_AGAIN:
        break;
    case IO_EOF:
        finish(p, p->has_status, "closed without an answer");
        break;
    default:
        if (p->has_status)
            finish(p, true, NULL);
        else
            broken(p, errno);
    }
}

static const struct conn_events probe_events = {
    .readable = on_readable,
    .drained = on_drained,
    .failed = on_failed,
};

static bool start_on(struct probe *p, const struct addr *a)
{
    int fd;
    if (conn_connect(a, &fd) == IO_ERROR)
        return false;
    conn_open(&p->conn, p->checks->loop, fd, a->u.sa.sa_family != AF_UNIX, &probe_events);
    if (p->request.n == 0) {
        conn_want_connect(&p->conn);
        return true;
    }
    conn_want_read(&p->conn, p->health.kind == HEALTH_HTTP);
    enum io io = conn_write(&p->conn, p->request);
    if (io == IO_OK || io == IO_AGAIN) {
        conn_want_drained(&p->conn);
        return true;
    }
    int error = errno;
    drop_connection(p);
    errno = error;
    return false;
}

static void connect_from(struct probe *p, int error)
{
    for (; p->addr_at < p->n_addrs; p->addr_at++) {
        if (start_on(p, &p->addrs[p->addr_at]))
            return;
        error = errno;
    }
    finish_error(p, "connecting", error);
}

static void on_limit(struct ev_loop *ev, ev_timer *timer, int revents)
{
    (void)ev;
    (void)revents;
    struct probe *p = container_of(timer, struct probe, limit);
    finish(p, p->has_status, "no answer within health.timeout");
}

static void begin(struct ev_loop *ev, ev_timer *timer, int revents)
{
    (void)revents;
    struct probe *p = container_of(timer, struct probe, next);
    ev_timer_set(&p->next, jittered(p->checks, p->health.interval, p->is_spread ? JITTER : SPREAD), 0.);
    p->is_spread = true;
    ev_timer_start(ev, &p->next);
    if (p->runs) /* timeout is longer than interval */
        return;
    p->n_addrs = server_addresses(p->server, p->addrs, SERVER_ADDRS);
    if (p->n_addrs == 0) /* unresolved is a state of its own */
        return;
    p->runs = true;
    p->has_status = false;
    p->body = 0;
    p->addr_at = 0;
    h1_read_init(&p->in, H1_RESPONSE, &limits, &p->arena);
    h1_read_expect(&p->in, METHOD_GET);
    ev_timer_set(&p->limit, (double)(p->health.timeout > 0 ? p->health.timeout : p->health.interval) / 1000, 0.);
    ev_timer_start(ev, &p->limit);
    connect_from(p, ECONNREFUSED);
}

/* --- probes --- */

static struct probe *probe_new(struct checks *c, struct server *s, const struct health_conf *health)
{
    bool is_unix = s->endpoint.kind == ENDPOINT_UNIX;
    struct str host = is_unix ? STR("localhost") : s->name;
    size_t cap = PROXY_HEADER_V1 + health->path.n + host.n + 128;
    struct probe *p = calloc(1, sizeof *p + cap);
    if (p == NULL)
        return NULL;
    p->checks = c;
    p->server = s;
    p->health = *health;
    char *text = (char *)(p + 1);
    size_t n = health->proxy_protocol > 0 ? proxy_header_write(health->proxy_protocol, NULL, NULL, text) : 0;
    if (health->kind == HEALTH_HTTP)
        n += (size_t)snprintf(
            text + n, cap - n,
            "GET %.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: weir-check\r\nConnection: close\r\n\r\n",
            STR_ARG(health->path), STR_ARG(host));
    p->request = str_of(text, n);
    p->health.path = STR_NONE; /* the configuration's; the request has it */
    arena_init(&p->arena, NULL);
    ev_init(&p->next, begin);
    ev_init(&p->limit, on_limit);
    list_init(&p->link);
    atomic_fetch_add(&s->probes, 1);
    return p;
}

/* is_last: nobody checks the server any more. */
static void probe_free(struct probe *p, bool is_last)
{
    struct server *s = p->server;
    p->runs = false;
    ev_timer_stop(p->checks->loop->ev, &p->next);
    ev_timer_stop(p->checks->loop->ev, &p->limit);
    drop_connection(p);
    list_remove(&p->link);
    free(p);
    if (is_last)
        health_bar(s, BARRED_CHECK, false, "it is not checked any more");
    atomic_fetch_sub(&s->probes, 1); /* last: from here on the server may be freed */
}

struct list_mail {
    struct mail mail;
    struct checks *checks;
    struct list probes;
};

static struct probe *find_probe(struct list *list, const struct server *s)
{
    list_each(it, list) {
        struct probe *p = list_entry(it, struct probe, link);
        if (p->server == s)
            return p;
    }
    return NULL;
}

/* Nothing but the counts may differ between the two. */
static bool asks_the_same(const struct probe *a, const struct probe *b)
{
    const struct health_conf *x = &a->health, *y = &b->health;
    return x->kind == y->kind && x->interval == y->interval && x->timeout == y->timeout &&
           x->expect_low == y->expect_low && x->expect_high == y->expect_high && str_eq(a->request, b->request);
}

static void take_list(struct loop *l, struct mail *mail)
{
    struct list_mail *m = container_of(mail, struct list_mail, mail);
    struct checks *c = m->checks;
    struct list fresh;
    list_init(&fresh);
    while (!list_is_empty(&m->probes)) {
        struct probe *p = list_entry(m->probes.next, struct probe, link);
        struct probe *old = find_probe(&c->probes, p->server);
        list_remove(&p->link);
        if (old != NULL && asks_the_same(old, p)) {
            old->health.rise = p->health.rise;
            old->health.fall = p->health.fall;
            probe_free(p, false);
            list_remove(&old->link);
            list_append(&fresh, &old->link);
            continue;
        }
        if (old != NULL) {
            p->run = old->run;
            probe_free(old, false);
        }
        list_append(&fresh, &p->link);
        ev_timer_set(&p->next, jittered(c, FIRST_MS, SPREAD), 0.);
        ev_timer_start(l->ev, &p->next);
    }
    while (!list_is_empty(&c->probes))
        probe_free(list_entry(c->probes.next, struct probe, link), true);
    while (!list_is_empty(&fresh)) {
        struct list *it = fresh.next;
        list_remove(it);
        list_append(&c->probes, it);
    }
    free(m);
}

/* --- the thread --- */

static void *run(void *arg)
{
    struct checks *c = arg;
    (void)pthread_setname_np(pthread_self(), "weir-checks");
    loop_run(c->loop);
    return NULL;
}

static bool has_checks(const struct conf *conf)
{
    for (unsigned i = 0; i < conf->n_upstreams; i++)
        if (conf->upstreams[i]->health.kind != HEALTH_PASSIVE)
            return true;
    return false;
}

static bool start_thread(struct checks *c)
{
    c->loop = loop_new(0);
    if (c->loop == NULL)
        return false;
    int error = pthread_create(&c->thread, NULL, run, c);
    if (error == 0)
        return true;
    loop_free(c->loop);
    c->loop = NULL;
    errno = error;
    return false;
}

struct checks *checks_new(void)
{
    struct checks *c = calloc(1, sizeof *c);
    if (c != NULL)
        list_init(&c->probes);
    return c;
}

static void drop_list(struct list_mail *m)
{
    while (!list_is_empty(&m->probes)) {
        struct probe *p = list_entry(m->probes.next, struct probe, link);
        list_remove(&p->link);
        atomic_fetch_sub(&p->server->probes, 1);
        free(p);
    }
    free(m);
}

static bool add_upstream(struct list_mail *m, const struct upstream_conf *conf, struct upstream *u)
{
    const struct server_set *set = atomic_load(&u->set);
    for (unsigned i = 0; conf->health.kind != HEALTH_PASSIVE && i < set->n; i++) {
        struct probe *p = probe_new(m->checks, set->entries[i].server, &conf->health);
        if (p == NULL)
            return false;
        list_append(&m->probes, &p->link);
    }
    return true;
}

bool checks_apply(struct checks *c, const struct conf *conf, struct upstream *const *by_index)
{
    if (c->loop == NULL && !has_checks(conf))
        return true;
    if (c->loop == NULL && !start_thread(c))
        return false;
    struct list_mail *m = calloc(1, sizeof *m);
    if (m == NULL)
        return false;
    m->checks = c;
    list_init(&m->probes);
    for (unsigned i = 0; i < conf->n_upstreams; i++)
        if (!add_upstream(m, conf->upstreams[i], by_index[i])) {
            drop_list(m);
            errno = ENOMEM;
            return false;
        }
    m->mail.run = take_list;
    mailbox_post(c->loop, &m->mail);
    return true;
}

static void stop(struct loop *l, struct mail *mail)
{
    (void)mail;
    loop_stop(l);
}

void checks_free(struct checks *c)
{
    if (c == NULL)
        return;
    if (c->loop != NULL) {
        struct mail mail = { .run = stop };
        mailbox_post(c->loop, &mail);
        pthread_join(c->thread, NULL);
        while (!list_is_empty(&c->probes))
            probe_free(list_entry(c->probes.next, struct probe, link), false);
        loop_free(c->loop);
    }
    free(c);
}
