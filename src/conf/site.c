/* SPDX-License-Identifier: MIT */
/*
 * Sites and the addresses they share. Each site is read whole where it stands. Addresses are collected over all sites,
 * by their normalised text, and get their tables of names when every site is known: exact names in a map, wildcards by
 * length, and the default site. Two sites on one address may not have the same name, nor both be its default; options
 * of an address (backlog, defer) may be given by one site and hold for all. Nothing is bound or resolved here.
 */
#include <stdlib.h>

#include "conf/load.h"

/* ---- names */

static bool is_host(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_plain =
            (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_' || c == '.';
        if (!is_plain && !(s.p[0] == '[' && (c == '[' || c == ']' || c == ':')))
            return false;
        if (c == '.' && (i == 0 || s.p[i - 1] == '.'))
            return false;
    }
    return s.n > 0 && s.n <= 255;
}

static bool is_ascii(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    return true;
}

static bool read_name(const struct value *v, struct server_name *name)
{
    struct str text;
    if (!value_text(v, &text))
        return diag_bad_type(v);
    char *lower = load_alloc(v->ld, text.n + 1);
    for (size_t i = 0; i < text.n; i++)
        lower[i] = ascii_lower(text.p[i]);
    struct str host = str_of(lower, text.n);
    if (host.n > 1 && host.p[host.n - 1] == '.')
        host.n--;
    struct str found = value_show(v);
    if (str_eq(host, STR("*")))
        diag_bad(v, "found \"*\"; expected no `names` at all: a site without them answers to any");
    else if (str_starts(host, STR("~")))
        diag_bad(v, "found %.*s; expected a name: regular expressions are for locations only", STR_ARG(found));
    else if (str_starts(host, STR(".")) && is_host(str_skip(host, 1)))
        diag_bad(v, "found %.*s; expected ( \"%.*s\", \"*%.*s\" )", STR_ARG(found), STR_ARG(str_skip(host, 1)),
                 STR_ARG(host));
    else if (str_starts(host, STR("*.")) && is_host(str_skip(host, 2))) {
        *name = (struct server_name){ .name = str_skip(host, 1), .wildcard = true };
        return true;
    } else if (is_host(host)) {
        *name = (struct server_name){ .name = host };
        return true;
    } else if (!is_ascii(host))
        diag_bad(v, "found %.*s; expected the name as clients send it, in ASCII (\"xn--...\")", STR_ARG(found));
    else if (str_chr(host, ':', 0) > 0)
        diag_bad(v, "found %.*s; expected a name without port", STR_ARG(found));
    else
        diag_bad(v, "found %.*s; expected %s", STR_ARG(found), type_expected[TYPE_NAMES]);
    return false;
}

static void read_names(struct load *ld, struct site_conf *site, config_setting_t *s)
{
    struct value v = value_of(ld, s, &settings[SET_site_names], NULL);
    unsigned n = value_count(&v);
    struct server_name *names = load_array(ld, struct server_name, n);
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(&v, i);
        struct server_name *name = &names[site->n_names];
        if (!read_name(&item, name))
            continue;
        bool is_twice = false;
        for (unsigned j = 0; j < site->n_names; j++)
            is_twice |= names[j].wildcard == name->wildcard && str_eq(names[j].name, name->name);
        if (is_twice)
            diag_warn(&item, "the same name twice");
        else
            site->n_names++;
    }
    site->names = names;
}

/* ---- addresses */

static bool parse_listen(const struct value *v, struct str text, struct listen_conf *listen)
{
    struct load *ld = v->ld;
    const char *why;
    char printed[IP_TEXT];
    if (str_starts(text, STR("unix:")) && text.n > 5) {
        struct str path = load_path(ld, value_where(ld, v->s).file, str_skip(text, 5));
        text = load_printf(ld, "unix:%.*s", STR_ARG(path));
    }
    struct str found = value_show(v);
    if (!endpoint_parse(text, &listen->endpoint, &why)) {
        diag_bad(v, "found %.*s; expected %s", STR_ARG(found), why);
        return false;
    }
    switch (listen->endpoint.kind) {
    case ENDPOINT_NAME:
        diag_bad(v,
                 "found %.*s, a name; expected an address of this machine (\"127.0.0.1:%u\", \"[::1]:%u\", or \"%u\" "
                 "for all)",
                 STR_ARG(found), listen->endpoint.port, listen->endpoint.port, listen->endpoint.port);
        return false;
    case ENDPOINT_ANY:
        listen->text = load_printf(ld, "*:%u", listen->endpoint.port);
        break;
    case ENDPOINT_IP:
        listen->text = load_dup(ld, str_of(printed, addr_print(&listen->endpoint.addr, printed, sizeof printed)));
        break;
    case ENDPOINT_UNIX:
        listen->text = text;
        break;
    }
    return true;
}

