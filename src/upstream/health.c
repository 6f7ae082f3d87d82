/* SPDX-License-Identifier: MIT */
/*
 * Whether a server may have requests.
 *
 * Passive: failures are counted from the first one on, in windows of ten seconds, beside the answers that came
 * meanwhile. Several failures that are at least half of all eject the server: five seconds, twice as long each time
 * it fails its trial afterwards, up to a minute. Ejection never takes the last usable half of a group, so a lone
 * server is always tried, and when nothing better is left the ejected are asked after all (pick.c). Only what the
 * server did counts: connecting, timeouts, broken answers; not a client that left, not a status (fail.def's side,
 * handler/proxy.c).
 *
 * Everything is under the mutex of the upstream's queue, for changes of who may have requests concern those who wait;
 * the flags themselves are atomics that the algorithms read. Running answers are never cut.
 */
#include "upstream/health.h"

#include <stdio.h>

#include "base/clock.h"
#include "upstream/pick.h"
#include "upstream/queue.h"

enum {
    WINDOW_MS = 10 * 1000,
    SEVERAL = 5,
    EJECT_MS = 5 * 1000,
    EJECT_MAX_MS = 60 * 1000,
    GOOD_MS = 60 * 1000, /* without an ejection: the next one is short again */
};

/* Would enough be left without it? */
static bool may_eject(struct upstream *u, const struct server *s)
{
    const struct server_set *set = atomic_load_explicit(&u->set, memory_order_acquire);
    bool is_backup = false, is_usable = false;
    unsigned all = 0, now = 0;
    for (unsigned i = 0; i < set->n; i++)
        if (set->entries[i].server == s)
            is_backup = set->entries[i].is_backup;
    for (unsigned i = 0; i < set->n; i++) {
        const struct set_entry *e = &set->entries[i];
        bool is_fine = pick_is_usable(e, &(struct pick_query){ 0 }, is_backup);
        all += pick_is_usable(e, &(struct pick_query){ .takes_ejected = true }, is_backup);
        now += is_fine;
        is_usable |= is_fine && e->server == s;
    }
    return is_usable && now > 1 && (now - 1) * 2 >= all;
}

static void eject(struct server *s, uint64_t now, const char *what, int error)
{
    struct upstream *u = s->upstream;
    struct health *h = &s->health;
    unsigned bad = h->bad, all = h->bad + h->ok;
    if (now - h->ejected_ms > GOOD_MS)
        h->ejections = 0;
    uint64_t ms = (uint64_t)EJECT_MS << (h->ejections < 4 ? h->ejections : 4);
    ms = ms < EJECT_MAX_MS ? ms : EJECT_MAX_MS;
    h->ejections++;
    h->ejected_ms = now + ms;
    h->ok = 0;
    atomic_store(&h->bad_now, h->bad = 0);
    atomic_store(&s->ejected_until, now + ms);
    if (atomic_load(&u->ejected_until) < now + ms) /* changed under the mutex alone */
        atomic_store(&u->ejected_until, now + ms);
    snprintf(h->ejected_cause, sizeof h->ejected_cause, "%s%s%s%s, %u of %u attempts failed", what,
             error != 0 ? " (" : "", error != 0 ? strerrordesc_np(error) : "", error != 0 ? ")" : "", bad, all);
    log_write(LOG_WARN, "upstream %.*s: server %.*s gets no requests for %llu s: %s", STR_ARG(u->name),
              STR_ARG(s->name), (unsigned long long)ms / 1000, h->ejected_cause);
}

void health_failed(struct server *s, const char *what, int error)
{
    struct upstream *u = s->upstream;
    struct health *h = &s->health;
    uint64_t now = clock_monotonic_ms();
    pthread_mutex_lock(&u->queue.mutex);
    uint64_t until = atomic_load(&s->ejected_until);
    if (until <= now) { /* else it is what had begun before */
        if (now - h->window_ms > WINDOW_MS) {
            h->window_ms = now;
            h->ok = h->bad = 0;
        }
        atomic_store(&h->bad_now, ++h->bad);
        bool is_on_trial = until != 0;
        if ((h->bad >= SEVERAL || is_on_trial) && h->bad >= h->ok && may_eject(u, s))
            eject(s, now, what, error);
    }
    pthread_mutex_unlock(&u->queue.mutex);
}

