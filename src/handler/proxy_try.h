/* SPDX-License-Identifier: MIT */
/*
 * The proxy's own parts, between its files only:
 *   proxy.c         the request: which server, how often, what is told to the client and the log when it fails
 *   proxy_wait.c    between two attempts: a server, a slot, one that accepts
 *   proxy_body.c    the request's body: collected, kept, passed on
 *   proxy_try.c     one attempt on the way out: connection, request head, body, deadlines
 *   proxy_answer.c  one attempt on the way back: the answer's head and body
 *   proxy_instead.c answers that are not for the client: X-Accel-Redirect, X-Sendfile, pages in their place
 *   proxy_bind.c    whom the request belongs to: hash keys, sticky sessions
 *   tunnel.c        after a 101
 */
#ifndef HANDLER_PROXY_TRY_H
#define HANDLER_PROXY_TRY_H

#include "handler/proxy_fields.h"
#include "serve/handler.h"
#include "serve/respond.h"
#include "upstream/pool.h"
#include "upstream/queue.h"

enum {
    PROXY_KEEP = 64 * 1024,        /* of a request body, so that it can be sent again */
    PROXY_READ_MIN = 16 * 1024,
    PROXY_READ_BLIND = 64 * 1024,  /* the most that is read without asking whether the client has room */
};

/* The proxy's state on one loop. */
struct proxy_loop {
    struct worker *w;
    struct pool pool;
    struct list tunnels;
    struct list leaving;  /* tunnels that have been told to end */
    ev_timer look;        /* at those who wait, when an ejection ends ... */
    uint64_t look_ms;     /* ... then; 0: it does not run */
    ev_timer drain;       /* tells some of them at a time ... */
    uint64_t drain_until; /* ... so that all know by then */
};

/* One attempt; replaced whole by the next. */
struct proxy_try {
    struct upstream_conn *uc;  /* NULL: none (yet, or no more) */
    struct server *server;     /* whose slot is held; NULL: none */
    struct addr *addrs;        /* of a fresh connection */
    unsigned n_addrs, addr_at;
    uint64_t written_before;   /* by earlier requests on this connection */
    uint64_t start_ms, connected_ms, head_ms; /* 0: not yet */
    struct h1_read in;
    uint64_t interim_bytes;
    uint64_t idle_ms;          /* how long the connection may be kept afterwards */
    size_t read_size;
    unsigned n_interim;
    struct buf_at kept_at;     /* in the proxy's `kept`: what has gone out of it */
    uint64_t n_kept_sent;
    bool has_sent_kept : 1;    /* all of it; what comes now goes out as it comes */
    bool is_reused : 1;
    bool is_connected : 1;     /* the kernel has taken a byte of the request */
    bool has_answered : 1;     /* a byte of the answer has come */
    bool send_broke : 1;       /* no more can be sent; what the server has said so far is still read */
    bool is_blocked : 1;       /* the client takes nothing: the server is not read */
    bool is_patient : 1;       /* the body's length is unknown: timeouts.tunnel */
};

/* What the client gets in place of the backend's answer. */
enum proxy_instead { INSTEAD_NOTHING, INSTEAD_PAGE, INSTEAD_PATH, INSTEAD_FILE };

struct proxy {
    uint32_t magic;
    struct request *r;
    struct proxy_loop *loop;
    const struct upstream_conf *conf;
    struct upstream *upstream;
    struct str head;           /* the request as it is sent */
    struct h1_limits limits;   /* of answers; borrowed by the reader */
    struct fields fields;      /* of the request, while its body is collected */
    struct str target;
    struct buf kept;           /* the body so far */
    struct server **tried;
    struct pick_query query;   /* who may serve it; the queue's while there is an entry */
    struct queue_entry *entry; /* waiting for a slot; NULL: it does not */
    struct deadline wait;      /* of the queue, or before a server is asked again */
    uint64_t queued_ms;        /* since when it waits */
    uint64_t waited_ms;        /* in the queue, earlier waits */
    uint64_t hold_until_ms;    /* 0: it has not been held yet */
    unsigned retries;          /* used up */
    unsigned n_held;           /* waits for a server that accepts */
    struct server *home;       /* whom the client's cookie names; NULL: nobody */
    uint64_t session;          /* what the client is known by beside it */
    struct str first;          /* of a handshake's answer: bytes so far */
    struct str chunk_end;      /* with the trailers of the request; empty: it has none */
    struct str instead_at;     /* the path or file that the backend names */
    enum proxy_instead instead;
    struct proxy_try t;
    bool has_session : 1;      /* it is for whoever is asked to keep */
    bool is_handshake : 1;     /* the answer will name a session */
    bool is_websocket : 1;
    bool is_idempotent : 1;
    bool is_body_lost : 1;     /* bytes of it are gone: it cannot be sent again */
    bool is_chunked : 1;       /* the body, as it is sent */
    bool is_collecting : 1;    /* no server is asked yet */
    bool is_body_complete : 1; /* all of it has come from the client */
    bool is_body_paused : 1;   /* the client was told to wait */
    bool was_replayed : 1;     /* after a kept connection died */
    bool has_waited : 1;       /* in the queue: the log says how long */
    bool is_over : 1;          /* answered, failed or aborted: nothing is held any more */
};
#define PROXY_MAGIC 0x50524f58u

