/* SPDX-License-Identifier: MIT */
/*
 * Paths of requests as file names. Owns nothing; every result is a span of its argument.
 *
 * The path given is decoded once, its dot segments are resolved and its slashes merged (http/target), so a segment is
 * never empty, "." or "..". Nothing here is a safety check: that a file lies beneath its root is the kernel's business
 * (handler/root.c).
 */
#include "handler/file_path.h"

struct str file_path_below(const struct location_conf *l, const struct action *a, struct str path)
{
    if (a->u.file.alias && l && l->kind != MATCH_REGEX && str_starts(path, l->pattern))
        path = str_skip(path, l->pattern.n);
    else if (!a->u.file.alias && l && l->s.strip_prefix.n > 0 && str_starts(path, l->s.strip_prefix))
        path = str_skip(path, l->s.strip_prefix.n);
    return path.n > 0 && path.p[0] == '/' ? str_skip(path, 1) : path;
}

bool file_path_is_hidden(struct str below, bool at_top)
{
    for (size_t at = 0; at < below.n;) {
        ptrdiff_t slash = str_chr(below, '/', at);
        size_t end = slash < 0 ? below.n : (size_t)slash;
        if (end > at && below.p[at] == '.' &&
            !(at_top && at == 0 && str_eq(str_of(below.p, end), STR(".well-known"))))
            return true;
        at = end + 1;
    }
    return false;
}

struct str file_path_name(struct str path)
{
    const char *slash = path.n > 0 ? memrchr(path.p, '/', path.n) : NULL;
    return slash ? str_skip(path, (size_t)(slash - path.p) + 1) : path;
}

struct piece {
    bool hex, alnum, digit, letter;
};

static struct piece piece_of(struct str s)
{
    struct piece is = { .hex = true, .alnum = true };
    for (size_t i = 0; i < s.n; i++) {
        char c = ascii_lower(s.p[i]);
        if (is_digit(c))
            is.digit = true;
        else if (c >= 'a' && c <= 'z')
            is.letter = true;
        else
            is.alnum = false;
        if (hex_value(c) < 0)
            is.hex = false;
    }
    return is;
}

/* "550e8400" in "550e8400-e29b-41d4-a716-446655440000": four hexadecimal digits and a dash come next. */
static bool begins_uuid(struct str piece, struct str rest)
{
    return piece.n == 8 && rest.n >= 6 && rest.p[0] == '-' && rest.p[5] == '-' && piece_of(str_of(rest.p + 1, 4)).hex;
}

bool file_path_has_hash(struct str name)
{
    const char *dot = name.n > 0 ? memrchr(name.p, '.', name.n) : NULL;
    if (!dot)
        return false;
    struct str stem = str_take(name, (size_t)(dot - name.p));
    for (size_t at = 0; at < stem.n;) {
        size_t end = at;
        while (end < stem.n && stem.p[end] != '.' && stem.p[end] != '-')
            end++;
        struct str piece = str_of(stem.p + at, end - at);
        struct piece is = piece_of(piece);
        if (begins_uuid(piece, str_skip(stem, end)))
            return false;
        if (is.digit && is.letter && ((is.hex && piece.n >= 8) || (is.alnum && piece.n == 40)))
            return true;
        at = end + 1;
    }
    return false;
}
