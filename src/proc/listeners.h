/* SPDX-License-Identifier: MIT */
/* The listening sockets of a configuration, opened by whoever may bind and handed to the server. */
#ifndef PROC_LISTENERS_H
#define PROC_LISTENERS_H

#include <sys/stat.h>

#include "conf/conf.h"

/* The sockets of one address: one for each loop (TCP) or a single one for all (unix). -1: handed on. */
struct server_listeners {
    const struct listen_conf *listen;
    int *fds;
    unsigned n;
    dev_t dev; /* of a unix socket's file, to know it again */
    ino_t ino;
    char *path; /* its path; NULL for TCP */
};

struct listeners {
    struct server_listeners *all;
    unsigned n;
};

/* Opens every address of the configuration. False: each that cannot be opened was logged, with a hint; nothing is left
 * open. */
bool listeners_open(struct listeners *ls, const struct conf *conf) MUST_USE;
/* Closes what was not handed on; removes the files of unix sockets that are still the ones made here. */
void listeners_close(struct listeners *ls);

#endif
