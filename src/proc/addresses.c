/* SPDX-License-Identifier: MIT */
/*
 * From the configuration's addresses to sockets that loops watch. The list itself is struct listeners, the sockets come
 * from the supervisor; here is the order in which things happen.
 *
 * An address that a reload brings: its sockets are there before the reload is taken; each loop adopts the snapshot,
 * then watches its socket. One that a reload drops: TCP_DEFER_ACCEPT is switched off, so that the kernel hands over what
 * it holds back, and for timeouts.lame_duck it is accepted on as before (serve/worker_listen.c says who answers). Then
 * every loop stops watching it, the supervisor shuts the sockets down and closes its own, and when every loop has
 * turned once more the server closes its own too. (The last turn is for libev, which forgets a watcher at once but
 * takes the descriptor out of epoll only when it sees an event of it; a shut socket is one.) If the address comes back
 * before that, it simply stays.
 */
#include "proc/addresses.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/sup_call.h"

enum { AGAIN_MS = 1000 };

struct address_ack {
    struct mail mail;
    struct addresses *a;
};

static const struct listen_conf *find(const struct conf *c, const struct sockets *k)
{
    for (unsigned i = 0; i < c->n_listens; i++)
        if (str_eq(str_c(k->text), c->listens[i].text))
            return &c->listens[i];
    return NULL;
}

/* There may be fewer or more sockets than loops: each socket is watched, each loop watches one. */
static unsigned most_of(const struct addresses *a, const struct sockets *k)
{
    return k->n > a->n_workers ? k->n : a->n_workers;
}

static void set_defer(const struct sockets *k, bool on)
{
    for (unsigned i = 0; i < k->n; i++)
        (void)setsockopt(k->fds[i], IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){ on }, sizeof(int));
}

static void set_backlog(const struct sockets *k, int backlog)
{
    for (unsigned i = 0; i < k->n; i++)
        if (listen(k->fds[i], backlog) != 0)
            log_write(LOG_WARN, "cannot change the backlog of %s: %s", k->text, strerror(errno));
}

bool addresses_open(struct addresses *a, const struct conf *conf, struct worker *const *workers, unsigned n)
{
    a->workers = workers;
    a->n_workers = n;
    a->acks = calloc(n, sizeof *a->acks);
    if (a->acks == NULL) {
        log_write(LOG_ERROR, "cannot listen: out of memory");
        return false;
    }
    for (unsigned i = a->ls->n; i-- > 0;) {
        struct sockets *k = a->ls->all[i];
        if (find(conf, k) != NULL)
            continue;
        sup_call_unlisten(a->calls, k);
        listeners_remove(a->ls, k);
    }
    for (unsigned i = 0; i < conf->n_listens; i++) {
        const struct listen_conf *l = &conf->listens[i];
        const char *step;
        if (!sup_call_listen(a->calls, a->ls, l, sockets_wanted(l, n), &step)) {
            listeners_log_failure(conf, l, step, errno);
            return false;
        }
        const struct sockets *k = listeners_find(a->ls, l->text);
        for (unsigned j = 0; j < most_of(a, k); j++) {
            if (worker_listen(workers[j % n], k->fds[j % k->n], l))
                continue;
            log_write(LOG_ERROR, "cannot listen on %s: out of memory", k->text);
            return false;
        }
    }
    return true;
}

void addresses_free(struct addresses *a)
{
    free(a->acks);
    a->acks = NULL;
}

/* An address that both configurations have, or that has come back. */
static void keep(struct sockets *k, const struct listen_conf *before, const struct listen_conf *l)
{
    bool is_tcp = l->endpoint.kind != ENDPOINT_UNIX;
    if (is_tcp && (k->leaving || before == NULL || before->defer != l->defer))
        set_defer(k, l->defer);
    if (before != NULL && before->backlog != l->backlog)
        set_backlog(k, l->backlog);
    k->leaving = false;
}

