/* SPDX-License-Identifier: MIT */
/*
 * Two servers at random, each as likely as its weight, and of the two the one with less to do for its weight. One
 * choice alone leaves some server with far more than its share; the second one prevents that without looking at all
 * of them. The places to choose from are those of round robin's order. The random numbers are a hash of the shared
 * counter and a seed of the set: no loop repeats another's.
 */
#include <sys/random.h>

#include "upstream/pick.h"

enum {
    ROUNDS = 8,   /* pairs looked at before all servers are */
    SECONDS = 4,  /* draws for a second server that is not the first again */
};

/* splitmix64's output function. */
static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

static bool prepare(struct server_set *set)
{
    if (getrandom(&set->seed, sizeof set->seed, GRND_NONBLOCK) != (ssize_t)sizeof set->seed)
        set->seed = 0; /* early at boot; nothing depends on it but that two machines choose differently */
    return pick_round_robin.prepare(set);
}

static const struct set_entry *draw(const struct server_set *set, bool backup, uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t place = (mix(*state) >> 32) * set->n_order[backup] >> 32;
    return &set->entries[set->order[backup][place]];
}

static struct server *choose(struct upstream *u, const struct server_set *set, const struct pick_query *q, bool backup)
{
    if (set->n_order[backup] > 0) {
        /* Far enough from its neighbours that the draws of one never are those of another. */
        uint64_t at = atomic_fetch_add_explicit(&u->position, 1, memory_order_relaxed);
        uint64_t state = mix(set->seed + at * 0xd1342543de82ef95u);
        for (unsigned i = 0; i < ROUNDS; i++) {
            const struct set_entry *e = draw(set, backup, &state), *other = e;
            for (unsigned j = 0; other == e && j < SECONDS; j++)
                other = draw(set, backup, &state);
            bool is_ready = pick_is_ready(e, q, backup);
            if (other != e && pick_is_ready(other, q, backup) && (!is_ready || pick_compare_load(other, e) < 0)) {
                e = other;
                is_ready = true;
            }
            if (is_ready && server_take(e->server))
                return e->server;
        }
    }
    return pick_least_conn.choose(u, set, q, backup);
}

const struct pick pick_random = { .name = "random", .prepare = prepare, .choose = choose };
