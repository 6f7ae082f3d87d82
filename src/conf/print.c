/* SPDX-License-Identifier: MIT */
/*
 * The way back: a struct conf as text, by the same rows that read it. A setting is printed where its value differs from
 * that of the scope around it (at the top: from the defaults, which a load of the smallest file supplies). What was
 * resolved stays resolved: timeouts that came from an upstream stand in the locations, and paths are absolute.
 */
#include "conf/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "conf/settings.h"

struct out {
    FILE *f;
    unsigned depth;
    const struct conf *conf;
    bool compares; /* what was read from other files counts, too */
};

static void indent(struct out *o)
{
    for (unsigned i = 0; i < o->depth; i++)
        fputs("    ", o->f);
}

/* As libconfig reads it. A dollar that weir would take for the beginning of something is doubled, except in templates.
 */
static void quote(struct out *o, struct str s, bool is_template)
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

static void print_word(struct out *o, enum word_set set, int value)
{
    for (size_t i = 0; i < n_setting_words; i++) {
        if (setting_words[i].set != set || setting_words[i].value != value)
            continue;
        quote(o, setting_words[i].name, false);
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

static void print_list(struct out *o, const struct setting *row, const char *base)
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
            quote(o, ((const struct str *)list)[i], false);
    }
    fputs(n > 0 ? " )" : ")", o->f);
}

static void print_access_log(struct out *o, const struct access_log_conf *log)
{
    if (log == NULL) {
        fputs("false", o->f);
    } else if (log->format == LOG_FORMAT_COMBINED) {
        quote(o, log->path, false);
    } else {
        fputs("{ path = ", o->f);
        quote(o, log->path, false);
        fputs("; format = ", o->f);
        if (log->format == LOG_FORMAT_OWN)
            quote(o, log->own.source, true);
        else
            print_word(o, WORDS_log_format, (int)log->format);
        fputs("; }", o->f);
    }
}

static void print_error_log(struct out *o, const struct conf *c)
{
    bool is_group = c->error_log_style != LOG_STYLE_TEXT;
    fputs(is_group ? "{ path = " : "", o->f);
    quote(o, c->error_log, false);
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
        quote(o, page->file, false);
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
        quote(o, rule->values[i].source, true);
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
            indent(o);
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
            indent(o);
            fputs("gzip = false;\n", o->f);
        }
        return;
    }
    bool is_same = g->types == outer->types && g->min_length == outer->min_length && g->level == outer->level;
    if (is_same && outer->on)
        return;
    indent(o);
    if (is_same) {
        fputs("gzip = true;\n", o->f);
        return;
    }
    size_print(g->min_length, text);
    fprintf(o->f, "gzip = { level = %d; min_length = \"%s\"; types = ( ", g->level, text);
    for (unsigned i = outer->n_types; i < g->n_types; i++) {
        fputs(i > outer->n_types ? ", " : "", o->f);
        quote(o, g->types[i], false);
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
        fprintf(o->f, "{ rate = \"%llu/%c\"; burst = %llu; ", (unsigned long long)l->count, l->per, (unsigned long long)l->burst);
    else
        fprintf(o->f, "{ max = %llu; ", (unsigned long long)l->burst);
    if (l->key.n > 0) {
        fputs("key = ", o->f);
        quote(o, l->key.source, true);
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
    quote(o, auth->realm, false);
    fputs("; users = ( ", o->f); /* those of the file among them: what is in force */
    for (unsigned i = 0; i < auth->n_users; i++) {
        fputs(i > 0 ? ", " : "", o->f);
        char text[256 + AUTH_HASH_MAX + 2];
        int n = snprintf(text, sizeof text, "%.*s:%.*s", STR_ARG(auth->users[i].name), STR_ARG(auth->users[i].hash));
        quote(o, str_of(text, (size_t)n), false);
    }
    fputs(" ); }", o->f);
}

static bool is_list(const struct setting *row)
{
    return row->n_offset != 0;
}

/* Is the value that of the outer scope? */
static bool is_same(const struct setting *row, const char *base, const char *outer)
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

static void print_value(struct out *o, const struct setting *row, const char *base)
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
        quote(o, ((const struct template *)member)->source, true);
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
            quote(o, *(const struct str *)member, false);
        break;
    }
}