static void watch(struct addresses *a, const struct sockets *k)
{
    for (unsigned j = 0; j < most_of(a, k); j++)
        if (!worker_listen_later(a->workers[j % a->n_workers], k->fds[j % k->n], k->text))
            log_write(LOG_ERROR, "out of memory: loop %u does not accept on %s", j % a->n_workers, k->text);
    log_write(LOG_NOTICE, "listening on %s", k->text);
}

void addresses_adopt(struct addresses *a, const struct conf *old, const struct conf *now, struct listeners *opened)
{
    uint64_t leaves_at = clock_monotonic_ms() + now->timeouts.lame_duck;
    for (unsigned i = 0; i < a->ls->n; i++) {
        struct sockets *k = a->ls->all[i];
        const struct listen_conf *l = find(now, k);
        if (l != NULL) {
            keep(k, find(old, k), l);
        } else if (!k->leaving) {
            k->leaving = true;
            k->leaves_at = leaves_at;
            set_defer(k, false);
        }
    }
    for (unsigned i = 0; i < opened->n; i++) {
        struct sockets *from = opened->all[i];
        struct sockets *k = listeners_add(a->ls, str_c(from->text));
        if (k == NULL || !sockets_take(k, from->fds, from->n)) {
            log_write(LOG_ERROR, "out of memory: nobody listens on %s", from->text);
            continue;
        }
        from->n = 0;
        watch(a, k);
    }
    listeners_close(opened);
}

static void on_ack(struct loop *l, struct mail *mail)
{
    (void)l;
    struct addresses *a = container_of(mail, struct address_ack, mail)->a;
    int fd = a->wake_fd;
    atomic_fetch_sub(&a->left, 1);
    uint64_t one = 1;
    ssize_t ignored = write(fd, &one, sizeof one);
    (void)ignored;
}

/* Every loop says that it has come to this. */
static void ask_loops(struct addresses *a)
{
    atomic_store(&a->left, a->n_workers);
    for (unsigned i = 0; i < a->n_workers; i++) {
        a->acks[i] = (struct address_ack){ .mail.run = on_ack, .a = a };
        mailbox_post(a->workers[i]->loop, &a->acks[i].mail);
    }
}

/* Every loop stops watching it, and says so. */
static void begin_closing(struct addresses *a, struct sockets *k, uint64_t now_ms)
{
    for (unsigned i = 0; i < a->n_workers; i++) {
        if (worker_unlisten_later(a->workers[i], k->text))
            continue;
        k->leaves_at = now_ms + AGAIN_MS; /* no memory just now; saying it twice to the others does no harm */
        return;
    }
    a->closing = k;
    a->is_shut = false;
    ask_loops(a);
}

void addresses_tick(struct addresses *a, uint64_t now_ms)
{
    if (a->closing != NULL) {
        if (atomic_load(&a->left) > 0)
            return;
        if (!a->is_shut) {
            sup_call_unlisten(a->calls, a->closing);
            a->is_shut = true;
            ask_loops(a);
            return;
        }
        log_write(LOG_NOTICE, "no longer listening on %s", a->closing->text);
        listeners_remove(a->ls, a->closing);
        a->closing = NULL;
    }
    for (unsigned i = 0; i < a->ls->n && a->closing == NULL; i++)
        if (a->ls->all[i]->leaving && now_ms >= a->ls->all[i]->leaves_at)
            begin_closing(a, a->ls->all[i], now_ms);
}

uint64_t addresses_due(const struct addresses *a)
{
    uint64_t due = UINT64_MAX;
    for (unsigned i = 0; i < a->ls->n && a->closing == NULL; i++)
        if (a->ls->all[i]->leaving && a->ls->all[i]->leaves_at < due)
            due = a->ls->all[i]->leaves_at;
    return due;
}

bool addresses_is_busy(const struct addresses *a)
{
    return a->closing != NULL;
}
