/* SPDX-License-Identifier: MIT */
/*
 * Findings: collecting, ordering and printing them. Each is one line "file:line: what is wrong; what was expected", a
 * syntax error two more (the line and a caret). They live in the result's arena. Text of the file is shown escaped and
 * cut, so that a finding stays a line.
 */
#include <limits.h>
#include <stdio.h>

#include "base/units.h"
#include "conf/load.h"

enum { TEXT_MAX = 1024, SHOW_MAX = 60 };

static struct diagnostic *append(struct load *ld, struct where where, bool warning, const char *fmt, va_list args)
{
    char text[TEXT_MAX];
    int n = vsnprintf(text, sizeof text, fmt, args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    struct diagnostic *d = arena_new(ld->temp, struct diagnostic);
    if (d == NULL)
        longjmp(ld->no_memory, 1);
    d->where = where;
    d->warning = warning;
    d->text = arena_dup(ld->temp, str_of(text, len));
    if (d->text.p == NULL)
        longjmp(ld->no_memory, 1);
    if (ld->last == NULL)
        ld->out->first = d;
    else
        ld->last->next = d;
    ld->last = d;
    if (warning)
        ld->out->n_warnings++;
    else
        ld->out->n_errors++;
    return d;
}

void diag_add(struct load *ld, struct where where, bool warning, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append(ld, where, warning, fmt, args);
    va_end(args);
}

void diag_caret(struct load *ld, struct where where, struct str line, size_t column, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct diagnostic *d = append(ld, where, false, fmt, args);
    va_end(args);
    d->source_line = arena_dup(ld->temp, line);
    if (d->source_line.p == NULL)
        longjmp(ld->no_memory, 1);
    d->column = (unsigned)column;
}

/* Has lint already said what is wrong with it? (See lint.c: what it leaves in the place of a value it has reported.) */
static bool is_reported(const struct value *v)
{
    if (v->s == NULL)
        return false;
    if (config_setting_type(v->s) == CONFIG_TYPE_INT)
        return config_setting_get_int(v->s) == INT_MIN;
    const char *text = config_setting_get_string(v->s);
    return text != NULL && strchr(text, '\x01') != NULL;
}

static struct str key_path(struct load *ld, const config_setting_t *s)
{
    if (s == NULL || config_setting_is_root(s))
        return STR("");
    struct str parent = key_path(ld, config_setting_parent(s));
    const char *name = config_setting_name(s);
    struct str path;
    if (name == NULL)
        path = arena_printf(ld->temp, "%.*s[%d]", STR_ARG(parent), config_setting_index(s));
    else
        path = arena_printf(ld->temp, "%.*s%s%s", STR_ARG(parent), parent.n > 0 ? "." : "", name);
    if (path.p == NULL)
        longjmp(ld->no_memory, 1);
    return path;
}

static void about(const struct value *v, bool warning, const char *fmt, va_list args)
{
    if (is_reported(v))
        return;
    char text[TEXT_MAX];
    vsnprintf(text, sizeof text, fmt, args);
    struct str path = key_path(v->ld, v->s);
    diag_add(v->ld, value_where(v->ld, v->s), warning, "%.*s%s%s", STR_ARG(path), path.n > 0 ? ": " : "", text);
}

void diag_bad(const struct value *v, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    about(v, false, fmt, args);
    va_end(args);
}

void diag_warn(const struct value *v, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    about(v, true, fmt, args);
    va_end(args);
}

struct str value_show(const struct value *v)
{
    struct load *ld = v->ld;
    const char *text;
    char shown[SHOW_MAX + 1];
    switch (config_setting_type(v->s)) {
    case CONFIG_TYPE_STRING:
        text = config_setting_get_string(v->s);
        size_t n = log_escape(shown, SHOW_MAX, str_c(text));
        return load_printf(ld, "\"%.*s%s\"", (int)n, shown, strlen(text) > n ? "..." : "");
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        return load_printf(ld, "%lld", config_setting_get_int64(v->s));
    case CONFIG_TYPE_FLOAT:
        return STR("a number with a fraction");
    case CONFIG_TYPE_BOOL:
        return config_setting_get_bool(v->s) ? STR("true") : STR("false");
    case CONFIG_TYPE_GROUP:
        return STR("a group");
    default:
        return STR("a list");
    }
}

static struct str words_show(struct load *ld, enum word_set set)
{
    struct str text = STR("");
    for (size_t i = 0; i < n_setting_words; i++)
        if (setting_words[i].set == set)
            text = load_printf(ld, "%.*s%s\"%.*s\"", STR_ARG(text), text.n > 0 ? ", " : "",
                               STR_ARG(setting_words[i].name));
    return load_printf(ld, "one of %.*s", STR_ARG(text));
}

struct str value_expected(struct load *ld, const struct setting *row)
{
    char lo[UNITS_TEXT], hi[UNITS_TEXT];
    if (row->type == TYPE_ENUM)
        return words_show(ld, row->words);
    if (row->type == TYPE_BUILTIN)
        return words_show(ld, WORDS_builtin);
    if (row->type == TYPE_UINT && row->hi < UINT32_MAX)
        return load_printf(ld, "a whole number from %llu to %llu", (unsigned long long)row->lo,
                           (unsigned long long)row->hi);
    if (row->type == TYPE_SIZE && row->lo > 0) {
        size_print(row->lo, lo);
        size_print(row->hi, hi);
        return load_printf(ld, "a size from \"%s\" to \"%s\"", lo, hi);
    }
    return str_c(type_expected[row->type]);
}

bool diag_bad_type(const struct value *v)
{
    struct str found = value_show(v), expected = value_expected(v->ld, v->row);
    diag_bad(v, "found %.*s; expected %.*s", STR_ARG(found), STR_ARG(expected));
    return false;
}

static bool is_after(const struct diagnostic *a, const struct diagnostic *b)
{
    if (a->where.file != b->where.file)
        return a->where.file > b->where.file;
    return a->where.line > b->where.line;
}

/* Stable, by file and line. The list is short, and nearly sorted as it comes. */
void diag_sort(struct conf_result *r)
{
    struct diagnostic *sorted = NULL, *tail = NULL, *next;
    for (struct diagnostic *d = r->first; d != NULL; d = next) {
        next = d->next;
        if (tail != NULL && !is_after(tail, d)) {
            tail->next = d;
            d->next = NULL;
            tail = d;
            continue;
        }
        struct diagnostic **at = &sorted;
        while (*at != NULL && !is_after(*at, d))
            at = &(*at)->next;
        d->next = *at;
        *at = d;
        if (d->next == NULL)
            tail = d;
    }
    r->first = sorted;
}

/* The caret's line has tabs where the source line has them, so that it lands under the right column. */
static struct str caret_print(struct arena *a, struct str line, unsigned column)
{
    size_t n = column > 0 ? column - 1 : 0;
    char *blank = arena_alloc(a, n + 1);
    if (blank == NULL)
        return STR("");
    for (size_t i = 0; i < n; i++)
        blank[i] = i < line.n && line.p[i] == '\t' ? '\t' : ' ';
    return arena_printf(a, "%.*s^", (int)n, blank);
}

/* Bytes that could confuse a terminal become '?'; one byte stays one column. */
static struct str line_print(struct arena *a, struct str line)
{
    char *text = arena_alloc(a, line.n + 1);
    if (text == NULL)
        return STR("");
    for (size_t i = 0; i < line.n; i++) {
        unsigned char c = (unsigned char)line.p[i];
        text[i] = (char)((c < 0x20 && c != '\t') || c == 0x7f ? '?' : c);
    }
    return str_of(text, line.n);
}

struct str diagnostic_print(struct arena *a, const struct conf_result *r, const struct diagnostic *d)
{
    struct str file = d->where.file < r->n_files ? r->files[d->where.file] : STR("-");
    const char *kind = d->warning ? "warning: " : "";
    struct str text;
    if (d->where.line > 0)
        text = arena_printf(a, "%.*s:%u: %s%.*s\n", STR_ARG(file), d->where.line, kind, STR_ARG(d->text));
    else
        text = arena_printf(a, "%.*s: %s%.*s\n", STR_ARG(file), kind, STR_ARG(d->text));
    if (d->column == 0 || text.p == NULL)
        return text;
    struct str line = line_print(a, d->source_line), caret = caret_print(a, d->source_line, d->column);
    return arena_printf(a, "%.*s    %.*s\n    %.*s\n", STR_ARG(text), STR_ARG(line), STR_ARG(caret));
}

struct str where_print(struct arena *a, const struct conf *c, struct where w)
{
    if (w.line == 0 || w.file >= c->n_files)
        return STR("default");
    return arena_printf(a, "%.*s:%u", STR_ARG(c->files[w.file]), w.line);
}
