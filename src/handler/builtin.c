/* SPDX-License-Identifier: MIT */
/*
 * Answers about the server itself. Owns nothing; the answer is complete when start returns.
 *
 * "ready" is for the balancer or orchestrator in front: 200 while new connections are welcome, 503 from the moment the
 * server drains, though requests in flight are still answered. It must never come from a cache.
 * The other kinds (status, metrics, stub_status) are accepted in the configuration and answer 404.
 */
#include "handler/builtin.h"

#include "serve/respond.h"

static enum handled builtin_start(struct request *r)
{
    if (r->action->u.builtin != BUILTIN_READY) {
        request_fail(r, FAIL_NOT_FOUND, 0, "this builtin is not part of this version");
        return HANDLED;
    }
    bool draining = r->w->shared && atomic_load_explicit(&r->w->shared->unready, memory_order_relaxed);
    respond_field(r, F_CACHE_CONTROL, STR("no-store"));
    respond_simple(r, draining ? 503 : 200, STR("text/plain; charset=utf-8"),
                   draining ? STR("draining\n") : STR("ready\n"));
    return HANDLED;
}

const struct handler builtin_handler = { .name = "builtin", .start = builtin_start };