static bool is_special(const struct setting *row)
{
    return row->type == TYPE_HEADERS || row->type == TYPE_ADD_HEADERS || row->type == TYPE_GZIP ||
           row->type == TYPE_STRIP_PREFIX || areas[row->area].kind == MEMBER;
}

/* An object and what it is compared with, for each base whose rows stand together; groups (timeouts, limits) have rows
 * of both. */
struct pair {
    const void *object, *outer;
};

/* Groups are opened when they have something to say. */
static void print_rows(struct out *o, struct pair conf, struct pair scoped)
{
    enum area open = AREA_COUNT;
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct setting *row = &settings[i];
        struct pair p = row->base == IN_CONF ? conf : row->base == IN_SCOPE ? scoped : (struct pair){ NULL, NULL };
        if (p.object == NULL || is_special(row) || is_same(row, p.object, p.outer))
            continue;
        if (open < AREA_COUNT && open != row->area) {
            fputs(" };\n", o->f);
            open = AREA_COUNT;
        }
        bool is_group = areas[row->area].kind == GROUP;
        if (is_group && open == AREA_COUNT) {
            indent(o);
            fprintf(o->f, "%.*s = {", STR_ARG(areas[row->area].key));
            open = row->area;
        }
        if (is_group)
            fputc(' ', o->f);
        else
            indent(o);
        fprintf(o->f, "%.*s = ", STR_ARG(row->name));
        print_value(o, row, p.object);
        fputs(is_group ? ";" : ";\n", o->f);
    }
    if (open < AREA_COUNT)
        fputs(" };\n", o->f);
}

/* conf: the settings that only the top has, or nothing. */
static void print_scope(struct out *o, const struct scope_conf *s, const struct scope_conf *outer, struct pair conf)
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
    indent(o);
    fputs("strip_prefix = ", o->f);
    if (s->strip_own_prefix || s->strip_prefix.n == 0)
        fputs(s->strip_own_prefix ? "true" : "false", o->f);
    else
        quote(o, s->strip_prefix, false);
    fputs(";\n", o->f);
}

static void print_redirect(struct out *o, const struct action *a)
{
    if (a->u.redirect.status == 0) {
        quote(o, a->u.redirect.to.source, true);
        return;
    }
    fprintf(o->f, "{ status = %u; to = ", a->u.redirect.status);
    quote(o, a->u.redirect.to.source, true);
    fputs("; }", o->f);
}

static void print_respond(struct out *o, const struct action *a)
{
    if (!a->u.respond.has_body) {
        fprintf(o->f, "%u", a->u.respond.status);
        return;
    }
    fprintf(o->f, "{ status = %u; body = ", a->u.respond.status);
    quote(o, a->u.respond.body, false);
    fputs("; type = ", o->f);
    quote(o, a->u.respond.type, false);
    fputs("; }", o->f);
}

static void print_actions(struct out *o, const struct location_conf *location)
{
    for (unsigned i = 0; i < location->n_actions; i++) {
        const struct action *a = location->actions[i];
        static const char *const names[] = { "root", "proxy", "redirect", "respond", "builtin", "meteor_bundle" };
        indent(o);
        fprintf(o->f, "%s = ", a->kind == ACTION_FILE && a->u.file.alias ? "alias" : names[a->kind]);
        if (a->kind == ACTION_FILE)
            quote(o, a->u.file.root, false);
        else if (a->kind == ACTION_METEOR)
            quote(o, a->u.meteor.bundle, false);
        else if (a->kind == ACTION_PROXY)
            quote(o, a->u.proxy.upstream->name, false);
        else if (a->kind == ACTION_REDIRECT)
            print_redirect(o, a);
        else if (a->kind == ACTION_RESPOND)
            print_respond(o, a);
        else
            print_word(o, WORDS_builtin, (int)a->u.builtin);
        fputs(";\n", o->f);
        /* An index of the location's own changes what its files answer: it must be seen even if it equals the inherited
         * one. */
        if (a->kind == ACTION_FILE && a->u.file.own_index &&
            is_same(&settings[SET_files_index], (const char *)&location->s, (const char *)location->site->s)) {
            indent(o);
            fputs("index = ", o->f);
            print_list(o, &settings[SET_files_index], (const char *)&location->s);
            fputs(";\n", o->f);
        }
    }
}

