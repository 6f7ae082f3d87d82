/* SPDX-License-Identifier: MIT */
/*
 * Strings and bare words of the configuration text: environment, escapes, numbers that would wrap, words that want
 * quotes. The environment is replaced inside strings only, so a value can never change the structure of the file: it is
 * emitted escaped, and its dollars doubled (a run-time $variable comes from the file, not from the environment).
 */
#include <stdlib.h>

#include "conf/lint.h"

static const char mark[] = "\\x01"; /* stands for what was reported (lint.c) */

static void emit_env_value(struct lint *l, const char *value)
{
    static const char hex[] = "0123456789abcdef";
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\')
            lint_emit(l, (char[]){ '\\', *value }, 2);
        else if (c == '$')
            lint_emit(l, "$$", 2);
        else if (c < 0x20 || c == 0x7f)
            lint_emit(l, (char[]){ '\\', 'x', hex[c >> 4], hex[c & 15] }, 4);
        else
            lint_emit(l, value, 1);
    }
}

static bool is_env_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!(c >= 'A' && c <= 'Z') && c != '_' && !(is_digit(c) && i > 0))
            return false;
    }
    return s.n > 0;
}

/* `s` as shown in a message. */
static struct str shown(struct str s)
{
    return str_take(s, 60);
}

/* A piece between the quotes that has no variables: escapes only. */
static void emit_text(struct lint *l, const char *p, const char *stop)
{
    while (p < stop) {
        const char *slash = memchr(p, '\\', (size_t)(stop - p));
        lint_emit(l, p, (size_t)((slash ? slash : stop) - p));
        if (slash == NULL)
            return;
        p = slash + 1;
        char c = p < stop ? *p : '\0';
        bool is_hex = c == 'x' && stop - p >= 3 && hex_value(p[1]) >= 0 && hex_value(p[2]) >= 0;
        if (is_hex && hex_value(p[1]) * 16 + hex_value(p[2]) < 0x20 && !(p[1] == '0' && strchr("9aAdD", p[2]))) {
            lint_say(l, slash, "the control character \\x%.2s cannot stand in a text", p + 1);
            lint_emit(l, mark, 4);
            p += 3;
        } else if (is_hex || (c != '\0' && strchr("tnrf\"\\", c))) {
            lint_emit(l, slash, 2);
            p++;
        } else {
            lint_emit(l, "\\\\", 2);
        }
    }
}

/* At "${". Returns where to go on. */
static const char *read_env(struct lint *l, const char *at, const char *stop)
{
    const char *close = memchr(at, '}', (size_t)(stop - at));
    struct str inner = close ? str_of(at + 2, (size_t)(close - at) - 2) : STR_NONE;
    struct str name = inner;
    for (size_t i = 0; i < inner.n; i++) {
        if (inner.p[i] != ':')
            continue;
        name = str_take(inner, i);
        break;
    }
    struct str rest = str_skip(inner, name.n), path = lint_path(l);
    bool has_default = str_starts(rest, STR(":-")), has_message = str_starts(rest, STR(":?"));
    if (close == NULL || !is_env_name(name) || (rest.n > 0 && !has_default && !has_message)) {
        bool is_variable = close != NULL && rest.n == 0 && name.n > 0 && name.n < 40;
        for (size_t i = 0; i < name.n; i++)
            if (!is_digit(name.p[i]) && name.p[i] != '_' && !(name.p[i] >= 'a' && name.p[i] <= 'z'))
                is_variable = false;
        if (is_variable)
            lint_say(l, at, "%.*s${%.*s} is no variable of the environment (those are in capitals); expected $%.*s",
                     STR_ARG(path), STR_ARG(name), STR_ARG(name));
        else
            lint_say(l, at,
                     "%.*sa ${ that is not complete; expected ${NAME}, ${NAME:-default} or ${NAME:?message} ($$ is a "
                     "dollar)",
                     STR_ARG(path));
        lint_emit(l, mark, 4);
        return close ? close + 1 : at + 2;
    }
    struct str z = load_dup(l->ld, name);
    const char *value = getenv(z.p);
    if (value != NULL && (*value != '\0' || !(has_default || has_message))) {
        emit_env_value(l, value);
    } else if (has_default) {
        emit_text(l, rest.p + 2, close);
    } else {
        rest = has_message ? shown(str_skip(rest, 2)) : STR("expected a value in the environment, or ${NAME:-default}");
        lint_say(l, at, "%.*s%.*s is not set; %.*s", STR_ARG(path), STR_ARG(name), STR_ARG(rest));
        lint_emit(l, mark, 4);
    }
    return close + 1;
}

static const char *string_stop(const struct lint *l)
{
    const char *p = l->p + 1;
    while (p < l->end && *p != '"')
        p += *p == '\\' && p + 1 < l->end ? 2 : 1;
    return p < l->end ? p : NULL;
}

