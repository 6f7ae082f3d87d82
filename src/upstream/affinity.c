/* SPDX-License-Identifier: MIT */
/*
 * Sticky clients.
 *
 * A tag is the first 128 bits of HMAC-SHA256(key, upstream NUL server): signature and name in one. Nobody without the
 * key can make one for a server, or tell the server from it; and there is nothing to keep, as every start and every
 * replica with the same key makes the same tags. Without a key in the configuration it is made from this machine's id
 * (machine-id(5), which must not leave the machine as such), so that a restart leaves every client where it is; where
 * there is no such id it is random and lives as long as the process.
 *
 * Sessions are what a client without the cookie is known by (socket.io's sid, a SockJS path). The table is of a fixed
 * size, WAYS entries for each hash: a new one takes the place of the one that was asked for longest ago. Its memory is
 * touched only as sessions come. One mutex, held for one row. It belongs to the upstream and outlives reloads; an entry
 * names its server by address and serial number, which no other server ever gets.
 */
#include "upstream/affinity.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/log.h"

enum {
    KEY_SIZE = 32,
    ROWS = 16384,
    WAYS = 8,
    LIFE_S = 3600, /* without a request */
};

struct session {
    uint64_t hash;
    const struct server *server;
    uint32_t serial;
    uint32_t seen_s; /* 0: free */
};

struct affinity {
    pthread_mutex_t mutex;
    uint64_t seed; /* which sessions share a row is not for clients to choose */
    struct session rows[ROWS][WAYS];
};

/* --- the key --- */

static unsigned char own_key[KEY_SIZE];
static pthread_once_t own_key_once = PTHREAD_ONCE_INIT;

static void make_own_key(void)
{
    static const char use[] = "weir sticky sessions";
    char id[64];
    unsigned n = KEY_SIZE;
    int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, id, sizeof id) : -1;
    if (fd >= 0)
        close(fd);
    if (got >= 32 && HMAC(EVP_sha256(), id, 32, (const unsigned char *)use, sizeof use - 1, own_key, &n) != NULL)
        return;
    log_write(LOG_NOTICE, "sticky without a `key`, and no /etc/machine-id: clients are assigned anew at each start");
    if (RAND_bytes(own_key, KEY_SIZE) != 1)
        log_write(LOG_WARN, "sticky: no random numbers to be had; cookies are not signed");
}

/* --- tags --- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void print_tag(const unsigned char *bytes, char *out)
{
    unsigned bits = 0, n_bits = 0;
    for (unsigned i = 0, at = 0; i < AFFINITY_TAG; i++) {
        if (n_bits < 6) {
            bits = bits << 8 | (at < 16 ? bytes[at++] : 0);
            n_bits += 8;
        }
        n_bits -= 6;
        out[i] = digits[bits >> n_bits & 63];
    }
}

static bool make_tag(struct str key, struct str upstream, struct str server, struct affinity_tag *tag)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = sizeof digest;
    size_t size = upstream.n + 1 + server.n;
    unsigned char *text = malloc(size);
    if (text == NULL)
        return false;
    memcpy(text, upstream.p, upstream.n);
    text[upstream.n] = 0;
    memcpy(text + upstream.n + 1, server.p, server.n);
    bool ok = HMAC(EVP_sha256(), key.p, (int)key.n, text, size, digest, &n) != NULL;
    free(text);
    if (ok)
        print_tag(digest, tag->text);
    return ok;
}

static int by_text(const void *a, const void *b)
{
    return memcmp(a, b, AFFINITY_TAG);
}

bool affinity_prepare(struct server_set *set, const struct upstream_conf *c)
{
    if (c->sticky == STICKY_OFF || set->n == 0)
        return true;
    struct str key = c->sticky_key;
    if (key.n == 0) {
        pthread_once(&own_key_once, make_own_key);
        key = str_of((const char *)own_key, KEY_SIZE);
    }
    set->tags = calloc(set->n, sizeof *set->tags);
    if (set->tags == NULL)
        return false;
    for (unsigned i = 0; i < set->n; i++) {
        set->tags[i].index = (uint16_t)i;
        if (!make_tag(key, c->name, set->entries[i].server->name, &set->tags[i]))
            return false;
    }
    qsort(set->tags, set->n, sizeof *set->tags, by_text);
    return true;
}

/* The server, if it takes those who belong to it. One of weight 0 does. */
static struct server *if_it_stays(const struct set_entry *e)
{
    unsigned barred = atomic_load_explicit(&e->server->barred, memory_order_relaxed);
    return e->is_draining || (barred & BARRED_DRAIN) != 0 ? NULL : e->server;
}