static void print_listens(struct out *o, const struct site_conf *site, const struct listen_conf *defaults)
{
    unsigned n = 0, n_here = 0;
    indent(o);
    for (unsigned i = 0; i < o->conf->n_listens; i++)
        for (unsigned j = 0; j < o->conf->listens[i].n_sites; j++)
            n_here += o->conf->listens[i].sites[j] == site;
    fputs(n_here == 1 ? "listen = " : "listen = ( ", o->f);
    for (unsigned i = 0; i < o->conf->n_listens; i++) {
        const struct listen_conf *l = &o->conf->listens[i];
        bool is_here = false;
        for (unsigned j = 0; j < l->n_sites; j++)
            is_here |= l->sites[j] == site;
        if (!is_here)
            continue;
        fputs(n++ > 0 ? ", " : "", o->f);
        bool is_plain = l->backlog == defaults->backlog && l->defer == defaults->defer && !l->proxy_protocol;
        if (!is_plain)
            fputs("{ address = ", o->f);
        quote(o, l->text, false);
        if (!is_plain)
            fprintf(o->f, "; backlog = %d; defer = %s; proxy_protocol = %s; }", l->backlog, l->defer ? "true" : "false",
                    l->proxy_protocol ? "true" : "false");
    }
    fputs(n_here == 1 ? ";\n" : " );\n", o->f);
}

static void print_names(struct out *o, const struct site_conf *site)
{
    if (site->n_names == 0)
        return;
    indent(o);
    fputs("names = ( ", o->f);
    for (unsigned i = 0; i < site->n_names; i++)
        fprintf(o->f, "%s\"%s%.*s\"", i > 0 ? ", " : "", site->names[i].wildcard ? "*" : "",
                STR_ARG(site->names[i].name));
    fputs(" );\n", o->f);
}

static void print_internal(struct out *o, const struct location_conf *location)
{
    if (!location->internal)
        return;
    indent(o);
    fputs("internal = true;\n", o->f);
}

/* Does the site itself say all that its implicit location does? Timeouts from an upstream it does not. */
static bool is_site_enough(const struct site_conf *site, const struct location_conf *location)
{
    return location->implicit && memcmp(&location->s.timeouts, &site->s->timeouts, sizeof site->s->timeouts) == 0;
}

static void print_locations(struct out *o, const struct site_conf *site)
{
    bool is_open = false;
    for (unsigned i = 0; i < site->n_all; i++) {
        const struct location_conf *location = site->all[i];
        if (is_site_enough(site, location)) {
            print_actions(o, location);
            continue;
        }
        if (!is_open) {
            indent(o);
            fputs("locations = (\n", o->f);
            is_open = true;
        } else {
            fputs(",\n", o->f);
        }
        o->depth++;
        indent(o);
        fputs("{\n", o->f);
        o->depth++;
        indent(o);
        fputs("match = ", o->f);
        quote(o, location->match, false);
        fputs(";\n", o->f);
        print_internal(o, location);
        print_actions(o, location);
        print_scope(o, &location->s, site->s, (struct pair){ NULL, NULL });
        o->depth--;
        indent(o);
        fputs("}", o->f);
        o->depth--;
        bool is_last = i + 1 == site->n_all || is_site_enough(site, site->all[i + 1]);
        if (is_last) {
            fputc('\n', o->f);
            indent(o);
            fputs(");\n", o->f);
        }
    }
}

