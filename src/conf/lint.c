/* SPDX-License-Identifier: MIT */
/*
 * Reads the text before libconfig does. libconfig stops at the first error with the words "syntax error", and takes
 * some things silently for others: integers wrap at 32 bits, two strings side by side become one, a byte order mark or
 * a NUL end the file. So this is a reader of the same grammar that knows the likely causes. What it emits has the same
 * lines; libconfig builds the tree from it.
 *
 * Two kinds of finding: after a fatal one (the structure is lost) the file is given up; after any other it goes on, and
 * leaves a mark that later checks stay silent about: the integer INT_MIN, or the byte 0x01 in a string. Regular
 * expressions come with backslashes that libconfig may or may not know (1.7 has \a \b \v, 1.5 has not): a backslash
 * before anything but t n r f x " \ is doubled, so that every version keeps it.
 */
#include "conf/lint.h"

#include <stdio.h>

void lint_emit(struct lint *l, const char *p, size_t n)
{
    if (l->n_out + n + 1 > l->cap_out) {
        size_t cap = (l->cap_out + n + 64) * 2;
        char *bigger = load_alloc(l->ld, cap);
        if (l->n_out > 0)
            memcpy(bigger, l->out, l->n_out);
        l->out = bigger;
        l->cap_out = cap;
    }
    if (n > 0)
        memcpy(l->out + l->n_out, p, n);
    l->n_out += n;
}

enum { SAID_MAX = 100, LINE_MAX_SHOWN = 300 };

static uint32_t line_of(const struct lint *l, const char *at)
{
    uint32_t line = 1;
    for (const char *p = l->begin; (p = memchr(p, '\n', (size_t)(at - p))) != NULL; p++)
        line++;
    return line;
}

static void say(struct lint *l, const char *at, const char *text)
{
    const char *start = at;
    while (start > l->begin && start[-1] != '\n')
        start--;
    const char *stop = memchr(at, '\n', (size_t)(l->end - at));
    struct str line = str_of(start, (size_t)((stop ? stop : l->end) - start));
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    size_t column = (size_t)(at - start) + 1;
    if (column > LINE_MAX_SHOWN)
        column = 0; /* no caret under what is not shown */
    struct where where = { .file = (uint16_t)l->file, .line = line_of(l, at) };
    diag_caret(l->ld, where, str_take(line, LINE_MAX_SHOWN), column, "%s", text);
    l->n_said++;
}

void lint_say(struct lint *l, const char *at, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (l->n_said < SAID_MAX)
        say(l, at, text);
}

bool lint_fatal(struct lint *l, const char *at, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (l->open_string != NULL)
        say(l, l->open_string, "a string begins here and ends in a later line; probably its closing quote is missing");
    else
        say(l, at, text);
    return false;
}

struct str lint_path(struct lint *l)
{
    struct str text = STR("");
    for (unsigned i = 0; i < l->depth; i++) {
        const struct lint_place *place = &l->path[i];
        if (place->name.p == NULL)
            text = load_printf(l->ld, "%.*s[%u]", STR_ARG(text), place->index);
        else
            text = load_printf(l->ld, "%.*s%s%.*s", STR_ARG(text), text.n > 0 ? "." : "", STR_ARG(place->name));
    }
    return text.n > 0 ? load_printf(l->ld, "%.*s: ", STR_ARG(text)) : text;
}

static bool has(const struct lint *l, char c)
{
    return l->p < l->end && *l->p == c;
}

static bool has_pair(const struct lint *l, const char *pair)
{
    return l->end - l->p >= 2 && l->p[0] == pair[0] && l->p[1] == pair[1];
}

/* Emits white space and comments as they are. */
static bool skip_space(struct lint *l)
{
    for (;;) {
        const char *from = l->p;
        while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\r' || *l->p == '\n' || *l->p == '\f'))
            l->p++;
        if (has(l, '#') || has_pair(l, "//")) {
            const char *stop = memchr(l->p, '\n', (size_t)(l->end - l->p));
            l->p = stop ? stop : l->end;
        } else if (has_pair(l, "/*")) {
            const char *open = l->p;
            for (l->p += 2; l->p < l->end && !has_pair(l, "*/");)
                l->p++;
            if (l->p == l->end)
                return lint_fatal(l, open, "this comment is never closed; expected */");
            l->p += 2;
        }
        if (l->p == from)
            return true;
        lint_emit(l, from, (size_t)(l->p - from));
    }
}

static bool is_name_start(char c)
{
    c = ascii_lower(c);
    return (c >= 'a' && c <= 'z') || c == '*';
}

static bool is_name_part(char c)
{
    return is_name_start(c) || is_digit(c) || c == '-' || c == '_';
}

