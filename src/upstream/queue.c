/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a slot.
 *
 * An entry belongs to the upstream's queue and changes under its mutex alone: WAITING in a FIFO, then GRANTED (a slot
 * is taken for it, a mail is on its way to its loop) or GONE. Only the waiter's loop frees it: at once when it leaves
 * while WAITING, else when the mail arrives. A waiter that leaves when a slot is on its way makes the entry GONE and
 * hands the slot on in the same step, so a slot is never parked with someone who has left.
 *
 * Who comes while nobody waits takes a free slot without the mutex. The race in that is closed from both sides: a
 * waiter first counts itself in `waiting` and then looks for a free slot, a giver first frees the slot and then looks
 * at `waiting` (all sequentially consistent), so one of the two sees the other. Whoever comes while someone waits
 * goes through the queue, and does not overtake.
 *
 * Nobody waits for what will not come: who could not be served with every slot free, because checks, an operator or the
 * configuration have taken the last server away, is told so in the step in which that happens, as one who comes now is.
 *
 * A freed slot goes to the older of two heads by arrival number: the server's own FIFO, and the common one. Retries
 * have the number 0. In the common FIFO a retry may be unable to take what is free (it has been there); the first one
 * that can is served.
 */
#include "upstream/queue.h"

#include <stdlib.h>

enum queue_state { STATE_WAITING, STATE_GRANTED, STATE_GONE };

struct queue_entry {
    struct list link;
    enum queue_state state;
    uint64_t arrival;
    struct upstream *upstream;
    struct pick_query *query;       /* the waiter's; only while WAITING */
    struct server *bound;           /* whose FIFO it is in; NULL: the common one */
    struct server *granted;
    struct loop *loop;
    queue_granted_fn *on_granted;
    void *user;
    struct mail mail;
};

static struct queue_entry *entry_of(struct list *link)
{
    return list_entry(link, struct queue_entry, link);
}

static unsigned *count_of(struct queue_entry *e)
{
    return e->bound != NULL ? &e->bound->n_waiting : &e->upstream->queue.n_any;
}

/* Retries stand behind earlier retries and before everyone else, the others in the order they came. */
static void append(struct queue_entry *e)
{
    struct queue *q = &e->upstream->queue;
    struct list *head = e->bound != NULL ? &e->bound->waiting : &q->any;
    struct list *before = head;
    if (e->arrival == 0)
        for (before = head->next; before != head && entry_of(before)->arrival == 0;)
            before = before->next;
    list_append(before, &e->link);
    ++*count_of(e);
    if (e->bound != NULL)
        q->n_bound++;
}

static void take_off(struct queue_entry *e)
{
    struct queue *q = &e->upstream->queue;
    list_remove(&e->link);
    --*count_of(e);
    if (e->bound != NULL)
        q->n_bound--;
}

static void on_mail(struct loop *l, struct mail *mail)
{
    (void)l;
    struct queue_entry *e = container_of(mail, struct queue_entry, mail);
    if (e->state == STATE_GRANTED)
        e->on_granted(e->user, e->granted);
    free(e);
}

/* s: its slot is taken for the waiter; or NULL. */
static void grant(struct queue_entry *e, struct server *s)
{
    struct queue *q = &e->upstream->queue;
    take_off(e);
    atomic_fetch_sub(&q->waiting, 1);
    e->state = STATE_GRANTED;
    e->granted = s;
    e->query = NULL;
    if (e == q->entering) /* queue_enter is still there to see it */
        return;
    e->mail.run = on_mail;
    mailbox_post(e->loop, &e->mail);
}

/* The first of the common FIFO that may have a slot of s. */
static struct queue_entry *first_for(struct upstream *u, const struct server *s)
{
    bool plain = pick_may_have(u, &(struct pick_query){ 0 }, s);
    list_each(it, &u->queue.any) {
        struct queue_entry *e = entry_of(it);
        bool is_plain = pick_is_plain(e->query);
        if (is_plain ? plain : pick_may_have(u, e->query, s))
            return e;
        if (is_plain) /* and all behind it are no better off; the unusual ones stand in front */
            break;
    }
    return NULL;
}

/* Free slots of s to whoever is next. */
static void hand_out(struct upstream *u, struct server *s)
{
    for (;;) {
        struct queue_entry *own = list_is_empty(&s->waiting) ? NULL : entry_of(s->waiting.next);
        if (own != NULL && !pick_may_have(u, own->query, s))
            own = NULL;
        struct queue_entry *any = first_for(u, s);
        struct queue_entry *e = own == NULL || (any != NULL && any->arrival < own->arrival) ? any : own;
        if (e == NULL || !server_take(s))
            return;
        grant(e, s);
    }
}

