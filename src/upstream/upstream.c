/* SPDX-License-Identifier: MIT */
/*
 * The table of upstreams and their servers.
 *
 * The table owns upstreams, an upstream owns its servers and its set. Applying a configuration first makes everything
 * new (where memory may be out, and names are resolved), then commits by swapping one pointer for each upstream; a
 * server that is still named, by the same text in an upstream of the same name, is the same object afterwards. What
 * is no longer named is retired: loops may still use it, until upstream_table_sweep finds it unused with no older
 * snapshot alive. Invariant: a server's id belongs to no other server until it is freed, and it is freed only with no
 * idle connection anywhere, so the loops' lists indexed by id are never mixed up.
 */
#include "upstream/upstream.h"

#include <stdlib.h>

#include "base/clock.h"
#include "upstream/affinity.h"
#include "upstream/health.h"
#include "upstream/pick.h"
#include "upstream/queue.h"
#include "upstream/resolve.h"

enum { LOOK_UPS = 8 }; /* at a time, so that a name whose server is silent does not hold up the others */

struct upstream_table {
    struct list upstreams;
    struct server_set *retired; /* sets that loops may still look at */
    unsigned char *ids;         /* 1: in use */
    unsigned n_ids;
    bool names_later;           /* new servers are not looked up when they are made */
};

struct upstream_table *upstream_table_new(void)
{
    struct upstream_table *t = calloc(1, sizeof *t);
    if (t != NULL)
        list_init(&t->upstreams);
    return t;
}

void upstream_table_names_later(struct upstream_table *t, bool later)
{
    t->names_later = later;
}

/* --- servers --- */

bool server_take(struct server *s)
{
    unsigned limit = atomic_load_explicit(&s->maxconn, memory_order_relaxed);
    unsigned now = atomic_load(&s->in_flight); /* in one order with the queue's `waiting` */
    do
        if (limit > 0 && now >= limit)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&s->in_flight, &now, now + 1, memory_order_acquire,
                                                  memory_order_relaxed));
    return true;
}

void server_give(struct server *s)
{
    struct upstream *u = s->upstream;
    unsigned before = atomic_fetch_sub(&s->in_flight, 1);
    CHECK(before > 0);
    if (u != NULL && atomic_load(&u->queue.waiting) > 0)
        queue_pass(s);
}

bool server_take_tunnel(struct server *s)
{
    unsigned limit = atomic_load_explicit(&s->max_tunnels, memory_order_relaxed);
    unsigned now = atomic_load_explicit(&s->tunnels, memory_order_relaxed);
    do
        if (limit > 0 && now >= limit)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&s->tunnels, &now, now + 1, memory_order_relaxed,
                                                  memory_order_relaxed));
    return true;
}

bool server_is_ejected(struct server *s)
{
    uint64_t until = atomic_load_explicit(&s->ejected_until, memory_order_relaxed);
    return UNLIKELY(until != 0) && until > clock_monotonic_ms();
}

/* Only a name's addresses ever change. */
static void lock(struct server *s)
{
    if (s->endpoint.kind == ENDPOINT_NAME)
        pthread_mutex_lock(&s->mutex);
}

static void unlock(struct server *s)
{
    if (s->endpoint.kind == ENDPOINT_NAME)
        pthread_mutex_unlock(&s->mutex);
}

unsigned server_addresses(struct server *s, struct addr *out, unsigned max)
{
    lock(s);
    unsigned n = atomic_load_explicit(&s->n_resolved, memory_order_relaxed);
    unsigned first = atomic_load_explicit(&s->preferred, memory_order_relaxed);
    if (first >= n)
        first = 0;
    unsigned i = 0;
    for (; i < n && i < max; i++)
        out[i] = s->addrs[i == 0 ? first : i <= first ? i - 1 : i];
    unlock(s);
    return i;
}

void server_prefer(struct server *s, const struct addr *a)
{
    lock(s);
    unsigned n = atomic_load_explicit(&s->n_resolved, memory_order_relaxed);
    for (unsigned i = 0; i < n; i++)
        if (addr_eq(&s->addrs[i], a))
            atomic_store_explicit(&s->preferred, i, memory_order_relaxed);
    unlock(s);
}

/* n: it is not among them. */
static unsigned addr_find(const struct addr *list, unsigned n, const struct addr *a)
{
    unsigned i = 0;
    while (i < n && !addr_eq(&list[i], a))
        i++;
    return i;
}

