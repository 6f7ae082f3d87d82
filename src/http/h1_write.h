/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1 serialisation (RFC 9112): structs to bytes. Writes only what it is given: the caller decides which fields
 * go. All results lie in the arena; p is NULL when memory is out.
 */
#ifndef HTTP_H1_WRITE_H
#define HTTP_H1_WRITE_H

#include "http/head.h"

/* "METHOD target HTTP/1.1\r\n" fields "\r\n". */
struct str h1_write_request(struct arena *a, struct str method, struct str target, const struct fields *f) MUST_USE;
/* "HTTP/1.1 status reason\r\n" + `block` (ready-made "Name: value\r\n" lines, may be empty) + fields + "\r\n". An empty
 * reason is taken from the status table. */
struct str h1_write_response(struct arena *a, uint16_t status, struct str reason, struct str block,
                             const struct fields *f) MUST_USE;
/* "Name: value\r\n" for every line: the ready-made block of a cached file. */
struct str h1_write_fields(struct arena *a, const struct fields *f) MUST_USE;

enum { H1_CHUNK_HEAD = 20 };
/* The size line before a chunk of n > 0 bytes: "1a2b\r\n". out has H1_CHUNK_HEAD bytes. Returns the length. */
size_t h1_chunk_head(char *out, uint64_t n);
/* The end of a chunked body: "0\r\n" trailers "\r\n". */
struct str h1_chunk_end(struct arena *a, const struct fields *trailers) MUST_USE;

#endif