/* Those bound to s go to the common FIFO, each to its place there, or are told that there is no hope. */
static void unbind(struct upstream *u, struct server *s)
{
    bool may_move = atomic_load_explicit(&u->redispatch, memory_order_relaxed);
    while (!list_is_empty(&s->waiting)) {
        struct queue_entry *e = entry_of(s->waiting.next);
        if (!may_move) {
            grant(e, NULL);
            continue;
        }
        take_off(e);
        e->bound = e->query->bound = NULL;
        struct list *before = u->queue.any.next;
        while (before != &u->queue.any && entry_of(before)->arrival <= e->arrival)
            before = before->next;
        list_append(before, &e->link);
        u->queue.n_any++;
    }
}

/* All free slots to whoever waits. */
static void dispatch(struct upstream *u)
{
    struct queue *q = &u->queue;
    if (q->n_bound > 0)
        list_each(it, &u->servers) {
            struct server *s = list_entry(it, struct server, link);
            if (list_is_empty(&s->waiting))
                continue;
            if (pick_is_out(u, s))
                unbind(u, s);
            else
                hand_out(u, s);
        }
    bool is_hopeless = false; /* for whoever asks for nothing special */
    list_each_safe(it, next, &q->any) {
        struct queue_entry *e = entry_of(it);
        bool is_full = false;
        bool is_plain = pick_is_plain(e->query);
        struct server *s = is_plain && is_hopeless ? NULL : pick_server(u, e->query, &is_full);
        if (s != NULL || !is_full)
            grant(e, s);
        else if (is_plain)
            break;
        is_hopeless |= is_plain && s == NULL;
    }
}

enum queue_result queue_enter(struct upstream *u, struct pick_query *query, bool is_retry, struct loop *loop,
                              queue_granted_fn *granted, void *user, struct queue_entry **entry,
                              struct server **server)
{
    struct queue *q = &u->queue;
    struct queue_entry *e = calloc(1, sizeof *e);
    if (e == NULL)
        return QUEUE_NO_MEMORY;
    e->upstream = u;
    e->query = query;
    e->bound = query->bound;
    e->loop = loop;
    e->on_granted = granted;
    e->user = user;
    list_init(&e->link);
    pthread_mutex_lock(&q->mutex);
    unsigned limit = atomic_load(e->bound != NULL ? &e->bound->queue_size : &u->queue_size);
    bool has_place = is_retry || *count_of(e) < limit;
    e->arrival = is_retry ? 0 : ++q->arrivals;
    atomic_fetch_add(&q->waiting, 1); /* before dispatch looks at the slots */
    append(e);
    q->entering = e;
    dispatch(u);
    q->entering = NULL;
    enum queue_result result = QUEUE_WAITS;
    if (e->state == STATE_GRANTED) {
        result = QUEUE_TOOK;
    } else if (!has_place) {
        take_off(e);
        atomic_fetch_sub(&q->waiting, 1);
        result = QUEUE_REFUSED;
    }
    pthread_mutex_unlock(&q->mutex);
    *entry = NULL;
    *server = NULL;
    if (result == QUEUE_WAITS) {
        *entry = e;
        return result;
    }
    *server = e->granted;
    free(e);
    return result;
}

void queue_leave(struct queue_entry *e)
{
    struct queue *q = &e->upstream->queue;
    pthread_mutex_lock(&q->mutex);
    bool was_granted = e->state == STATE_GRANTED;
    if (!was_granted) {
        take_off(e);
        atomic_fetch_sub(&q->waiting, 1);
    }
    e->state = STATE_GONE;
    struct server *s = e->granted;
    pthread_mutex_unlock(&q->mutex);
    if (!was_granted)
        free(e); /* else on_mail does */
    else if (s != NULL)
        server_give(s);
}

void queue_pass(struct server *s)
{
    struct upstream *u = s->upstream;
    pthread_mutex_lock(&u->queue.mutex);
    if (atomic_load(&u->queue.waiting) > 0)
        hand_out(u, s);
    pthread_mutex_unlock(&u->queue.mutex);
}

void queue_dispatch(struct upstream *u)
{
    pthread_mutex_lock(&u->queue.mutex);
    if (atomic_load(&u->queue.waiting) > 0)
        dispatch(u);
    pthread_mutex_unlock(&u->queue.mutex);
}