/* How a site is reached. */
static void print_reach(struct out *o, const struct site_conf *site, const struct listen_conf *defaults)
{
    const struct setting *trusted = &settings[SET_site_trusted];
    print_listens(o, site, defaults);
    print_names(o, site);
    if (site->is_default) {
        indent(o);
        fputs("default = true;\n", o->f);
    }
    if (site->n_trusted > 0) {
        const struct {
            const struct cidr *list;
            unsigned n;
        } pair = { site->trusted, site->n_trusted };
        _Static_assert(sizeof pair == 16, "the shape that the row of `trusted` describes");
        indent(o);
        fputs("trusted = ", o->f);
        print_list(o, trusted, (const char *)&pair);
        fputs(";\n", o->f);
    }
}

static void print_site(struct out *o, const struct site_conf *site, const struct listen_conf *defaults)
{
    o->depth++;
    indent(o);
    fputs("{\n", o->f);
    o->depth++;
    print_reach(o, site, defaults);
    print_scope(o, site->s, o->conf->s, (struct pair){ NULL, NULL });
    print_locations(o, site);
    o->depth--;
    indent(o);
    fputc('}', o->f);
    o->depth--;
}

static void print_server(struct out *o, const struct server_conf *server, const struct server_conf *defaults)
{
    bool is_plain = true;
    for (size_t i = 0; i < SET_COUNT; i++)
        is_plain &=
            settings[i].base != IN_SERVER || is_same(&settings[i], (const char *)server, (const char *)defaults);
    indent(o);
    if (is_plain) {
        quote(o, server->text, false);
        return;
    }
    fputs("{ address = ", o->f);
    quote(o, server->text, false);
    fputs(";", o->f);
    for (size_t i = 0; i < SET_COUNT; i++) {
        if (settings[i].base != IN_SERVER || is_same(&settings[i], (const char *)server, (const char *)defaults))
            continue;
        fprintf(o->f, " %.*s = ", STR_ARG(settings[i].name));
        print_value(o, &settings[i], (const char *)server);
        fputc(';', o->f);
    }
    fputs(" }", o->f);
}

static void print_health(struct out *o, const struct health_conf *h)
{
    char interval[UNITS_TEXT], timeout[UNITS_TEXT];
    if (h->kind == HEALTH_PASSIVE)
        return;
    duration_print(h->interval, interval);
    duration_print(h->timeout, timeout);
    indent(o);
    fputs("health = { ", o->f);
    if (h->kind == HEALTH_HTTP) {
        fputs("path = ", o->f);
        quote(o, h->path, false);
        fputs("; ", o->f);
    }
    fprintf(o->f, "interval = \"%s\"; timeout = \"%s\"; rise = %u; fall = %u; expect = \"%u-%u\"; };\n", interval,
            timeout, h->rise, h->fall, h->expect_low, h->expect_high);
}

static void print_sticky(struct out *o, const struct upstream_conf *u)
{
    if (u->sticky == STICKY_OFF)
        return;
    indent(o);
    if (u->sticky == STICKY_AUTO) {
        fputs("sticky = \"auto\";\n", o->f);
        return;
    }
    fputs("sticky = { cookie = ", o->f);
    quote(o, u->sticky_cookie, false);
    if (u->sticky_key.n > 0) {
        fputs("; key = ", o->f);
        quote(o, u->sticky_key, false);
    }
    fputs("; };\n", o->f);
}

static bool is_bare_address(const struct upstream_conf *u)
{
    return str_chr(u->name, ':', 0) >= 0;
}

