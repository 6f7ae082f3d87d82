/* SPDX-License-Identifier: MIT */
/*
 * The target of a request as a backend gets it. Without a rule that is what came, byte for byte; strip_prefix cuts some
 * of it off (http/target.c keeps the rest as it came wherever that means the same), rewrite makes a new one.
 *
 * What rewrite makes is judged like a target that a client sends, before a backend sees it: a variable may hold bytes
 * that cannot stand there, or dots that lead elsewhere. Parts of the decoded path ($uri, $1 to $9) are encoded again.
 * The query is kept unless the template says something about it; one that ends in '?' drops it, as in nginx.
 */
#include "handler/proxy_target.h"

#include "serve/vars.h"

/* Does the template say what the query is? */
static bool has_query(const struct template *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        const struct template_piece *v = &t->pieces[i];
        if (v->var == VAR_IS_ARGS || v->var == VAR_REQUEST_URI ||
            (v->var == VAR_LITERAL && str_chr(v->text, '?', 0) >= 0))
            return true;
    }
    return false;
}

static enum fail rewrite(struct request *r, struct str *out)
{
    const struct template *t = &r->s->rewrite;
    struct str to = vars_eval_url(r, t);
    struct target judged;
    if (to.p == NULL)
        return FAIL_NO_MEMORY;
    if (!has_query(t) && r->target.has_query)
        to = arena_printf(&r->arena, "%.*s?%.*s", STR_ARG(to), STR_ARG(r->target.query));
    else if (has_query(t) && str_ends(to, STR("?")))
        to = str_take(to, to.n - 1);
    if (to.p == NULL)
        return FAIL_NO_MEMORY;
    enum target_result result = target_parse(&judged, to, METHOD_GET, &r->arena);
    if (result == TARGET_NO_MEMORY)
        return FAIL_NO_MEMORY;
    if (result != TARGET_OK || judged.form != TARGET_ORIGIN || judged.tricky)
        return FAIL_REWRITE_MALFORMED;
    *out = to;
    return FAIL_NONE;
}

enum fail proxy_target(struct request *r, struct str *out)
{
    const struct scope_conf *s = r->s;
    *out = r->target.raw;
    if (LIKELY(s->rewrite.n == 0 && s->strip_prefix.n == 0) || r->target.form == TARGET_ASTERISK)
        return FAIL_NONE;
    if (s->rewrite.n > 0)
        return rewrite(r, out);
    *out = target_cut(&r->target, s->strip_prefix, &r->arena);
    return out->p != NULL ? FAIL_NONE : FAIL_NO_MEMORY;
}
