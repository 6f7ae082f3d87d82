/* SPDX-License-Identifier: MIT */
/*
 * The server by a key of the request (its address, its path, a template): the same key, the same server, on every loop,
 * after a restart and on every machine that has the same servers.
 *
 * A table of SLOTS places is filled when the configuration is applied, after Maglev (Eisenbud et al., NSDI 2016,
 * §3.4): each server has its own order of all places, made from its name alone, and the servers take turns, by
 * weight, at their first place that is still free. Shares are then exact to a place or so per server, and a server
 * that comes or goes moves little more than its own share. Finding a server is one look, however many there are.
 *
 * A key whose server cannot be had looks again at a place made from the key and the number of the attempt: a lost
 * server's keys spread over all the others, those of the others stay, and they come home when it does. One that is
 * merely full is waited for (pick_owner). A request without a key goes by round robin, as do those for which the
 * template is empty: sending them all to one server would be an accident.
 *
 * With hash_balance_factor no server gets more than that percentage of the mean load, by weight (Mirrokni, Thorup and
 * Zadimoghaddam, "Consistent Hashing with Bounded Loads", SODA 2018): a key whose server is at its bound, or has no free
 * slot, goes where it would go if that server were lost. Nobody waits for one server then, and each choice looks at all
 * of them, as least-conn does.
 */
#include <stdlib.h>

#include <xxhash.h>

#include "upstream/pick.h"

enum {
    SLOTS = 65537, /* a prime: every step width visits all places */
    FREE = UINT16_MAX,
    STEPS_MAX = 64,
};

/* A server's order of the places: `at`, and then `width` further each time. */
struct taker {
    uint32_t at, width;
    unsigned weight, credit;
    uint64_t hash; /* of its name: whose turn it is does not depend on the order in the file */
    uint16_t index;
};

static int by_hash(const void *a, const void *b)
{
    const struct taker *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static unsigned takers_of(const struct server_set *set, bool backup, struct taker *takers, unsigned *heaviest)
{
    unsigned n = 0;
    *heaviest = 0;
    for (unsigned i = 0; i < set->n && i < FREE; i++) {
        const struct set_entry *e = &set->entries[i];
        if (e->is_backup != backup || e->weight == 0)
            continue;
        struct str name = e->server->name;
        uint64_t where = XXH3_64bits_withSeed(name.p, name.n, 1);
        takers[n++] = (struct taker){
            .at = (uint32_t)(where % SLOTS),
            .width = (uint32_t)((where >> 32) % (SLOTS - 1)) + 1,
            .weight = e->weight,
            .hash = XXH3_64bits_withSeed(name.p, name.n, 2),
            .index = (uint16_t)i,
        };
        *heaviest = e->weight > *heaviest ? e->weight : *heaviest;
    }
    qsort(takers, n, sizeof *takers, by_hash);
    return n;
}

static void fill(uint16_t *table, struct taker *takers, unsigned n, unsigned heaviest)
{
    for (unsigned i = 0; i < SLOTS; i++)
        table[i] = FREE;
    for (unsigned i = 0; i < n; i++)
        takers[i].credit = heaviest - takers[i].weight; /* whoever has a weight has a place */
    unsigned left = SLOTS;
    for (unsigned i = 0; left > 0; i = i + 1 < n ? i + 1 : 0) {
        struct taker *t = &takers[i];
        t->credit += t->weight;
        if (t->credit < heaviest)
            continue;
        t->credit -= heaviest;
        while (table[t->at] != FREE)
            t->at = (t->at + t->width) % SLOTS;
        table[t->at] = t->index;
        left--;
    }
}

static bool prepare_table(struct server_set *set, bool backup)
{
    struct taker *takers = calloc(set->n > 0 ? set->n : 1, sizeof *takers);
    if (takers == NULL)
        return false;
    unsigned heaviest;
    unsigned n = takers_of(set, backup, takers, &heaviest);
    if (n > 0) {
        set->table[backup] = calloc(SLOTS, sizeof *set->table[backup]);
        if (set->table[backup] != NULL)
            fill(set->table[backup], takers, n, heaviest);
    }
    free(takers);
    return n == 0 || set->table[backup] != NULL;
}

static bool prepare(struct server_set *set)
{
    return pick_round_robin.prepare(set) && prepare_table(set, false) && prepare_table(set, true);
}

static uint64_t again(uint64_t hash, unsigned step)
{
    uint64_t v = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u + step * 0xd6e8feb86659fd93u;
    return (v ^ v >> 29) * 0xbf58476d1ce4e5b9u >> 16;
}

/* The places of a key in their order: its own, others made from it, and then all in turn, for few may be left of many.
 * NULL: there are no more. */
static const struct set_entry *place(const struct server_set *set, const struct pick_query *q, const uint16_t *table,
                                     unsigned step)
{
    if (step < STEPS_MAX)
        return &set->entries[table[(step == 0 ? q->hash : again(q->hash, step)) % SLOTS]];
    unsigned i = step - STEPS_MAX;
    return i < set->n ? &set->entries[(q->hash % set->n + i) % set->n] : NULL;
}

static struct server *owner(const struct server_set *set, const struct pick_query *q, bool backup)
{
    const uint16_t *table = set->table[backup];
    if (table == NULL || set->hash_factor > 0)
        return NULL;
    const struct set_entry *e;
    for (unsigned step = 0; (e = place(set, q, table, step)) != NULL; step++)
        if (pick_is_usable(e, q, backup))
            return e->server;
    return NULL;
}

/* What all servers that this request could have do now, and their weights. */
struct total {
    uint64_t load, weight;
};

static struct total total_of(const struct server_set *set, const struct pick_query *q, bool backup)
{
    struct total total = { 0 };
    for (unsigned i = 0; i < set->n; i++)
        if (pick_is_usable(&set->entries[i], q, backup)) {
            total.load += server_load(set->entries[i].server);
            total.weight += set->entries[i].weight;
        }
    return total;
}

/* Below its bound, this request not counted? With all at their bounds there would be more load than there is. */
static bool has_room(const struct set_entry *e, const struct total *total, unsigned factor)
{
    return server_load(e->server) * 100 * total->weight < factor * (total->load + 1) * e->weight;
}

static struct server *choose_bounded(const struct server_set *set, const struct pick_query *q, bool backup)
{
    const struct total total = total_of(set, q, backup);
    const struct set_entry *e;
    for (unsigned step = 0; (e = place(set, q, set->table[backup], step)) != NULL; step++)
        if (pick_is_usable(e, q, backup) && (q->bound != NULL || has_room(e, &total, set->hash_factor)) &&
            server_take(e->server))
            return e->server;
    return NULL;
}

static struct server *choose(struct upstream *u, const struct server_set *set, const struct pick_query *q, bool backup)
{
    if (!q->has_hash || set->table[backup] == NULL)
        return pick_round_robin.choose(u, set, q, backup);
    if (set->hash_factor > 0)
        return choose_bounded(set, q, backup);
    struct server *s = owner(set, q, backup);
    return s != NULL && server_take(s) ? s : NULL;
}

const struct pick pick_hash = { .name = "hash", .prepare = prepare, .choose = choose, .owner = owner };

uint64_t pick_hash_of(const void *key, size_t n)
{
    return XXH3_64bits(key, n);
}
