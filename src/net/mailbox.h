/* SPDX-License-Identifier: MIT */
/*
 * Messages to a loop from any thread: a mutex, a FIFO, one eventfd that only says "look". A mail runs on the loop's
 * thread, in order of posting, exactly once.
 * (An eventfd with a watcher of our own, not an ev_async: libev keeps the descriptor behind its asyncs to itself, and
 * when the kernel refuses to watch it they fall silent for good. Ours is told and re-armed.)
 */
#ifndef NET_MAILBOX_H
#define NET_MAILBOX_H

#include <ev.h>
#include <pthread.h>

#include "base/check.h"

struct loop;

/* Embed it; run() owns it from then on (it may free it). */
struct mail {
    struct mail *next;
    void (*run)(struct loop *, struct mail *);
};

struct mailbox {
    pthread_mutex_t mutex;
    struct mail *first, *last;
    int fd;         /* the eventfd */
    ev_io look;
    ev_timer rearm; /* 100 ms after the watcher failed */
};

/* False: errno, no descriptor left. */
bool mailbox_open(struct mailbox *m, struct loop *l) MUST_USE;
/* Any thread, while the loop exists. Never blocks for longer than the list operation. */
void mailbox_post(struct loop *l, struct mail *mail);
/* From the loop's own thread: epoll shall not block this once. */
void mailbox_wake(struct mailbox *m);
/* Runs what is still there, closes. On the loop's thread or after it has ended. */
void mailbox_close(struct mailbox *m, struct loop *l);

#endif
