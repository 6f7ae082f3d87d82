/* SPDX-License-Identifier: MIT */
/*
 * A worker: everything one loop thread owns. It runs the clients that asked for it before the loop sleeps, adopts a newer snapshot
 * between two turns, and ends when told to. What it accepts on is worker_listen.c's.
 *
 * Snapshots: `hold` is the one in force, older ones hang behind it while requests that began under them still run. Leaving the last
 * request of an old one, the worker gives up its share; the last worker to do so frees the snapshot. Idle clients hold none.
 *
 * limits.clients: at the limit the client idle for longest makes room; with none idle the newcomer gets a short 503.
 */
#include "serve/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/client.h"
#include "serve/filter.h"
#include "serve/handler.h"

enum {
    FREE_REQUESTS = 256,
    FREE_CLIENTS = 256,
    FAULTS_A_SECOND = 20, /* client faults in the error log */
    READY_A_TURN = 1024,
    MATCH_LIMIT = 100000, /* PCRE2: backtracks of one match */
};

static bool add_hold(struct worker *w, struct snapshot *s)
{
    struct hold *h = calloc(1, sizeof(*h));
    if (h == NULL)
        return false;
    h->snapshot = s;
    h->older = w->hold;
    w->hold = h;
    const struct conf *c = s->conf;
    w->request_limits = (struct h1_limits){
        .head_size = (uint32_t)c->limits.header_size,
        .uri_size = (uint32_t)c->limits.uri_size,
        .head_count = (uint32_t)c->limits.header_count,
    };
    return true;
}

static void drop_snapshot(struct snapshot *s)
{
    if (atomic_fetch_sub_explicit(&s->loops, 1, memory_order_acq_rel) == 1)
        s->free_fn(s);
}

/* Gives up every older snapshot without requests. */
static void drop_old_holds(struct worker *w)
{
    for (struct hold **at = &w->hold->older; *at;) {
        struct hold *h = *at;
        if (h->requests > 0) {
            at = &h->older;
            continue;
        }
        *at = h->older;
        drop_snapshot(h->snapshot);
        free(h);
    }
}

struct hold *worker_hold(struct worker *w)
{
    w->hold->requests++;
    return w->hold;
}

void worker_release(struct worker *w, struct hold *h)
{
    h->requests--;
    if (h->requests == 0 && h != w->hold)
        drop_old_holds(w);
}

static void adopt(struct worker *w, struct snapshot *s)
{
    if (!add_hold(w, s)) {
        log_write(LOG_ERROR, "loop %u: out of memory for generation %llu", w->index, (unsigned long long)s->generation);
        s->adopted_fn(s);
        drop_snapshot(s);
        return;
    }
    worker_listeners_adopt(w, w->hold->older);
    drop_old_holds(w);
    s->adopted_fn(s);
}

void worker_adopt_now(struct worker *w)
{
    struct snapshot *next = atomic_exchange_explicit(&w->next, NULL, memory_order_acquire);
    if (next)
        adopt(w, next);
}

void worker_stay_awake(struct worker *w)
{
    if (!ev_is_active(&w->awake))
        ev_idle_start(w->loop->ev, &w->awake);
}

static void on_awake(struct ev_loop *ev, ev_idle *idle, int events)
{
    /* Only keeps the loop from sleeping; the work is done in on_turn. */
    (void)ev;
    (void)idle;
    (void)events;
}

static void end_if_drained(struct worker *w)
{
    if (w->stopping && list_is_empty(&w->idle) && list_is_empty(&w->busy) && list_is_empty(&w->ready) &&
        atomic_load_explicit(&w->counters.tunnels, memory_order_relaxed) == 0)
        loop_stop(w->loop);
}

static void on_turn(struct loop *l)
{
    struct worker *w = l->owner;
    worker_adopt_now(w);
    for (unsigned n = 0; n < READY_A_TURN && !list_is_empty(&w->ready); n++)
        client_run_ready(list_entry(w->ready.next, struct client, ready));
    if (list_is_empty(&w->ready))
        ev_idle_stop(l->ev, &w->awake);
    end_if_drained(w);
}

struct worker *worker_new(unsigned index, struct server_shared *shared, struct snapshot *snapshot,
                          const struct handler *const *handlers)
{
    struct worker *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->index = index;
    w->shared = shared;
    w->handlers = handlers;
    list_init(&w->idle);
    list_init(&w->busy);
    list_init(&w->ready);
    block_pool_init(&w->requests, sizeof(struct request), FREE_REQUESTS);
    block_pool_init(&w->clients, sizeof(struct client), FREE_CLIENTS);
    ev_idle_init(&w->awake, on_awake);
    w->loop = loop_new(index);
    w->match = pcre2_match_data_create(ARRAY_LEN(((struct request *)0)->captures), NULL);
    w->match_context = pcre2_match_context_create(NULL);
    if (w->loop == NULL || w->match == NULL || w->match_context == NULL || !add_hold(w, snapshot)) {
        worker_free(w);
        return NULL;
    }
    if (getrandom(&w->random, sizeof(w->random), 0) != (ssize_t)sizeof(w->random)) {
        worker_free(w);
        return NULL;
    }
    pcre2_set_match_limit(w->match_context, MATCH_LIMIT);
    w->loop->owner = w;
    w->loop->on_turn = on_turn;
    for (unsigned kind = 0; kind < ACTION_COUNT; kind++) {
        if (handlers[kind]->open == NULL)
            continue;
        w->handler_state[kind] = handlers[kind]->open(w);
        if (w->handler_state[kind] == NULL) {
            worker_free(w);
            return NULL;
        }
    }
    return w;
}

