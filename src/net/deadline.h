/* SPDX-License-Identifier: MIT */
/*
 * Named deadlines. One FIFO list and one ev_timer (lower priority than I/O) for each distinct duration on a loop;
 * setting one costs two pointer writes. A deadline that is pushed on by progress is re-appended only after a sixteenth
 * of its duration, so after its last progress it may fire up to that much early, never late by more than a turn.
 */
#ifndef NET_DEADLINE_H
#define NET_DEADLINE_H

#include "net/loop.h"

enum deadline_name {
    DEADLINE_NONE,
    DEADLINE_HEAD,    /* the whole request head */
    DEADLINE_BODY,    /* between reads of a request body */
    DEADLINE_IDLE,    /* a kept-alive connection between requests (client or backend) */
    DEADLINE_CONNECT, /* connecting to a backend */
    DEADLINE_SEND,    /* no progress writing */
    DEADLINE_RECV,    /* no byte from a backend */
    DEADLINE_QUEUE,   /* waiting for a slot */
    DEADLINE_LINGER,  /* discarding after an early answer */
    DEADLINE_TUNNEL,  /* no traffic in either direction */
    DEADLINE_WATCH,   /* a client that waits for its first answer is not watched before this */
};

struct deadline_list;
struct deadline {
    struct list link;
    struct deadline_list *list; /* NULL when not set */
    uint64_t at_ms;             /* due, in loop->now_ms */
    void (*fire)(struct deadline *);
    enum deadline_name name;
};

struct deadlines *deadlines_new(struct loop *l) MUST_USE;
void deadlines_free(struct deadlines *d);

/* (Re)starts d: fire(d) is called after ms from now, with d no longer set. ms == 0 means no limit: d is cleared.
 * Setting the same name and duration again before a sixteenth of it has passed changes nothing but fire. Never fails:
 * when memory is out the list of the nearest longer (else longest) duration takes it. */
void deadline_set(struct loop *l, struct deadline *d, enum deadline_name name, uint64_t ms,
                  void (*fire)(struct deadline *));
/* Idempotent; d must have been zeroed or set before. */
void deadline_clear(struct deadline *d);
const char *deadline_name(enum deadline_name name);

#endif
