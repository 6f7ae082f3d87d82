/* SPDX-License-Identifier: MIT */
/*
 * Settings as text, by the same rows that read them, and all that a scope holds. A setting is printed where its value
 * differs from that of the scope around it. Values that no row can describe (headers, gzip, ...) have a function each.
 */
#include "conf/print_out.h"

#include "base/units.h"

void print_indent(struct out *o)
{
    for (unsigned i = 0; i < o->depth; i++)
        fputs("    ", o->f);
}

/* As libconfig reads it. A dollar that weir would take for the beginning of something is doubled, except in templates.
 */
void print_quote(struct out *o, struct str s, bool is_template)
{
    fputc('"', o->f);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool is_taken = c == '$' && i + 1 < s.n && (s.p[i + 1] == '$' || s.p[i + 1] == '{');
        if (c == '"' || c == '\\')
            fprintf(o->f, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(o->f, "\\x%02x", c);
        else if (is_taken && !is_template)
            fputs("$$", o->f);
        else
            fputc(c, o->f);
    }
    fputc('"', o->f);
}

static void print_number(struct out *o, const struct setting *row, const void *member)
{
    char text[UNITS_TEXT];
    uint64_t n = row->size == 8   ? *(const uint64_t *)member
                 : row->size == 4 ? *(const uint32_t *)member
                                  : *(const uint16_t *)member;
    if (row->type == TYPE_DURATION)
        duration_print(n, text);
    else if (row->type == TYPE_SIZE)
        size_print(n, text);
    else
        snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    bool is_plain = n == 0 || ((row->type == TYPE_UINT || row->type == TYPE_WORKERS) && n <= INT32_MAX);
    fprintf(o->f, is_plain ? "%s" : "\"%s\"", text);
}

void print_word(struct out *o, enum word_set set, int value)
{
    for (size_t i = 0; i < n_setting_words; i++) {
        if (setting_words[i].set != set || setting_words[i].value != value)
            continue;
        print_quote(o, setting_words[i].name, false);
        return;
    }
}

static unsigned count_of(const struct setting *row, const char *base)
{
    return *(const unsigned *)(const void *)(base + row->n_offset);
}

static const void *list_of(const struct setting *row, const char *base)
{
    const void *list;
    memcpy(&list, base + row->offset, sizeof list);
    return list;
}

static void print_cidr(struct out *o, const struct cidr *c)
{
    char text[IP_TEXT];
    if (c->unix_peers) {
        fputs("\"unix\"", o->f);
        return;
    }
    size_t n = ip_print(&c->ip, text);
    bool is_host = c->bits == (c->ip.family == 4 ? 32 : 128);
    if (is_host)
        fprintf(o->f, "\"%.*s\"", (int)n, text);
    else
        fprintf(o->f, "\"%.*s/%u\"", (int)n, text, c->bits);
}

void print_list(struct out *o, const struct setting *row, const char *base)
{
    const void *list = list_of(row, base);
    unsigned n = count_of(row, base);
    fputs("( ", o->f);
    for (unsigned i = 0; i < n; i++) {
        if (i > 0)
            fputs(", ", o->f);
        if (row->type == TYPE_CIDRS)
            print_cidr(o, (const struct cidr *)list + i);
        else if (row->type == TYPE_CPUS)
            fprintf(o->f, "%u", ((const unsigned *)list)[i]);
        else
            print_quote(o, ((const struct str *)list)[i], false);
    }
    fputs(n > 0 ? " )" : ")", o->f);
}

static void print_access_log(struct out *o, const struct access_log_conf *log)
{
    if (log == NULL) {
        fputs("false", o->f);
    } else if (log->format == LOG_FORMAT_COMBINED) {
        print_quote(o, log->path, false);
    } else {
        fputs("{ path = ", o->f);
        print_quote(o, log->path, false);
        fputs("; format = ", o->f);
        if (log->format == LOG_FORMAT_OWN)
            print_quote(o, log->own.source, true);
        else
            print_word(o, WORDS_log_format, (int)log->format);
        fputs("; }", o->f);
    }
}

