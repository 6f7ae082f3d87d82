/* SPDX-License-Identifier: MIT */
/*
 * The listening sockets, by address. The supervisor opens and keeps them; a server has a copy of the list from its fork
 * and changes it by what it asks the supervisor for.
 */
#ifndef PROC_LISTENERS_H
#define PROC_LISTENERS_H

#include <sys/stat.h>

#include "conf/conf.h"
#include "proc/sup_link.h"

/* The sockets of one address: one for each loop (TCP), or a single one for all (unix, or given by the service manager).
 */
struct sockets {
    char *text; /* the address as the configuration has it */
    int *fds;
    unsigned n;
    bool given;   /* opened by the service manager: stays the only one */
    dev_t dev;    /* of a unix socket's file, to know it again */
    ino_t ino;    /* 0: not ours to remove */
    pid_t user;   /* the supervisor's: the server that was handed them last, and alone may give them up; 0: any may */
    unsigned served; /* the supervisor's: the first so many are the serving server's, others are for one that starts */
    bool leaving; /* the server's: no longer in the configuration, but still accepting */
    uint64_t leaves_at;
};

struct listeners {
    struct sockets **all;
    unsigned n;
};

/* Opens every address of the configuration that is not there yet. False: each that cannot be opened was logged, with a
 * hint; all are closed. */
bool listeners_open(struct listeners *ls, const struct conf *conf) MUST_USE;
struct sockets *listeners_find(const struct listeners *ls, struct str text);
/* An entry without sockets; NULL: out of memory. */
struct sockets *listeners_add(struct listeners *ls, struct str text) MUST_USE;
void listeners_remove(struct listeners *ls, struct sockets *s);
/* Closes everything. The files of unix sockets stay. */
void listeners_close(struct listeners *ls);
/* Removes the files of unix sockets that are still the ones made here. */
void listeners_unlink(const struct listeners *ls);

/* Opens until there are n; ls: all there are. False: errno, and *step names what failed; those there were stay. */
bool sockets_grow(const struct listeners *ls, struct sockets *s, const struct link_listen *at, unsigned n,
                  const char **step) MUST_USE;
/* Takes descriptors over. False: out of memory, they are still the caller's. */
bool sockets_take(struct sockets *s, const int *fds, unsigned n) MUST_USE;
/* Closes all but the first n. */
void sockets_shrink(struct sockets *s, unsigned n);
/* What to open for an address of a configuration. */
struct link_listen listen_of(const struct listen_conf *l);
/* How many sockets it should have. */
unsigned sockets_wanted(const struct listen_conf *l, unsigned workers);
/* Logs why an address cannot be listened on. */
void listeners_log_failure(const struct conf *conf, const struct listen_conf *l, const char *step, int error);

#endif
