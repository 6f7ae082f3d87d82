/* SPDX-License-Identifier: MIT */
/*
 * The request target: what a backend gets byte for byte, and the path that routing and files use (RFC 9112 §3.2, RFC
 * 3986 §2.1, §5.2.4), both from the same bytes. Also Host, whose grammar is that of a target's authority.
 * The path is decoded exactly once; then its dot segments are resolved; then runs of slashes become one. A path that
 * needs none of this is raw_path itself: nothing is copied. Everything else is made in the arena.
 * The danger is a backend that resolves the raw bytes to another path than the one that was judged here. Such a
 * target is `tricky`: resolving before decoding gives another path than after, or ".." takes back an empty segment,
 * which one reader drops with the slash before it and another has merged away.
 */
#include "http/target.h"

#include <arpa/inet.h>

#include "http/chars.h"

/* Resolves "." and ".." segments in place; p[0] is '/'. Returns the new length, -1 above the root. *took_empty is set
 * if ".." removed an empty segment. */
static ptrdiff_t resolve_dots(char *p, size_t n, bool *took_empty)
{
    size_t out = 0, in = 0;
    while (in < n) { /* p[in] is '/', p[0..out) has no slash at its end */
        size_t end = in + 1;
        while (end < n && p[end] != '/')
            end++;
        size_t len = end - in - 1;
        bool is_dot = len == 1 && p[in + 1] == '.';
        bool is_up = len == 2 && p[in + 1] == '.' && p[in + 2] == '.';
        if (is_up) {
            if (out == 0)
                return -1;
            *took_empty |= p[out - 1] == '/';
            while (p[--out] != '/')
                continue;
        } else if (!is_dot) {
            memmove(p + out, p + in, end - in);
            out += end - in;
        }
        if ((is_dot || is_up) && end == n) /* a dot segment at the end names a directory */
            p[out++] = '/';
        in = end;
    }
    return (ptrdiff_t)out;
}

static size_t merge_slashes(char *p, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++)
        if (p[i] != '/' || out == 0 || p[out - 1] != '/')
            p[out++] = p[i];
    return out;
}

/* Decodes into out (n bytes of room). *specials: was a '/' or a '.' among what was encoded? -1: bad escape or NUL. */
static ptrdiff_t decode(char *out, const char *p, size_t n, bool *specials)
{
    size_t o = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '%') {
            out[o++] = p[i];
            continue;
        }
        int high = i + 2 < n ? hex_value(p[i + 1]) : -1;
        int low = i + 2 < n ? hex_value(p[i + 2]) : -1;
        if (high < 0 || low < 0 || (high | low) == 0)
            return -1;
        char c = (char)(high << 4 | low);
        *specials |= c == '/' || c == '.';
        out[o++] = c;
        i += 2;
    }
    return (ptrdiff_t)o;
}

/* Does it come to another path to resolve the raw bytes first and decode then? `path`: decoded and resolved. */
static enum target_result compare_orders(struct target *t, struct str path, struct arena *a)
{
    struct str raw = arena_dup(a, t->raw_path);
    char *decoded = arena_alloc(a, raw.n + 1);
    if (raw.p == NULL || decoded == NULL)
        return TARGET_NO_MEMORY;
    bool ignored = false;
    ptrdiff_t n = resolve_dots((char *)(uintptr_t)raw.p, raw.n, &ignored);
    if (n >= 0)
        n = decode(decoded, raw.p, (size_t)n, &ignored);
    t->tricky |= n < 0 || !str_eq(str_of(decoded, (size_t)n), path);
    return TARGET_OK;
}

static enum target_result make_path(struct target *t, struct arena *a)
{
    char *p = arena_alloc(a, t->raw_path.n + 1);
    if (p == NULL)
        return TARGET_NO_MEMORY;
    bool specials = false, took_empty = false;
    ptrdiff_t n = decode(p, t->raw_path.p, t->raw_path.n, &specials);
    if (n < 0)
        return TARGET_BAD;
    n = resolve_dots(p, (size_t)n, &took_empty);
    if (n < 0)
        return TARGET_ABOVE_ROOT;
    t->tricky = took_empty;
    if (specials) {
        enum target_result result = compare_orders(t, str_of(p, (size_t)n), a);
        if (result != TARGET_OK)
            return result;
    }
    t->path = str_of(p, merge_slashes(p, (size_t)n));
    return TARGET_OK;
}

