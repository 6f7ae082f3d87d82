/* SPDX-License-Identifier: MIT */
/*
 * Reading X-Forwarded-For and Forwarded (RFC 7239) from the right: what stands last was written by the peer, what stands
 * before it was said to it, and so on; so an entry is worth what the address is worth that said it. Lists are split from the
 * right too, quotes included: whatever a client has put at the front (an open quote, say) cannot change how the entry is
 * read that a trusted proxy has put behind it. Several lines of a field are one list (RFC 9110 §5.3).
 *
 * Pure functions over spans; nothing is kept.
 */
#include "http/forwarded.h"

#include "http/chars.h"

/* The lines of one field, last to first, and what is left of the present one. */
struct walk {
    const struct fields *f;
    enum field_id id;
    unsigned i; /* lines not begun yet */
    struct str rest;
};

/* Is the quote at s.p[i] escaped? */
static bool is_escaped(struct str s, size_t i)
{
    size_t n = 0;
    while (n < i && s.p[i - 1 - n] == '\\')
        n++;
    return n % 2 == 1;
}

/* Where the last member of the list begins. */
static size_t last_member(struct str s, bool has_quotes)
{
    bool is_quoted = false;
    for (size_t i = s.n; i > 0; i--) {
        char c = s.p[i - 1];
        if (c == ',' && !is_quoted)
            return i;
        if (has_quotes && c == '"' && !(is_quoted && is_escaped(s, i - 1)))
            is_quoted = !is_quoted;
    }
    return 0;
}

static bool take_last(struct walk *w, struct str *member)
{
    for (;;) {
        while (w->rest.n == 0) {
            if (w->i == 0)
                return false;
            const struct field *line = &w->f->v[--w->i];
            if (line->id == w->id)
                w->rest = line->value;
        }
        size_t at = last_member(w->rest, w->id == F_FORWARDED);
        *member = str_trim(str_skip(w->rest, at));
        w->rest = str_take(w->rest, at > 0 ? at - 1 : 0);
        if (member->n > 0)
            return true;
    }
}

static bool port_parse(struct str s, uint16_t *port)
{
    uint64_t n;
    if (s.n > 5 || !str_to_u64(s, &n) || n > UINT16_MAX)
        return false;
    *port = (uint16_t)n;
    return true;
}

/* "192.0.2.7", "192.0.2.7:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80" */
static bool node_parse(struct str s, struct ip *out)
{
    if (ip_parse(s, out))
        return true;
    bool has_brackets = s.n > 0 && s.p[0] == '[';
    ptrdiff_t end = has_brackets ? str_chr(s, ']', 0) : str_chr(s, ':', 0);
    if (end < 0)
        return false;
    struct str host = has_brackets ? str_of(s.p + 1, (size_t)end - 1) : str_take(s, (size_t)end);
    struct str port = str_skip(s, (size_t)end + (has_brackets ? 1 : 0));
    if (!ip_parse(host, out) || has_brackets != (str_chr(host, ':', 0) >= 0))
        return false;
    if (port.n == 0)
        return has_brackets;
    return port.p[0] == ':' && port_parse(str_skip(port, 1), &out->port);
}

/* What an element of Forwarded says that weir wants to know. */
struct element {
    struct str node, scheme;
};

/* A quoted string without its quotes; escapes stay, and then it is no node. */
static bool take_value(struct str *s, struct str *value)
{
    size_t n = 0;
    if (s->n > 0 && s->p[0] == '"') {
        for (n = 1; n < s->n && s->p[n] != '"'; n++)
            if (s->p[n] == '\\')
                n++;
        if (n >= s->n)
            return false;
        *value = str_of(s->p + 1, n - 1);
        n++;
    } else {
        while (n < s->n && s->p[n] != ';' && s->p[n] != ' ' && s->p[n] != '\t' && s->p[n] != '"')
            n++;
        *value = str_take(*s, n);
    }
    *s = str_trim(str_skip(*s, n));
    return value->n > 0;
}

/* name=value pairs between semicolons, each name once. */
static bool element_parse(struct str s, struct element *e)
{
    *e = (struct element){ 0 };
    while (s.n > 0) {
        ptrdiff_t equals = str_chr(s, '=', 0);
        if (equals <= 0)
            return false;
        struct str name = str_take(s, (size_t)equals), value;
        s = str_skip(s, name.n + 1);
        if (!is_token(name) || !take_value(&s, &value))
            return false;
        struct str *member = str_eq_nocase(name, STR("for")) ? &e->node
            : str_eq_nocase(name, STR("proto"))              ? &e->scheme
                                                             : NULL;
        if (member != NULL && member->n > 0)
            return false;
        if (member != NULL)
            *member = value;
        if (s.n > 0 && s.p[0] != ';')
            return false;
        s = str_trim(str_skip(s, 1));
    }
    return true;
}

/* wss is what some proxies say of a WebSocket. */
static void note_scheme(struct forwarded *out, struct str scheme)
{
    bool is_https = str_eq_nocase(scheme, STR("https")) || str_eq_nocase(scheme, STR("wss"));
    if (!is_https && !str_eq_nocase(scheme, STR("http")) && !str_eq_nocase(scheme, STR("ws")))
        return;
    out->has_scheme = true;
    out->is_https = is_https;
}

/* X-Forwarded-Proto has one value, or one for each hop. */
static void read_scheme(const struct fields *f, unsigned hops, struct forwarded *out)
{
    struct walk w = { .f = f, .id = F_X_FORWARDED_PROTO, .i = f->n };
    struct str member;
    for (unsigned i = 0; i < (hops > 0 ? hops : 1) && take_last(&w, &member); i++)
        note_scheme(out, member);
}

struct forwarded forwarded_read(const struct fields *f, const struct ip *peer, const struct cidr *trusted, unsigned n_trusted)
{
    struct forwarded out = { .client = *peer };
    bool is_plain = fields_get(f, F_X_FORWARDED_FOR) != NULL;
    struct walk w = { .f = f, .id = is_plain ? F_X_FORWARDED_FOR : F_FORWARDED, .i = f->n };
    struct str member;
    unsigned hops = 0;
    if (!is_plain && fields_get(f, F_FORWARDED) == NULL)
        w.i = 0;
    while (hops < FORWARDED_HOPS && cidrs_have(trusted, n_trusted, &out.client) && take_last(&w, &member)) {
        struct element e = { .node = member };
        struct ip ip = { 0 };
        if (!is_plain && !element_parse(member, &e))
            break;
        note_scheme(&out, e.scheme);
        if (!node_parse(e.node, &ip))
            break;
        out.client = ip;
        hops++;
    }
    if (fields_get(f, F_X_FORWARDED_PROTO) != NULL)
        read_scheme(f, hops, &out);
    return out;
}

bool is_request_id(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = ascii_lower(s.p[i]);
        if (!(c >= 'a' && c <= 'z') && !is_digit(c) && (c == '\0' || strchr("+-./:=@_~", c) == NULL))
            return false;
    }
    return s.n > 0 && s.n <= 128;
}
