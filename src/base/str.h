/* SPDX-License-Identifier: MIT */
/* A length-carrying string: a borrowed span of bytes, not NUL-terminated, never owning. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){ .p = (literal), .n = sizeof(literal) - 1 })
#define STR_NONE ((struct str){ 0 })
/* For printf's "%.*s". */
#define STR_ARG(s) (int)(s).n, (s).p

static inline struct str str_of(const char *p, size_t n)
{
    return (struct str){ .p = p, .n = n };
}

/* From a NUL-terminated string of ours (never of a peer's); NULL gives the empty string. */
static inline struct str str_c(const char *z)
{
    return (struct str){ .p = z, .n = z ? strlen(z) : 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline char ascii_lower(char c)
{
    return (c >= 'A' && c <= 'Z') ? (char)(c | 0x20) : c;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Value of a hexadecimal digit, -1 if it is none. */
static inline int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return (c >= 'a' && c <= 'f') ? c - 'a' + 10 : -1;
}

/* ASCII case only, whatever the locale. */
static inline bool str_eq_nocase(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
            return false;
    return true;
}

static inline bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

/* Is the path this prefix, or beneath it: does a cut behind the prefix fall on a '/' or the end? */
static inline bool path_is_beneath(struct str path, struct str prefix)
{
    size_t n = prefix.n;
    return str_starts(path, prefix) && (path.n == n || (n > 0 && prefix.p[n - 1] == '/') || path.p[n] == '/');
}

static inline bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n && (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

/* Index of the first c at or after from, -1 if there is none. */
static inline ptrdiff_t str_chr(struct str s, char c, size_t from)
{
    if (from >= s.n)
        return -1;
    const char *hit = memchr(s.p + from, c, s.n - from);
    return hit ? hit - s.p : -1;
}

/* The rest after the first n bytes; empty if there are fewer. */
static inline struct str str_skip(struct str s, size_t n)
{
    if (s.p == NULL) /* an offset to NULL, even 0, is undefined */
        return s;
    return n >= s.n ? str_of(s.p + s.n, 0) : str_of(s.p + n, s.n - n);
}

static inline struct str str_take(struct str s, size_t n)
{
    return str_of(s.p, n < s.n ? n : s.n);
}

/* Without leading and trailing SP and HTAB (OWS, RFC 9110 §5.6.3). */
static inline struct str str_trim(struct str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = str_skip(s, 1);
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Decimal digits only, no sign, no overflow. False if s is anything else. */
static inline bool str_to_u64(struct str s, uint64_t *out)
{
    uint64_t v = 0;
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (!is_digit(s.p[i]))
            return false;
        uint64_t d = (uint64_t)(s.p[i] - '0');
        if (v > (UINT64_MAX - d) / 10)
            return false;
        v = v * 10 + d;
    }
    *out = v;
    return true;
}

#endif
