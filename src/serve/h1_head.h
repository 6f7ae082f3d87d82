/* SPDX-License-Identifier: MIT */
/* The head of an answer as HTTP/1.1 bytes: status line, fields, and the framing fields that depend on the client. Pure. */
#ifndef SERVE_H1_HEAD_H
#define SERVE_H1_HEAD_H

#include "serve/request.h"

enum h1_framing { H1_FRAMING_NONE, H1_FRAMING_LENGTH, H1_FRAMING_CHUNKED, H1_FRAMING_CLOSE };

/* How this answer's body is delimited for a client of HTTP/1.`minor` (RFC 9112 §6.3). */
enum h1_framing h1_head_framing(const struct response *p, unsigned minor);
/* The bytes, in the arena; p NULL when memory is out. date: HTTP_DATE bytes. keep_alive: say so to an HTTP/1.0 client. */
struct str h1_head_print(struct arena *a, const struct response *p, enum h1_framing framing, bool close,
                         bool keep_alive_10, const char *date) MUST_USE;

#endif
