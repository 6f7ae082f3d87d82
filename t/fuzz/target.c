/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes request targets and Host. The first byte of an input chooses the method, the rest is the target.
 * Wanted: a path never leaves the root and holds no dot segment, no empty segment and no NUL; encoding it gives a
 * target of the same path; and unless the target is called tricky, a reader that resolves first and decodes then
 * comes to the same path.
 */
#include <stdlib.h>

#include "base/check.h"
#include "http/target.h"

static void check_path(struct str path)
{
    CHECK(path.n > 0 && path.p[0] == '/');
    for (size_t i = 0; i < path.n; i++) {
        CHECK(path.p[i] != '\0');
        if (path.p[i] != '/')
            continue;
        size_t end = i + 1;
        while (end < path.n && path.p[end] != '/')
            end++;
        struct str segment = str_of(path.p + i + 1, end - i - 1);
        CHECK(segment.n > 0 || end == path.n);
        CHECK(!str_eq(segment, STR(".")) && !str_eq(segment, STR("..")));
    }
}

struct segment {
    size_t off, n;
};

/* Resolve, decode, merge: the order of a backend that looks at raw bytes first. False: above the root. */
static bool other_order(struct str raw, char *out, size_t *n)
{
    struct segment *stack = malloc((raw.n + 1) * sizeof *stack);
    size_t depth = 0;
    bool is_folder = false, good = true;
    CHECK(stack != NULL);
    for (size_t at = 0; at < raw.n && good;) {
        ptrdiff_t slash = str_chr(raw, '/', at + 1);
        size_t end = slash < 0 ? raw.n : (size_t)slash;
        struct str segment = str_of(raw.p + at + 1, end - at - 1);
        bool is_up = str_eq(segment, STR("..")), is_dot = is_up || str_eq(segment, STR("."));
        is_folder = is_dot || segment.n == 0;
        if (is_up && depth == 0)
            good = false;
        else if (is_up)
            depth--;
        else if (!is_dot && segment.n > 0)
            stack[depth++] = (struct segment){ at + 1, segment.n };
        at = end;
    }
    *n = 0;
    for (size_t i = 0; i < depth; i++) {
        if (*n == 0 || out[*n - 1] != '/')
            out[(*n)++] = '/';
        for (size_t k = stack[i].off; k < stack[i].off + stack[i].n; k++) {
            char c = raw.p[k];
            if (c == '%') {
                c = (char)(hex_value(raw.p[k + 1]) * 16 + hex_value(raw.p[k + 2]));
                k += 2;
            }
            if (c != '/' || out[*n - 1] != '/')
                out[(*n)++] = c;
        }
    }
    if ((is_folder || depth == 0) && (*n == 0 || out[*n - 1] != '/'))
        out[(*n)++] = '/';
    free(stack);
    return good;
}

static void check_origin(const struct target *t, struct arena *a)
{
    check_path(t->path);
    CHECK(str_starts(t->raw, t->raw_path) && t->raw.n == t->raw_path.n + (t->has_query ? t->query.n + 1 : 0));
    struct target again;
    struct str encoded = path_encode(a, t->path);
    CHECK(target_parse(&again, encoded, METHOD_GET, a) == TARGET_OK);
    CHECK(str_eq(again.path, t->path) && !again.has_query && !again.tricky);
    if (!t->tricky) {
        char *other = malloc(t->raw_path.n + 1);
        size_t n;
        CHECK(other != NULL);
        CHECK(other_order(t->raw_path, other, &n) && str_eq(str_of(other, n), t->path));
        free(other);
    }
}

/* Whatever is cut off, what is left means the rest of the path, and the query stays. */
static void check_cuts(const struct target *t, struct arena *a)
{
    for (size_t n = 0; n <= t->path.n && n < 64; n++) {
        struct str prefix = str_take(t->path, n), rest = str_skip(t->path, n);
        struct target cut;
        if (!path_is_beneath(t->path, prefix) || n == 0)
            continue;
        if (prefix.p[n - 1] == '/')
            rest = str_skip(t->path, n - 1);
        struct str raw = target_cut(t, prefix, a);
        CHECK(target_parse(&cut, raw, METHOD_GET, a) == TARGET_OK && cut.form == TARGET_ORIGIN && !cut.tricky);
        CHECK(str_eq(cut.path, rest.n > 0 ? rest : STR("/")));
        CHECK(cut.has_query == t->has_query && str_eq(cut.query, t->query));
    }
    struct target made = *t;
    CHECK(target_make(&made, t->path, a) && str_eq(made.query, t->query) && str_starts(made.raw, made.raw_path));
    CHECK(made.raw.n == made.raw_path.n + (made.has_query ? made.query.n + 1 : 0));
}

static void check_host(struct str value)
{
    struct str name;
    uint16_t port;
    if (!host_parse(value, &name, &port))
        return;
    CHECK(name.n > 0 && name.p == value.p && (name.n == value.n || value.p[name.n] == ':'));
    for (size_t i = 0; i < value.n; i++)
        CHECK(value.p[i] > 0x20 && value.p[i] < 0x7f && strchr("/@?#\\\"<>", value.p[i]) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct arena a;
    struct target t;
    arena_init(&a, NULL);
    /* A copy of its own: a read past the end is seen. */
    char *copy = malloc(size);
    CHECK(copy != NULL);
    memcpy(copy, data + 1, size - 1);
    struct str raw = str_of(copy, size - 1);
    enum method method = (enum method)(data[0] % (METHOD_CONNECT + 1));
    if (target_parse(&t, raw, method, &a) == TARGET_OK) {
        if (t.form == TARGET_ORIGIN || t.form == TARGET_ABSOLUTE) {
            check_origin(&t, &a);
            check_cuts(&t, &a);
        }
        CHECK((t.form == TARGET_AUTHORITY) == (method == METHOD_CONNECT));
        CHECK(t.form != TARGET_ASTERISK || method == METHOD_OPTIONS);
    }
    check_host(raw);
    free(copy);
    arena_reset(&a);
    return 0;
}
