/* SPDX-License-Identifier: MIT */
/*
 * Hash map from byte strings to pointers: linear probing in a table of a power of two, at most three quarters full.
 * Owns the table, neither keys nor values. Replacing a value replaces the key as well, because keys usually live
 * inside their value.
 * Removal shifts the followers back instead of leaving tombstones: a cache that churns for weeks does not slow down.
 * The place in the table depends on a random seed of this process (keys may be a peer's choice); hash_bytes has no
 * seed, so that consistent hashing is equal on every replica.
 */
#include "base/map.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#include "base/clock.h"

struct map_slot {
    struct str key;
    void *value; /* NULL: free */
    uint64_t hash;
};

enum { MIN_CAP = 16 };

uint64_t hash_bytes(struct str s)
{
    return XXH3_64bits(s.p, s.n);
}

static uint64_t seed_get(void)
{
    static atomic_uint_fast64_t seed;
    uint64_t now = atomic_load_explicit(&seed, memory_order_relaxed);
    if (now != 0)
        return now;
    uint64_t fresh;
    if (getrandom(&fresh, sizeof fresh, GRND_NONBLOCK) != (ssize_t)sizeof fresh)
        fresh = clock_monotonic_us() ^ (uint64_t)(uintptr_t)&fresh; /* early boot: better than a constant */
    fresh |= 1;
    uint_fast64_t expected = 0;
    return atomic_compare_exchange_strong(&seed, &expected, fresh) ? fresh : expected;
}

static uint64_t place_hash(struct str key)
{
    return XXH3_64bits_withSeed(key.p, key.n, seed_get());
}

/* The key's slot, or the free slot where it would go. cap > 0. */
static size_t slot_find(const struct map *m, struct str key, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);
    while (m->slots[i].value != NULL && (m->slots[i].hash != hash || !str_eq(m->slots[i].key, key)))
        i = (i + 1) & (m->cap - 1);
    return i;
}

static bool grow(struct map *m)
{
    size_t cap = m->cap > 0 ? m->cap * 2 : MIN_CAP;
    struct map bigger = { .slots = calloc(cap, sizeof *bigger.slots), .n = m->n, .cap = cap };
    if (bigger.slots == NULL)
        return false;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].value != NULL)
            bigger.slots[slot_find(&bigger, m->slots[i].key, m->slots[i].hash)] = m->slots[i];
    free(m->slots);
    *m = bigger;
    return true;
}

void *map_get(const struct map *m, struct str key)
{
    return m->n > 0 ? m->slots[slot_find(m, key, place_hash(key))].value : NULL;
}

bool map_put(struct map *m, struct str key, void *value)
{
    CHECK(value != NULL);
    uint64_t hash = place_hash(key);
    struct map_slot *slot = m->cap > 0 ? &m->slots[slot_find(m, key, hash)] : NULL;
    if (slot == NULL || slot->value == NULL) {
        if ((m->n + 1) * 4 > m->cap * 3) {
            if (!grow(m))
                return false;
            slot = &m->slots[slot_find(m, key, hash)];
        }
        m->n++;
    }
    *slot = (struct map_slot){ .key = key, .value = value, .hash = hash };
    return true;
}

void *map_remove(struct map *m, struct str key)
{
    if (m->n == 0)
        return NULL;
    size_t mask = m->cap - 1;
    size_t hole = slot_find(m, key, place_hash(key));
    void *old = m->slots[hole].value;
    if (old == NULL)
        return NULL;
    for (size_t i = (hole + 1) & mask; m->slots[i].value != NULL; i = (i + 1) & mask) {
        size_t home = m->slots[i].hash & mask;
        /* It may move back only if the hole lies between its home and where it stands, going round the end. */
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct map_slot){ 0 };
    m->n--;
    return old;
}

void map_free(struct map *m)
{
    free(m->slots);
    *m = (struct map){ 0 };
}
