/* SPDX-License-Identifier: MIT */
/*
 * Header rules at work. They were merged when the configuration was loaded (conf/headers.c), so here they apply one
 * after the other: the values of a rule are made first, from the message as the rules before have left it; then the
 * lines it replaces go; then its own come, at the end of the list. A line whose value is empty is left out, as in
 * nginx.
 *
 * No value can end a line: conf/template.c refuses control characters in what is written, and serve/vars.c
 * percent-encodes those that a variable brings along (RFC 9110 §5.5, RFC 9112 §11.1). Fields that frame a message never
 * come here; conf/headers.c refuses rules for them.
 *
 * A rule for a request also removes what a client calls the same with '_' for '-': many applications cannot tell them
 * apart, and would take the client's for weir's.
 *
 * The answer with a file has most of its fields as ready-made lines (response.block). A rule takes its field out of
 * there and says it among the others, so that the two are never both sent. Filters come after the rules and correct
 * what is said of a body that they change.
 */
#include "serve/header_rules.h"

#include "serve/vars.h"

/* Is this line of a block one of that field? */
static bool is_line_of(struct str line, struct str name)
{
    return line.n > name.n && line.p[name.n] == ':' && str_eq_nocase(str_take(line, name.n), name);
}

static struct str next_line(struct str *rest)
{
    ptrdiff_t lf = str_chr(*rest, '\n', 0);
    struct str line = str_take(*rest, lf < 0 ? rest->n : (size_t)lf + 1);
    *rest = str_skip(*rest, line.n);
    return line;
}

static bool block_has(struct str block, struct str name)
{
    while (block.n > 0)
        if (is_line_of(next_line(&block), name))
            return true;
    return false;
}

/* Takes the field out of the ready-made lines, which others may share. False: out of memory. */
static bool cut_from_block(struct request *r, struct str name)
{
    struct str rest = r->resp.block;
    if (!block_has(rest, name))
        return true;
    char *kept = arena_alloc(&r->arena, rest.n);
    size_t n = 0;
    if (kept == NULL)
        return false;
    while (rest.n > 0) {
        struct str line = next_line(&rest);
        if (is_line_of(line, name))
            continue;
        memcpy(kept + n, line.p, line.n);
        n += line.n;
    }
    r->resp.block = str_of(kept, n);
    return true;
}

/* The rule's values for this request; NULL: out of memory. */
static struct str *make_values(struct request *r, const struct header_rule *rule)
{
    struct str *values = arena_array(&r->arena, struct str, rule->n_values + 1);
    for (unsigned i = 0; values != NULL && i < rule->n_values; i++) {
        values[i] = vars_eval_field(r, &rule->values[i]);
        if (values[i].p == NULL)
            return NULL;
    }
    return values;
}

static bool add_lines(struct request *r, const struct header_rule *rule, const struct str *values, struct fields *f)
{
    enum field_id id = field_id_of(rule->name);
    for (unsigned i = 0; i < rule->n_values; i++)
        if (values[i].n > 0 && !fields_add(f, &r->arena, rule->name, values[i], id))
            return false;
    return true;
}

/* ---- the request ---- */

/* There is exactly one Host, and the first line stays the first. A value that is no host, as a variable may have it,
 * leaves the client's. */
static void set_host(struct fields *f, struct str value)
{
    struct str name;
    uint16_t port;
    if (value.n == 0 || !host_parse(value, &name, &port))
        return;
    for (unsigned i = 0; i < f->n; i++)
        if (f->v[i].id == F_HOST)
            f->v[i].value = value;
}

bool header_rules_request(struct request *r, struct fields *f)
{
    for (unsigned i = 0; i < r->s->n_request_headers; i++) {
        const struct header_rule *rule = &r->s->request_headers[i];
        struct str *values = make_values(r, rule);
        if (values == NULL)
            return false;
        if (field_id_of(rule->name) == F_HOST) {
            set_host(f, values[0]);
            continue;
        }
        fields_remove_cgi_name(f, rule->name);
        if (!add_lines(r, rule, values, f))
            return false;
    }
    return true;
}

/* ---- the answer ---- */

/* For explain: the lines of the rule, or that it takes the field away. */
static void note(struct request *r, const struct header_rule *rule, const struct str *values)
{
    bool has_line = false;
    for (unsigned i = 0; r->trace && i < rule->n_values; i++) {
        if (values[i].n == 0)
            continue;
        request_note(r, "field", arena_printf(&r->arena, "%.*s: %.*s", STR_ARG(rule->name), STR_ARG(values[i])),
                     rule->where);
        has_line = true;
    }
    if (!has_line && !rule->append)
        request_note(r, "no field", rule->name, rule->where);
}

static bool apply(struct request *r, const struct header_rule *rule)
{
    struct response *p = &r->resp;
    enum field_id id = field_id_of(rule->name);
    struct str *values = make_values(r, rule);
    if (values == NULL)
        return false;
    if (!rule->append) {
        if (!cut_from_block(r, rule->name))
            return false;
        fields_remove_name(&p->fields, rule->name);
    }
    if (!add_lines(r, rule, values, &p->fields))
        return false;
    const struct field *now = id == F_OTHER ? NULL : fields_get(&p->fields, id);
    if (id == F_CONTENT_TYPE)
        p->type = now != NULL ? now->value : STR_NONE;
    if (id == F_SERVER)
        p->is_own &= now != NULL;
    note(r, rule, values);
    return true;
}

/* Puts what a backend said of a file in the place of what the file says of itself (proxy_instead.c). What describes the
 * content goes with the file alone, not with an error page. */
static bool carry(struct request *r)
{
    struct response *p = &r->resp;
    bool is_file = p->status == 200 || p->status == 206 || p->status == 304;
    for (unsigned i = 0; is_file && i < r->carried->n; i++) {
        const struct field *f = &r->carried->v[i];
        if (f->id == F_SET_COOKIE || f->id == F_CONTENT_TYPE)
            continue;
        if (!cut_from_block(r, f->name))
            return false;
        fields_remove(&p->fields, f->id);
    }
    for (unsigned i = 0; i < r->carried->n; i++) {
        const struct field *f = &r->carried->v[i];
        bool is_type = f->id == F_CONTENT_TYPE;
        /* A list of parts has a type of its own, and a 304 none. */
        if (f->id != F_SET_COOKIE && (!is_file || (is_type && !block_has(p->block, f->name))))
            continue;
        if (is_type && !cut_from_block(r, f->name))
            return false;
        if (is_type)
            p->type = f->value;
        if (!fields_add(&p->fields, &r->arena, f->name, f->value, f->id))
            return false;
    }
    return true;
}

void header_rules_answer(struct request *r)
{
    if (r->carried != NULL && !carry(r))
        request_log(r, LOG_ERROR, 0, "out of memory for a response field");
    for (unsigned i = 0; i < r->s->n_response_headers; i++)
        if (!apply(r, &r->s->response_headers[i]))
            request_log(r, LOG_ERROR, 0, "out of memory for a response field");
}
