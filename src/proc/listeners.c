/* SPDX-License-Identifier: MIT */
/*
 * Opens all addresses of a configuration before anything else starts, so that a port in use, or one that needs more
 * rights, ends the start with one message for each address and no trace left. Owns the sockets, and the files of unix
 * sockets.
 *
 * A TCP address gets one SO_REUSEPORT socket for each loop, so that the kernel spreads connections evenly (also if
 * there is one loop: the next server may have more). A unix socket is one for all loops. A unix socket's file is
 * removed at the end only if it is the very file made here: another server may have put its own there since.
 *
 * Invariant: whoever is in the list has sockets that listen; nothing else holds them but the servers they were handed
 * to.
 */
#include "proc/listeners.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "net/listen.h"

static const char *hint(const struct listen_conf *l, int error)
{
    if (error == EADDRINUSE)
        return l->endpoint.kind == ENDPOINT_UNIX ? "; another server accepts on it, or it is no socket"
                                                 : "; another server listens there";
    if (error == EACCES && l->endpoint.kind != ENDPOINT_UNIX && l->endpoint.port < 1024)
        return "; ports below 1024 need root or CAP_NET_BIND_SERVICE";
    if (error == EADDRNOTAVAIL)
        return "; no interface of this host has the address";
    if (error == EMFILE)
        return "; raise the descriptor limit (ulimit -n, LimitNOFILE=)";
    return "";
}

void listeners_log_failure(const struct conf *conf, const struct listen_conf *l, const char *step, int error)
{
    struct arena a;
    arena_init(&a, NULL);
    struct str where = where_print(&a, conf, l->where);
    bool bind = strcmp(step, "bind") == 0;
    log_write(LOG_ERROR, "cannot listen on %.*s: %s%s%s%s%s (%.*s)", STR_ARG(l->text), strerror(error),
              bind ? "" : " (", bind ? "" : step, bind ? "" : ")", hint(l, error), STR_ARG(where));
    arena_reset(&a);
}

static bool is_unix(const struct sockets *s)
{
    return str_starts(str_c(s->text), STR("unix:"));
}

static const char *path_of(const struct sockets *s)
{
    return s->text + sizeof "unix:" - 1;
}

/* Notes which file the socket has become. False: errno. */
static bool remember_file(struct sockets *s)
{
    struct stat st;
    if (lstat(path_of(s), &st) != 0)
        return false;
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    return true;
}

struct link_listen listen_of(const struct listen_conf *l)
{
    return (struct link_listen){
        .addr = l->endpoint.addr,
        .backlog = l->backlog,
        .defer = l->defer,
        .v6only = l->endpoint.kind != ENDPOINT_ANY,
    };
}

unsigned sockets_wanted(const struct listen_conf *l, unsigned workers)
{
    return l->endpoint.kind == ENDPOINT_UNIX ? 1 : workers;
}

struct sockets *listeners_find(const struct listeners *ls, struct str text)
{
    for (unsigned i = 0; i < ls->n; i++)
        if (str_eq(str_c(ls->all[i]->text), text))
            return ls->all[i];
    return NULL;
}

