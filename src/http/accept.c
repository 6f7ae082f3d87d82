/* SPDX-License-Identifier: MIT */
/*
 * Content negotiation (RFC 9110 §12.4.2, §12.5.1, §12.5.3): how much a client wants a
 * coding or a media type. Reads the lines of one field; nothing is kept, nothing
 * allocated. The most specific member that fits decides, of two equal ones the first;
 * what is malformed is as if it were not there. Whether the answer is worth coding,
 * and what Vary has to say then, is for the caller.
 */
#include "http/accept.h"

enum { NO_Q = -1 };

/* A qvalue in thousandths: 0, 1, 0.123, 1.000. NO_Q: malformed. */
static int parse_q(struct str s)
{
    if (s.n == 0 || s.n > 5 || (s.p[0] != '0' && s.p[0] != '1') || (s.n > 1 && s.p[1] != '.'))
        return NO_Q;
    int q = (s.p[0] - '0') * 1000, unit = 100;
    for (size_t i = 2; i < s.n; i++, unit /= 10) {
        if (!is_digit(s.p[i]))
            return NO_Q;
        q += (s.p[i] - '0') * unit;
    }
    return q <= 1000 ? q : NO_Q;
}

/* Splits "name;param;q=0.5": *name, and the weight. Other parameters set *has_params. NO_Q: malformed. */
static int split(struct str member, struct str *name, bool *has_params)
{
    ptrdiff_t semi = str_chr(member, ';', 0);
    *has_params = false;
    *name = semi < 0 ? member : str_trim(str_take(member, (size_t)semi));
    while (semi >= 0) {
        size_t start = (size_t)semi + 1;
        semi = str_chr(member, ';', start);
        struct str param = str_trim(str_of(member.p + start, (semi < 0 ? member.n : (size_t)semi) - start));
        if (str_eq_nocase(str_take(param, 2), STR("q=")))
            return parse_q(str_skip(param, 2)); /* what follows a weight is an extension */
        *has_params |= param.n > 0;
    }
    return 1000;
}

void accept_codings(const struct fields *f, struct accept_codings *out)
{
    const struct {
        struct str name;
        int *q;
    } rows[] = {
        { STR("gzip"), &out->gzip },
        { STR("x-gzip"), &out->gzip }, /* §8.4.1.3: the same */
        { STR("br"), &out->br },
        { STR("zstd"), &out->zstd },
        { STR("identity"), &out->identity },
    };
    int any = NO_Q;
    *out = (struct accept_codings){ NO_Q, NO_Q, NO_Q, NO_Q };
    for (const struct field *it = fields_get(f, F_ACCEPT_ENCODING); it != NULL; it = fields_next(f, it)) {
        struct str member, name;
        for (size_t at = 0; list_next(it->value, &at, &member);) {
            bool has_params;
            int q = split(member, &name, &has_params);
            if (q == NO_Q)
                continue;
            if (any == NO_Q && str_eq(name, STR("*")))
                any = q;
            for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                if (*rows[i].q == NO_Q && str_eq_nocase(name, rows[i].name))
                    *rows[i].q = q;
        }
    }
    int rest = any == NO_Q ? 0 : any;
    out->gzip = out->gzip == NO_Q ? rest : out->gzip;
    out->br = out->br == NO_Q ? rest : out->br;
    out->zstd = out->zstd == NO_Q ? rest : out->zstd;
}

/* How closely a media range fits a type: 0 not at all, 1 any, 2 the same major type, 3 the very type. */
static int fit(struct str range, struct str type)
{
    if (str_eq(range, STR("*/*")))
        return 1;
    if (str_ends(range, STR("/*")) && str_eq_nocase(str_take(range, range.n - 1), str_take(type, range.n - 1)))
        return 2;
    return str_eq_nocase(range, type) ? 3 : 0;
}

int accept_type_q(const struct fields *f, struct str type)
{
    int best_fit = 0, best_q = 0;
    if (fields_get(f, F_ACCEPT) == NULL)
        return 1000;
    for (const struct field *it = fields_get(f, F_ACCEPT); it != NULL; it = fields_next(f, it)) {
        struct str member, range;
        for (size_t at = 0; list_next(it->value, &at, &member);) {
            bool has_params;
            int q = split(member, &range, &has_params);
            int fits = q == NO_Q || has_params ? 0 : fit(range, type);
            if (fits > best_fit) {
                best_fit = fits;
                best_q = q;
            }
        }
    }
    return best_q;
}
