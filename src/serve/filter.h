/* SPDX-License-Identifier: MIT */
/*
 * What stands between respond_* and the client: transforms of an answer's body, listed in registry.c in the order
 * bytes pass them. A filter decides once, when the head is complete, whether it takes part in an answer. It does no
 * I/O, never waits and never closes; filter.c calls it and passes on what comes out.
 */
#ifndef SERVE_FILTER_H
#define SERVE_FILTER_H

#include "base/buf.h"
#include "serve/request.h"

/* Where a filter puts bytes: p[n] is the next one. */
struct filter_out {
    char *p;
    size_t cap, n;
};

struct filter {
    const char *name;
    /* Per-loop state, made with the worker and handed back at its end. open returns NULL when memory is out. */
    void *(*open)(struct worker *w);
    void (*close)(struct worker *w, void *state);
    /* r->resp is complete and r->resp.bodyless is right. Edits the head as a GET would have it; returns what body and
     * free get, or NULL: the body stays as it is (always for a bodyless answer). */
    void *(*head)(struct request *r, void *state);
    /* Takes bytes from *in and puts their transform into out. True: *in is used up and whatever `how` makes due has
     * come out (PAUSE: all that is needed to read what went in; LAST: all). False: out is full; call again with the
     * same `how`. */
    bool (*body)(void *use, struct str *in, enum how how, struct filter_out *out);
    void (*free)(void *state, void *use);
};

/* respond.c's way through the filters. begin: once, before the head goes out. False: out of memory; the head now
 * announces a body that will not come. */
bool filter_begin(struct request *r) MUST_USE;
/* As respond_body, for r->filtering not NULL. trailers, which may be NULL, go with HOW_LAST. */
enum io filter_body(struct request *r, struct str bytes, enum how how, const struct fields *trailers) MUST_USE;
/* As respond_file. The range is read in pieces, a bounded part of it in a turn of the loop. */
enum io filter_file(struct request *r, struct chunk file, enum how how) MUST_USE;
/* The client has drained: goes on with a file begun before. True: nothing of that is left and the handler's turn has
 * come. */
bool filter_resume(struct request *r) MUST_USE;
/* Gives back whatever is held. Idempotent. */
void filter_release(struct request *r);

#endif
