/* SPDX-License-Identifier: MIT */
/*
 * The server with the least to do for its weight: requests in flight and open tunnels together (a WebSocket loads a
 * server as long as it lives). Those with equally little take turns by weight, on the counter that round robin uses.
 * Looks at every server: the cost grows with their number, as the exactness does. Other loops may change what was
 * seen a moment ago; a slot that is gone by then means another look, never a slot too many.
 */
#include "upstream/pick.h"

enum { LOOKS = 4 };

static bool is_free(const struct server *s)
{
    unsigned limit = atomic_load_explicit(&s->maxconn, memory_order_relaxed);
    return limit == 0 || atomic_load_explicit(&s->in_flight, memory_order_relaxed) < limit;
}

static uint64_t weight_of(const struct set_entry *e)
{
    return e->weight > 0 ? e->weight : 1; /* of a bound one it may be 0 */
}

int pick_compare_load(const struct set_entry *a, const struct set_entry *b)
{
    uint64_t left = server_load(a->server) * weight_of(b), right = server_load(b->server) * weight_of(a);
    return left < right ? -1 : left > right;
}

bool pick_is_ready(const struct set_entry *e, const struct pick_query *q, bool backup)
{
    return pick_is_usable(e, q, backup) && is_free(e->server);
}

/* The weights of those that have as little to do as *best, which becomes the first of them; NULL: none is ready. */
static uint64_t look(const struct server_set *set, const struct pick_query *q, bool backup,
                     const struct set_entry **best)
{
    uint64_t weights = 0;
    *best = NULL;
    for (unsigned i = 0; i < set->n; i++) {
        const struct set_entry *e = &set->entries[i];
        if (!pick_is_ready(e, q, backup))
            continue;
        int order = *best != NULL ? pick_compare_load(e, *best) : -1;
        if (order < 0) {
            *best = e;
            weights = 0;
        }
        if (order <= 0)
            weights += weight_of(e);
    }
    return weights;
}

/* Whose turn it is among those that have as little to do as `best`. */
static const struct set_entry *in_turn(const struct server_set *set, const struct pick_query *q, bool backup,
                                       const struct set_entry *best, uint64_t turn)
{
    for (const struct set_entry *e = best; e < set->entries + set->n; e++) {
        if (!pick_is_ready(e, q, backup) || pick_compare_load(e, best) > 0)
            continue;
        if (turn < weight_of(e))
            return e;
        turn -= weight_of(e);
    }
    return best;
}

static struct server *choose(struct upstream *u, const struct server_set *set, const struct pick_query *q, bool backup)
{
    atomic_ullong *position = q->is_retry ? &u->retry_position : &u->position;
    for (unsigned i = 0; i < LOOKS; i++) {
        const struct set_entry *e;
        uint64_t weights = look(set, q, backup, &e);
        if (e == NULL)
            return NULL;
        if (weights > weight_of(e))
            e = in_turn(set, q, backup, e, atomic_fetch_add_explicit(position, 1, memory_order_relaxed) % weights);
        if (server_take(e->server))
            return e->server;
    }
    for (unsigned i = 0; i < set->n; i++)
        if (pick_is_usable(&set->entries[i], q, backup) && server_take(set->entries[i].server))
            return set->entries[i].server;
    return NULL;
}

const struct pick pick_least_conn = { .name = "least-conn", .choose = choose };
