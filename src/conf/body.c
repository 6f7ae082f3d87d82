/* SPDX-License-Identifier: MIT */
/*
 * Settings about requests and answers on their way that have a form of their own: gzip, error pages, expires,
 * strip_prefix, access logs. Each reader writes to the scope it stands in, which began as a copy of the outer scope.
 * Lists of types merge with the outer ones. Access logs are shared: equal path and format are one entry for the whole
 * configuration, so that one log has one writer; entries that no scope uses in the end are dropped (logs_finish).
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/units.h"
#include "conf/check.h"

/* What is worth compressing when nobody says otherwise. */
static const struct str default_types[] = {
    { "application/atom+xml", 20 }, { "application/geo+json", 20 },      { "application/javascript", 22 },
    { "application/json", 16 },     { "application/ld+json", 19 },       { "application/manifest+json", 25 },
    { "application/rss+xml", 19 },  { "application/wasm", 16 },          { "application/xhtml+xml", 21 },
    { "application/xml", 15 },      { "image/svg+xml", 13 },             { "text/*", 6 },
};

bool read_gzip(const struct value *v)
{
    struct gzip_conf *gzip = &v->t->scoped->gzip;
    bool on;
    if (gzip->types == NULL) {
        gzip->types = default_types;
        gzip->n_types = ARRAY_LEN(default_types);
    }
    if (value_bool(v, &on)) {
        gzip->on = on;
        return true;
    }
    if (!value_is_group(v))
        return diag_bad_type(v);
    gzip->on = true;
    area_read(v->ld, v->s, AREA_gzip, v->t);
    return true;
}

static bool is_media_type(struct str s)
{
    ptrdiff_t slash = str_chr(s, '/', 0);
    return slash > 0 && value_is_token(str_take(s, (size_t)slash)) && value_is_token(str_skip(s, (size_t)slash + 1));
}

/* Merges with the types of the outer scope. */
bool read_types(const struct value *v)
{
    struct gzip_conf *gzip = &v->t->scoped->gzip;
    unsigned n_own = value_count(v), n = gzip->n_types;
    struct str *all = load_array(v->ld, struct str, n + n_own);
    if (n > 0)
        memcpy(all, gzip->types, n * sizeof *all);
    bool is_right = true;
    for (unsigned i = 0; i < n_own; i++) {
        struct value item = value_at(v, i);
        struct str text;
        if (!value_text(&item, &text) || !is_media_type(text)) {
            is_right = diag_bad_type(&item);
            continue;
        }
        bool is_known = false;
        for (unsigned j = 0; j < n; j++)
            is_known |= str_eq_nocase(all[j], text);
        if (!is_known)
            all[n++] = text;
    }
    gzip->types = all;
    gzip->n_types = n;
    return is_right;
}

bool read_statuses(const struct value *v)
{
    struct error_page_conf *page = v->t->part;
    unsigned n = value_count(v);
    uint16_t *statuses = load_array(v->ld, uint16_t, n);
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(v, i);
        uint64_t status;
        if (!read_uint(&item, 300, 599, &status))
            return false;
        statuses[i] = (uint16_t)status;
    }
    page->statuses = statuses;
    page->n_statuses = n;
    return true;
}

/* Reads the page, so that no loop has to. */
static bool load_page(const struct value *v, struct error_page_conf *page)
{
    enum { PAGE_MAX = 1024 * 1024 };
    struct stat st;
    struct str z = load_dup(v->ld, page->file), body;
    if (v->ld->flags & CONF_NO_FILES)
        return true;
    if (stat(z.p, &st) < 0)
        return check_missing(v, page->file, "a page that can be read", errno);
    if (!S_ISREG(st.st_mode) || st.st_size > PAGE_MAX)
        return check_missing(v, page->file, "a file of at most 1 MB", S_ISREG(st.st_mode) ? EFBIG : EINVAL);
    if (!load_file(v->ld, z.p, &body))
        return check_missing(v, page->file, "a page that can be read", errno);
    page->body = load_dup(v->ld, body);
    return true;
}

bool read_error_pages(const struct value *v)
{
    struct scope_conf *scope = v->t->scoped;
    unsigned n = value_count(v);
    struct error_page_conf *pages = load_array(v->ld, struct error_page_conf, n);
    bool is_right = true;
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(v, i);
        struct target t = *v->t;
        t.part = &pages[i];
        if (!value_is_group(&item)) {
            is_right = diag_bad_type(&item);
            continue;
        }
        unsigned n_errors = v->ld->out->n_errors;
        area_read(v->ld, item.s, AREA_error_page, &t);
        if ((pages[i].n_statuses == 0 || pages[i].file.n == 0) && v->ld->out->n_errors == n_errors)
            diag_bad(&item, "not complete; expected { status = 502; file = \"/srv/oops.html\"; }");
        else if (v->ld->out->n_errors == n_errors && !load_page(&item, &pages[i]))
            is_right = false;
    }
    scope->error_pages = pages;
    scope->n_error_pages = n;
    return is_right;
}