/* origin-form: path from '/', query. */
static enum target_result parse_origin(struct target *t, struct arena *a)
{
    struct str raw = t->raw;
    bool is_plain = true;
    char before = 0;
    size_t i = 0;
    for (; i < raw.n && raw.p[i] != '?'; i++) {
        char c = raw.p[i];
        if (!char_is(c, CHAR_TARGET))
            return TARGET_BAD;
        is_plain &= c != '%' && !(before == '/' && (c == '/' || c == '.'));
        before = c;
    }
    t->raw_path = str_take(raw, i);
    t->has_query = i < raw.n;
    t->query = str_skip(raw, i + 1);
    if (!chars_are(t->query, CHAR_TARGET))
        return TARGET_BAD;
    t->path = t->raw_path;
    return is_plain ? TARGET_OK : make_path(t, a);
}

static bool take_scheme(struct str *s)
{
    if (s->n >= 7 && str_eq_nocase(str_take(*s, 7), STR("http://")))
        *s = str_skip(*s, 7);
    else if (s->n >= 8 && str_eq_nocase(str_take(*s, 8), STR("https://")))
        *s = str_skip(*s, 8);
    else
        return false;
    return true;
}

/* "*": the server itself. */
static enum target_result name_server(struct target *t)
{
    t->form = TARGET_ASTERISK;
    t->raw = t->raw_path = STR("*");
    t->path = STR("/");
    return TARGET_OK;
}

static enum target_result parse_absolute(struct target *t, struct str rest, enum method m, struct arena *a)
{
    size_t i = 0;
    while (i < rest.n && rest.p[i] != '/' && rest.p[i] != '?')
        i++;
    struct str name;
    uint16_t port;
    t->form = TARGET_ABSOLUTE;
    t->authority = str_take(rest, i);
    if (!host_parse(t->authority, &name, &port))
        return TARGET_BAD;
    t->raw = str_skip(rest, i);
    if (t->raw.n == 0 && m == METHOD_OPTIONS)
        return name_server(t); /* RFC 9112 §3.2.4 */
    if (t->raw.n == 0) {
        t->raw = STR("/");
    } else if (t->raw.p[0] == '?') {
        char *p = arena_alloc(a, t->raw.n + 1);
        if (p == NULL)
            return TARGET_NO_MEMORY;
        p[0] = '/';
        memcpy(p + 1, t->raw.p, t->raw.n);
        t->raw = str_of(p, t->raw.n + 1);
    }
    return parse_origin(t, a);
}

static enum target_result parse_authority(struct target *t)
{
    struct str name;
    uint16_t port;
    t->form = TARGET_AUTHORITY;
    t->authority = t->raw;
    t->raw_path = t->raw;
    t->path = STR("/");
    return host_parse(t->raw, &name, &port) && port != 0 ? TARGET_OK : TARGET_BAD;
}

enum target_result target_parse(struct target *t, struct str raw, enum method m, struct arena *a)
{
    *t = (struct target){ .form = TARGET_ORIGIN, .raw = raw };
    if (m == METHOD_CONNECT)
        return parse_authority(t);
    if (raw.n > 0 && raw.p[0] == '/')
        return parse_origin(t, a);
    if (str_eq(raw, STR("*")))
        return m == METHOD_OPTIONS ? name_server(t) : TARGET_BAD;
    struct str rest = raw;
    return take_scheme(&rest) ? parse_absolute(t, rest, m, a) : TARGET_BAD;
}

/* The end of "[v6]" at the start of s, 0 if there is none. */
static size_t literal_end(struct str s)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    ptrdiff_t end = str_chr(s, ']', 0);
    if (end < 2 || end > INET6_ADDRSTRLEN)
        return 0;
    memcpy(text, s.p + 1, (size_t)end - 1);
    text[end - 1] = '\0';
    if (memchr(text, '\0', (size_t)end - 1) != NULL || inet_pton(AF_INET6, text, &ignored) != 1)
        return 0;
    return (size_t)end + 1;
}

