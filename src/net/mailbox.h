/* SPDX-License-Identifier: MIT */
/*
 * Messages to a loop from any thread: a mutex, a FIFO, one ev_async that only says "look". A mail runs on the loop's
 * thread, in order of posting, exactly once.
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
    ev_async look;
};

void mailbox_open(struct mailbox *m, struct loop *l);
/* Any thread. Never blocks for longer than the list operation. */
void mailbox_post(struct loop *l, struct mail *mail);
/* Runs what is still there, closes. On the loop's thread or after it has ended. */
void mailbox_close(struct mailbox *m, struct loop *l);

#endif
