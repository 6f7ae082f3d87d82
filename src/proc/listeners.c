/* SPDX-License-Identifier: MIT */
/*
 * Opens all addresses of a configuration before anything else starts, so that a port in use, or one that needs more
 * rights, ends the start with one message for each address and no trace left. Owns the sockets until the server takes
 * them (it writes -1 in their place), and the files of unix sockets until the end.
 *
 * A TCP address gets one SO_REUSEPORT socket for each loop, so that the kernel spreads connections evenly; a unix
 * socket is one for all loops. A unix socket's file is removed at the end only if it is the very file made here:
 * another server may have put its own there since.
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

static void log_failure(const struct conf *conf, const struct listen_conf *l, const char *step, int error)
{
    struct arena a;
    arena_init(&a, NULL);
    struct str where = where_print(&a, conf, l->where);
    bool bind = strcmp(step, "bind") == 0;
    log_write(LOG_ERROR, "cannot listen on %.*s: %s%s%s%s%s (%.*s)", STR_ARG(l->text), strerror(error),
              bind ? "" : " (", bind ? "" : step, bind ? "" : ")", hint(l, error), STR_ARG(where));
    arena_reset(&a);
}

/* Notes which file the socket has become. False: errno. */
static bool remember_file(struct server_listeners *s)
{
    struct str path = s->listen->endpoint.host;
    struct stat st;
    s->path = malloc(path.n + 1);
    if (s->path == NULL)
        return false;
    memcpy(s->path, path.p, path.n);
    s->path[path.n] = '\0';
    if (lstat(s->path, &st) != 0)
        return false;
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    return true;
}

static bool open_one(struct server_listeners *s, const struct conf *conf, const struct listen_conf *l)
{
    bool is_unix = l->endpoint.kind == ENDPOINT_UNIX;
    unsigned n = is_unix ? 1 : conf->workers;
    const struct listen_options options = {
        .backlog = l->backlog,
        .defer = l->defer,
        .v6only = l->endpoint.kind != ENDPOINT_ANY,
        .reuseport = n > 1,
    };
    const char *step = "memory";
    s->listen = l;
    s->fds = malloc(n * sizeof s->fds[0]);
    if (s->fds == NULL || !listen_open(&l->endpoint.addr, &options, s->fds, n, &step)) {
        log_failure(conf, l, step, errno);
        return false;
    }
    s->n = n;
    if (is_unix && !remember_file(s)) {
        log_failure(conf, l, "stat", errno);
        return false;
    }
    return true;
}

bool listeners_open(struct listeners *ls, const struct conf *conf)
{
    bool ok = true;
    *ls = (struct listeners){ .all = calloc(conf->n_listens + 1, sizeof ls->all[0]), .n = conf->n_listens };
    if (ls->all == NULL) {
        log_write(LOG_ERROR, "cannot listen: out of memory");
        return false;
    }
    for (unsigned i = 0; i < ls->n; i++)
        ok &= open_one(&ls->all[i], conf, &conf->listens[i]);
    if (!ok)
        listeners_close(ls);
    return ok;
}

void listeners_close(struct listeners *ls)
{
    for (unsigned i = 0; i < ls->n; i++) {
        struct server_listeners *s = &ls->all[i];
        struct stat st;
        if (s->path != NULL && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
            (void)unlink(s->path);
        for (unsigned j = 0; j < s->n; j++)
            if (s->fds[j] >= 0)
                (void)close(s->fds[j]);
        free(s->fds);
        free(s->path);
    }
    free(ls->all);
    *ls = (struct listeners){ 0 };
}
