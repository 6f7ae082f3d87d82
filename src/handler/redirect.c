/* SPDX-License-Identifier: MIT */
/*
 * Redirects that stand in the configuration. Owns nothing: the target lives in the request's arena, the answer is
 * complete when start returns. Without a status of its own it is 301 for GET and HEAD and 308 for every other method,
 * because clients turn a POST into a GET after 301 (RFC 9110 §15.4.2, §15.4.9).
 */
#include "handler/redirect.h"

#include "serve/respond.h"
#include "serve/vars.h"

/* A path that begins with two slashes, or with the backslash that browsers take for one, leads to another host (RFC 3986
 * §4.2). Only the configuration may say so, not what a client puts into $request_uri or a capture. */
static struct str keep_here(struct request *r, const struct template *t, struct str to)
{
    bool is_written = t->n > 0 && t->pieces[0].var == VAR_LITERAL && t->pieces[0].text.n > 1;
    size_t n = 1;
    while (n < to.n && (to.p[n] == '/' || to.p[n] == '\\'))
        n++;
    if (is_written || n == 1 || to.n == 0 || to.p[0] != '/')
        return to;
    return arena_printf(&r->arena, "/%.*s", STR_ARG(str_skip(to, n)));
}

static enum handled redirect_start(struct request *r)
{
    const struct action *a = r->action;
    bool is_get = r->head->method == METHOD_GET || r->head->method == METHOD_HEAD;
    uint16_t status = a->u.redirect.status ? a->u.redirect.status : is_get ? 301 : 308;
    struct str to = vars_eval_url(r, &a->u.redirect.to);
    if (to.p != NULL)
        to = keep_here(r, &a->u.redirect.to, to);
    if (to.p == NULL) {
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
        return HANDLED;
    }
    request_note(r, "redirect", to, a->where);
    respond_redirect(r, status, to);
    return HANDLED;
}

const struct handler redirect_handler = { .name = "redirect", .start = redirect_start };