struct server *affinity_by_tag(struct upstream *u, struct str tag)
{
    const struct server_set *set = atomic_load_explicit(&u->set, memory_order_acquire);
    if (set->tags == NULL || tag.n != AFFINITY_TAG)
        return NULL;
    const struct affinity_tag *hit = bsearch(tag.p, set->tags, set->n, sizeof *set->tags, by_text);
    return hit != NULL ? if_it_stays(&set->entries[hit->index]) : NULL;
}

struct str affinity_tag(struct upstream *u, const struct server *s)
{
    const struct server_set *set = atomic_load_explicit(&u->set, memory_order_acquire);
    for (unsigned i = 0; set->tags != NULL && i < set->n; i++)
        if (set->entries[set->tags[i].index].server == s)
            return str_of(set->tags[i].text, AFFINITY_TAG);
    return STR_NONE;
}

/* --- sessions --- */

bool affinity_open(struct upstream *u, const struct upstream_conf *c)
{
    if (c->sticky != STICKY_AUTO || atomic_load(&u->affinity) != NULL)
        return true;
    struct affinity *a = calloc(1, sizeof *a);
    if (a == NULL)
        return false;
    if (RAND_bytes((unsigned char *)&a->seed, sizeof a->seed) != 1)
        a->seed = (uint64_t)(uintptr_t)a;
    pthread_mutex_init(&a->mutex, NULL);
    atomic_store(&u->affinity, a);
    return true;
}

void affinity_close(struct upstream *u)
{
    struct affinity *a = atomic_load(&u->affinity);
    if (a == NULL)
        return;
    pthread_mutex_destroy(&a->mutex);
    free(a);
    atomic_store(&u->affinity, NULL);
}

uint64_t affinity_session(struct upstream *u, struct str name)
{
    const struct affinity *a = atomic_load(&u->affinity);
    return XXH3_64bits_withSeed(name.p, name.n, a != NULL ? a->seed : 0);
}

static uint32_t seconds(uint64_t ms)
{
    return (uint32_t)(ms / 1000) + 1;
}

void affinity_learn(struct upstream *u, uint64_t session, struct server *s, uint64_t now_ms)
{
    struct affinity *a = atomic_load(&u->affinity);
    if (a == NULL)
        return;
    struct session *row = a->rows[session % ROWS], *at = row;
    pthread_mutex_lock(&a->mutex);
    for (unsigned i = 0; i < WAYS; i++) {
        if (row[i].seen_s != 0 && row[i].hash == session) {
            at = &row[i];
            break;
        }
        if (row[i].seen_s < at->seen_s)
            at = &row[i];
    }
    *at = (struct session){ .hash = session, .server = s, .serial = s->serial, .seen_s = seconds(now_ms) };
    pthread_mutex_unlock(&a->mutex);
}

struct server *affinity_by_session(struct upstream *u, uint64_t session, uint64_t now_ms)
{
    struct affinity *a = atomic_load(&u->affinity);
    const struct server_set *set = atomic_load_explicit(&u->set, memory_order_acquire);
    if (a == NULL)
        return NULL;
    struct session found = { 0 };
    uint32_t now_s = seconds(now_ms);
    pthread_mutex_lock(&a->mutex);
    for (struct session *it = a->rows[session % ROWS], *end = it + WAYS; it < end; it++)
        if (it->hash == session && it->seen_s + LIFE_S > now_s && it->seen_s != 0) {
            it->seen_s = now_s > it->seen_s ? now_s : it->seen_s;
            found = *it;
        }
    pthread_mutex_unlock(&a->mutex);
    /* The address alone is looked for: what it points to may be gone. */
    for (unsigned i = 0; found.seen_s != 0 && i < set->n; i++)
        if (set->entries[i].server == found.server)
            return found.server->serial == found.serial ? if_it_stays(&set->entries[i]) : NULL;
    return NULL;
}