static void print_error_log(struct out *o, const struct conf *c)
{
    bool is_group = c->error_log_style != LOG_STYLE_TEXT;
    fputs(is_group ? "{ path = " : "", o->f);
    print_quote(o, c->error_log, false);
    if (!is_group)
        return;
    fputs("; format = ", o->f);
    print_word(o, WORDS_error_log_format, (int)c->error_log_style);
    fputs("; }", o->f);
}

static void print_expires(struct out *o, const struct expires_conf *e)
{
    char text[UNITS_TEXT];
    duration_print(e->ms, text);
    if (e->kind == EXPIRES_OFF)
        fputs("false", o->f);
    else
        fprintf(o->f, "\"%s\"", e->kind == EXPIRES_EPOCH ? "epoch" : text);
}

static void print_error_pages(struct out *o, const struct scope_conf *s)
{
    fputs("( ", o->f);
    for (unsigned i = 0; i < s->n_error_pages; i++) {
        const struct error_page_conf *page = &s->error_pages[i];
        fprintf(o->f, "%s{ status = ( ", i > 0 ? ", " : "");
        for (unsigned j = 0; j < page->n_statuses; j++)
            fprintf(o->f, "%s%u", j > 0 ? ", " : "", page->statuses[j]);
        fputs(" ); file = ", o->f);
        print_quote(o, page->file, false);
        fputs(page->intercept ? "; intercept = true; }" : "; }", o->f);
        if (o->compares)
            fprintf(o->f, " %016llx", (unsigned long long)hash_bytes(page->body));
    }
    fputs(" )", o->f);
}

static void print_header_value(struct out *o, const struct header_rule *rule)
{
    if (rule->n_values == 0)
        fputs("\"\"", o->f);
    if (rule->n_values > 1)
        fputs("( ", o->f);
    for (unsigned i = 0; i < rule->n_values; i++) {
        if (i > 0)
            fputs(", ", o->f);
        print_quote(o, rule->values[i].source, true);
    }
    if (rule->n_values > 1)
        fputs(" )", o->f);
}

/* The rules that the outer scope has not; merging the others in again changes nothing. */
static void print_headers(struct out *o, const char *name, const struct header_rule *rules, unsigned n,
                          const struct header_rule *outer, unsigned n_outer, bool append)
{
    bool is_open = false;
    for (unsigned i = 0; i < n; i++) {
        bool is_inherited = rules[i].append != append;
        for (unsigned j = 0; j < n_outer; j++)
            is_inherited |= rules[i].values == outer[j].values;
        if (is_inherited)
            continue;
        if (!is_open) {
            print_indent(o);
            fprintf(o->f, "%s = {", name);
            is_open = true;
        }
        fprintf(o->f, " %.*s = ", STR_ARG(rules[i].name));
        print_header_value(o, &rules[i]);
        fputc(';', o->f);
    }
    if (is_open)
        fputs(" };\n", o->f);
}

static void print_gzip(struct out *o, const struct gzip_conf *g, const struct gzip_conf *outer)
{
    char text[UNITS_TEXT];
    if (!g->on) {
        if (outer->on) {
            print_indent(o);
            fputs("gzip = false;\n", o->f);
        }
        return;
    }
    bool is_same = g->types == outer->types && g->min_length == outer->min_length && g->level == outer->level;
    if (is_same && outer->on)
        return;
    print_indent(o);
    if (is_same) {
        fputs("gzip = true;\n", o->f);
        return;
    }
    size_print(g->min_length, text);
    fprintf(o->f, "gzip = { level = %d; min_length = \"%s\"; types = ( ", g->level, text);
    for (unsigned i = outer->n_types; i < g->n_types; i++) {
        fputs(i > outer->n_types ? ", " : "", o->f);
        print_quote(o, g->types[i], false);
    }
    fputs(" ); };\n", o->f);
}