static void server_resolve(struct server *s)
{
    struct addr found[SERVER_ADDRS];
    const char *why;
    unsigned n = resolve_name(s->endpoint.host, s->endpoint.port, found, SERVER_ADDRS, &why);
    if (n == 0) {
        unsigned had = atomic_load(&s->n_resolved);
        if (s->is_lost) /* has been said */
            return;
        s->is_lost = true;
        log_write(LOG_WARN, "server \"%.*s\": %s; %s", STR_ARG(s->name), why,
                  had > 0 ? "its last known addresses stay in use" : "it is not used until the name resolves");
        return;
    }
    lock(s);
    unsigned had = atomic_load(&s->n_resolved), preferred = atomic_load(&s->preferred);
    unsigned at = preferred < had ? addr_find(found, n, &s->addrs[preferred]) : n;
    bool is_lost = false;
    for (unsigned i = 0; i < had; i++)
        is_lost |= addr_find(found, n, &s->addrs[i]) == n;
    memcpy(s->addrs, found, n * sizeof *found);
    atomic_store(&s->preferred, at < n ? at : 0);
    if (is_lost)
        atomic_fetch_add(&s->addrs_lost, 1);
    atomic_store(&s->n_resolved, n);
    unlock(s);
    if (s->is_lost)
        log_write(LOG_NOTICE, "server \"%.*s\": the name resolves again", STR_ARG(s->name));
    s->is_lost = false;
}

static bool id_take(struct upstream_table *t, unsigned *id)
{
    for (*id = 0; *id < t->n_ids; ++*id)
        if (!t->ids[*id]) {
            t->ids[*id] = 1;
            return true;
        }
    unsigned more = t->n_ids + 64;
    unsigned char *ids = realloc(t->ids, more);
    if (ids == NULL)
        return false;
    memset(ids + t->n_ids, 0, more - t->n_ids);
    t->ids = ids;
    t->n_ids = more;
    ids[*id] = 1;
    return true;
}

