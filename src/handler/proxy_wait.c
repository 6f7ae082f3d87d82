/* SPDX-License-Identifier: MIT */
/*
 * A proxied request between two attempts: it asks for a server, waits for a slot, for one that accepts (`hold`), or a
 * second before the same server is asked again (redispatch = false).
 *
 * Whatever it waits for, there is one deadline (p->wait), and at most one place in the queue (p->entry); proxy_release
 * ends both. What a loop does for those who wait without belonging to one of them is the timer `look`: the end of an
 * ejection is no event that the queue would see.
 */
#include "base/clock.h"
#include "handler/proxy_try.h"
#include "upstream/health.h"
#include "upstream/pick.h"

enum {
    RETRY_DELAY_MS = 1000,   /* redispatch = false: before the same server is asked again */
    HOLD_DELAY_MS = 50,      /* before a server that does not accept is asked again; doubled up to ... */
    HOLD_DELAY_MAX_MS = 400,
};

/* --- a server that accepts --- */

static void on_held(struct deadline *d);

bool wait_hold(struct proxy *p)
{
    struct loop *l = p->loop->w->loop;
    if (p->conf->hold == 0)
        return false;
    if (p->hold_until_ms == 0)
        p->hold_until_ms = l->now_ms + p->conf->hold;
    if (l->now_ms >= p->hold_until_ms)
        return false;
    uint64_t ms = (uint64_t)HOLD_DELAY_MS << (p->n_held < 3 ? p->n_held : 3);
    p->n_held++;
    p->query.n_tried = 0;
    p->r->doing = "waiting for a server that accepts";
    deadline_set(l, &p->wait, DEADLINE_QUEUE, ms < HOLD_DELAY_MAX_MS ? ms : HOLD_DELAY_MAX_MS, on_held);
    return true;
}

/* --- a slot --- */

void wait_over(struct proxy *p)
{
    struct request *r = p->r;
    p->waited_ms += p->loop->w->loop->now_ms - p->queued_ms;
    p->has_waited = true;
    p->entry = NULL;
    deadline_clear(&p->wait);
    r->upstream_queue_time = proxy_seconds(&r->arena, p->waited_ms);
}

static void on_queue_timeout(struct deadline *d)
{
    proxy_give_up(container_of(d, struct proxy, wait), FAIL_QUEUE_TIMEOUT, 0, NULL);
}

void wait_look_later(struct proxy_loop *loop, struct upstream *u)
{
    if (!queue_has_waiters(u))
        return;
    uint64_t now = clock_monotonic_ms(), end = health_next_end(u, now);
    if (end == 0 || (loop->look_ms != 0 && loop->look_ms <= end))
        return;
    loop->look_ms = end;
    ev_timer_stop(loop->w->loop->ev, &loop->look);
    ev_timer_set(&loop->look, (double)(end - now + 1) / 1000, 0.);
    ev_timer_start(loop->w->loop->ev, &loop->look);
}

static void on_look(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev;
    (void)events;
    struct proxy_loop *loop = container_of(timer, struct proxy_loop, look);
    const struct snapshot *snapshot = loop->w->hold->snapshot;
    loop->look_ms = 0;
    for (unsigned i = 0; i < snapshot->conf->n_upstreams; i++) {
        queue_dispatch(snapshot->upstreams[i]);
        wait_look_later(loop, snapshot->upstreams[i]);
    }
}

void wait_loop_init(struct proxy_loop *loop)
{
    ev_init(&loop->look, on_look);
}

void wait_loop_close(struct proxy_loop *loop)
{
    ev_timer_stop(loop->w->loop->ev, &loop->look);
}

/* No server that this request could have is of use. */
static void no_hope(struct proxy *p)
{
    if (!wait_hold(p))
        proxy_give_up(p, FAIL_NO_SERVER, 0, p->query.bound != NULL ? "the server it belongs to" : NULL);
}

static void on_granted(void *user, struct server *s)
{
    struct proxy *p = user;
    MAGIC_CHECK(p, PROXY_MAGIC);
    wait_over(p);
    if (s != NULL)
        try_start(p, s, false);
    else
        no_hope(p);
}

static void wait_in_queue(struct proxy *p)
{
    struct request *r = p->r;
    struct loop *l = p->loop->w->loop;
    struct server *s;
    if (p->query.bound == NULL)
        p->query.bound = pick_owner(p->upstream, &p->query);
    switch (queue_enter(p->upstream, &p->query, p->query.is_retry, l, on_granted, p, &p->entry, &s)) {
    case QUEUE_TOOK:
        if (s != NULL)
            try_start(p, s, false);
        else
            no_hope(p);
        break;
    case QUEUE_WAITS:
        r->doing = "waiting for a free slot";
        p->queued_ms = l->now_ms;
        deadline_set(l, &p->wait, DEADLINE_QUEUE, r->s->timeouts.queue, on_queue_timeout);
        wait_look_later(p->loop, p->upstream);
        break;
    case QUEUE_REFUSED:
        proxy_give_up(p, FAIL_QUEUE_FULL, 0, NULL);
        break;
    case QUEUE_NO_MEMORY:
        proxy_give_up(p, FAIL_NO_MEMORY, 0, NULL);
        break;
    }
}

bool wait_ask(struct proxy *p)
{
    bool is_possible;
    struct server *s = NULL;
    if (p->query.is_retry || !queue_has_waiters(p->upstream))
        s = pick_server(p->upstream, &p->query, &is_possible);
    else
        is_possible = pick_is_possible(p->upstream, &p->query);
    if (s != NULL)
        try_start(p, s, false);
    else if (is_possible)
        wait_in_queue(p);
    return s != NULL || is_possible;
}

void wait_ask_or_fail(struct proxy *p)
{
    if (!wait_ask(p))
        no_hope(p);
}

static void on_held(struct deadline *d)
{
    struct proxy *p = container_of(d, struct proxy, wait);
    p->r->doing = NULL;
    wait_ask_or_fail(p);
}

/* --- the same server again --- */

static void on_again(struct deadline *d)
{
    struct proxy *p = container_of(d, struct proxy, wait);
    if (!wait_ask(p))
        proxy_give_up(p, FAIL_NO_SERVER, 0, "the server it was sent to");
}

void wait_for_same(struct proxy *p)
{
    deadline_set(p->loop->w->loop, &p->wait, DEADLINE_QUEUE, RETRY_DELAY_MS, on_again);
}
