/* SPDX-License-Identifier: MIT */
/*
 * The tables behind limits.requests and limits.in_flight. Each is of a fixed size: 64 shards with a mutex each, held for a look
 * at the 8 entries that a key may stand in; so loops hardly ever meet, and nothing a client sends makes a table grow. An
 * entry is the 64-bit hash of its key, under a seed that nobody outside knows, and one number:
 *
 * - requests: the time at which the bucket will be full again (the "theoretical arrival time" of the generic cell rate
 *   algorithm, ITU-T I.371). It says all there is to say about a token bucket, for any rate and burst. When eight keys want
 *   the same place, the one whose bucket is nearest to full is forgotten: it loses the least.
 * - in flight: how many. An entry that counts somebody is never forgotten; a key that finds no place is not counted.
 *
 * The counts live as long as the server, across reloads: a limit is known by where it stands.
 */
#include "serve/limit.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

enum { SHARDS = 64, WAYS = 8, SETS = LIMIT_ENTRIES / SHARDS / WAYS };

struct entry {
    uint64_t key, value;
};

struct shard {
    pthread_mutex_t mutex;
    uint64_t now_us; /* the latest time anyone came with */
};

/* The entries stand apart, so that a table nobody uses is memory nobody has touched. */
struct table {
    struct shard shards[SHARDS];
    struct entry entries[SHARDS][SETS][WAYS];
};

struct limiter {
    uint64_t seed;
    struct table rates, counts;
};

static void init_table(struct table *t)
{
    for (unsigned i = 0; i < SHARDS; i++)
        pthread_mutex_init(&t->shards[i].mutex, NULL);
}

struct limiter *limiter_new(void)
{
    struct limiter *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    if (getrandom(&l->seed, sizeof(l->seed), 0) != (ssize_t)sizeof(l->seed)) {
        free(l);
        return NULL;
    }
    init_table(&l->rates);
    init_table(&l->counts);
    return l;
}

void limiter_free(struct limiter *l)
{
    if (l == NULL)
        return;
    for (unsigned i = 0; i < SHARDS; i++) {
        pthread_mutex_destroy(&l->rates.shards[i].mutex);
        pthread_mutex_destroy(&l->counts.shards[i].mutex);
    }
    free(l);
}

uint64_t limit_key(const struct limiter *l, uint64_t id, struct str key)
{
    uint64_t hash = XXH3_64bits_withSeed(key.p, key.n, l->seed ^ id);
    return hash != 0 ? hash : 1;
}

uint64_t limit_key_ip(const struct limiter *l, uint64_t id, const struct ip *ip)
{
    char bytes[9] = { (char)ip->family };
    size_t n = ip->family == 6 ? 8 : 4;
    memcpy(bytes + 1, ip->b, n);
    return limit_key(l, id, str_of(bytes, n + 1));
}

static struct shard *lock(struct table *t, uint64_t key, struct entry **set)
{
    unsigned at = (unsigned)(key >> 58);
    struct shard *s = &t->shards[at];
    pthread_mutex_lock(&s->mutex);
    *set = t->entries[at][key % SETS];
    return s;
}

/* The key's entry, else the one of the set with the least value. */
static struct entry *find(struct entry *set, uint64_t key)
{
    struct entry *least = set;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].key == key)
            return &set[i];
        if (set[i].value < least->value)
            least = &set[i];
    }
    return least;
}

bool limit_rate(struct limiter *l, uint64_t key, uint64_t burst, uint64_t interval_us, uint64_t now_us, uint64_t *wait_us)
{
    struct entry *set;
    struct shard *s = lock(&l->rates, key, &set);
    struct entry *e = find(set, key);
    if (s->now_us < now_us) /* loops look at the clock once a turn: one's time may be behind another's */
        s->now_us = now_us;
    now_us = s->now_us;
    uint64_t full = e->key == key && e->value > now_us ? e->value : now_us, all = burst * interval_us;
    if (full - now_us > all) /* the limit was another one before a reload */
        e->value = full = now_us + all;
    uint64_t next = full + interval_us;
    bool is_in_time = next - now_us <= all;
    if (is_in_time)
        *e = (struct entry){ .key = key, .value = next };
    pthread_mutex_unlock(&s->mutex);
    *wait_us = is_in_time ? 0 : next - now_us - all;
    return is_in_time;
}

enum limit_entry limit_enter(struct limiter *l, uint64_t key, uint64_t max)
{
    struct entry *set;
    struct shard *s = lock(&l->counts, key, &set);
    struct entry *e = find(set, key);
    enum limit_entry result = LIMIT_ENTERED;
    if (e->key != key && e->value > 0)
        result = LIMIT_UNCOUNTED;
    else if (e->key == key && e->value >= max)
        result = LIMIT_FULL;
    else
        *e = (struct entry){ .key = key, .value = (e->key == key ? e->value : 0) + 1 };
    pthread_mutex_unlock(&s->mutex);
    return result;
}

void limit_leave(struct limiter *l, uint64_t key)
{
    struct entry *set;
    struct shard *s = lock(&l->counts, key, &set);
    struct entry *e = find(set, key);
    if (!BUG_IF(e->key != key || e->value == 0))
        e->value--;
    pthread_mutex_unlock(&s->mutex);
}