void health_passed(struct server *s)
{
    struct health *h = &s->health;
    if (LIKELY(atomic_load_explicit(&h->bad_now, memory_order_relaxed) == 0 &&
               atomic_load_explicit(&s->ejected_until, memory_order_relaxed) == 0))
        return;
    struct upstream *u = s->upstream;
    pthread_mutex_lock(&u->queue.mutex);
    uint64_t now = clock_monotonic_ms(), until = atomic_load(&s->ejected_until);
    if (now - h->window_ms > WINDOW_MS)
        atomic_store(&h->bad_now, h->ok = h->bad = 0);
    else
        h->ok++;
    bool is_back = until != 0 && until <= now;
    if (is_back)
        atomic_store(&s->ejected_until, 0);
    pthread_mutex_unlock(&u->queue.mutex);
    if (is_back)
        log_write(LOG_NOTICE, "upstream %.*s: server %.*s answers again", STR_ARG(u->name), STR_ARG(s->name));
}

uint64_t health_next_end(struct upstream *u, uint64_t now)
{
    uint64_t next = 0;
    if (LIKELY(atomic_load_explicit(&u->ejected_until, memory_order_relaxed) <= now))
        return 0;
    const struct server_set *set = atomic_load_explicit(&u->set, memory_order_acquire);
    for (unsigned i = 0; i < set->n; i++) {
        uint64_t until = atomic_load_explicit(&set->entries[i].server->ejected_until, memory_order_relaxed);
        if (until > now && (next == 0 || until < next))
            next = until;
    }
    return next;
}

void health_forgive(struct server *s)
{
    struct upstream *u = s->upstream;
    pthread_mutex_lock(&u->queue.mutex);
    s->health.ok = s->health.bad = s->health.ejections = 0;
    atomic_store(&s->health.bad_now, 0);
    atomic_store(&s->ejected_until, 0);
    pthread_mutex_unlock(&u->queue.mutex);
    queue_dispatch(u);
}

static const char *word_of(unsigned barred)
{
    return barred & (BARRED_CHECK | BARRED_DOWN) ? "down" : barred & BARRED_DRAIN ? "draining" : "up";
}

void health_bar(struct server *s, unsigned bit, bool is_on, const char *cause)
{
    struct upstream *u = s->upstream;
    pthread_mutex_lock(&u->queue.mutex);
    unsigned before = is_on ? atomic_fetch_or(&s->barred, bit) : atomic_fetch_and(&s->barred, ~bit);
    unsigned now = is_on ? before | bit : before & ~bit;
    if (is_on)
        snprintf(s->health.barred_cause, sizeof s->health.barred_cause, "%s", cause);
    pthread_mutex_unlock(&u->queue.mutex);
    if (before == now)
        return;
    log_write(is_on ? LOG_WARN : LOG_NOTICE, "upstream %.*s: server %.*s is %s: %s", STR_ARG(u->name), STR_ARG(s->name),
              word_of(now), cause);
    queue_dispatch(u);
}

const char *health_state(const struct set_entry *e, char cause[HEALTH_CAUSE])
{
    struct server *s = e->server;
    struct upstream *u = s->upstream;
    cause[0] = '\0';
    if (atomic_load(&s->n_resolved) == 0) {
        snprintf(cause, HEALTH_CAUSE, "its name does not resolve");
        return "unresolved";
    }
    pthread_mutex_lock(&u->queue.mutex);
    unsigned barred = atomic_load(&s->barred);
    bool is_ejected = server_is_ejected(s);
    if (barred != 0)
        snprintf(cause, HEALTH_CAUSE, "%s", s->health.barred_cause);
    else if (is_ejected)
        snprintf(cause, HEALTH_CAUSE, "%s", s->health.ejected_cause);
    pthread_mutex_unlock(&u->queue.mutex);
    if (barred != 0)
        return word_of(barred);
    if (e->is_draining) {
        snprintf(cause, HEALTH_CAUSE, "the configuration says so");
        return "draining";
    }
    return is_ejected ? "ejected" : e->is_backup ? "backup" : "up";
}