bool read_listen_address(const struct value *v)
{
    struct str text;
    int64_t port;
    if (value_number(v, &port) && port > 0 && port < 65536)
        text = load_printf(v->ld, "%u", (unsigned)port); /* listen = 8080; cannot mean anything else */
    else if (!value_text(v, &text))
        return diag_bad_type(v);
    return parse_listen(v, text, v->t->part);
}

static struct listen_build *listen_find(struct load *ld, struct str text)
{
    for (struct listen_build *b = ld->listens; b != NULL; b = b->next)
        if (str_eq(b->listen.text, text))
            return b;
    return NULL;
}

/* Of options that two sites give for one address, both must say the same. */
static void merge_options(const struct value *v, struct listen_build *b, const struct listen_conf *listen,
                          config_setting_t *const *written)
{
    const struct {
        enum setting_id id;
        bool differs;
    } rows[] = {
        { SET_listen_backlog, b->listen.backlog != listen->backlog },
        { SET_listen_defer, b->listen.defer != listen->defer },
        { SET_listen_proxy_protocol, b->listen.proxy_protocol != listen->proxy_protocol },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned option = 1u << i;
        if (written[rows[i].id] == NULL)
            continue;
        if ((b->options & option) && rows[i].differs)
            diag_bad(v, "another `%.*s` for the same address than in %s; expected it once, or the same",
                     STR_ARG(settings[rows[i].id].name), where_show(v->ld, b->listen.where).p);
        b->options |= option;
    }
    if (written[SET_listen_backlog] != NULL)
        b->listen.backlog = listen->backlog;
    if (written[SET_listen_defer] != NULL)
        b->listen.defer = listen->defer;
    if (written[SET_listen_proxy_protocol] != NULL)
        b->listen.proxy_protocol = listen->proxy_protocol;
}

static void check_overlap(const struct value *v, const struct listen_conf *listen)
{
    struct str all[] = { load_printf(v->ld, "*:%u", listen->endpoint.port),
                         load_printf(v->ld, "[::]:%u", listen->endpoint.port),
                         load_printf(v->ld, "0.0.0.0:%u", listen->endpoint.port) };
    bool is_any = listen->endpoint.kind == ENDPOINT_ANY;
    if (!is_any && !str_eq(listen->text, all[1]) && !str_eq(listen->text, all[2]))
        return;
    for (size_t i = is_any ? 1 : 0; i < (is_any ? ARRAY_LEN(all) : 1); i++) {
        struct listen_build *b = listen_find(v->ld, all[i]);
        if (b != NULL)
            diag_bad(v, "\"%.*s\" and \"%.*s\" (%s) overlap; expected one of them", STR_ARG(listen->text),
                     STR_ARG(all[i]), where_show(v->ld, b->listen.where).p);
    }
}

static void read_listen(const struct value *v, struct site_conf *site)
{
    struct load *ld = v->ld;
    config_setting_t *written[SET_COUNT] = { 0 };
    struct listen_conf listen = ld->listen_defaults;
    struct target t = { .scope = SCOPE_SITE, .part = &listen, .written = written };
    struct value address = *v;
    address.t = &t;
    listen.where = value_where(ld, v->s);
    if (value_is_group(v)) {
        area_read(ld, v->s, AREA_listen, &t);
        if (written[SET_listen_address] == NULL)
            diag_bad(v, "no address; expected { address = \"8080\"; }");
    } else {
        (void)read_listen_address(&address);
    }
    if (listen.text.p == NULL)
        return;
    struct listen_build *b = listen_find(ld, listen.text);
    if (b == NULL) {
        check_overlap(v, &listen);
        b = load_new(ld, struct listen_build);
        b->listen = listen;
        *ld->listens_end = b;
        ld->listens_end = &b->next;
    } else if (b->n_sites > 0 && b->sites[b->n_sites - 1] == site) {
        diag_warn(v, "the same address twice in one site");
        return;
    }
    merge_options(v, b, &listen, written);
    b->sites = load_grow(ld, b->sites, b->n_sites, &b->cap_sites);
    b->sites[b->n_sites++] = site;
    if (site->label.p == NULL)
        site->label = b->listen.text;
}

/* ---- sites */