bool worker_filter(struct worker *w, const struct filter *const *filters)
{
    w->filters = filters;
    for (; filters[w->n_filters] != NULL; w->n_filters++) {
        const struct filter *f = filters[w->n_filters];
        if (BUG_IF(w->n_filters == WORKER_FILTERS))
            return false;
        if (f->open && (w->filter_state[w->n_filters] = f->open(w)) == NULL)
            return false;
    }
    return true;
}

/* Hands back the state of handlers and filters. */
static void close_state(struct worker *w)
{
    for (unsigned kind = 0; kind < ACTION_COUNT; kind++) {
        if (w->handlers[kind]->close && w->handler_state[kind])
            w->handlers[kind]->close(w, w->handler_state[kind]);
        w->handler_state[kind] = NULL;
    }
    for (; w->n_filters > 0; w->n_filters--) {
        unsigned i = w->n_filters - 1;
        if (w->filters[i]->close)
            w->filters[i]->close(w, w->filter_state[i]);
    }
}

static void kill_all(struct list *clients)
{
    list_each_safe(it, next, clients)
        client_kill(list_entry(it, struct client, link), FAIL_SHUTDOWN);
}

void worker_run(struct worker *w)
{
    loop_run(w->loop);
    worker_accept_no_more(w);
    kill_all(&w->idle);
    kill_all(&w->busy);
    while (!list_is_empty(&w->ready))
        client_run_ready(list_entry(w->ready.next, struct client, ready));
    close_state(w);
}

static void on_look(struct loop *l, struct mail *mail)
{
    /* The snapshot waits in w->next; the turn this mail has started adopts it. */
    (void)l;
    free(mail);
}

static void post(struct worker *w, void (*run)(struct loop *, struct mail *))
{
    struct mail *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return; /* adopted at the loop's next turn anyway */
    m->run = run;
    mailbox_post(w->loop, m);
}

void worker_adopt(struct worker *w, struct snapshot *snapshot)
{
    struct snapshot *skipped = atomic_exchange_explicit(&w->next, snapshot, memory_order_acq_rel);
    if (skipped) {
        skipped->adopted_fn(skipped);
        drop_snapshot(skipped);
    }
    post(w, on_look);
}

static void on_stop(struct loop *l, struct mail *mail)
{
    struct worker *w = l->owner;
    free(mail);
    for (unsigned i = 0; i < w->n_listeners; i++)
        listener_sweep(&w->listeners[i]->l);
    worker_accept_no_more(w);
    list_each_safe(it, next, &w->idle)
        client_drain(list_entry(it, struct client, link));
    list_each_safe(it, next, &w->busy) {
        struct client *c = list_entry(it, struct client, link);
        /* One that was opened in advance has no reason to expect an end: its first answer will be the last. */
        if (!w->shared->handed_over || c->r != NULL || c->nth > 0)
            client_drain(c);
    }
    w->stopping = true;
    for (unsigned kind = 0; kind < ACTION_COUNT; kind++)
        if (w->handlers[kind]->drain && w->handler_state[kind])
            w->handlers[kind]->drain(w, w->handler_state[kind], w->shared->drain_ms);
}

static void on_hand_over(struct loop *l, struct mail *mail)
{
    free(mail);
    worker_accept_no_more(l->owner);
}

void worker_hand_over(struct worker *w)
{
    post(w, on_hand_over);
}

static void on_stop_now(struct loop *l, struct mail *mail)
{
    free(mail);
    loop_stop(l);
}

void worker_stop(struct worker *w, bool now)
{
    post(w, now ? on_stop_now : on_stop);
}

void worker_free(struct worker *w)
{
    if (w == NULL)
        return;
    close_state(w);
    if (w->loop)
        loop_free(w->loop);
    worker_listeners_free(w);
    for (struct hold *h = w->hold; h;) {
        struct hold *older = h->older;
        drop_snapshot(h->snapshot);
        free(h);
        h = older;
    }
    struct snapshot *next = atomic_exchange(&w->next, NULL);
    if (next)
        drop_snapshot(next);
    block_pool_free(&w->requests);
    block_pool_free(&w->clients);
    pcre2_match_data_free(w->match);
    pcre2_match_context_free(w->match_context);
    free(w);
}

bool worker_may_log(struct worker *w)
{
    uint64_t second = w->loop->now_ms / 1000;
    if (second != w->fault_second) {
        if (w->fault_count > FAULTS_A_SECOND)
            log_write(LOG_INFO, "loop %u: %u client faults not logged", w->index, w->fault_count - FAULTS_A_SECOND);
        w->fault_second = second;
        w->fault_count = 0;
    }
    return ++w->fault_count <= FAULTS_A_SECOND;
}

const char *worker_date(struct worker *w)
{
    uint64_t second = w->loop->wall_ms / 1000;
    if (second != w->date_second) {
        date_print(w->date, (int64_t)second);
        w->date_second = second;
    }
    return w->date;
}
