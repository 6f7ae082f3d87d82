/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets. Opening one (by whoever may bind) and watching one (each loop its own) are apart, so that the
 * sockets can be handed in from elsewhere.
 */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include "base/addr.h"
#include "net/loop.h"

struct listen_options {
    int backlog;     /* 4096 */
    bool defer;      /* TCP_DEFER_ACCEPT, one second */
    bool v6only;     /* off, [::] takes IPv4 too, and becomes 0.0.0.0 on a host without IPv6 */
    bool reuseport;  /* one socket per loop; the address is first bound without it so that "in use" is found */
    bool join;       /* but not if sockets of one's own listen there already */
};

/* Opens n_fds sockets listening on one address (1 for a unix socket), non-blocking and close-on-exec. More than one
 * implies reuseport. A stale unix socket file is replaced only if nobody accepts on it. False: errno, nothing left
 * open, *step names the failed call ("bind", ...). */
bool listen_open(const struct addr *a, const struct listen_options *o, int *fds, unsigned n_fds,
                 const char **step) MUST_USE;

struct listener {
    ev_io accept;
    ev_timer pause; /* after EMFILE: 100 ms */
    struct loop *loop;
    int fd;
    bool tcp;
    /* A new connection; the callee owns fd (non-blocking, close-on-exec). */
    void (*on_accept)(struct listener *, int fd, const struct ip *peer);
    void *owner;
};

/* Starts accepting: at most 64 a turn. Fill loop, fd, tcp, on_accept, owner first. on_accept may stop or pause it. */
void listener_start(struct listener *l);
void listener_stop(struct listener *l);
/* Accepts what is waiting now: before a stop that is to be the last. */
void listener_sweep(struct listener *l);
/* Pauses accepting for 100 ms (descriptors or clients are at their limit). */
void listener_pause(struct listener *l);

#endif