/* proxy.c */
/* The request fails, and nothing of it is tried again. */
void proxy_give_up(struct proxy *p, enum fail f, int error, const char *detail);
/* The attempt has failed: another one, or the request fails. */
void proxy_failed(struct proxy *p, enum fail f, int error, const char *detail);
/* Could the request go out again, once, on a fresh connection, if this kept one has died? */
bool proxy_may_replay(const struct proxy *p) MUST_USE;
/* Lets go of connection, slot, place in the queue and timer. is_reusable: the connection may serve another request. */
void proxy_release(struct proxy *p, bool is_reusable);
/* ms as seconds, for the access log: "0.012"; in the arena. */
struct str proxy_seconds(struct arena *a, uint64_t ms);
/* The attempt's place in the lists for the access log. otherwise: the status, if the server has given none (0: "-"). */
void proxy_note(struct proxy *p, uint16_t otherwise);

/* proxy_wait.c */
/* Sends the request to a server now, or when its turn comes. False: there is none that could serve it. */
bool wait_ask(struct proxy *p) MUST_USE;
/* The same; without one it is held, or fails. */
void wait_ask_or_fail(struct proxy *p);
/* `hold`: nobody accepts at present; after a while everyone is asked again. False: that is not wanted, or has lasted
 * long enough. */
bool wait_hold(struct proxy *p) MUST_USE;
/* Asks p->query.bound after a second. */
void wait_for_same(struct proxy *p);
/* It has no place in the queue any more, whatever ended that. */
void wait_over(struct proxy *p);
/* Those who wait for a slot of u are looked at when the next ejection of a server ends. */
void wait_look_later(struct proxy_loop *loop, struct upstream *u);
void wait_loop_init(struct proxy_loop *loop);
void wait_loop_close(struct proxy_loop *loop);

/* proxy_body.c */
/* p->head is ready: collects the body first where that is wanted (buffer_request), else asks for a server. */
void body_begin(struct proxy *p, struct str target, const struct fields *fields);
/* The handler's `body`. */
enum io body_take(struct request *r, struct str bytes, bool last) MUST_USE;

/* proxy_try.c */
/* Begins an attempt on a server whose slot has been taken. */
void try_start(struct proxy *p, struct server *s, bool must_be_fresh);
/* Sends a piece of the request body. */
enum io try_send_body(struct proxy *p, struct str bytes, bool last) MUST_USE;
/* Sets the deadline that fits the present state. */
void try_arm(struct proxy *p);
/* No more can be written to the connection. */
void try_send_broke(struct proxy *p, int error);

/* proxy_answer.c */
void answer_on_readable(struct proxy *p);

/* proxy_instead.c */
/* What this final answer of a backend calls for. */
enum proxy_instead instead_of(const struct request *r, const struct head *h);
/* r->resp is filled as if the answer went to the client: it does not. Nothing has been sent. */
void instead_begin(struct proxy *p, enum proxy_instead kind);
/* The attempt is over and p->is_over: does what instead_begin noted. */
void instead_finish(struct proxy *p);

/* proxy_bind.c */
/* Before the first attempt: fills p->query. */
void bind_begin(struct proxy *p);
/* This server gets the request. */
void bind_sent(struct proxy *p, struct server *s);
/* r->resp is filled: tells the client where it belongs now. */
void bind_head(struct proxy *p);
/* is_handshake: a piece of the answer's body, before it is passed on. */
void bind_body(struct proxy *p, struct str piece);

/* tunnel.c */
/* Takes the server's connection over and, with r->resp filled, the client's. `early` was read from the server
 * behind its head. The server's tunnel has been counted. False: the client could not be had; nothing was taken. */
bool tunnel_start(struct proxy_loop *loop, struct request *r, struct upstream_conn *uc, struct str early) MUST_USE;
void tunnel_loop_init(struct proxy_loop *loop);
void tunnel_close_all(struct proxy_loop *loop);
/* Ends every WebSocket with a close frame, spread over so many ms. */
void tunnel_drain_all(struct proxy_loop *loop, uint64_t ms);

#endif
