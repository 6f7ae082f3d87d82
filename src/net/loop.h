/* SPDX-License-Identifier: MIT */
/*
 * One event loop of one thread: libev's loop plus what every connection of that thread shares: the time of this turn,
 * the scratch buffer reads go to, block pools, deadlines, the mailbox, and what is to be freed when the turn ends.
 * Everything here belongs to the loop's own thread, except the mailbox.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <ev.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "net/mailbox.h"

enum {
    LOOP_SCRATCH = 256 * 1024, /* the largest single read */
    LOOP_BLOCK = 16 * 1024,    /* blocks of queued body bytes */
};

/* Freed at the end of the turn: embed it, fill free_fn, hand it to loop_free_later once. */
struct later {
    struct later *next;
    void (*free_fn)(struct later *);
};

struct deadlines;

struct loop {
    struct ev_loop *ev;
    unsigned index;
    uint64_t now_ms;      /* CLOCK_MONOTONIC, read once per turn */
    uint64_t wall_ms;     /* CLOCK_REALTIME, read once per turn */
    char *scratch;        /* LOOP_SCRATCH bytes; nothing may point into it after the callback that filled it returns */
    struct block_pool blocks; /* LOOP_BLOCK bytes each, for struct buf */
    struct block_pool arenas; /* ARENA_BLOCK bytes each, for requests' arenas */
    struct deadlines *deadlines;
    struct mailbox mailbox;
    struct later *garbage;
    /* Called once at the end of each turn, before garbage is freed (snapshot adoption); may be NULL. */
    void (*on_turn)(struct loop *);
    void *owner; /* whoever runs this loop: serve's struct worker */
    ev_prepare prepare;
    ev_check check;
};

/* A loop of its own (EVFLAG_NOENV, epoll). NULL when memory or descriptors are out. Owned by the caller. */
struct loop *loop_new(unsigned index) MUST_USE;
/* Runs until loop_stop, on the calling thread. */
void loop_run(struct loop *l);
/* From the loop's own thread: returns from loop_run after this turn. From another: post a mail that calls it. */
void loop_stop(struct loop *l);
/* After loop_run has returned: frees the garbage, the pools, the loop. Open connections are the owners' business. */
void loop_free(struct loop *l);

/* Sanitizer builds make scratch unreadable when a callback has returned (conn, listener, mailbox and deadlines do it);
 * call it when the bytes have been used up before. No-op otherwise. */
void loop_scratch_done(struct loop *l);
/* Makes scratch readable again before a read (conn_read does it). */
void loop_scratch_use(struct loop *l);

/* free_fn runs at the end of this turn (or at loop_free). */
void loop_free_later(struct loop *l, struct later *x);

#endif
