/* SPDX-License-Identifier: MIT */
/*
 * Who answers a request: one vtable for each kind of action, listed in registry.c in the order of enum action_kind.
 * Order of calls: start once; if HANDLED, then body (only after request_want_body; never from inside start) and resume as they come, until
 * the handler has called respond_end, request_fail or request_reroute, or abort is called. After any of those no call comes.
 */
#ifndef SERVE_HANDLER_H
#define SERVE_HANDLER_H

#include "serve/request.h"

enum handled {
    HANDLED,  /* this handler answers, now or later */
    DECLINED, /* not mine: the location's next action; nothing was done */
};

struct handler {
    const char *name;
    /* Per-loop state, made with the worker and handed back at its end; both may be NULL. open returns NULL when memory is out. */
    void *(*open)(struct worker *w);
    void (*close)(struct worker *w, void *state);
    /* A configuration is about to go into force: read what it names, so that no loop has to. Called on the loader's
     * thread, and by open for the first one. May be NULL. */
    void (*prepare)(const struct conf *c);
    /* The worker drains: what would not end by itself is to end within so many ms. May be NULL. */
    void (*drain)(struct worker *w, void *state, uint64_t ms);
    enum handled (*start)(struct request *r);
    /* Request body bytes (borrowed for the call; all are taken); last: the body ends with them (they may be empty). IO_OK or IO_AGAIN: no
     * more until request_body_resume. NULL: the handler never wants a body; the client discards it. */
    enum io (*body)(struct request *r, struct str bytes, bool last);
    /* The client has drained after IO_AGAIN: produce more. Called by the loop, never from inside a respond_ function. */
    void (*resume)(struct request *r);
    /* The client is gone or the request has failed: release everything now, do not respond. */
    void (*abort)(struct request *r);
};

#endif
