/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of one loop. Owns a list for each distinct duration, sorted by it; a deadline itself is embedded in its
 * owner's struct and only linked here.
 * Because every entry of a list has the same duration, appending keeps it ordered by due time: setting and clearing
 * cost pointer writes, and the one timer of a list looks at its head only. Clearing does not touch the timer; it fires
 * for nothing at most once per duration and then follows the new head.
 * Empty lists are given new durations before another is made, so durations that a backend may choose (its
 * Keep-Alive: timeout=N) do not pile up.
 */
#include "net/deadline.h"

#include <stdlib.h>

#include "base/log.h"

struct deadline_list {
    struct list head;
    uint64_t ms;
    ev_timer timer; /* running whenever the list is not empty */
    struct loop *loop;
};

enum {
    KEPT = 16,        /* this many lists may stand empty before one is reused */
    SPARE_MS = 60000, /* the list that is there from the start, so that a deadline always finds one */
};

struct deadlines {
    struct deadline_list **lists; /* sorted by ms, never empty */
    size_t n, cap;
};

static void timer_start(struct deadline_list *dl, uint64_t ms)
{
    ev_timer_set(&dl->timer, (double)ms / 1000, 0.);
    ev_timer_start(dl->loop->ev, &dl->timer);
}

static struct deadline *list_head_entry(const struct deadline_list *dl)
{
    return list_entry(dl->head.next, struct deadline, link);
}

static void on_timer(struct ev_loop *ev, ev_timer *w, int revents)
{
    (void)ev;
    struct deadline_list *dl = container_of(w, struct deadline_list, timer);
    struct loop *l = dl->loop;
    if (revents & EV_ERROR)
        return;
    /* What fire() sets anew goes to the end with a later due time: this ends. */
    while (!list_is_empty(&dl->head)) {
        struct deadline *d = list_head_entry(dl);
        if (d->at_ms > l->now_ms)
            break;
        deadline_clear(d);
        d->fire(d);
        loop_scratch_done(l);
    }
    /* fire() may have started the timer for what it appended; the head is due before that. */
    ev_timer_stop(l->ev, &dl->timer);
    if (!list_is_empty(&dl->head))
        timer_start(dl, list_head_entry(dl)->at_ms - l->now_ms);
}

static struct deadline_list *list_new(struct loop *l, uint64_t ms)
{
    struct deadline_list *dl = calloc(1, sizeof *dl);
    if (dl == NULL)
        return NULL;
    list_init(&dl->head);
    dl->ms = ms;
    dl->loop = l;
    ev_init(&dl->timer, on_timer);
    ev_set_priority(&dl->timer, -1); /* bytes that have arrived count before the deadline they meet */
    return dl;
}

struct deadlines *deadlines_new(struct loop *l)
{
    struct deadlines *ds = calloc(1, sizeof *ds);
    struct deadline_list *spare = list_new(l, SPARE_MS);
    if (ds != NULL && spare != NULL && (ds->lists = calloc(KEPT, sizeof *ds->lists)) != NULL) {
        ds->cap = KEPT;
        ds->lists[ds->n++] = spare;
        return ds;
    }
    free(spare);
    free(ds);
    return NULL;
}

void deadlines_free(struct deadlines *ds)
{
    for (size_t i = 0; i < ds->n; i++) {
        struct deadline_list *dl = ds->lists[i];
        while (!list_is_empty(&dl->head))
            deadline_clear(list_head_entry(dl));
        ev_timer_stop(dl->loop->ev, &dl->timer);
        free(dl);
    }
    free(ds->lists);
    free(ds);
}

/* Index of the first list whose duration is at least ms. */
static size_t lower_bound(const struct deadlines *ds, uint64_t ms)
{
    size_t lo = 0, hi = ds->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (ds->lists[mid]->ms < ms)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Takes an empty list out of the array for another duration; NULL if there is none. */
static struct deadline_list *take_empty(struct deadlines *ds)
{
    for (size_t i = 0; i < ds->n; i++) {
        struct deadline_list *dl = ds->lists[i];
        if (list_is_empty(&dl->head) && dl->ms != SPARE_MS) {
            ev_timer_stop(dl->loop->ev, &dl->timer);
            memmove(&ds->lists[i], &ds->lists[i + 1], (--ds->n - i) * sizeof *ds->lists);
            return dl;
        }
    }
    return NULL;
}

static bool make_room(struct deadlines *ds)
{
    if (ds->n < ds->cap)
        return true;
    struct deadline_list **more = realloc(ds->lists, ds->cap * 2 * sizeof *more);
    if (more == NULL)
        return false;
    ds->lists = more;
    ds->cap *= 2;
    return true;
}

static struct deadline_list *list_for(struct loop *l, uint64_t ms)
{
    struct deadlines *ds = l->deadlines;
    size_t at = lower_bound(ds, ms);
    if (at < ds->n && ds->lists[at]->ms == ms)
        return ds->lists[at];
    struct deadline_list *dl = ds->n >= KEPT ? take_empty(ds) : NULL;
    if (dl == NULL && make_room(ds))
        dl = list_new(l, ms);
    at = lower_bound(ds, ms); /* taking one has moved the others */
    if (dl == NULL)
        return ds->lists[at < ds->n ? at : ds->n - 1];
    dl->ms = ms;
    memmove(&ds->lists[at + 1], &ds->lists[at], (ds->n++ - at) * sizeof *ds->lists);
    ds->lists[at] = dl;
    return dl;
}

void deadline_set(struct loop *l, struct deadline *d, enum deadline_name name, uint64_t ms,
                  void (*fire)(struct deadline *))
{
    if (ms == 0) {
        deadline_clear(d);
        return;
    }
    struct deadline_list *dl = d->list;
    if (dl != NULL && dl->ms == ms && d->name == name) {
        d->fire = fire;
        if (l->now_ms - (d->at_ms - ms) < ms / 16)
            return;
    } else {
        dl = list_for(l, ms);
    }
    deadline_clear(d);
    d->name = name;
    d->fire = fire;
    d->list = dl;
    d->at_ms = l->now_ms + dl->ms;
    list_append(&dl->head, &d->link);
    if (!ev_is_active(&dl->timer) && !ev_is_pending(&dl->timer))
        timer_start(dl, dl->ms);
}

void deadline_clear(struct deadline *d)
{
    if (d->list == NULL)
        return;
    list_remove(&d->link);
    d->list = NULL;
}

const char *deadline_name(enum deadline_name name)
{
    static const char *const names[] = {
        [DEADLINE_NONE] = "none",       [DEADLINE_HEAD] = "head",   [DEADLINE_BODY] = "body",
        [DEADLINE_IDLE] = "idle",       [DEADLINE_CONNECT] = "connect", [DEADLINE_SEND] = "send",
        [DEADLINE_RECV] = "recv",       [DEADLINE_QUEUE] = "queue", [DEADLINE_LINGER] = "linger",
        [DEADLINE_TUNNEL] = "tunnel",   [DEADLINE_WATCH] = "watch",
    };
    return (size_t)name < ARRAY_LEN(names) ? names[name] : "?";
}
