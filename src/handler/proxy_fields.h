/* SPDX-License-Identifier: MIT */
/*
 * Which header fields cross the proxy, in both directions (RFC 9110 §7.6). Pure: spans are borrowed from the heads,
 * new values lie in the arena. Order, case and repetition of what passes are kept.
 */
#ifndef HANDLER_PROXY_FIELDS_H
#define HANDLER_PROXY_FIELDS_H

#include "base/addr.h"
#include "http/head.h"

enum proxy_fields_result {
    PROXY_FIELDS_OK,
    PROXY_FIELDS_TOO_MANY, /* Connection names more fields than anybody needs */
    PROXY_FIELDS_NO_MEMORY,
};

/* What a request's fields are made from. */
struct proxy_facts {
    const struct head *head;
    struct str authority;     /* of an absolute-form target; empty: the Host field counts */
    struct str default_host;  /* if the request has neither */
    struct ip peer;           /* who speaks to weir */
    struct ip client;         /* the peer, or whom it names, being trusted */
    struct str request_id;
    bool is_verified;         /* weir has checked Authorization: it goes no further */
    bool peer_trusted;        /* what it says of the client before it is kept */
    bool secure;
    bool via;
    bool websocket;           /* a genuine handshake: the only upgrade that is passed on */
    bool close;               /* the connection will not be kept */
};

/* The fields of the request to the server, Host first, weir's own last. */
enum proxy_fields_result proxy_request_fields(struct arena *a, const struct proxy_facts *facts, struct fields *out)
    MUST_USE;

struct proxy_answer {
    struct fields fields;
    bool is_event_stream;
    bool has_keep_alive;   /* Keep-Alive: timeout was there ... */
    uint64_t keep_alive_s; /* ... with this value */
};

/* The fields of an answer (final or interim) to the client; framing and Connection are the client's own business. */
enum proxy_fields_result proxy_answer_fields(struct arena *a, const struct head *h, bool keep_trailer,
                                             struct proxy_answer *out) MUST_USE;
/* The trailer lines that may be passed on (RFC 9110 §6.5.1). */
enum proxy_fields_result proxy_trailer_fields(struct arena *a, const struct fields *trailers, struct fields *out)
    MUST_USE;
/* Is this the 101 that the handshake asked for (RFC 6455 §4.2.2)? */
bool proxy_is_accepted(const struct head *request, const struct head *answer);

#endif
