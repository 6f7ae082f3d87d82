/* SPDX-License-Identifier: MIT */
/*
 * What all algorithms share: which servers may be chosen at all, and when the backups' turn has come. Keeps no state.
 */
#include "upstream/pick.h"

const struct pick *pick_of(enum balance_kind kind)
{
    switch (kind) {
    case BALANCE_LEAST_CONN:
        return &pick_least_conn;
    case BALANCE_RANDOM:
        return &pick_random;
    case BALANCE_IP_HASH:
    case BALANCE_URI_HASH:
    case BALANCE_HASH:
        return &pick_hash;
    case BALANCE_ROUND_ROBIN:
    default:
        return &pick_round_robin;
    }
}

static bool has_tunnels_left(const struct server *s)
{
    unsigned limit = atomic_load_explicit(&s->max_tunnels, memory_order_relaxed);
    return limit == 0 || atomic_load_explicit(&s->tunnels, memory_order_relaxed) < limit;
}

bool pick_is_usable(const struct set_entry *e, const struct pick_query *q, bool backup)
{
    struct server *s = e->server;
    if (e->is_backup != backup || e->is_draining || (e->weight == 0 && q->bound != s))
        return false;
    if (q->bound != NULL && q->bound != s)
        return false;
    if (atomic_load_explicit(&s->barred, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&s->n_resolved, memory_order_relaxed) == 0)
        return false;
    if (!q->takes_ejected && server_is_ejected(s))
        return false;
    if (q->is_tunnel && !has_tunnels_left(s))
        return false;
    for (unsigned i = 0; i < q->n_tried; i++)
        if (q->tried[i] == s)
            return false;
    return true;
}

/* The primaries, the backups, and when there are none of either the same again with those that fail too often. The
 * first step with any that can be used, free or not; STEPS if there is none. */
enum { STEPS = 4 };

static bool step_query(unsigned step, struct pick_query *q)
{
    q->takes_ejected = step >= 2;
    return step % 2 != 0;
}

static unsigned first_step(const struct server_set *set, struct pick_query *q)
{
    for (unsigned step = 0; step < STEPS; step++) {
        bool backup = step_query(step, q);
        if (backup && !set->has_backup)
            continue;
        for (unsigned i = 0; i < set->n; i++)
            if (pick_is_usable(&set->entries[i], q, backup))
                return step;
    }
    return STEPS;
}

struct server *pick_server(struct upstream *u, const struct pick_query *query, bool *is_full)
{
    const struct server_set *set = atomic_load_explicit(&u->set, memory_order_acquire);
    struct pick_query q = *query;
    q.takes_ejected = false;
    struct server *s = set->pick->choose(u, set, &q, false);
    *is_full = false;
    if (LIKELY(s != NULL))
        return s;
    unsigned step = first_step(set, &q);
    if (step == STEPS)
        return NULL;
    *is_full = true;
    return step == 0 ? NULL : set->pick->choose(u, set, &q, step_query(step, &q));
}

bool pick_is_possible(struct upstream *u, const struct pick_query *query)
{
    struct pick_query q = *query;
    return first_step(atomic_load_explicit(&u->set, memory_order_acquire), &q) < STEPS;
}

struct server *pick_owner(struct upstream *u, const struct pick_query *query)
{
    const struct server_set *set = atomic_load_explicit(&u->set, memory_order_acquire);
    struct pick_query q = *query;
    if (set->pick->owner == NULL || !q.has_hash)
        return NULL;
    unsigned step = first_step(set, &q);
    return step < STEPS ? set->pick->owner(set, &q, step_query(step, &q)) : NULL;
}

bool pick_may_have(struct upstream *u, const struct pick_query *query, const struct server *s)
{
    const struct server_set *set = atomic_load_explicit(&u->set, memory_order_acquire);
    struct pick_query q = *query;
    for (unsigned i = 0; i < set->n; i++) {
        const struct set_entry *e = &set->entries[i];
        if (e->server != s)
            continue;
        if (!e->is_backup && !server_is_ejected(e->server)) {
            q.takes_ejected = false;
            return pick_is_usable(e, &q, false);
        }
        unsigned step = first_step(set, &q);
        return step < STEPS && pick_is_usable(e, &q, step_query(step, &q));
    }
    return false;
}

bool pick_is_out(struct upstream *u, struct server *s)
{
    return !pick_may_have(u, &(struct pick_query){ .bound = s }, s);
}