static void print_limit(struct out *o, const struct limit_conf *l, bool is_rate)
{
    if (l == NULL) {
        fputs("0", o->f);
        return;
    }
    if (is_rate)
        fprintf(o->f, "{ rate = \"%llu/%c\"; burst = %llu; ", (unsigned long long)l->count, l->per,
                (unsigned long long)l->burst);
    else
        fprintf(o->f, "{ max = %llu; ", (unsigned long long)l->burst);
    if (l->key.n > 0) {
        fputs("key = ", o->f);
        print_quote(o, l->key.source, true);
        fputs("; ", o->f);
    }
    fputs(l->is_dry_run ? "dry_run = true; }" : "}", o->f);
}

static void print_auth(struct out *o, const struct auth_conf *auth)
{
    if (auth == NULL) {
        fputs("false", o->f);
        return;
    }
    fputs("{ realm = ", o->f);
    print_quote(o, auth->realm, false);
    fputs("; users = ( ", o->f); /* those of the file among them: what is in force */
    for (unsigned i = 0; i < auth->n_users; i++) {
        fputs(i > 0 ? ", " : "", o->f);
        char text[256 + AUTH_HASH_MAX + 2];
        int n = snprintf(text, sizeof text, "%.*s:%.*s", STR_ARG(auth->users[i].name), STR_ARG(auth->users[i].hash));
        print_quote(o, str_of(text, (size_t)n), false);
    }
    fputs(" ); }", o->f);
}

static bool is_list(const struct setting *row)
{
    return row->n_offset != 0;
}

bool print_is_same(const struct setting *row, const char *base, const char *outer)
{
    if (row->type == TYPE_TEMPLATE)
        return str_eq(((const struct template *)(const void *)(base + row->offset))->source,
                      ((const struct template *)(const void *)(outer + row->offset))->source);
    if (row->type == TYPE_ACCESS_LOG) {
        const struct access_log_conf *a = list_of(row, base), *b = list_of(row, outer);
        if (a == NULL || b == NULL)
            return a == b;
        return str_eq(a->path, b->path) && a->format == b->format && str_eq(a->own.source, b->own.source);
    }
    if (row->type == TYPE_EXPIRES) {
        const struct expires_conf *a = (const void *)(base + row->offset), *b = (const void *)(outer + row->offset);
        return a->kind == b->kind && a->ms == b->ms;
    }
    if (row->type == TYPE_ERROR_LOG) {
        const struct conf *a = (const void *)base, *b = (const void *)outer;
        return str_eq(a->error_log, b->error_log) && a->error_log_style == b->error_log_style;
    }
    if (is_list(row)) {
        unsigned n = count_of(row, base);
        if (n != count_of(row, outer))
            return false;
        if (row->type != TYPE_FILE_NAMES)
            return n == 0 || list_of(row, base) == list_of(row, outer);
        const struct str *a = list_of(row, base), *b = list_of(row, outer);
        for (unsigned i = 0; i < n; i++)
            if (!str_eq(a[i], b[i]))
                return false;
        return true;
    }
    if (row->size == sizeof(struct str) &&
        (row->type == TYPE_TEXT || row->type == TYPE_PATH || row->type == TYPE_LOG_FILE || row->type == TYPE_TOKEN ||
         row->type == TYPE_URL_PATH || row->type == TYPE_STRIP_PREFIX))
        return str_eq(*(const struct str *)(const void *)(base + row->offset),
                      *(const struct str *)(const void *)(outer + row->offset));
    return memcmp(base + row->offset, outer + row->offset, row->size) == 0;
}

