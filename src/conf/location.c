/* SPDX-License-Identifier: MIT */
/*
 * Locations: `match`, the actions a location ends up with, its scope, and the tables of a site that route.c looks them
 * up in. A location with an action of its own inherits none; one without takes the site's. A site with actions has an
 * implicit "/" after all others, unless it has a plain "/" itself.
 */
#include <stdlib.h>

#include "conf/load.h"

static bool compile(const struct value *v, struct location_conf *location)
{
    int code;
    size_t offset;
    /* A path is one string: an encoded line break in it must not hide the rest from `.`. */
    uint32_t options = PCRE2_DOTALL | (location->nocase ? PCRE2_CASELESS : 0);
    pcre2_code *regex =
        pcre2_compile((PCRE2_SPTR)location->pattern.p, location->pattern.n, options, &code, &offset, NULL);
    if (regex == NULL) {
        PCRE2_UCHAR text[200];
        if (pcre2_get_error_message(code, text, sizeof text) < 0)
            text[0] = '\0';
        struct str rest = str_take(str_skip(location->pattern, offset), 20);
        if (rest.n > 0)
            diag_bad(v, "the regular expression does not compile: %s, at offset %zu before `%.*s`", (char *)text,
                     offset, STR_ARG(rest));
        else
            diag_bad(v, "the regular expression does not compile: %s, at its end", (char *)text);
        return false;
    }
    load_own_regex(v->ld, regex);
    /* Where there is no JIT, matching interprets. */
    location->has_jit = pcre2_jit_compile(regex, PCRE2_JIT_COMPLETE) == 0;
    location->regex = regex;
    return true;
}

static bool has_escape(struct str s)
{
    for (size_t i = 0; i + 2 < s.n; i++)
        if (s.p[i] == '%' && hex_value(s.p[i + 1]) >= 0 && hex_value(s.p[i + 2]) >= 0)
            return true;
    return false;
}

/* Paths are compared decoded, with their dots resolved, slashes merged and without the query: says what none can have. */
static void warn_of_pattern(const struct value *v, const struct location_conf *location)
{
    struct str p = location->pattern, found = value_show(v);
    if (has_escape(p))
        diag_warn(v, "found %.*s, but a path is decoded before it is compared; expected the characters themselves",
                  STR_ARG(found));
    if (!value_is_resolved_path(p, location->kind == MATCH_EXACT))
        diag_warn(v, "found %.*s, but . and .. are resolved and // is / before a path is compared; expected it so",
                  STR_ARG(found));
    if (str_chr(p, '?', 0) >= 0)
        diag_warn(v, "found %.*s, but a path is compared without its query; expected it without ?", STR_ARG(found));
}

bool read_match(const struct value *v)
{
    struct location_conf *location = v->t->part;
    struct str text;
    if (!value_text(v, &text) || text.n == 0)
        return diag_bad_type(v);
    location->match = text;
    struct str rest = text;
    if (str_starts(text, STR("~"))) {
        location->kind = MATCH_REGEX;
        location->nocase = str_starts(text, STR("~*"));
        rest = str_trim(str_skip(text, location->nocase ? 2 : 1));
        /* nginx wants quotes around a regex with braces; pasted with them it would match nothing. */
        if (rest.n >= 2 && rest.p[0] == '"' && rest.p[rest.n - 1] == '"') {
            diag_bad(v, "quotes around the regular expression; expected it without them");
            return false;
        }
    } else if (str_starts(text, STR("^~"))) {
        location->kind = MATCH_PREFIX_FINAL;
        rest = str_trim(str_skip(text, 2));
    } else if (str_starts(text, STR("="))) {
        location->kind = MATCH_EXACT;
        rest = str_trim(str_skip(text, 1));
    }
    location->pattern = rest;
    if (location->kind == MATCH_REGEX && rest.n > 0)
        return compile(v, location);
    if (rest.n == 0 || rest.p[0] != '/')
        return diag_bad_type(v);
    warn_of_pattern(v, location);
    return true;
}

