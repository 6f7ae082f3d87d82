/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.x message reader (RFC 9112): bytes in, events out. No I/O, no clock; the same reader for clients' requests and
 * backends' answers. llhttp reads the fields; start lines, chunks and lengths are read here.
 *
 *     h1_read_init(&h, H1_REQUEST, &limits, arena);
 *     do {
 *         event = h1_read_feed(&h, p, n, &used);
 *         p += used; n -= used;
 *         ...
 *     } while (event != H1_MORE);
 *
 * Events never come without progress: each call consumes bytes, or returns an event, or is H1_MORE with used == n.
 */
#ifndef HTTP_H1_READ_H
#define HTTP_H1_READ_H

#include "http/head.h"

enum h1_event {
    H1_MORE, /* all taken; more bytes are needed */
    H1_HEAD, /* h->head is complete; its spans point into the arena and stay valid until the arena is reset */
    H1_BODY, /* h->body is a piece of the body, inside the bytes just fed (or, after H1_MORE, never) */
    H1_END,  /* the message is complete; h1_read_next before the next one */
    H1_BAD,  /* h->bad says why; nothing more may be fed */
};

enum h1_kind { H1_REQUEST, H1_RESPONSE };

/* Why a message was refused. Each row: symbol, status for the client if it is a request, text for the log. */
#define H1_BAD_REASONS(X) \
    X(SYNTAX, 400, "malformed message") \
    X(START_LINE, 400, "malformed start line") \
    X(VERSION, 505, "HTTP version not supported") \
    X(METHOD, 501, "method too long") \
    X(TARGET, 400, "byte not allowed in the request target") \
    X(FIELD, 400, "malformed header field") \
    X(HOST, 400, "Host missing, repeated or malformed") \
    X(LENGTH, 400, "invalid, repeated or conflicting Content-Length") \
    X(CODING, 501, "Transfer-Encoding not understood") \
    X(FRAMING, 400, "Content-Length and Transfer-Encoding together, or Transfer-Encoding on HTTP/1.0") \
    X(CHUNK, 400, "malformed chunk") \
    X(TRAILER, 400, "malformed or too large trailer section") \
    X(URI_TOO_LONG, 414, "request line over limits.uri_size") \
    X(HEAD_TOO_LARGE, 431, "header section over limits.header_size") \
    X(TOO_MANY_FIELDS, 431, "more fields than limits.header_count") \
    X(TRUNCATED, 400, "connection closed within a message") \
    X(NO_MEMORY, 500, "out of memory")

enum h1_bad {
    H1_BAD_NONE,
#define X(symbol, status, text) H1_BAD_##symbol,
    H1_BAD_REASONS(X)
#undef X
};

struct h1_limits {
    uint32_t head_size;  /* bytes of the whole head, start line included; also of a trailer section */
    uint32_t uri_size;   /* bytes of the request line; 0: no limit of its own */
    uint32_t head_count; /* field lines */
};

struct h1_read {
    /* results */
    struct head head;
    struct str body;
    struct fields trailers; /* complete at H1_END; in the arena */
    enum h1_bad bad;
    /* state; private, defined here so that it can be embedded */
    enum h1_kind kind;
    const struct h1_limits *limits;
    struct arena *arena;
    struct h1_parser *parser; /* llhttp and the spans of the head; in the arena while a head or chunks are read */
    uint8_t state;
    uint8_t request_method; /* responses: enum method of the request they answer (RFC 9112 §6.3) */
    uint64_t left;          /* bytes of a BODY_LENGTH body still to come */
    uint64_t head_bytes;    /* bytes read for this head so far, blank lines before it included */
};

/* Ready for a first message. Holds no memory until the first byte is fed. */
void h1_read_init(struct h1_read *h, enum h1_kind kind, const struct h1_limits *limits, struct arena *arena);
/* Responses: tell the method of the request before its answer's head is fed. */
void h1_read_expect(struct h1_read *h, enum method request_method);
/* Takes up to n bytes, sets *used, returns one event. Bytes of a partial head are copied into the arena. With n == 0 (p
 * may then be NULL) it returns the H1_END that is due, else H1_MORE: the last byte fed may have completed a message. */
enum h1_event h1_read_feed(struct h1_read *h, const char *p, size_t n, size_t *used) MUST_USE;
/* The peer has sent FIN. H1_END if the message is complete or this completes it (BODY_UNTIL_CLOSE); H1_MORE if none had
 * begun; else H1_BAD. */
enum h1_event h1_read_eof(struct h1_read *h) MUST_USE;
/* After H1_END (or an interim response's head): ready for the next message on this connection. The caller resets the
 * arena itself, before. */
void h1_read_next(struct h1_read *h);
/* Has any byte of a message (other than blank lines) been fed since init or next? */
bool h1_read_has_begun(const struct h1_read *h);
/* True while bytes of the current body are still to come (after H1_HEAD, before H1_END). */
bool h1_read_in_body(const struct h1_read *h);

uint16_t h1_bad_status(enum h1_bad bad);
const char *h1_bad_text(enum h1_bad bad);
/* The symbol, for statistics: "HOST". */
const char *h1_bad_name(enum h1_bad bad);

#endif
