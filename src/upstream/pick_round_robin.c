/* SPDX-License-Identifier: MIT */
/*
 * Smooth weighted round robin. The order of one whole round is computed when the configuration is applied: each step
 * goes to the server that lags most behind its share, so that a weight of 5 is never 5 in a row. At run time a
 * request takes the next place of that round from one counter shared by all loops: the distribution is exact whatever
 * loop a client lands on. A place whose server cannot be had is passed over by taking the next one, which spreads its
 * share over the others. Further attempts go by a counter of their own: if they moved the common one, each request
 * might begin where the last one failed, and a dead server's neighbour would get its whole share.
 */
#include <stdlib.h>

#include "upstream/pick.h"

enum {
    ROUND_MAX = 1 << 16, /* places in a round; weights are scaled down beyond it */
    STEPS_MAX = 64,      /* places tried before the servers are gone through one by one */
};

static unsigned gcd(unsigned a, unsigned b)
{
    while (b != 0) {
        unsigned rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A server's places in the round; 0 if it is not of this kind or gets nothing. */
static unsigned share_of(const struct set_entry *e, bool backup, unsigned divisor, uint64_t total)
{
    if (e->is_backup != backup || e->weight == 0)
        return 0;
    uint64_t share = e->weight / divisor;
    if (total > ROUND_MAX)
        share = share * ROUND_MAX / total;
    return share > 0 ? (unsigned)share : 1;
}

static bool prepare_order(struct server_set *set, bool backup)
{
    unsigned divisor = 0;
    uint64_t total = 0;
    for (unsigned i = 0; i < set->n; i++)
        if (set->entries[i].is_backup == backup)
            divisor = gcd(set->entries[i].weight, divisor);
    if (divisor == 0)
        return true;
    for (unsigned i = 0; i < set->n; i++)
        total += share_of(&set->entries[i], backup, divisor, 0);
    int64_t *lag = calloc(set->n, sizeof *lag);
    unsigned *shares = calloc(set->n, sizeof *shares);
    uint64_t round = 0;
    for (unsigned i = 0; shares != NULL && i < set->n; i++)
        round += shares[i] = share_of(&set->entries[i], backup, divisor, total);
    uint16_t *order = calloc((size_t)round, sizeof *order);
    if (lag == NULL || shares == NULL || order == NULL) {
        free(lag);
        free(shares);
        free(order);
        return false;
    }
    for (uint64_t at = 0; at < round; at++) {
        unsigned best = 0;
        int64_t most = INT64_MIN;
        for (unsigned i = 0; i < set->n; i++) {
            lag[i] += shares[i];
            if (shares[i] > 0 && lag[i] > most) {
                most = lag[i];
                best = i;
            }
        }
        lag[best] -= (int64_t)round;
        order[at] = (uint16_t)best;
    }
    free(lag);
    free(shares);
    set->order[backup] = order;
    set->n_order[backup] = (unsigned)round;
    return true;
}

static bool prepare(struct server_set *set)
{
    return prepare_order(set, false) && prepare_order(set, true);
}

static struct server *choose(struct upstream *u, const struct server_set *set, const struct pick_query *q, bool backup)
{
    unsigned n = set->n_order[backup];
    atomic_ullong *position = q->is_retry ? &u->retry_position : &u->position;
    for (unsigned step = 0; step < n && step < STEPS_MAX; step++) {
        uint64_t place = atomic_fetch_add_explicit(position, 1, memory_order_relaxed) % n;
        const struct set_entry *e = &set->entries[set->order[backup][place]];
        if (pick_is_usable(e, q, backup) && server_take(e->server))
            return e->server;
    }
    /* Other loops move the counter too, and a heavy server fills many places: be sure that nobody was missed. */
    for (unsigned i = 0; i < set->n; i++)
        if (pick_is_usable(&set->entries[i], q, backup) && server_take(set->entries[i].server))
            return set->entries[i].server;
    return NULL;
}

const struct pick pick_round_robin = { .name = "round-robin", .prepare = prepare, .choose = choose };