/* Which actions the location has, in the order they are tried. */
static void choose_actions(const struct value *v, struct location_conf *location, const struct actions *own,
                           const struct actions *inherited, bool own_index)
{
    struct load *ld = v->ld;
    const struct actions *from = own->n > 0 ? own : inherited;
    const struct action *file = NULL, *proxy = NULL;
    if (from->is_broken)
        return;
    if (from->n == 0) {
        diag_bad(v, "nothing answers here; expected one of root, alias, meteor_bundle, proxy, redirect, respond, "
                    "builtin");
        return;
    }
    unsigned others[2] = { 0 }, n = 0; /* all but meteor_bundle, which goes with any of them */
    for (unsigned i = 0; i < from->n; i++) {
        if (from->list[i]->kind == ACTION_METEOR) {
            location->actions[location->n_actions++] = from->list[i];
            continue;
        }
        if (n < ARRAY_LEN(others))
            others[n] = i;
        n++;
        if (from->list[i]->kind == ACTION_FILE && file == NULL)
            file = from->list[i];
        else if (from->list[i]->kind == ACTION_PROXY)
            proxy = from->list[i];
    }
    if (n > 2 || (n == 2 && (file == NULL || proxy == NULL))) {
        diag_bad(v, "more than one action (`%.*s` and `%.*s`); expected one, or root or alias together with proxy",
                 STR_ARG(from->names[others[0]]), STR_ARG(from->names[others[1]]));
        return;
    }
    if (n == 0)
        return;
    if (file != NULL) {
        struct action *copy = load_new(ld, struct action);
        *copy = *file;
        copy->u.file.or_proxy = proxy != NULL;
        copy->u.file.own_index = own_index;
        location->actions[location->n_actions++] = copy;
        if (copy->u.file.alias && location->kind == MATCH_REGEX)
            diag_bad(v, "alias cuts off a prefix, and a regular expression has none; expected root, or another match");
    }
    if (file == NULL || proxy != NULL)
        location->actions[location->n_actions++] = proxy ? proxy : from->list[others[0]];
}

/* Nearest wins in the order location, upstream, site, top. */
static void take_upstream_timeouts(struct load *ld, struct location_conf *location, config_setting_t *const *written)
{
    const struct action *last = location->n_actions > 0 ? location->actions[location->n_actions - 1] : NULL;
    if (last == NULL || last->kind != ACTION_PROXY)
        return;
    const struct upstream_build *b = upstream_find(ld, last->u.proxy.upstream->name);
    const struct {
        enum setting_id id;
        uint64_t *to;
        uint64_t from;
    } rows[] = {
        { SET_timeouts_connect, &location->s.timeouts.connect, b->scoped.timeouts.connect },
        { SET_timeouts_queue, &location->s.timeouts.queue, b->scoped.timeouts.queue },
        { SET_timeouts_server, &location->s.timeouts.server, b->scoped.timeouts.server },
        { SET_timeouts_tunnel, &location->s.timeouts.tunnel, b->scoped.timeouts.tunnel },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (written[rows[i].id] != NULL || b->written[rows[i].id] == NULL)
            continue;
        *rows[i].to = rows[i].from;
        location->s.where[rows[i].id] = b->scoped.where[rows[i].id];
    }
}

static void check_template(const struct value *v, const struct location_conf *location, const char *who,
                           const struct template *t)
{
    uint32_t has = 0;
    if (location->regex != NULL)
        (void)pcre2_pattern_info(location->regex, PCRE2_INFO_CAPTURECOUNT, &has);
    unsigned wants = template_captures(t);
    if (wants > has && location->kind == MATCH_REGEX)
        diag_bad(v, "%s names $%u, but the match has only %u group%s in parentheses", who, wants, has,
                 has == 1 ? "" : "s");
    else if (wants > has)
        diag_bad(v, "%s names $%u, but only a match by regular expression captures anything", who, wants);
}

/* Its own rules: those of the site are for all locations, whatever each captures. */
static void check_headers(const struct value *v, const struct location_conf *location, const char *setting,
                          const struct header_rule *rules, unsigned n, const struct header_rule *outer,
                          unsigned n_outer)
{
    for (unsigned i = 0; i < n; i++) {
        bool is_inherited = false;
        for (unsigned j = 0; j < n_outer; j++)
            is_inherited |= rules[i].values == outer[j].values;
        struct str who =
            load_printf(v->ld, "%s.%.*s", rules[i].append ? "add_response_headers" : setting, STR_ARG(rules[i].name));
        for (unsigned j = 0; j < rules[i].n_values && !is_inherited; j++)
            check_template(v, location, who.p, &rules[i].values[j]);
    }
}

