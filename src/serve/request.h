/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer, whatever protocol it came by. READ THIS FIRST, then request.c.
 *
 * Life: a client (client_ops) has read a head → request_begin → request_run takes it through the steps → a handler answers
 * through respond.h → request_finish logs, gives back and frees. Every failure enters by request_fail. Nothing here or in a
 * handler knows HTTP/1 or touches a connection.
 */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include "base/io.h"
#include "http/head.h"
#include "http/proxy_header.h"
#include "http/target.h"
#include "serve/fail.h"
#include "serve/stored.h"
#include "serve/worker.h"

enum req_step { STEP_CHECK, STEP_ROUTE, STEP_ACCESS, STEP_HANDLE, STEP_ANSWER, STEP_END, STEP_COUNT };
enum step_result { STEP_NEXT, STEP_WAIT, STEP_DONE };

enum how { HOW_MORE, HOW_PAUSE, HOW_LAST };

struct request;
struct filtering;
struct auth_job;

/* What a handler takes over by ops->upgrade: the client's socket and what was read beyond the head. */
struct upgraded {
    int fd;
    struct str early;   /* bytes of the client after its head; in the request's arena */
    struct buf unsent;  /* bytes the kernel has not taken yet, the 101 head among them; owned by the callee */
    bool has_ended;     /* the client will send nothing more: its FIN has been read */
};

/* The way back to a client. client_h1 is the first, a memory client the second. */
struct client_ops {
    const char *protocol;
    /* The head in r->resp is final: serialise it; it may be held until the first body bytes, or end. */
    void (*head)(struct request *r);
    /* Memory. IO_OK, IO_AGAIN (taken; r->handler->resume will be called) or IO_CLOSED. */
    enum io (*data)(struct request *r, struct str bytes, enum how how);
    /* A file range; its lease is taken over in any case. */
    enum io (*file)(struct request *r, struct chunk file, enum how how);
    /* The answer is complete (or was HOW_LAST). Trailers may be given. */
    void (*end)(struct request *r, const struct fields *trailers);
    /* The answer cannot be completed: cut it so that the client can tell. */
    void (*abort)(struct request *r);
    /* The handler is ready for the request's body: send 100 Continue if it is expected, start reading. */
    void (*want_body)(struct request *r);
    /* An interim answer (103); may be NULL. */
    void (*interim)(struct request *r, uint16_t status, const struct fields *f);
    /* Sends r->resp as a 101 head and gives the connection away. False: it failed, nothing was given. NULL: not possible. */
    bool (*upgrade)(struct request *r, struct upgraded *out);
    /* Call respond_resume in a later turn of the loop, although nothing is blocked: this turn's share of the work is
     * done. NULL: a client that only describes files. */
    void (*again)(struct request *r);
    /* Run the client (request_run) before the loop sleeps. */
    void (*wake)(struct request *r);
    /* The handler takes body bytes again. */
    void (*body_resume)(struct request *r);
    /* An estimate of the bytes that could be written now without IO_AGAIN. */
    size_t (*room)(const struct request *r);
    /* Has the client gone (RST, failed write)? Only asked by the memory client's tests and by handlers before costly work. */
    bool (*is_open)(const struct request *r);
};

/* The head of the answer. The handler fills it with end-to-end fields only; framing, Date, Server and Connection are the client's. */
struct response {
    uint16_t status;
    struct str reason;      /* empty: from the table */
    struct fields fields;
    struct str block;       /* ready-made "Name: value\r\n" lines of a cached file; fields that stand in it are not in `fields` */
    struct stored *stored;  /* the file this is an answer with, for 200, 206 and 304; else NULL */
    struct str type;        /* with stored: the file's Content-Type, whatever stands in the block */
    struct str instead;     /* set by a filter: goes out in place of the stored body, which is given in one piece */
    bool has_length;        /* `length` is the Content-Length (what a GET would have for HEAD; of a 304 too if known) */
    uint64_t length;
    bool bodyless;          /* set by respond_head: HEAD, 1xx, 204, 304: body bytes are not sent */
    bool is_own;            /* weir's own answer: Server: weir */
    bool close;             /* the connection must end after it */
};

/* For `weir explain` and tests: notes on what was considered. NULL in a running server. */
struct trace {
    void (*note)(struct trace *t, const char *what, struct str text, struct where where);
};

/* A connection that begins with a PROXY header. */
struct proxied {
    struct proxy_header header;
    struct ip peer; /* the socket's other end */
    bool is_read;   /* the header is complete: the requests' peer is whom it names */
};

struct request {
    uint32_t magic;
    enum req_step step;
    struct worker *w;
    struct hold *hold;               /* the snapshot it began with */
    const struct conf *conf;
    struct arena arena;
    const struct client_ops *ops;
    void *client;                    /* ops' own */
    struct trace *trace;