bool read_expires(const struct value *v)
{
    struct expires_conf *expires = &v->t->scoped->expires;
    struct str text;
    uint64_t ms;
    if (value_is_off(v)) {
        *expires = (struct expires_conf){ .kind = EXPIRES_OFF };
        return true;
    }
    if (value_text(v, &text) && str_eq_nocase(text, STR("epoch"))) {
        *expires = (struct expires_conf){ .kind = EXPIRES_EPOCH };
        return true;
    }
    if (value_text(v, &text) && str_eq_nocase(text, STR("max"))) {
        diag_bad(v, "found \"max\"; expected a duration such as \"365d\"");
        return false;
    }
    if (config_setting_type(v->s) == CONFIG_TYPE_STRING && text.n > 0 && !is_digit(text.p[0]))
        return diag_bad_type(v);
    if (!read_duration(v, &ms))
        return false;
    *expires = (struct expires_conf){ .kind = EXPIRES_AFTER, .ms = ms };
    return true;
}

bool read_strip_prefix(const struct value *v)
{
    struct scope_conf *scope = v->t->scoped;
    struct str text;
    bool on;
    if (value_bool(v, &on)) {
        scope->strip_own_prefix = on;
        scope->strip_prefix = STR_NONE;
        return true;
    }
    if (!value_text(v, &text) || text.n == 0 || text.p[0] != '/')
        return diag_bad_type(v);
    scope->strip_own_prefix = false;
    scope->strip_prefix = text;
    return true;
}

/* ---- the access log */

/* Equal path and format share one entry, so that one log has one writer. */
static const struct access_log_conf *share_log(struct load *ld, const struct access_log_conf *log)
{
    for (unsigned i = 0; i < ld->n_logs; i++) {
        const struct access_log_conf *known = ld->logs[i];
        if (str_eq(known->path, log->path) && known->format == log->format &&
            str_eq(known->own.source, log->own.source))
            return known;
    }
    struct access_log_conf *copy = load_new(ld, struct access_log_conf);
    *copy = *log;
    copy->index = ld->n_logs;
    ld->logs = load_grow(ld, ld->logs, ld->n_logs, &ld->cap_logs);
    ld->logs[ld->n_logs++] = copy;
    return copy;
}

bool read_log_format(const struct value *v)
{
    struct access_log_conf *log = v->t->part;
    struct str text;
    if (!value_raw_text(v, &text) || text.n == 0)
        return diag_bad_type(v);
    if (word_find(WORDS_log_format, text) != NULL || str_chr(text, '$', 0) < 0) {
        int word;
        if (!read_word(v, WORDS_log_format, &word))
            return false;
        log->format = (enum log_format_kind)word;
        return true;
    }
    log->format = LOG_FORMAT_OWN;
    if (!template_compile(v, text, &log->own))
        return false;
    value_state(v, v->row->state, "a format of your own");
    return true;
}

bool read_access_log(const struct value *v)
{
    struct load *ld = v->ld;
    struct access_log_conf log = { .path = STR("stdout"), .format = LOG_FORMAT_COMBINED };
    struct str text;
    bool on;
    if (value_bool(v, &on) && !on) {
        v->t->scoped->access_log = NULL;
        return true;
    }
    if (value_is_group(v)) {
        struct target t = *v->t;
        t.part = &log;
        unsigned n_errors = ld->out->n_errors;
        area_read(ld, v->s, AREA_log_to, &t);
        if (ld->out->n_errors != n_errors)
            return false;
    } else if (value_text(v, &text)) {
        if (!str_eq(text, STR("stdout")) && (!read_path(v, &log.path) || !check_parent(v, log.path)))
            return false;
    } else {
        return diag_bad_type(v);
    }
    v->t->scoped->access_log = share_log(ld, &log);
    return true;
}

static void use_log(const struct load *ld, bool *is_used, const struct access_log_conf *log)
{
    for (unsigned i = 0; log != NULL && i < ld->n_logs; i++)
        is_used[i] |= ld->logs[i] == log;
}

void logs_finish(struct load *ld)
{
    bool *is_used = load_array(ld, bool, ld->n_logs);
    use_log(ld, is_used, ld->top.access_log);
    for (unsigned i = 0; i < ld->n_sites; i++) {
        use_log(ld, is_used, ld->sites[i]->s->access_log);
        for (unsigned j = 0; j < ld->sites[i]->n_all; j++)
            use_log(ld, is_used, ld->sites[i]->all[j]->s.access_log);
    }
    unsigned n = 0;
    for (unsigned i = 0; i < ld->n_logs; i++) {
        if (!is_used[i])
            continue;
        ld->logs[i]->index = n;
        ld->logs[n++] = ld->logs[i];
    }
    ld->n_logs = n;
}