struct sockets *listeners_add(struct listeners *ls, struct str text)
{
    struct sockets **grown = realloc(ls->all, (ls->n + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    ls->all = grown;
    struct sockets *s = calloc(1, sizeof *s);
    if (s == NULL || (s->text = strndup(text.p, text.n)) == NULL) {
        free(s);
        return NULL;
    }
    ls->all[ls->n++] = s;
    return s;
}

void sockets_shrink(struct sockets *s, unsigned n)
{
    while (s->n > n)
        (void)close(s->fds[--s->n]);
}

static void free_sockets(struct sockets *s)
{
    sockets_shrink(s, 0);
    free(s->fds);
    free(s->text);
    free(s);
}

void listeners_remove(struct listeners *ls, struct sockets *s)
{
    unsigned at = 0;
    while (ls->all[at] != s)
        at++;
    ls->all[at] = ls->all[--ls->n];
    free_sockets(s);
}

void listeners_close(struct listeners *ls)
{
    for (unsigned i = 0; i < ls->n; i++)
        free_sockets(ls->all[i]);
    free(ls->all);
    *ls = (struct listeners){ 0 };
}

void listeners_unlink(const struct listeners *ls)
{
    for (unsigned i = 0; i < ls->n; i++) {
        const struct sockets *s = ls->all[i];
        struct stat st;
        if (is_unix(s) && s->ino != 0 && lstat(path_of(s), &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
            (void)unlink(path_of(s));
    }
}

bool sockets_take(struct sockets *s, const int *fds, unsigned n)
{
    int *grown = realloc(s->fds, (s->n + n) * sizeof *grown);
    if (grown == NULL)
        return false;
    s->fds = grown;
    memcpy(s->fds + s->n, fds, n * sizeof *fds);
    s->n += n;
    return true;
}

static uint16_t port_of(const struct addr *a)
{
    sa_family_t family = a->u.sa.sa_family;
    return family == AF_INET ? a->u.in.sin_port : family == AF_INET6 ? a->u.in6.sin6_port : 0;
}

/* "80" beside "127.0.0.1:80", or in its place: two addresses, which the kernel takes for one in use. */
static bool has_port(const struct listeners *ls, const struct addr *a)
{
    for (unsigned i = 0; i < ls->n; i++) {
        struct addr other = { .len = sizeof other.u };
        if (ls->all[i]->n > 0 && getsockname(ls->all[i]->fds[0], &other.u.sa, &other.len) == 0 &&
            port_of(&other) != 0 && port_of(&other) == port_of(a))
            return true;
    }
    return false;
}

bool sockets_grow(const struct listeners *ls, struct sockets *s, const struct link_listen *at, unsigned n,
                  const char **step)
{
    if (s->n >= n || (s->n > 0 && (s->given || is_unix(s))))
        return true;
    const struct listen_options options = {
        .backlog = at->backlog,
        .defer = at->defer,
        .v6only = at->v6only,
        .reuseport = true,
        .join = s->n > 0 || has_port(ls, &at->addr),
    };
    struct addr addr = at->addr;
    *step = "memory";
    int *more = malloc((n - s->n) * sizeof *more);
    if (more == NULL)
        return false;
    /* The others' address may be another one than what was asked for: 0.0.0.0 for [::], a port for 0. */
    addr.len = s->n > 0 ? sizeof addr.u : addr.len;
    bool ok = s->n == 0 || getsockname(s->fds[0], &addr.u.sa, &addr.len) == 0;
    unsigned n_more = n - s->n;
    ok = ok && listen_open(&addr, &options, more, n_more, step);
    if (ok && !sockets_take(s, more, n_more)) {
        for (unsigned i = 0; i < n_more; i++)
            (void)close(more[i]);
        errno = ENOMEM;
        ok = false;
    }
    int error = errno;
    free(more);
    if (ok && is_unix(s) && !remember_file(s)) {
        *step = "stat";
        return false;
    }
    errno = error;
    return ok;
}

bool listeners_open(struct listeners *ls, const struct conf *conf)
{
    bool ok = true;
    for (unsigned i = 0; i < conf->n_listens; i++) {
        const struct listen_conf *l = &conf->listens[i];
        struct link_listen at = listen_of(l);
        const char *step = "memory";
        struct sockets *s = listeners_find(ls, l->text);
        if (s == NULL)
            s = listeners_add(ls, l->text);
        if (s == NULL || !sockets_grow(ls, s, &at, sockets_wanted(l, conf->workers), &step)) {
            listeners_log_failure(conf, l, step, errno);
            ok = false;
        }
    }
    if (!ok) {
        listeners_unlink(ls);
        listeners_close(ls);
    }
    return ok;
}
