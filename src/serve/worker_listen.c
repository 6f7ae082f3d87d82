/* SPDX-License-Identifier: MIT */
/*
 * The addresses a worker accepts on, and how they come and go with reloads. Owns the listeners, not their descriptors.
 *
 * A listener points to its listen_conf in the snapshot in force, where its clients find their sites. When a newer
 * snapshot no longer has its address, the listener keeps the last one that had (`hold`, counted like a request): what
 * is still accepted there, and the clients it has, are served by that one, each answer being the last on its
 * connection. Either the address comes back, and the listener moves on to the snapshot in force; or the server says
 * that enough time has passed: it accepts no more, its idle clients are closed, and with the last client it goes.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/client.h"
#include "serve/worker.h"

/* An order from another thread. */
struct address_mail {
    struct mail mail;
    int fd;
    char text[];
};

static const struct listen_conf *find(const struct conf *c, const char *text)
{
    for (unsigned i = 0; i < c->n_listens; i++)
        if (str_eq(str_c(text), c->listens[i].text))
            return &c->listens[i];
    return NULL;
}

/* Over limits.clients with nobody idle: a short answer, without reading. */
static void refuse(int fd)
{
    static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\nServer: weir\r\nRetry-After: 1\r\n"
                                 "Content-Length: 0\r\nConnection: close\r\n\r\n";
    if (send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EPIPE)
        log_write(LOG_DEBUG, "refused client has gone already");
    close(fd);
}

static void on_accept(struct listener *l, int fd, const struct ip *peer)
{
    struct worker_listener *wl = l->owner;
    struct worker *w = wl->w;
    if (atomic_load_explicit(&w->shared->clients, memory_order_relaxed) >=
        atomic_load_explicit(&w->shared->clients_max, memory_order_relaxed)) {
        if (list_is_empty(&w->idle)) {
            refuse(fd);
            listener_pause(l);
            return;
        }
        client_drain(list_entry(w->idle.next, struct client, link));
    }
    client_open(w, wl, fd, peer);
}

bool worker_listen(struct worker *w, int fd, const struct listen_conf *listen)
{
    struct worker_listener **grown = realloc(w->listeners, (w->n_listeners + 1) * sizeof(*grown));
    if (grown == NULL)
        return false;
    w->listeners = grown;
    struct worker_listener *wl = calloc(1, sizeof(*wl));
    char *text = strndup(listen->text.p, listen->text.n);
    if (wl == NULL || text == NULL) {
        free(wl);
        free(text);
        return false;
    }
    *wl = (struct worker_listener){
        .l = { .loop = w->loop, .fd = fd, .tcp = listen->endpoint.kind != ENDPOINT_UNIX, .on_accept = on_accept },
        .listen = listen,
        .w = w,
        .text = text,
    };
    wl->l.owner = wl;
    w->listeners[w->n_listeners++] = wl;
    listener_start(&wl->l);
    return true;
}

void worker_listeners_adopt(struct worker *w, struct hold *old)
{
    const struct conf *c = worker_conf(w);
    for (unsigned i = 0; i < w->n_listeners; i++) {
        struct worker_listener *wl = w->listeners[i];
        const struct listen_conf *l = wl->is_closed ? NULL : find(c, wl->text);
        if (l != NULL) {
            wl->listen = l;
            if (wl->hold != NULL)
                wl->hold->requests--; /* the caller drops those that are done with */
            wl->hold = NULL;
        } else if (wl->hold == NULL) {
            wl->hold = old;
            old->requests++;
        }
    }
}

/* Removes it if nobody needs it any more. */
static void settle(struct worker_listener *wl)
{
    struct worker *w = wl->w;
    if (!wl->is_closed || wl->clients > 0)
        return;
    unsigned at = 0;
    while (w->listeners[at] != wl)
        at++;
    w->listeners[at] = w->listeners[--w->n_listeners];
    if (wl->hold != NULL)
        worker_release(w, wl->hold);
    free(wl->text);
    free(wl);
}

void worker_listener_left(struct worker_listener *wl)
{
    wl->clients--;
    settle(wl);
}

static void drain_clients_of(struct list *clients, const struct worker_listener *wl)
{
    list_each_safe(it, next, clients) {
        struct client *c = list_entry(it, struct client, link);
        if (c->listener == wl)
            client_drain(c);
    }
}

static void close_listener(struct worker_listener *wl)
{
    struct worker *w = wl->w;
    listener_sweep(&wl->l);
    listener_stop(&wl->l);
    wl->is_closed = true;
    drain_clients_of(&w->idle, wl);
    drain_clients_of(&w->busy, wl);
    settle(wl);
}

static void on_listen(struct loop *l, struct mail *mail)
{
    struct worker *w = l->owner;
    struct address_mail *m = container_of(mail, struct address_mail, mail);
    worker_adopt_now(w);
    const struct listen_conf *listen = w->stopping ? NULL : find(worker_conf(w), m->text);
    if (listen != NULL && !worker_listen(w, m->fd, listen))
        log_write(LOG_ERROR, "loop %u: out of memory: it does not accept on %s", w->index, m->text);
    free(m);
}

static void on_unlisten(struct loop *l, struct mail *mail)
{
    struct worker *w = l->owner;
    struct address_mail *m = container_of(mail, struct address_mail, mail);
    worker_adopt_now(w);
    for (unsigned i = w->n_listeners; i-- > 0;)
        if (!w->listeners[i]->is_closed && strcmp(w->listeners[i]->text, m->text) == 0)
            close_listener(w->listeners[i]);
    free(m);
}

static bool post(struct worker *w, void (*run)(struct loop *, struct mail *), int fd, const char *text)
{
    size_t n = strlen(text) + 1;
    struct address_mail *m = malloc(sizeof(*m) + n);
    if (m == NULL)
        return false;
    m->mail.run = run;
    m->fd = fd;
    memcpy(m->text, text, n);
    mailbox_post(w->loop, &m->mail);
    return true;
}

bool worker_listen_later(struct worker *w, int fd, const char *text)
{
    return post(w, on_listen, fd, text);
}

bool worker_unlisten_later(struct worker *w, const char *text)
{
    return post(w, on_unlisten, -1, text);
}

void worker_accept_no_more(struct worker *w)
{
    for (unsigned i = 0; i < w->n_listeners; i++)
        listener_stop(&w->listeners[i]->l);
}

void worker_listeners_free(struct worker *w)
{
    for (unsigned i = 0; i < w->n_listeners; i++) {
        free(w->listeners[i]->text);
        free(w->listeners[i]);
    }
    free(w->listeners);
}