/* All of an upstream but its servers. */
static void print_pool(struct out *o, const struct upstream_conf *u, const struct upstream_conf *defaults)
{
    char idle[UNITS_TEXT];
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct setting *row = &settings[i];
        if (row->base != IN_UPSTREAM || areas[row->area].kind != DIRECT ||
            is_same(row, (const char *)u, (const char *)defaults))
            continue;
        indent(o);
        fprintf(o->f, "%.*s = ", STR_ARG(row->name));
        print_value(o, row, (const char *)u);
        fputs(";\n", o->f);
    }
    if (u->has_upstream_idle) {
        duration_print(u->upstream_idle, idle);
        indent(o);
        fprintf(o->f, "timeouts = { upstream_idle = \"%s\"; };\n", idle);
    }
    print_health(o, &u->health);
    print_sticky(o, u);
}

static void print_upstream(struct out *o, const struct upstream_conf *u, const struct upstream_conf *defaults)
{
    indent(o);
    fprintf(o->f, "%.*s = {\n", STR_ARG(u->name));
    o->depth++;
    print_pool(o, u, defaults);
    indent(o);
    fputs("servers = (\n", o->f);
    o->depth++;
    for (unsigned i = 0; i < u->n_servers; i++) {
        print_server(o, &u->servers[i], &defaults->servers[0]);
        fputs(i + 1 < u->n_servers ? ",\n" : "\n", o->f);
    }
    o->depth--;
    indent(o);
    fputs(");\n", o->f);
    o->depth--;
    indent(o);
    fputs("};\n", o->f);
}

static void print_conf(struct out *o, const struct conf *c, const struct conf *defaults)
{
    struct conf top = *c;
    if (c->where[SET_top_workers].line == 0)
        top.workers = defaults->workers; /* "auto": of the machine that reads the text, not of this one */
    print_scope(o, c->s, defaults->s, (struct pair){ &top, defaults });
    bool is_open = false;
    for (unsigned i = 0; i < c->n_upstreams; i++) {
        if (is_bare_address(c->upstreams[i]))
            continue;
        if (!is_open)
            fputs("upstreams = {\n", o->f);
        is_open = true;
        o->depth++;
        print_upstream(o, c->upstreams[i], defaults->upstreams[0]);
        o->depth--;
    }
    if (is_open)
        fputs("};\n", o->f);
    fputs("sites = (\n", o->f);
    for (unsigned i = 0; i < c->n_sites; i++) {
        print_site(o, c->sites[i], &defaults->listens[0]);
        fputs(i + 1 < c->n_sites ? ",\n" : "\n", o->f);
    }
    fputs(");\n", o->f);
}

/* What the values of a configuration are compared with: the smallest file's. */
static bool load_defaults(struct conf_result *out)
{
    conf_load_flags(STR("sites = { listen = \"1\"; proxy = \"a:1\"; };"), "defaults", "/", CONF_NO_FILES, out);
    return out->conf != NULL;
}

static void free_defaults(struct conf_result *defaults)
{
    conf_free(defaults->conf);
    conf_result_free(defaults);
}

struct str conf_print(struct arena *a, const struct conf *c)
{
    struct conf_result defaults;
    char *text = NULL;
    size_t n = 0;
    struct str copy = STR_NONE;
    bool is_loaded = load_defaults(&defaults);
    FILE *f = open_memstream(&text, &n);
    if (f != NULL && is_loaded) {
        struct out o = { .f = f, .conf = c };
        print_conf(&o, c, defaults.conf);
    }
    if (f != NULL && fclose(f) == 0 && is_loaded)
        copy = arena_dup(a, str_of(text, n));
    free(text);
    free_defaults(&defaults);
    return copy;
}

/* One part's text, written between begin and end. */
struct parts {
    struct out o;
    struct arena *a;
    struct conf_part *v;
    unsigned n;
    char *text;
    size_t text_n;
    bool failed;
};

static struct out *part_begin(struct parts *p)
{
    p->text = NULL;
    p->o.f = open_memstream(&p->text, &p->text_n);
    p->failed |= p->o.f == NULL;
    return p->failed ? NULL : &p->o;
}