    /* who asks */
    struct ip remote;                /* the client: the peer, or whom a trusted peer names (once the site is known) */
    struct ip peer;                  /* who speaks to us: the socket's other end, or whom a PROXY header names */
    const struct proxied *proxied;   /* what a PROXY header said; NULL: there was none */
    int fd;                          /* for $server_addr; -1: none */
    const struct listen_conf *listen;
    bool secure;                     /* https, by the connection or by a trusted peer */
    bool peer_trusted;
    uint64_t in_flight_key;          /* what it holds of limits.in_flight; 0: nothing */
    struct auth_job *auth_job;       /* its password is being checked */
    const struct auth_conf *verified; /* whose user and password it has given; NULL: none */
    struct str user;                 /* the name, then */
    bool is_counted;                 /* by the limits of its first location */
    uint64_t connection;             /* serial number */
    uint32_t nth;                    /* requests on this connection, this one included */

    /* what is asked */
    struct head *head;               /* in the client's reader; valid for the request's life */
    struct target target;            /* a reroute makes it anew */
    struct str request_uri;          /* target.raw as it came, whatever it has become */
    struct str host;                 /* lower case, without port; empty if there is none */
    uint64_t body_received;
    bool body_complete;              /* the whole request has been read */
    const struct fields *trailers;   /* of the request, when that is so; NULL: none */
    bool body_wanted;                /* request_want_body was called */

    /* who answers */
    const struct site_conf *site;
    const struct location_conf *location;
    const struct scope_conf *s;      /* the location's, else the site's, else the top scope; never NULL */
    const struct action *action;
    unsigned action_index;
    struct str captures[10];
    const struct handler *handler;   /* whose start returned HANDLED; NULL before and after */
    void *handler_data;              /* of this request; in the arena or the handler's own */
    const char *doing;               /* "connecting to the server": what the error log's "while" says; NULL: the step's name */
    unsigned reroutes;
    bool is_fallback;                /* the answer stands in for a file that is not there */
    const struct fields *carried;    /* of a backend's answer that has led here; NULL: none has */

    /* the answer */
    struct response resp;
    struct filtering *filtering;     /* filters that take part; NULL: none */
    bool head_sent;                  /* respond_head was called: no other head may follow */
    bool ended;                      /* respond_end was called or the answer was cut */
    bool drained;                    /* the kernel has all of it */
    bool aborted;
    enum fail fail;

    /* for the log */
    uint64_t start_us;               /* CLOCK_MONOTONIC at the first byte of the head */
    uint64_t head_bytes;             /* of the request head as received */
    uint64_t body_sent, head_bytes_sent;
    struct str id;                   /* by request_id */
    struct str upstream_addr, upstream_status, upstream_connect_time, upstream_header_time, upstream_response_time;
    struct str upstream_queue_time;  /* empty: it has not waited for a slot */
};

#define REQUEST_MAGIC 0x52455155u

/* Begins a request at its first byte. The client reads the head into r->arena and sets r->head, remote, peer, listen and the like
 * before request_run, or calls request_fail. NULL: no memory. */
struct request *request_begin(struct worker *w, const struct client_ops *ops, void *client) MUST_USE;
/* Before anything else: it belongs to this snapshot instead of the one in force. */
void request_move(struct request *r, struct hold *hold);
/* Runs the steps until one has to wait. STEP_DONE: call request_finish. Called by the client only. */
enum step_result request_run(struct request *r);
/* "sending the answer": what the error log says after "while". */
const char *request_step_name(enum req_step step);
/* Makes the client call request_run before the loop sleeps; for events from elsewhere. Idempotent. */
void request_wake(struct request *r);
/* The only exit: access log, counters, releases, frees. */
void request_finish(struct request *r);

/* The request cannot be answered as hoped. Before the head: a small page with the row's status (the connection stays if its framing is
 * intact). After it: the answer is cut. Calls handler->abort first if one has it. error is an errno for the log or 0; detail may be NULL. */
void request_fail(struct request *r, enum fail f, int error, const char *detail);
/* Goes back to STEP_ROUTE with this decoded path (borrowed until finish) and the same query. At most 5 times; never after the head. */
void request_reroute(struct request *r, struct str path);
/* The same with another target, path and query; its authority does not count. */
void request_reroute_to(struct request *r, const struct target *to);
/* The handler is ready to take the body: from now on handler->body is called as it arrives. */
void request_want_body(struct request *r);
/* After handler->body returned IO_AGAIN: it may be called again. */
void request_body_resume(struct request *r);
/* X-Request-ID of a trusted peer; else 32 lower-case hexadecimal digits, unique to the request, made when first asked
 * for. Empty: out of memory. */
struct str request_id(struct request *r);
/* Bytes the client could take now without IO_AGAIN (an estimate; 0 if it is blocked). */
static inline size_t request_room(const struct request *r)
{
    enum { FILTERED_MAX = 64 * 1024 }; /* through filters: no more work than that in one piece */
    size_t n = r->ops->room(r);
    return r->filtering != NULL && n > FILTERED_MAX ? FILTERED_MAX : n;
}
/* An error-log line ending in "while <step>, client, site, request, upstream". error is an errno or 0. */
void request_log(const struct request *r, enum log_level level, int error, const char *fmt, ...) PRINTF(4, 5);
/* A note for explain; free when nobody traces. */
#define request_note(r, what, text, where) \
    ((r)->trace ? (r)->trace->note((r)->trace, (what), (text), (where)) : (void)0)

#endif