static void check_captures(const struct value *v, const struct location_conf *location, const struct scope_conf *site,
                           bool own_rewrite)
{
    const struct scope_conf *s = &location->s;
    for (unsigned i = 0; i < location->n_actions; i++)
        if (location->actions[i]->kind == ACTION_REDIRECT)
            check_template(v, location, "redirect", &location->actions[i]->u.redirect.to);
    if (own_rewrite)
        check_template(v, location, "rewrite", &s->rewrite);
    check_headers(v, location, "request_headers", s->request_headers, s->n_request_headers, site->request_headers,
                  site->n_request_headers);
    check_headers(v, location, "response_headers", s->response_headers, s->n_response_headers, site->response_headers,
                  site->n_response_headers);
}

static void finish_strip(const struct value *v, struct location_conf *location, bool is_own)
{
    struct scope_conf *s = &location->s;
    if (!s->strip_own_prefix)
        return;
    if (location->kind != MATCH_REGEX)
        s->strip_prefix = location->pattern;
    else if (is_own)
        diag_bad(v, "strip_prefix = true cuts off the location's prefix, and a regular expression has none; expected a "
                    "prefix in quotes");
}

/* Only what is beneath strip_prefix matches (serve/route.c), which one for the whole site may forget. */
static void warn_of_strip(const struct value *v, const struct location_conf *location)
{
    struct str prefix = location->s.strip_prefix, p = location->pattern;
    bool is_longer = location->kind != MATCH_EXACT && str_starts(prefix, p);
    if (prefix.n == 0)
        return;
    if (location->kind != MATCH_REGEX && !is_longer && !path_is_beneath(p, prefix))
        diag_warn(v, "location \"%.*s\" never matches: its strip_prefix is \"%.*s\"", STR_ARG(location->match),
                  STR_ARG(prefix));
    else if (has_escape(prefix) || !value_is_resolved_path(prefix, false) || str_chr(prefix, '?', 0) >= 0)
        diag_warn(v, "strip_prefix \"%.*s\" is in no path; expected it decoded, without query, dot segments and //",
                  STR_ARG(prefix));
}

static void read_location(const struct value *v, struct location_conf *location, const struct target *site_target)
{
    struct load *ld = v->ld;
    config_setting_t *written[SET_COUNT] = { 0 };
    struct actions own = { 0 };
    struct target t = {
        .scope = SCOPE_LOCATION,
        .scoped = &location->s,
        .actions = &own,
        .part = location,
        .written = written,
    };
    location->kind = MATCH_PREFIX;
    location->pattern = location->match = STR("/");
    location->where = value_where(ld, v->s);
    location->s = *site_target->scoped;
    scope_read(ld, v->s, &t);
    choose_actions(v, location, &own, site_target->actions, written[SET_files_index] != NULL);
    take_upstream_timeouts(ld, location, written);
    check_captures(v, location, site_target->scoped, written[SET_body_rewrite] != NULL);
    finish_strip(v, location, written[SET_body_strip_prefix] != NULL);
    warn_of_strip(v, location);
}

static void check_twice(struct load *ld, const struct location_conf *location, struct location_conf *const *all,
                        unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct location_conf *other = all[i];
        bool are_prefixes = location->kind != MATCH_EXACT && location->kind != MATCH_REGEX &&
                            other->kind != MATCH_EXACT && other->kind != MATCH_REGEX;
        bool is_same_kind = location->kind == other->kind && (other->nocase || !location->nocase);
        if ((!are_prefixes && !is_same_kind) || !str_eq(location->pattern, other->pattern))
            continue;
        diag_add(ld, location->where, false, "second location for \"%.*s\"; the first is in %s",
                 STR_ARG(location->match), where_show(ld, other->where).p);
        return;
    }
}

static void add_implicit(struct load *ld, struct site_conf *site, struct location_conf *location,
                         const struct target *site_target, const struct value *site_value)
{
    const struct actions none = { 0 };
    location->kind = MATCH_PREFIX;
    location->pattern = location->match = STR("/");
    location->implicit = true;
    location->where = site->where;
    location->s = *site_target->scoped;
    choose_actions(site_value, location, &none, site_target->actions, site_target->written[SET_files_index] != NULL);
    /* The implicit location says nothing itself: the upstream wins over the site. */
    static config_setting_t *const nothing[SET_COUNT];
    take_upstream_timeouts(ld, location, nothing);
    check_captures(site_value, location, site_target->scoped, site_target->written[SET_body_rewrite] != NULL);
    finish_strip(site_value, location, false);
}

