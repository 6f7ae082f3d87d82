/* SPDX-License-Identifier: MIT */
/*
 * How a handler answers. Once respond_head, then any number of respond_body/respond_file, then HOW_LAST or respond_end; or
 * one of the shorthands. None of them calls the handler back or frees the request: after respond_end the handler only returns.
 */
#ifndef SERVE_RESPOND_H
#define SERVE_RESPOND_H

#include "serve/request.h"

/* r->resp is filled; fixes bodyless and hands the head to the client. */
void respond_head(struct request *r);
/* IO_OK: send more if you have it. IO_AGAIN: taken; wait for resume. IO_CLOSED: the client is gone, abort was or will be called: return.
 * Bytes are borrowed for the call only. For a bodyless answer everything is dropped with IO_OK. HOW_LAST ends it. */
enum io respond_body(struct request *r, struct str bytes, enum how how) MUST_USE;
/* The same for a file range; its lease is taken over in any case. */
enum io respond_file(struct request *r, struct chunk file, enum how how) MUST_USE;
/* The answer is complete. trailers may be NULL. */
void respond_end(struct request *r, const struct fields *trailers);
/* For the client: everything is out, and the answer is not complete. Goes on with what was begun, or calls the handler's
 * resume. */
void respond_resume(struct request *r);

/* A whole own answer. type may be empty if body is. */
void respond_simple(struct request *r, uint16_t status, struct str type, struct str body);
/* The page for a status (300 and above), with whatever fields are already in r->resp.fields: the one of error_pages, else
 * a small one; for a client that likes JSON better than either, problem+json (RFC 9457). */
void respond_page(struct request *r, uint16_t status);
/* The page that the scope's error_pages have for this status; NULL: none. */
const struct error_page_conf *respond_error_page(const struct scope_conf *s, uint16_t status);
/* A redirect with this Location (already encoded; checked for bytes that cannot stand in a field). */
void respond_redirect(struct request *r, uint16_t status, struct str location);
/* Appends a field to r->resp.fields; the value is borrowed until finish. Want of memory fails the request at its next step. */
void respond_field(struct request *r, enum field_id id, struct str value);

#endif
