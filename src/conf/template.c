/* SPDX-License-Identifier: MIT */
/*
 * Texts with $variables, compiled to pieces at load so that a request only appends. Names are nginx's (vars.def); a
 * name that ends in _ is a family, whose member is kept beside the piece in the form its users look it up by. $1 to $9
 * are captures of the location's regular expression; "$$" is a dollar. A template is one line: a line break in it would
 * end a header field early (RFC 9110 §5.5).
 */
#include "conf/load.h"

static const struct {
    enum var_id id;
    struct str name;
} vars[] = {
#define VAR(id, name, doc) { VAR_##id, { name, sizeof name - 1 } },
#include "conf/vars.def"
#undef VAR
};

enum { PIECES_MAX = 256 };

static bool is_var_part(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

/* The variable of that name; false: none. `rest` is what a family's name goes on with. */
static bool var_find(struct str name, enum var_id *id, struct str *rest)
{
    for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
        bool is_family = str_ends(vars[i].name, STR("_"));
        *id = vars[i].id;
        if (vars[i].id == VAR_CAPTURE)
            continue;
        if (!is_family && str_eq(name, vars[i].name)) {
            *rest = STR_NONE;
            return true;
        }
        if (is_family && name.n > vars[i].name.n && str_starts(name, vars[i].name)) {
            *rest = str_skip(name, vars[i].name.n);
            return true;
        }
    }
    return false;
}

/* A family's rest as the field tables know it: lower case, '-' for '_' where field names have it. */
static struct str member_name(struct load *ld, enum var_id id, struct str rest)
{
    char *name = load_alloc(ld, rest.n + 1);
    for (size_t i = 0; i < rest.n; i++) {
        bool is_field = id == VAR_HTTP || id == VAR_SENT_HTTP;
        name[i] = !is_field ? rest.p[i] : rest.p[i] == '_' ? '-' : ascii_lower(rest.p[i]);
    }
    return str_of(name, rest.n);
}

static void unknown_var(const struct value *v, struct str name)
{
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < ARRAY_LEN(vars); i++)
        if (!str_eq(vars[i].name, name)) /* a family without a member */
            nearest_offer(&nearest, vars[i].name);
    if (name.n == 0)
        diag_bad(v, "a $ without a name; expected a variable such as $host, or $$ for a dollar");
    else if (nearest.best.n > 0)
        diag_bad(v, "no variable $%.*s; did you mean $%.*s?", STR_ARG(name), STR_ARG(nearest.best));
    else
        diag_bad(v, "no variable $%.*s; expected one of those in proxy.conf(5), or $$ for a dollar", STR_ARG(name));
}

/* At a '$' (text.p[0]); how much was read. *ok becomes false if it is no variable, which was said. */
static size_t read_var(const struct value *v, struct str text, struct template_piece *piece, bool *ok)
{
    if (text.n > 1 && text.p[1] == '$') {
        *piece = (struct template_piece){ VAR_LITERAL, str_take(text, 1) };
        return 2;
    }
    if (text.n > 1 && text.p[1] >= '1' && text.p[1] <= '9') {
        *piece = (struct template_piece){ VAR_CAPTURE, str_of(text.p + 1, 1) };
        return 2;
    }
    size_t n = 1;
    while (n < text.n && is_var_part(text.p[n]))
        n++;
    struct str name = str_of(text.p + 1, n - 1), rest;
    enum var_id id;
    if (!var_find(name, &id, &rest)) {
        unknown_var(v, str_take(name, 60));
        *ok = false;
        return n;
    }
    *piece = (struct template_piece){ id, rest.n > 0 ? member_name(v->ld, id, rest) : STR_NONE };
    return n;
}

bool template_compile(const struct value *v, struct str text, struct template *out)
{
    unsigned n = 0, n_dollars = 0;
    for (size_t i = 0; i < text.n; i++)
        n_dollars += text.p[i] == '$';
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.p[i] >= 0x20 || text.p[i] == '\t')
            continue;
        diag_bad(v, "a line break or control character in it; expected a single line");
        return false;
    }
    if (n_dollars > PIECES_MAX / 2) {
        diag_bad(v, "too many variables; expected at most %d", PIECES_MAX / 2);
        return false;
    }
    struct template_piece *pieces = load_array(v->ld, struct template_piece, 2 * n_dollars + 1);
    bool ok = true;
    for (size_t i = 0; i < text.n;) {
        if (text.p[i] == '$') {
            i += read_var(v, str_skip(text, i), &pieces[n++], &ok);
            continue;
        }
        ptrdiff_t dollar = str_chr(text, '$', i);
        size_t stop = dollar < 0 ? text.n : (size_t)dollar;
        pieces[n++] = (struct template_piece){ VAR_LITERAL, str_of(text.p + i, stop - i) };
        i = stop;
    }
    *out = (struct template){ .pieces = pieces, .n = n, .source = text };
    return ok;
}

struct str template_var_name(enum var_id id)
{
    for (size_t i = 0; i < ARRAY_LEN(vars); i++)
        if (vars[i].id == id)
            return vars[i].name;
    return STR_NONE;
}

unsigned template_captures(const struct template *t)
{
    unsigned highest = 0;
    for (unsigned i = 0; i < t->n; i++) {
        unsigned capture = t->pieces[i].var == VAR_CAPTURE ? (unsigned)(t->pieces[i].text.p[0] - '0') : 0;
        if (capture > highest)
            highest = capture;
    }
    return highest;
}