/* The end of a reg-name (which IPv4 addresses are, too). */
static size_t name_end(struct str s)
{
    size_t i = 0;
    while (i < s.n) {
        if (char_is(s.p[i], CHAR_HOST))
            i++;
        else if (s.p[i] == '%' && i + 2 < s.n && hex_value(s.p[i + 1]) >= 0 && hex_value(s.p[i + 2]) >= 0)
            i += 3;
        else
            break;
    }
    return i;
}

bool host_parse(struct str value, struct str *name, uint16_t *port)
{
    size_t end = value.n > 0 && value.p[0] == '[' ? literal_end(value) : name_end(value);
    if (end == 0)
        return false;
    *name = str_take(value, end);
    *port = 0;
    if (end == value.n)
        return true;
    struct str digits = str_skip(value, end + 1);
    uint64_t number = 0;
    if (value.p[end] != ':' || (digits.n > 0 && (!str_to_u64(digits, &number) || number > UINT16_MAX)))
        return false;
    *port = (uint16_t)number;
    return true;
}

/* What stands for itself in a path does so here, except for these bytes. */
static struct str encode(struct arena *a, struct str path, struct str except)
{
    static const char hex[16] = { '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F' };
    char *out = path.n < SIZE_MAX / 3 ? arena_alloc(a, 3 * path.n + 1) : NULL;
    if (out == NULL)
        return STR_NONE;
    size_t n = 0;
    for (size_t i = 0; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];
        if (char_is((char)c, CHAR_PATH) && str_chr(except, (char)c, 0) < 0) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    return str_of(out, n);
}

struct str path_encode(struct arena *a, struct str path)
{
    return encode(a, path, STR_NONE);
}

struct str query_encode(struct arena *a, struct str text)
{
    return encode(a, text, STR("&+;"));
}

/* The encoded path, and behind it the query as it came. */
static struct str join(const struct target *t, struct str raw_path, struct arena *a)
{
    struct str tail = str_skip(t->raw, t->raw_path.n);
    char *out = raw_path.p != NULL ? arena_alloc(a, raw_path.n + tail.n + 1) : NULL;
    if (out == NULL)
        return STR_NONE;
    memcpy(out, raw_path.p, raw_path.n);
    if (tail.n > 0)
        memcpy(out + raw_path.n, tail.p, tail.n);
    return str_of(out, raw_path.n + tail.n);
}

bool target_make(struct target *t, struct str path, struct arena *a)
{
    struct str raw_path = path_encode(a, path), raw = join(t, raw_path, a);
    if (raw.p == NULL)
        return false;
    t->form = t->authority.n > 0 ? TARGET_ABSOLUTE : TARGET_ORIGIN;
    t->raw = raw;
    t->raw_path = str_take(raw, raw_path.n);
    t->query = str_skip(raw, raw_path.n + t->has_query);
    t->path = path;
    t->tricky = false;
    return true;
}

/* How many of the raw bytes are this prefix of the decoded path; -1: they begin with something else. */
static ptrdiff_t raw_length(struct str raw, struct str prefix)
{
    size_t i = 0;
    for (size_t k = 0; k < prefix.n; k++) {
        if (i >= raw.n)
            return -1;
        bool is_escape = raw.p[i] == '%';
        int c = is_escape ? hex_value(raw.p[i + 1]) << 4 | hex_value(raw.p[i + 2]) : (unsigned char)raw.p[i];
        if (c != (unsigned char)prefix.p[k])
            return -1;
        i += is_escape ? 3 : 1;
    }
    return (ptrdiff_t)i;
}

struct str target_cut(const struct target *t, struct str prefix, struct arena *a)
{
    if (prefix.n > 0 && prefix.p[prefix.n - 1] == '/')
        prefix.n--;
    struct str rest = str_skip(t->path, prefix.n);
    if (rest.n == 0)
        rest = STR("/");
    ptrdiff_t n = raw_length(t->raw_path, prefix);
    if (n >= 0) {
        struct str raw = str_skip(t->raw_path, (size_t)n);
        struct target alone;
        if (raw.n == 0)
            return join(t, rest, a);
        enum target_result result = target_parse(&alone, raw, METHOD_GET, a);
        if (result == TARGET_NO_MEMORY)
            return STR_NONE;
        if (result == TARGET_OK && alone.form == TARGET_ORIGIN && !alone.tricky && str_eq(alone.path, rest))
            return join(t, raw, a);
    }
    return join(t, path_encode(a, rest), a);
}
