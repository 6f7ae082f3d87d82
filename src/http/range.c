/* SPDX-License-Identifier: MIT */
/*
 * Range requests (RFC 9110 §14.1.2, §14.2): which bytes of a representation are asked for.
 * One pass over the value, ranges coalesced as they come, so that neither memory nor the bytes of the answer grow
 * with what is asked (§17.15). Invariant: at no time do two of the ranges kept overlap or touch. A range that joins
 * others takes the place of the earliest of them.
 * Numbers saturate: a position beyond any length is beyond this one.
 * Whether there is one Range field, and whether it applies (method, If-Range), is for the caller.
 */
#include "http/range.h"

struct plan {
    struct range *v;
    unsigned n;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* 1*DIGIT at *at, saturating. */
static bool take_number(struct str s, size_t *at, uint64_t *out)
{
    size_t start = *at;
    uint64_t n = 0;
    for (; *at < s.n && is_digit(s.p[*at]); ++*at) {
        uint64_t digit = (uint64_t)(s.p[*at] - '0');
        n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n * 10 + digit;
    }
    *out = n;
    return *at > start;
}

/* first-last, first- or -suffix at *at. *out is empty if the range lies outside. False: malformed. */
static bool take_spec(struct str s, size_t *at, uint64_t length, struct range *out)
{
    uint64_t first, last = UINT64_MAX;
    *out = (struct range){ 0 };
    bool has_first = take_number(s, at, &first);
    if (*at == s.n || s.p[*at] != '-')
        return false;
    ++*at;
    bool has_last = take_number(s, at, &last);
    if (!has_first) {
        uint64_t suffix = last < length ? last : length;
        *out = (struct range){ .off = length - suffix, .n = suffix };
        return has_last;
    }
    if (!has_last)
        last = UINT64_MAX;
    if (last < first)
        return false;
    if (first < length)
        *out = (struct range){ .off = first, .n = (last < length - 1 ? last : length - 1) - first + 1 };
    return true;
}

static bool touches(struct range a, struct range b)
{
    return a.off <= b.off + b.n && b.off <= a.off + a.n;
}

static struct range join(struct range a, struct range b)
{
    uint64_t start = a.off < b.off ? a.off : b.off;
    uint64_t end_a = a.off + a.n, end_b = b.off + b.n;
    return (struct range){ .off = start, .n = (end_a > end_b ? end_a : end_b) - start };
}

/* False: more ranges than there is room for. */
static bool add(struct plan *plan, struct range r)
{
    unsigned place = plan->n, kept = 0;
    for (unsigned i = 0; i < plan->n; i++)
        if (touches(plan->v[i], r)) {
            r = join(plan->v[i], r);
            place = i < place ? i : place;
        }
    if (place == RANGE_MAX)
        return false;
    for (unsigned i = 0; i < plan->n; i++) /* those that became part of r go; it takes the place of the first */
        if (i == place)
            kept++;
        else if (!touches(plan->v[i], r))
            plan->v[kept++] = plan->v[i];
    plan->v[place] = r;
    plan->n = place == plan->n ? plan->n + 1 : kept;
    return true;
}

enum range_result range_plan(struct str value, uint64_t length, struct range out[RANGE_MAX], unsigned *count)
{
    struct plan plan = { .v = out };
    bool is_any = false, may_start = true;
    *count = 0;
    if (!str_eq_nocase(str_take(value, 6), STR("bytes=")))
        return RANGE_NONE;
    for (size_t at = 6; at < value.n;) {
        if (value.p[at] == ',') {
            may_start = true;
            at++;
        } else if (is_blank(value.p[at]) && at > 6) {
            at++;
        } else {
            struct range r;
            if (!may_start || !take_spec(value, &at, length, &r))
                return RANGE_NONE;
            may_start = false;
            is_any = true;
            if (r.n > 0 && !add(&plan, r))
                return RANGE_NONE;
        }
    }
    if (!is_any)
        return RANGE_NONE;
    *count = plan.n;
    return plan.n > 0 ? RANGE_SOME : RANGE_UNSATISFIABLE;
}
