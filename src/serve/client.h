/* SPDX-License-Identifier: MIT */
/*
 * One client connection speaking HTTP/1.x. client.c owns its life (open, read, idle, linger, close) and runs its requests;
 * client_h1.c is the client_ops through which handlers answer. Between requests it holds this struct and nothing else.
 */
#ifndef SERVE_CLIENT_H
#define SERVE_CLIENT_H

#include "net/conn.h"
#include "net/deadline.h"
#include "serve/h1_head.h"
#include "serve/request.h"

struct worker_listener;

/* What the request in progress adds; in the request's arena. */
struct exchange {
    struct h1_read reader;
    struct head *head;        /* == &reader.head */
    struct str held_head;     /* response head not yet written */
    enum h1_framing framing;
    uint64_t body_since_ms;   /* the body's average rate counts from here ... */
    uint64_t body_since_bytes; /* ... and from these bytes */
    uint32_t discarded;       /* body bytes nobody wanted */
    bool has_head;            /* the request's head is complete */
    bool body_blocked;        /* the handler said IO_AGAIN */
    bool continue_due;        /* Expect: 100-continue has not been answered */
};

struct client {
    struct conn conn;
    struct deadline deadline;
    struct list link;         /* worker->idle or worker->busy */
    struct list ready;        /* worker->ready, while it is to be run */
    struct later later;
    struct worker *w;
    struct worker_listener *listener;
    struct request *r;        /* being read or answered; NULL between requests */
    struct exchange *x;       /* of r */
    struct buf pending;       /* bytes read but not taken yet */
    struct proxied *proxied;  /* NULL: no PROXY header is expected; owned */
    uint64_t serial;
    struct ip peer;
    uint32_t nth;
    uint8_t blanks;           /* CR and LF skipped before the next request */
    bool eof : 1;             /* the client has sent FIN */
    bool close_after : 1;     /* no further request on this connection */
    bool lingering : 1;
    bool gone : 1;            /* closed; only the memory is still there */
    bool in_run : 1;          /* client_run is on the stack */
    bool is_idle : 1;         /* on worker->idle */
};

/* client_ops of HTTP/1.x. */
extern const struct client_ops client_h1_ops;

/* Takes the descriptor over and serves it; reads at once. */
void client_open(struct worker *w, struct worker_listener *listener, int fd, const struct ip *peer);
/* Runs it before the loop sleeps. */
void client_wake(struct client *c);
/* From the worker's ready list. */
void client_run_ready(struct client *c);
/* Closes at once, whatever is going on; the running request is logged as cut. */
void client_kill(struct client *c, enum fail why);
/* Idle: closes. Busy: the answer in progress is its last. */
void client_drain(struct client *c);

/* Between client.c and client_h1.c. */
void client_lost(struct client *c);           /* the connection broke inside an ops call */
void client_update(struct client *c);         /* read watcher and deadline by the present state */
void client_release(struct client *c);        /* the struct goes at the end of the turn; the descriptor is someone else's */

#endif