static int by_pattern(const void *a, const void *b)
{
    const struct location_conf *x = *(const struct location_conf *const *)a,
                               *y = *(const struct location_conf *const *)b;
    size_t n = x->pattern.n < y->pattern.n ? x->pattern.n : y->pattern.n;
    int order = memcmp(x->pattern.p, y->pattern.p, n);
    return order != 0 ? order : (x->pattern.n > y->pattern.n) - (x->pattern.n < y->pattern.n);
}

static int by_length(const void *a, const void *b)
{
    const struct location_conf *x = *(const struct location_conf *const *)a,
                               *y = *(const struct location_conf *const *)b;
    if (x->pattern.n != y->pattern.n)
        return x->pattern.n < y->pattern.n ? 1 : -1;
    return by_pattern(a, b);
}

/* Links each prefix, sorted by pattern, to the longest one that it begins with: the last one before it that is still
 * open, as with brackets. */
static void link_prefixes(struct location_conf *const *sorted, unsigned n)
{
    const struct location_conf *open = NULL;
    for (unsigned i = 0; i < n; i++) {
        while (open != NULL && !str_starts(sorted[i]->pattern, open->pattern))
            open = open->shorter;
        sorted[i]->shorter = open;
        open = sorted[i];
    }
}

/* The tables of the site. */
static void index_locations(struct load *ld, struct site_conf *site, struct location_conf *const *all, unsigned n)
{
    const struct location_conf **exact = load_array(ld, const struct location_conf *, n);
    const struct location_conf **prefix = load_array(ld, const struct location_conf *, n);
    const struct location_conf **regex = load_array(ld, const struct location_conf *, n);
    struct location_conf **sorted = load_array(ld, struct location_conf *, n);
    load_own_map(ld, &site->exact_map);
    for (unsigned i = 0; i < n; i++) {
        if (all[i]->kind == MATCH_EXACT) {
            exact[site->n_exact++] = all[i];
            load_map_put(ld, &site->exact_map, all[i]->pattern, all[i]);
        } else if (all[i]->kind == MATCH_REGEX) {
            regex[site->n_regex++] = all[i];
        } else {
            sorted[site->n_prefix] = all[i];
            prefix[site->n_prefix++] = all[i];
        }
    }
    qsort(exact, site->n_exact, sizeof *exact, by_pattern);
    qsort(prefix, site->n_prefix, sizeof *prefix, by_length);
    qsort(sorted, site->n_prefix, sizeof *sorted, by_pattern);
    link_prefixes(sorted, site->n_prefix);
    site->exact = exact;
    site->prefix = prefix;
    site->sorted = (const struct location_conf *const *)sorted;
    site->regex = regex;
    site->all = (const struct location_conf *const *)all;
    site->n_all = n;
}

void locations_read(struct load *ld, struct site_conf *site, const struct value *site_value,
                    const struct target *site_target)
{
    config_setting_t *list = site_target->written[SET_site_locations];
    struct value v = value_of(ld, list, &settings[SET_site_locations], site_target);
    unsigned n_written = list ? value_count(&v) : 0, n = 0;
    struct location_conf **all = load_array(ld, struct location_conf *, n_written + 1);
    bool has_root = false;
    for (unsigned i = 0; i < n_written; i++) {
        struct value item = value_at(&v, i);
        if (!value_is_group(&item)) {
            diag_bad_type(&item);
            continue;
        }
        struct location_conf *location = load_new(ld, struct location_conf);
        location->site = site;
        location->order = n;
        read_location(&item, location, site_target);
        check_twice(ld, location, all, n);
        all[n++] = location;
        has_root |=
            (location->kind == MATCH_PREFIX || location->kind == MATCH_PREFIX_FINAL) && location->pattern.n == 1;
    }
    if (site_target->actions->n > 0 && !has_root) {
        struct location_conf *location = load_new(ld, struct location_conf);
        location->site = site;
        location->order = n;
        add_implicit(ld, site, location, site_target, site_value);
        all[n++] = location;
    }
    if (n_written == 0 && site_target->actions->n == 0)
        diag_bad(site_value,
                 "nothing answers here; expected one of root, alias, meteor_bundle, proxy, redirect, respond, builtin, "
                 "or locations");
    index_locations(ld, site, all, n);
}