static void server_free(struct upstream_table *t, struct server *s)
{
    t->ids[s->id] = 0;
    if (s->upstream != NULL) {
        pthread_mutex_lock(&s->upstream->queue.mutex);
        list_remove(&s->link);
        pthread_mutex_unlock(&s->upstream->queue.mutex);
    } else {
        list_remove(&s->link);
    }
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

/* One block holds the struct, its name and its host. */
static struct server *server_new(struct upstream_table *t, const struct server_conf *c)
{
    static atomic_uint serials;
    unsigned id;
    if (!id_take(t, &id))
        return NULL;
    struct server *s = calloc(1, sizeof *s + c->text.n + c->endpoint.host.n);
    if (s == NULL) {
        t->ids[id] = 0;
        return NULL;
    }
    char *text = (char *)(s + 1);
    char *host = text + c->text.n;
    memcpy(text, c->text.p, c->text.n);
    if (c->endpoint.host.n > 0)
        memcpy(host, c->endpoint.host.p, c->endpoint.host.n);
    MAGIC_SET(s, SERVER_MAGIC);
    s->id = id;
    s->serial = atomic_fetch_add(&serials, 1) + 1;
    s->name = str_of(text, c->text.n);
    s->endpoint = c->endpoint;
    s->endpoint.host = str_of(host, c->endpoint.host.n);
    list_init(&s->link);
    list_init(&s->waiting);
    atomic_store(&s->weight, -1);
    pthread_mutex_init(&s->mutex, NULL);
    if (c->endpoint.kind == ENDPOINT_NAME) {
        if (!t->names_later)
            server_resolve(s);
    } else {
        s->addrs[0] = c->endpoint.addr;
        atomic_store(&s->n_resolved, 1);
    }
    return s;
}

/* --- sets --- */

static void set_free(struct server_set *set)
{
    if (set == NULL)
        return;
    free(set->order[0]);
    free(set->order[1]);
    free(set->table[0]);
    free(set->table[1]);
    free(set->tags);
    free(set->entries);
    free(set);
}

static struct server *find_server(const struct upstream *u, struct str name)
{
    if (u == NULL)
        return NULL;
    list_each(it, &u->servers) {
        struct server *s = list_entry(it, struct server, link);
        if (str_eq(s->name, name))
            return s;
    }
    return NULL;
}

/* An operator's word counts until the configuration says something new. */
static unsigned weight_of(struct server *s, const struct server_conf *sc)
{
    int weight = atomic_load(&s->weight);
    if (weight >= 0 && s->conf_weight == sc->weight)
        return (unsigned)weight;
    atomic_store(&s->weight, -1);
    return sc->weight;
}

/* The set of one upstream's configuration. Servers it does not find in `u` are made and put on `fresh`. */
static struct server_set *set_new(struct upstream_table *t, const struct upstream_conf *c, const struct upstream *u,
                                  struct list *fresh)
{
    struct server_set *set = calloc(1, sizeof *set);
    if (set == NULL)
        return NULL;
    set->entries = calloc(c->n_servers > 0 ? c->n_servers : 1, sizeof *set->entries);
    if (set->entries == NULL)
        goto fail;
    set->pick = pick_of(c->balance);
    set->hash_factor = c->hash_balance_factor;
    for (unsigned i = 0; i < c->n_servers; i++) {
        const struct server_conf *sc = &c->servers[i];
        struct server *s = find_server(u, sc->text);
        if (s == NULL) {
            s = server_new(t, sc);
            if (s == NULL)
                goto fail;
            list_append(fresh, &s->link);
        }
        set->entries[set->n++] = (struct set_entry){
            .server = s, .weight = weight_of(s, sc), .is_backup = sc->backup, .is_draining = sc->drain
        };
        set->has_backup |= sc->backup;
    }
    if ((set->pick->prepare != NULL && !set->pick->prepare(set)) || !affinity_prepare(set, c))
        goto fail;
    return set;
fail:
    set_free(set);
    return NULL;
}

static unsigned bounded(uint64_t v)
{
    return v < UINT32_MAX ? (unsigned)v : UINT32_MAX;
}

static void replace_set(struct upstream_table *t, struct upstream *u, struct server_set *set)
{
    pthread_mutex_lock(&u->queue.mutex); /* under which threads other than loops look at it */
    struct server_set *old = atomic_exchange_explicit(&u->set, set, memory_order_acq_rel);
    pthread_mutex_unlock(&u->queue.mutex);
    if (old != NULL) {
        old->next = t->retired;
        t->retired = old;
    }
    queue_dispatch(u);
}

/* What was said and learnt of a server ends with it: should it be named again, that is a new beginning. */
static void forget_retired(struct upstream *u)
{
    list_each(it, &u->servers) {
        struct server *s = list_entry(it, struct server, link);
        if (!atomic_load(&s->retired))
            continue;
        atomic_store(&s->weight, -1);
        atomic_fetch_and(&s->barred, ~(unsigned)(BARRED_DOWN | BARRED_DRAIN));
        health_forgive(s);
    }
}

/* Puts a finished set in force. */
static void commit(struct upstream_table *t, struct upstream *u, const struct upstream_conf *c, struct server_set *set,
                   struct list *fresh)
{
    list_each(it, &u->servers)
        atomic_store(&list_entry(it, struct server, link)->retired, true);
    pthread_mutex_lock(&u->queue.mutex);
    while (!list_is_empty(fresh)) {
        struct list *it = fresh->next;
        list_remove(it);
        list_append(&u->servers, it);
        list_entry(it, struct server, link)->upstream = u;
    }
    pthread_mutex_unlock(&u->queue.mutex);
    atomic_store(&u->queue_size, bounded(c->queue_size));
    atomic_store(&u->redispatch, c->redispatch);
    for (unsigned i = 0; i < set->n; i++) {
        struct server *s = set->entries[i].server;
        atomic_store(&s->maxconn, bounded(c->servers[i].maxconn));
        atomic_store(&s->keepalive, bounded(c->servers[i].keepalive));
        atomic_store(&s->max_tunnels, bounded(c->servers[i].max_tunnels));
        atomic_store(&s->queue_size, bounded(c->servers[i].queue_size));
        atomic_store(&s->retired, false);
    }
    replace_set(t, u, set);
    forget_retired(u);
}

/* --- the table --- */

static struct upstream *find_upstream(const struct upstream_table *t, struct str name)
{
    list_each(it, &t->upstreams) {
        struct upstream *u = list_entry(it, struct upstream, link);
        if (str_eq(u->name, name))
            return u;
    }
    return NULL;
}

static struct upstream *upstream_new(struct str name)
{
    struct upstream *u = calloc(1, sizeof *u + name.n);
    if (u == NULL)
        return NULL;
    MAGIC_SET(u, UPSTREAM_MAGIC);
    memcpy(u + 1, name.p, name.n);
    u->name = str_of((char *)(u + 1), name.n);
    list_init(&u->servers);
    list_init(&u->link);
    list_init(&u->queue.any);
    pthread_mutex_init(&u->queue.mutex, NULL);
    return u;
}

static void upstream_free(struct upstream_table *t, struct upstream *u)
{
    list_each_safe(it, next, &u->servers)
        server_free(t, list_entry(it, struct server, link));
    set_free(atomic_load(&u->set));
    list_remove(&u->link);
    pthread_mutex_destroy(&u->queue.mutex);
    affinity_close(u);
    free(u);
}

/* What one upstream becomes. */
struct change {
    struct upstream *u;
    struct server_set *set;
    struct list fresh;
    bool is_new;
};

static bool prepare_change(struct upstream_table *t, const struct upstream_conf *c, struct change *change)
{
    list_init(&change->fresh);
    change->u = find_upstream(t, c->name);
    change->is_new = change->u == NULL;
    if (change->is_new)
        change->u = upstream_new(c->name);
    if (change->u == NULL)
        return false;
    change->set = set_new(t, c, change->u, &change->fresh);
    return change->set != NULL && affinity_open(change->u, c);
}

static void drop_change(struct upstream_table *t, struct change *change)
{
    if (change->u == NULL)
        return;
    list_each_safe(it, next, &change->fresh)
        server_free(t, list_entry(it, struct server, link));
    set_free(change->set);
    if (change->is_new) {
        affinity_close(change->u);
        free(change->u);
    }
}

bool upstream_table_apply(struct upstream_table *t, const struct conf *conf, struct upstream **by_index)
{
    unsigned n = conf->n_upstreams;
    struct change *changes = calloc(n > 0 ? n : 1, sizeof *changes);
    bool ok = changes != NULL;
    unsigned done = 0;
    for (; ok && done < n; done++)
        ok = prepare_change(t, conf->upstreams[done], &changes[done]);
    if (!ok) {
        while (done > 0)
            drop_change(t, &changes[--done]);
        free(changes);
        return false;
    }
    list_each(it, &t->upstreams)
        list_entry(it, struct upstream, link)->is_seen = false;
    for (unsigned i = 0; i < n; i++) {
        struct change *change = &changes[i];
        commit(t, change->u, conf->upstreams[i], change->set, &change->fresh);
        if (change->is_new)
            list_append(&t->upstreams, &change->u->link);
        change->u->is_seen = true;
        by_index[i] = change->u;
    }
    list_each(it, &t->upstreams) {
        struct upstream *u = list_entry(it, struct upstream, link);
        if (u->is_seen)
            continue;
        list_each(s, &u->servers)
            atomic_store(&list_entry(s, struct server, link)->retired, true);
        forget_retired(u);
    }
    free(changes);
    return true;
}

/* The names of a table, taken one after the other by several threads. */
struct look_up {
    struct server **servers;
    unsigned n;
    atomic_uint next;
};

static bool has_name(struct server *s)
{
    return s->endpoint.kind == ENDPOINT_NAME && !atomic_load(&s->retired);
}

/* Only counts when there is no room for them. */
static unsigned collect_names(const struct upstream_table *t, struct server **out)
{
    unsigned n = 0;
    list_each(it, &t->upstreams) {
        list_each(at, &list_entry(it, struct upstream, link)->servers) {
            struct server *s = list_entry(at, struct server, link);
            if (has_name(s) && out != NULL)
                out[n] = s;
            n += has_name(s);
        }
    }
    return n;
}

static void *resolve_some(void *arg)
{
    struct look_up *l = arg;
    for (unsigned i; (i = atomic_fetch_add(&l->next, 1)) < l->n;) {
        server_resolve(l->servers[i]);
        queue_dispatch(l->servers[i]->upstream);
    }
    return NULL;
}

void upstream_table_resolve(struct upstream_table *t)
{
    struct look_up l = { .n = collect_names(t, NULL) };
    pthread_t threads[LOOK_UPS - 1];
    unsigned n_threads = 0;
    l.servers = calloc(l.n + 1, sizeof *l.servers);
    if (l.servers == NULL)
        return; /* another time */
    (void)collect_names(t, l.servers);
    while (n_threads + 1 < l.n && n_threads < ARRAY_LEN(threads) &&
           pthread_create(&threads[n_threads], NULL, resolve_some, &l) == 0)
        n_threads++;
    (void)resolve_some(&l);
    while (n_threads > 0)
        pthread_join(threads[--n_threads], NULL);
    free(l.servers);
}

static const char *change_weight(struct upstream_table *t, const struct upstream_conf *c, struct upstream *u,
                                 struct server *s, unsigned weight)
{
    struct list none;
    list_init(&none);
    for (unsigned i = 0; i < c->n_servers; i++)
        if (str_eq(c->servers[i].text, s->name))
            s->conf_weight = c->servers[i].weight;
    int before = atomic_exchange(&s->weight, (int)weight);
    struct server_set *set = set_new(t, c, u, &none);
    if (set == NULL) {
        atomic_store(&s->weight, before);
        return "out of memory";
    }
    replace_set(t, u, set);
    log_write(LOG_NOTICE, "upstream %.*s: server %.*s has weight %u: an operator said so", STR_ARG(u->name),
              STR_ARG(s->name), weight);
    return NULL;
}

const char *upstream_table_order(struct upstream_table *t, const struct conf *conf, struct str who,
                                 enum server_order order, unsigned weight)
{
    static const char cause[] = "an operator said so";
    for (unsigned i = 0; i < conf->n_upstreams; i++) {
        const struct upstream_conf *c = conf->upstreams[i];
        bool is_it = str_starts(who, c->name) && who.n > c->name.n && who.p[c->name.n] == '/';
        struct upstream *u = is_it ? find_upstream(t, c->name) : NULL;
        struct server *s = u != NULL ? find_server(u, str_skip(who, c->name.n + 1)) : NULL;
        if (s == NULL || atomic_load(&s->retired))
            continue;
        if (order == SERVER_WEIGHT)
            return change_weight(t, c, u, s, weight);
        health_bar(s, BARRED_DOWN, order == SERVER_DOWN, cause);
        health_bar(s, BARRED_DRAIN, order == SERVER_DRAIN, cause);
        if (order == SERVER_UP)
            health_forgive(s);
        return NULL;
    }
    return "no such server; expected UPSTREAM/ADDRESS as `weir status` shows them";
}

static void print_orders(FILE *f, const struct upstream *u, struct server *s)
{
    unsigned barred = atomic_load(&s->barred);
    int weight = atomic_load(&s->weight);
    if (barred & (BARRED_DOWN | BARRED_DRAIN))
        fprintf(f, "%.*s/%.*s %s\n", STR_ARG(u->name), STR_ARG(s->name), barred & BARRED_DOWN ? "down" : "drain");
    if (weight >= 0)
        fprintf(f, "%.*s/%.*s weight %d\n", STR_ARG(u->name), STR_ARG(s->name), weight);
}

void upstream_table_print_orders(FILE *f, const struct upstream_table *t)
{
    list_each(it, &t->upstreams) {
        const struct upstream *u = list_entry(it, struct upstream, link);
        list_each(at, &u->servers) {
            struct server *s = list_entry(at, struct server, link);
            if (!atomic_load(&s->retired))
                print_orders(f, u, s);
        }
    }
}

bool upstream_table_is_resolved(const struct upstream_table *t)
{
    list_each(it, &t->upstreams) {
        list_each(s, &list_entry(it, struct upstream, link)->servers) {
            struct server *server = list_entry(s, struct server, link);
            if (!atomic_load(&server->retired) && atomic_load(&server->n_resolved) == 0)
                return false;
        }
    }
    return true;
}

static bool is_in_use(struct server *s)
{
    return !atomic_load(&s->retired) || atomic_load(&s->in_flight) > 0 || atomic_load(&s->idle) > 0 ||
        atomic_load(&s->tunnels) > 0 || atomic_load(&s->probes) > 0;
}

void upstream_table_sweep(struct upstream_table *t)
{
    while (t->retired != NULL) {
        struct server_set *set = t->retired;
        t->retired = set->next;
        set_free(set);
    }
    list_each_safe(it, next, &t->upstreams) {
        struct upstream *u = list_entry(it, struct upstream, link);
        bool is_empty = true;
        list_each(s, &u->servers)
            is_empty &= !is_in_use(list_entry(s, struct server, link));
        if (!u->is_seen && is_empty) {
            upstream_free(t, u);
            continue;
        }
        if (!u->is_seen) /* its set still names its servers */
            continue;
        list_each_safe(s, after, &u->servers)
            if (!is_in_use(list_entry(s, struct server, link)))
                server_free(t, list_entry(s, struct server, link));
    }
}

void upstream_table_free(struct upstream_table *t)
{
    if (t == NULL)
        return;
    while (t->retired != NULL) {
        struct server_set *set = t->retired;
        t->retired = set->next;
        set_free(set);
    }
    list_each_safe(it, next, &t->upstreams)
        upstream_free(t, list_entry(it, struct upstream, link));
    free(t->ids);
    free(t);
}