static bool name_fatal(struct lint *l, const char *open)
{
    const char *stop = l->p;
    while (stop < l->end && !strchr(" \t\r\n=;,(){}[]\"", *stop))
        stop++;
    struct str word = str_of(l->p, (size_t)(stop - l->p));
    if (str_starts(word, STR("@include")))
        return lint_fatal(l, l->p, "@include is libconfig's; expected include = \"sites.d/*.conf\"; at the top");
    if (has(l, '"'))
        return lint_fatal(l, l->p, "a quoted text where a setting's name was expected; names stand without quotes");
    if (open != NULL && (has(l, ')') || has(l, ']')))
        return lint_fatal(l, l->p, "found `%.1s`, but the { of line %u is still open; expected }", l->p,
                          line_of(l, open));
    if (word.n == 0)
        return lint_fatal(l, l->p, "found `%.1s` where a setting's name was expected", l->p);
    for (size_t i = 0; i < word.n; i++) /* a no-break space is seen by nobody */
        if ((unsigned char)word.p[i] >= 0x80)
            return lint_fatal(l, l->p, "`%.*s` cannot be a name; it has the byte 0x%02x, expected only ASCII",
                              (int)(word.n < 60 ? word.n : 60), word.p, (unsigned char)word.p[i]);
    return lint_fatal(l, l->p,
                      "`%.*s` cannot be a name; a name begins with a letter and has only letters, digits, - and _",
                      (int)(word.n < 60 ? word.n : 60), word.p);
}

/* The names of one group, to find the second of two. */
struct seen {
    struct seen *next;
    struct str name;
    const char *at;
};

static void check_twice(struct lint *l, struct seen **seen, struct str name)
{
    for (struct seen *s = *seen; s != NULL; s = s->next) {
        if (!str_eq(s->name, name))
            continue;
        struct str path = lint_path(l);
        lint_say(l, name.p, "%.*ssecond `%.*s`; the first is in line %u", STR_ARG(path), STR_ARG(name),
                 line_of(l, s->at));
        /* libconfig would stop here: what it sees gets a name that no setting has. */
        lint_emit(l, "*", 1);
        struct str unique = load_printf(l->ld, "%zu", (size_t)(name.p - l->begin));
        lint_emit(l, unique.p, unique.n);
        return;
    }
    struct seen *s = load_new(l->ld, struct seen);
    *s = (struct seen){ .next = *seen, .name = name, .at = name.p };
    *seen = s;
    lint_emit(l, name.p, name.n);
}

static bool read_value(struct lint *l, struct str name, enum lint_type *type);

/* After a value in a group: what ends it. */
static bool read_end(struct lint *l, const char *value_end, struct str name, const char *open)
{
    if (has(l, ';') || has(l, ',')) {
        lint_emit(l, l->p++, 1);
        return true;
    }
    if (l->p == l->end || (has(l, '}') && open != NULL))
        return true;
    if (l->open_string != NULL || !is_name_start(*l->p)) {
        if (has(l, ')') || has(l, ']') || has(l, '}'))
            return lint_fatal(l, l->p,
                              open ? "found `%.1s`, but the { of line %u is still open; expected }"
                                   : "found `%.1s`, which nothing opened",
                              l->p, open ? line_of(l, open) : 0);
        return lint_fatal(l, l->p, "found `%.1s` after the value of `%.*s`; expected ;", l->p, STR_ARG(name));
    }
    lint_say(l, value_end, "missing ; after the value of `%.*s`", STR_ARG(name));
    return true;
}

static bool read_settings(struct lint *l, const char *open)
{
    struct seen *seen = NULL;
    if (l->depth >= LINT_DEPTH)
        return lint_fatal(l, l->p, "nested too deeply");
    for (;;) {
        if (!skip_space(l))
            return false;
        if (l->p == l->end) {
            if (open == NULL)
                return true;
            return lint_fatal(l, open, "this { is never closed; expected }");
        }
        if (has(l, '}') && open != NULL)
            return true;
        const char *start = l->p;
        if (!is_name_start(*start))
            return name_fatal(l, open);
        while (l->p < l->end && is_name_part(*l->p))
            l->p++;
        if (l->p < l->end && (strchr("./@$%&+?!~|", *l->p) || (unsigned char)*l->p >= 0x80)) {
            l->p = start;
            return name_fatal(l, open);
        }
        struct str name = str_of(start, (size_t)(l->p - start));
        struct str shown = str_take(name, 60);
        check_twice(l, &seen, name);
        const char *name_end = l->p;
        if (!skip_space(l))
            return false;
        if (!has(l, '=') && !has(l, ':'))
            return lint_fatal(l, name_end, "missing = after `%.*s`", STR_ARG(shown));
        lint_emit(l, "=", 1);
        l->p++;
        if (!skip_space(l))
            return false;
        l->path[l->depth++] = (struct lint_place){ .name = shown };
        enum lint_type type;
        if (!read_value(l, shown, &type))
            return false;
        l->depth--;
        const char *value_end = l->p;
        if (!skip_space(l) || !read_end(l, value_end, shown, open))
            return false;
    }
}

static bool starts_value(const struct lint *l)
{
    return l->p < l->end && !strchr(";,=:)}]", *l->p);
}