static void part_end(struct parts *p, enum conf_part_kind kind, struct str key)
{
    p->failed |= fclose(p->o.f) != 0;
    struct str text = p->failed ? STR_NONE : arena_dup(p->a, str_of(p->text, p->text_n));
    free(p->text);
    p->failed |= text.p == NULL || key.p == NULL;
    if (!p->failed)
        p->v[p->n++] = (struct conf_part){ .kind = kind, .key = key, .text = text };
}

static void add_upstream(struct parts *p, const struct upstream_conf *u, const struct upstream_conf *defaults)
{
    struct out *o = part_begin(p);
    if (o == NULL)
        return;
    print_pool(o, u, defaults);
    part_end(p, PART_UPSTREAM, arena_printf(p->a, "%.*s", STR_ARG(u->name)));
    for (unsigned i = 0; i < u->n_servers && (o = part_begin(p)) != NULL; i++) {
        print_server(o, &u->servers[i], &defaults->servers[0]);
        part_end(p, PART_SERVER, arena_printf(p->a, "%.*s/%.*s", STR_ARG(u->name), STR_ARG(u->servers[i].text)));
    }
}

static void add_site(struct parts *p, const struct site_conf *site, unsigned nth, const struct conf *defaults)
{
    struct out *o = part_begin(p);
    if (o == NULL)
        return;
    print_reach(o, site, &defaults->listens[0]);
    struct str key = arena_printf(p->a, "%.*s", STR_ARG(site->label));
    for (unsigned i = 0; i < p->n; i++) /* sites without a name share their address */
        if (p->v[i].kind == PART_SITE && str_eq(p->v[i].key, key))
            key = arena_printf(p->a, "%.*s#%u", STR_ARG(site->label), nth);
    part_end(p, PART_SITE, key);
    for (unsigned i = 0; i < site->n_all && (o = part_begin(p)) != NULL; i++) {
        const struct location_conf *l = site->all[i];
        print_internal(o, l);
        print_actions(o, l);
        print_scope(o, &l->s, defaults->s, (struct pair){ NULL, NULL });
        part_end(p, PART_LOCATION, arena_printf(p->a, "%.*s %.*s", STR_ARG(key), STR_ARG(l->match)));
    }
}

static void add_parts(struct parts *p, const struct conf *c, const struct conf *defaults)
{
    struct out *o = part_begin(p);
    if (o == NULL)
        return;
    print_rows(o, (struct pair){ c, defaults }, (struct pair){ NULL, NULL });
    part_end(p, PART_TOP, STR("top"));
    for (unsigned i = 0; i < c->n_listens; i++) {
        if ((o = part_begin(p)) == NULL)
            return;
        fprintf(o->f, "%d %d %d", c->listens[i].backlog, c->listens[i].defer, c->listens[i].proxy_protocol);
        part_end(p, PART_LISTENER, c->listens[i].text);
    }
    for (unsigned i = 0; i < c->n_upstreams && !p->failed; i++)
        add_upstream(p, c->upstreams[i], defaults->upstreams[0]);
    for (unsigned i = 0; i < c->n_sites && !p->failed; i++)
        add_site(p, c->sites[i], i, defaults);
}

static unsigned count_parts(const struct conf *c)
{
    unsigned n = 1 + c->n_listens + c->n_upstreams + c->n_sites;
    for (unsigned i = 0; i < c->n_upstreams; i++)
        n += c->upstreams[i]->n_servers;
    for (unsigned i = 0; i < c->n_sites; i++)
        n += c->sites[i]->n_all;
    return n;
}

bool conf_parts(struct arena *a, const struct conf *c, struct conf_part **out, unsigned *n)
{
    struct conf_result defaults;
    struct parts p = { .o = { .conf = c, .compares = true }, .a = a, .v = arena_array(a, struct conf_part, count_parts(c)) };
    p.failed = !load_defaults(&defaults) || p.v == NULL;
    if (!p.failed)
        add_parts(&p, c, defaults.conf);
    free_defaults(&defaults);
    *out = p.v;
    *n = p.n;
    return !p.failed;
}
