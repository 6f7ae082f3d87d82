/* SPDX-License-Identifier: MIT */
/*
 * Durations and sizes: text to number and back, from one table of units each.
 * Stateless. A bare number is refused, because 30 means seconds to one reader and milliseconds to another; 0 needs no
 * unit. What is printed parses back to the same value.
 */
#include "base/units.h"

#include <stdio.h>

struct unit {
    struct str name;
    uint64_t factor;
};

/* Largest first: printing takes the first that divides. */
static const struct unit durations[] = {
    { { "d", 1 }, 24 * 3600 * 1000 }, { { "h", 1 }, 3600 * 1000 }, { { "m", 1 }, 60 * 1000 },
    { { "s", 1 }, 1000 },             { { "ms", 2 }, 1 },
};
static const struct unit sizes[] = {
    { { "g", 1 }, 1024 * 1024 * 1024 },
    { { "m", 1 }, 1024 * 1024 },
    { { "k", 1 }, 1024 },
    { { "b", 1 }, 1 },
};

struct unit_texts {
    const char *no_number, *no_unit, *bad_unit;
};
static const struct unit_texts duration_texts = {
    .no_number = "a duration is a number and a unit, as in \"30s\"",
    .no_unit = "a unit is missing, write \"30s\"",
    .bad_unit = "a duration's unit is one of ms, s, m, h, d",
};
static const struct unit_texts size_texts = {
    .no_number = "a size is a number and a unit, as in \"64k\"",
    .no_unit = "a unit is missing, write \"64k\"",
    .bad_unit = "a size's unit is one of b, k, m, g",
};

static bool parse(struct str s, const struct unit *units, size_t n_units, const struct unit_texts *texts,
                  uint64_t *out, const char **why)
{
    size_t digits = 0;
    while (digits < s.n && is_digit(s.p[digits]))
        digits++;
    if (digits == 0) {
        *why = texts->no_number;
        return false;
    }
    uint64_t v = 0;
    bool fits = str_to_u64(str_take(s, digits), &v);
    struct str name = str_skip(s, digits);
    if (name.n == 0) {
        if (fits && v == 0) {
            *out = 0;
            return true;
        }
        *why = texts->no_unit;
        return false;
    }
    for (size_t i = 0; i < n_units; i++) {
        if (!str_eq_nocase(name, units[i].name))
            continue;
        if (!fits || v > UINT64_MAX / units[i].factor) {
            *why = "the number is too large";
            return false;
        }
        *out = v * units[i].factor;
        return true;
    }
    *why = texts->bad_unit;
    return false;
}

static size_t print(uint64_t v, const struct unit *units, char *out)
{
    if (v == 0)
        return (size_t)snprintf(out, UNITS_TEXT, "0");
    while (v % units->factor != 0)
        units++; /* ends at the last: its factor is 1 */
    return (size_t)snprintf(out, UNITS_TEXT, "%llu%s", (unsigned long long)(v / units->factor), units->name.p);
}

bool duration_parse(struct str s, uint64_t *ms, const char **why)
{
    return parse(s, durations, ARRAY_LEN(durations), &duration_texts, ms, why);
}

bool size_parse(struct str s, uint64_t *bytes, const char **why)
{
    return parse(s, sizes, ARRAY_LEN(sizes), &size_texts, bytes, why);
}

size_t duration_print(uint64_t ms, char *out)
{
    return print(ms, durations, out);
}

size_t size_print(uint64_t bytes, char *out)
{
    return print(bytes, sizes, out);
}