/* ( ) and [ ]. The latter becomes a ( ) when it holds what libconfig would not take there, after the error is said. */
static bool read_list(struct lint *l, const char *open)
{
    char close = *open == '(' ? ')' : ']';
    size_t out_open = l->n_out;
    bool is_mixed = false;
    enum lint_type first = LINT_NONE;
    if (l->depth >= LINT_DEPTH)
        return lint_fatal(l, open, "nested too deeply");
    lint_emit(l, open, 1);
    l->p++;
    unsigned index = 0;
    for (size_t out_comma = 0;; index++) {
        if (!skip_space(l))
            return false;
        if (has(l, close)) {
            if (index > 0) {
                lint_say(l, l->p, "trailing comma: an item was expected before the %c", close);
                l->out[out_comma] = ' ';
            }
            break;
        }
        if (l->p == l->end)
            return lint_fatal(l, open, "this %c is never closed; expected %c", *open, close);
        if (!starts_value(l))
            return lint_fatal(l, l->p, "found `%.1s`; expected an item of the list or %c", l->p, close);
        l->path[l->depth++] = (struct lint_place){ .index = index };
        enum lint_type type;
        const char *item = l->p;
        if (!read_value(l, STR_NONE, &type))
            return false;
        l->depth--;
        if (first == LINT_NONE)
            first = type;
        if (close == ']' && !is_mixed && (type != first || type == LINT_AGGREGATE)) {
            struct str path = lint_path(l);
            lint_say(l, item, "%.*s[ ] holds plain values of one type only; expected ( ... )", STR_ARG(path));
            is_mixed = true;
        }
        const char *item_end = l->p;
        if (!skip_space(l))
            return false;
        out_comma = l->n_out;
        if (has(l, ',')) {
            lint_emit(l, l->p++, 1);
            continue;
        }
        if (has(l, close))
            break;
        if (l->p == l->end)
            return lint_fatal(l, open, "this %c is never closed; expected %c", *open, close);
        if (has(l, ';'))
            return lint_fatal(l, l->p, "found ; in a list; expected a comma between items, or %c", close);
        if (!starts_value(l) || l->open_string != NULL)
            return lint_fatal(l, l->p, "found `%.1s` in the list that line %u opens; expected a comma or %c", l->p,
                              line_of(l, open), close);
        lint_say(l, item_end, "missing comma between list items");
        lint_emit(l, ",", 1);
    }
    lint_emit(l, l->p++, 1);
    if (is_mixed) {
        l->out[out_open] = '(';
        l->out[l->n_out - 1] = ')';
    }
    return true;
}

static bool read_strings(struct lint *l)
{
    if (!lint_string(l, true))
        return false;
    for (;;) {
        struct lint before = *l;
        if (!skip_space(l))
            return false;
        if (!has(l, '"')) {
            /* what was skipped is skipped again by the caller, who wants to know where the value ended */
            before.out = l->out;
            before.cap_out = l->cap_out;
            *l = before;
            return true;
        }
        struct str path = lint_path(l);
        lint_say(l, l->p, "%.*stwo strings side by side would become one; expected a comma or ; between them",
                 STR_ARG(path));
        if (!lint_string(l, false))
            return false;
    }
}

static bool read_value(struct lint *l, struct str name, enum lint_type *type)
{
    *type = LINT_AGGREGATE;
    l->open_string = NULL;
    if (has(l, '"')) {
        *type = LINT_STRING;
        return read_strings(l);
    }
    if (has(l, '(') || has(l, '['))
        return read_list(l, l->p);
    if (has(l, '{')) {
        const char *open = l->p;
        lint_emit(l, l->p++, 1);
        if (!read_settings(l, open))
            return false;
        lint_emit(l, l->p++, 1);
        l->open_string = NULL;
        return true;
    }
    if (!starts_value(l))
        return lint_fatal(l, l->p, "missing value after `%.*s =`", STR_ARG(name));
    *type = lint_word(l);
    return *type != LINT_NONE;
}

/* What no text has; false: not worth reading on. */
static bool check_bytes(struct lint *l)
{
    struct str text = str_of(l->begin, (size_t)(l->end - l->begin));
    if (str_starts(text, STR("\xff\xfe")) || str_starts(text, STR("\xfe\xff"))) {
        l->end = l->begin;
        return lint_fatal(l, l->begin, "the file is UTF-16; expected UTF-8");
    }
    const char *nul = memchr(l->begin, '\0', text.n);
    if (nul != NULL) {
        struct where where = { .file = (uint16_t)l->file, .line = line_of(l, nul) };
        diag_add(l->ld, where, false, "a NUL byte; expected a text file");
        return false;
    }
    if (str_starts(text, STR("\xef\xbb\xbf"))) {
        struct where where = { .file = (uint16_t)l->file, .line = 1 };
        diag_add(l->ld, where, false,
                 "the file begins with a byte order mark (EF BB BF); expected plain UTF-8 without it");
        l->p += 3;
    }
    return true;
}

bool lint(struct load *ld, unsigned file, struct str text, struct str *out)
{
    const char *begin = text.n > 0 ? text.p : "";
    struct lint l = { .ld = ld, .file = file, .begin = begin, .p = begin, .end = begin + text.n };
    if (!check_bytes(&l))
        return false;
    if (!read_settings(&l, NULL))
        return false;
    lint_emit(&l, "\n", 2); /* libconfig takes no comment in a last line without an end */
    *out = str_of(l.out, l.n_out - 1); /* without the NUL */
    return true;
}