void print_value(struct out *o, const struct setting *row, const char *base)
{
    const void *member = base + row->offset;
    int word;
    switch (row->type) {
    case TYPE_BOOL:
        fputs(*(const bool *)member ? "true" : "false", o->f);
        break;
    case TYPE_UINT:
    case TYPE_SIZE:
    case TYPE_DURATION:
    case TYPE_WORKERS:
        print_number(o, row, member);
        break;
    case TYPE_ENUM:
        memcpy(&word, member, sizeof word);
        print_word(o, row->words, word);
        break;
    case TYPE_TEMPLATE:
        print_quote(o, ((const struct template *)member)->source, true);
        break;
    case TYPE_ACCESS_LOG:
        print_access_log(o, list_of(row, base));
        break;
    case TYPE_ERROR_LOG:
        print_error_log(o, (const struct conf *)(const void *)base);
        break;
    case TYPE_BASIC_AUTH:
        print_auth(o, list_of(row, base));
        break;
    case TYPE_REQUESTS:
    case TYPE_IN_FLIGHT:
        print_limit(o, *(struct limit_conf *const *)member, row->type == TYPE_REQUESTS);
        break;
    case TYPE_EXPIRES:
        print_expires(o, member);
        break;
    case TYPE_ERROR_PAGES:
        print_error_pages(o, (const struct scope_conf *)(const void *)base);
        break;
    default:
        if (is_list(row))
            print_list(o, row, base);
        else
            print_quote(o, *(const struct str *)member, false);
        break;
    }
}

static bool is_special(const struct setting *row)
{
    return row->type == TYPE_HEADERS || row->type == TYPE_ADD_HEADERS || row->type == TYPE_GZIP ||
           row->type == TYPE_STRIP_PREFIX || areas[row->area].kind == MEMBER;
}

void print_rows(struct out *o, struct pair conf, struct pair scoped)
{
    enum area open = AREA_COUNT;
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct setting *row = &settings[i];
        struct pair p = row->base == IN_CONF ? conf : row->base == IN_SCOPE ? scoped : (struct pair){ NULL, NULL };
        if (p.object == NULL || is_special(row) || print_is_same(row, p.object, p.outer))
            continue;
        if (open < AREA_COUNT && open != row->area) {
            fputs(" };\n", o->f);
            open = AREA_COUNT;
        }
        bool is_group = areas[row->area].kind == GROUP;
        if (is_group && open == AREA_COUNT) {
            print_indent(o);
            fprintf(o->f, "%.*s = {", STR_ARG(areas[row->area].key));
            open = row->area;
        }
        if (is_group)
            fputc(' ', o->f);
        else
            print_indent(o);
        fprintf(o->f, "%.*s = ", STR_ARG(row->name));
        print_value(o, row, p.object);
        fputs(is_group ? ";" : ";\n", o->f);
    }
    if (open < AREA_COUNT)
        fputs(" };\n", o->f);
}

void print_scope(struct out *o, const struct scope_conf *s, const struct scope_conf *outer, struct pair conf)
{
    print_rows(o, conf, (struct pair){ s, outer });
    print_gzip(o, &s->gzip, &outer->gzip);
    print_headers(o, "request_headers", s->request_headers, s->n_request_headers, outer->request_headers,
                  outer->n_request_headers, false);
    print_headers(o, "response_headers", s->response_headers, s->n_response_headers, outer->response_headers,
                  outer->n_response_headers, false);
    print_headers(o, "add_response_headers", s->response_headers, s->n_response_headers, outer->response_headers,
                  outer->n_response_headers, true);
    bool is_same_strip = s->strip_own_prefix == outer->strip_own_prefix &&
                         (s->strip_own_prefix || str_eq(s->strip_prefix, outer->strip_prefix));
    if (is_same_strip)
        return;
    print_indent(o);
    fputs("strip_prefix = ", o->f);
    if (s->strip_own_prefix || s->strip_prefix.n == 0)
        fputs(s->strip_own_prefix ? "true" : "false", o->f);
    else
        print_quote(o, s->strip_prefix, false);
    fputs(";\n", o->f);
}