static void check_controls(struct lint *l, const char *p, const char *stop)
{
    for (; p < stop; p++) {
        unsigned char c = (unsigned char)*p;
        if ((c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n' || c == '\r')
            continue;
        lint_say(l, p, "the control character 0x%02x cannot stand in a text", c);
        lint_emit(l, mark, 4);
        return;
    }
}

bool lint_string(struct lint *l, bool emit)
{
    const char *open = l->p, *stop = string_stop(l);
    if (stop == NULL) {
        l->open_string = NULL;
        return lint_fatal(l, open, "this string is never closed; expected a closing quote");
    }
    l->p = stop + 1;
    bool has_lines = memchr(open, '\n', (size_t)(stop - open)) != NULL;
    l->open_string = has_lines ? open : NULL;
    if (!emit) {
        for (const char *p = open; p < stop; p++)
            if (*p == '\n')
                lint_emit(l, p, 1);
        return true;
    }
    lint_emit(l, open, 1);
    const char *p = open + 1;
    check_controls(l, p, stop);
    for (const char *q = p; q < stop;) {
        bool is_dollar = *q == '$' && q + 1 < stop;
        if (is_dollar && q[1] == '$') {
            q += 2;
        } else if (is_dollar && q[1] == '{') {
            emit_text(l, p, q);
            p = q = read_env(l, q, stop);
        } else {
            q += *q == '\\' && q + 1 < stop ? 2 : 1;
        }
    }
    emit_text(l, p, stop);
    lint_emit(l, stop, 1);
    return true;
}

/* Digits with an optional sign, or hexadecimal. */
static bool is_integer(struct str s, bool *is_hex)
{
    struct str digits = s;
    *is_hex = str_starts(s, STR("0x")) || str_starts(s, STR("0X"));
    if (*is_hex)
        digits = str_skip(s, 2);
    else if (s.n > 0 && (s.p[0] == '-' || s.p[0] == '+'))
        digits = str_skip(s, 1);
    for (size_t i = 0; i < digits.n; i++)
        if (*is_hex ? hex_value(digits.p[i]) < 0 : !is_digit(digits.p[i]))
            return false;
    return digits.n > 0;
}

static bool fits_32(struct str s, bool is_hex)
{
    uint64_t v = 0, limit = 0x7fffffff;
    if (is_hex || s.p[0] == '-' || s.p[0] == '+')
        s = str_skip(s, is_hex ? 2 : 1);
    for (size_t i = 0; i < s.n; i++) {
        v = v * (is_hex ? 16 : 10) + (uint64_t)hex_value(s.p[i]);
        if (v > limit)
            return false;
    }
    return true;
}

/* Digits, one dot or exponent: a float, which no setting takes; libconfig reads it and the type check speaks. */
static bool is_float(struct str s)
{
    bool has_dot = false;
    size_t digits = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (is_digit(c))
            digits++;
        else if (c == '.' && !has_dot)
            has_dot = true;
        else if (!((c == '-' || c == '+') && i == 0))
            return false;
    }
    return has_dot && digits > 0;
}

static enum lint_type word_fatal(struct lint *l, const char *start, struct str word)
{
    size_t n = (size_t)(l->end - start);
    if (n > 2 && str_eq(word, STR("$")) && start[1] == '{') { /* ${NAME} */
        for (n = 2; start + n < l->end && !strchr(" \t\r\n;}", start[n]);)
            n++;
        word = str_of(start, n + (start + n < l->end && start[n] == '}'));
    }
    struct str path = lint_path(l), w = shown(word);
    l->p = start;
    static const char *const yes[] = { "on", "yes", "enabled" }, *const no[] = { "off", "no", "none", "disabled" };
    const char *instead = NULL;
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        if (str_eq_nocase(word, str_c(yes[i])))
            instead = "true";
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        if (str_eq_nocase(word, str_c(no[i])))
            instead = "false";
    if (instead != NULL)
        (void)lint_fatal(l, start, "%.*sunquoted word `%.*s`; expected %s", STR_ARG(path), STR_ARG(w), instead);
    else if (word.p[0] == '\'')
        (void)lint_fatal(l, start, "%.*sa single quote; expected a text in double quotes", STR_ARG(path));
    else if (str_starts(word, STR("\xe2\x80"))) /* U+2018 to U+201F */
        (void)lint_fatal(l, start, "%.*sa typographic quote; expected the plain \"", STR_ARG(path));
    else
        (void)lint_fatal(l, start, "%.*sunquoted word `%.*s`; expected \"%.*s\"", STR_ARG(path), STR_ARG(w),
                         STR_ARG(w));
    return LINT_NONE;
}

enum lint_type lint_word(struct lint *l)
{
    const char *start = l->p;
    while (l->p < l->end && !strchr(" \t\r\n\f;,(){}[]\"=", *l->p))
        l->p++;
    struct str word = str_of(start, (size_t)(l->p - start));
    if (word.n == 0) {
        (void)lint_fatal(l, start, "found `%.1s` where a value was expected", start);
        return LINT_NONE;
    }
    bool is_hex, is_long = word.n > 1 && ascii_lower(word.p[word.n - 1]) == 'l' && is_digit(word.p[word.n - 2]);
    struct str number = is_long ? str_take(word, word.n - 1) : word;
    if (is_integer(number, &is_hex)) {
        if (fits_32(number, is_hex)) {
            lint_emit(l, number.p, number.n);
            return LINT_INT;
        }
        struct str path = lint_path(l), w = shown(number);
        lint_say(
            l, start,
            "%.*s%.*s does not fit into 32 bits; expected a number in quotes, or a size with a unit such as \"5g\"",
            STR_ARG(path), STR_ARG(w));
        lint_emit(l, "-2147483648", 11);
        return LINT_INT;
    }
    if (is_float(word)) {
        lint_emit(l, word.p, word.n);
        return LINT_FLOAT;
    }
    if (str_eq_nocase(word, STR("true")) || str_eq_nocase(word, STR("false"))) {
        lint_emit(l, word.p, word.n);
        return LINT_BOOL;
    }
    return word_fatal(l, start, word);
}