static void read_site(const struct value *v)
{
    struct load *ld = v->ld;
    config_setting_t *written[SET_COUNT] = { 0 };
    struct site_conf *site = load_new(ld, struct site_conf);
    struct scope_conf *scope = load_new(ld, struct scope_conf);
    struct trusted trusted = ld->trusted;
    struct actions actions = { 0 };
    struct target t = {
        .scope = SCOPE_SITE,
        .scoped = scope,
        .site = site,
        .trusted = &trusted,
        .actions = &actions,
        .written = written,
    };
    *scope = ld->top;
    site->where = value_where(ld, v->s);
    scope_read(ld, v->s, &t);
    site->s = scope;
    site->trusted = trusted.trusted;
    site->n_trusted = trusted.n_trusted;
    if (written[SET_site_names] != NULL)
        read_names(ld, site, written[SET_site_names]);
    if (site->n_names > 0) {
        struct str first = site->names[0].name;
        site->label = site->names[0].wildcard ? load_printf(ld, "*%.*s", STR_ARG(first)) : first;
    }
    struct value listen = value_of(ld, written[SET_site_listen], &settings[SET_site_listen], &t);
    if (listen.s == NULL || value_count(&listen) == 0)
        diag_bad(v, "no address to listen on; expected listen = \"8080\"; or the like");
    for (unsigned i = 0; listen.s != NULL && i < value_count(&listen); i++) {
        struct value item = value_at(&listen, i);
        read_listen(&item, site);
    }
    if (site->label.p == NULL)
        site->label = STR("-");
    locations_read(ld, site, v, &t);
    ld->sites = load_grow(ld, ld->sites, ld->n_sites, &ld->cap_sites);
    ld->sites[ld->n_sites++] = site;
}

void sites_read(struct load *ld, config_setting_t *list)
{
    struct value v = value_of(ld, list, &settings[SET_top_sites], NULL);
    for (unsigned i = 0; i < value_count(&v); i++) {
        struct value item = value_at(&v, i);
        if (value_is_group(&item))
            read_site(&item);
        else
            diag_bad_type(&item);
    }
}

/* ---- the tables of an address */

static int by_suffix(const void *a, const void *b)
{
    const struct server_name_ref *x = a, *y = b;
    if (x->suffix.n != y->suffix.n)
        return x->suffix.n < y->suffix.n ? 1 : -1;
    return memcmp(x->suffix.p, y->suffix.p, x->suffix.n);
}

static void say_twice(struct load *ld, const struct listen_conf *listen, const struct server_name *name,
                      const struct site_conf *site, const struct site_conf *other)
{
    diag_add(ld, site->where, false,
             "name \"%s%.*s\" on %.*s is also that of the site in %s; expected it once for an address",
             name->wildcard ? "*" : "", STR_ARG(name->name), STR_ARG(listen->text), where_show(ld, other->where).p);
}

static void add_name(struct load *ld, struct listen_conf *listen, struct map *suffixes,
                     struct server_name_ref *wildcards, const struct site_conf *site, const struct server_name *name)
{
    struct map *map = name->wildcard ? suffixes : &listen->names;
    const struct site_conf *other = map_get(map, name->name);
    if (other != NULL) {
        say_twice(ld, listen, name, site, other);
        return;
    }
    load_map_put(ld, map, name->name, site);
    if (name->wildcard)
        wildcards[listen->n_wildcards++] = (struct server_name_ref){ .suffix = name->name, .site = site };
}

static void finish_listen(struct load *ld, struct listen_build *b, struct listen_conf *listen)
{
    unsigned n_names = 0;
    *listen = b->listen;
    listen->sites = (const struct site_conf *const *)b->sites;
    listen->n_sites = b->n_sites;
    for (unsigned i = 0; i < b->n_sites; i++)
        n_names += b->sites[i]->n_names;
    struct server_name_ref *wildcards = load_array(ld, struct server_name_ref, n_names);
    struct map *suffixes = load_new(ld, struct map);
    load_own_map(ld, &listen->names);
    load_own_map(ld, suffixes);
    for (unsigned i = 0; i < b->n_sites; i++) {
        const struct site_conf *site = b->sites[i];
        for (unsigned j = 0; j < site->n_names; j++)
            add_name(ld, listen, suffixes, wildcards, site, &site->names[j]);
        if (!site->is_default)
            continue;
        if (listen->default_site != NULL)
            diag_add(ld, site->where, false, "second default site on %.*s; the first is in %s", STR_ARG(listen->text),
                     where_show(ld, listen->default_site->where).p);
        else
            listen->default_site = site;
    }
    if (listen->default_site == NULL && b->n_sites > 0)
        listen->default_site = b->sites[0];
    qsort(wildcards, listen->n_wildcards, sizeof *wildcards, by_suffix);
    listen->wildcards = wildcards;
}

void listens_finish(struct load *ld)
{
    unsigned n = 0;
    for (struct listen_build *b = ld->listens; b != NULL; b = b->next)
        n++;
    struct listen_conf *listens = load_array(ld, struct listen_conf, n);
    n = 0;
    for (struct listen_build *b = ld->listens; b != NULL; b = b->next)
        finish_listen(ld, b, &listens[n++]);
    ld->conf->listens = listens;
    ld->conf->n_listens = n;
}
