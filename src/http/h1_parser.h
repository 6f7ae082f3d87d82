/* SPDX-License-Identifier: MIT */
/*
 * The inside of the HTTP/1 reader; only the h1_*.c files include this.
 * Three small machines, each fed the same way: a piece of bytes and an index *at that it advances; it stops at the end
 * of its part, at the end of the piece, or at the first byte that makes the message invalid. What they find out does
 * not depend on how the bytes are cut into pieces.
 * Positions are kept as offsets from the first byte of the head (or trailer section), never as pointers: until the head
 * is complete its bytes may still move.
 */
#ifndef HTTP_H1_PARSER_H
#define HTTP_H1_PARSER_H

/* Three of llhttp's flags are called like fields of ours. */
#define F_CONTENT_LENGTH LLHTTP_F_CONTENT_LENGTH
#define F_TRANSFER_ENCODING LLHTTP_F_TRANSFER_ENCODING
#define F_UPGRADE LLHTTP_F_UPGRADE
#include <llhttp.h>
#undef F_CONTENT_LENGTH
#undef F_TRANSFER_ENCODING
#undef F_UPGRADE

#include "http/h1_read.h"

/* llhttp before 9 is loose unless told otherwise: a space in a name, any byte for the LF that ends a head. */
#if LLHTTP_VERSION_MAJOR < 9
_Static_assert(LLHTTP_STRICT_MODE == 1, "llhttp 8 must be compiled with -DLLHTTP_STRICT_MODE=1");
#endif

struct h1_span {
    uint32_t off, n;
};

enum { H1_METHOD_MAX = 64 };

/* h1_line.c: request lines and status lines (RFC 9112 §3, §4), CRLF included. */
struct h1_line {
    uint8_t state;
    uint8_t word; /* bytes matched of "HTTP/" */
    uint8_t major, minor;
    uint16_t status;
    uint32_t n;               /* bytes so far */
    struct h1_span method;    /* off is 0 */
    struct h1_span target, reason;
};

void h1_line_init(struct h1_line *l, enum h1_kind kind);
/* Advances *at; *done when the LF was taken. H1_BAD_NONE if all is well so far. */
enum h1_bad h1_line_feed(struct h1_line *l, const char *p, size_t n, size_t *at, bool *done);

/* h1_section.c: field lines up to and including the empty one (RFC 9112 §5, §7.1.2), by llhttp. */
struct h1_row {
    struct h1_span name, value;
};

struct h1_section {
    llhttp_t llhttp;
    struct arena *arena;
    struct h1_row *rows; /* `first`, then arrays in the arena */
    uint32_t n, cap, max;
    uint32_t line;       /* bytes of the line being read */
    bool cr;             /* the last byte fed was a CR */
    bool complete;       /* llhttp has seen the empty line */
    enum h1_bad bad;     /* set by a callback that stops llhttp */
    const char *piece;   /* what llhttp is being fed ... */
    uint32_t piece_off;  /* ... and where that lies in the whole */
    struct h1_row first[16];
};

void h1_section_init(struct h1_section *s, struct arena *a, uint32_t max_fields);
/* off: where p[*at] lies in the whole. Otherwise as h1_line_feed. */
enum h1_bad h1_section_feed(struct h1_section *s, const char *p, size_t n, size_t *at, uint32_t off, bool *done);
/* The rows as fields over `text`, with `spare` unused places. False: out of memory. */
bool h1_section_fields(const struct h1_section *s, const char *text, struct arena *a, unsigned spare,
                       struct fields *f) MUST_USE;

/* h1_chunk.c: the line before the data of a chunk (RFC 9112 §7.1). */
struct h1_chunk {
    uint8_t state;
    uint8_t digits;
    uint64_t size;
    uint64_t extra; /* bytes of extensions in this body */
};

/* Advances *at; *done when the LF was taken: size is known. */
enum h1_bad h1_chunk_feed(struct h1_chunk *c, const char *p, size_t n, size_t *at, bool *done);

/* h1_frame.c: the head as a whole: its fields against each other, Host, and how long the body is (RFC 9112 §6.3). */
enum h1_bad h1_frame_request(struct head *head);
enum h1_bad h1_frame_response(struct head *head, enum method request_method);

/* Bytes of a head or a trailer section that came in pieces. */
struct h1_text {
    char *p;
    uint32_t n, cap;
};

struct h1_parser {
    struct h1_text text;
    struct h1_line line;
    struct h1_section section;
    struct h1_chunk chunk;
    uint64_t body_bytes; /* data of chunks so far */
};

#endif
