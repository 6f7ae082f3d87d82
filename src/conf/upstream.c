/* SPDX-License-Identifier: MIT */
/*
 * Upstreams: the named ones of the file, and one for each distinct bare address that a `proxy` names. A server inherits
 * what its upstream says for every server (maxconn, keepalive, ...). The timeouts of an upstream are kept beside it
 * until the locations that use it are built: they win over those of the site and lose to those of the location.
 */
#include "conf/load.h"

enum { WEIGHT_MAX = 256 }; /* as of one server */

static const struct str https = { "https://", 8 }, http = { "http://", 7 };

static bool bad_scheme(const struct value *v, struct str text)
{
    if (str_starts(text, https)) {
        diag_bad(v, "TLS to backends is not available in this version yet; expected an address that speaks plain HTTP, "
                    "without https://");
        return true;
    }
    if (!str_starts(text, http))
        return false;
    struct str host = str_skip(text, http.n);
    ptrdiff_t slash = str_chr(host, '/', 0);
    if (slash >= 0)
        host = str_take(host, (size_t)slash);
    bool has_port = str_chr(host, ':', 0) >= 0;
    host = str_take(host, 100);
    diag_bad(v, "an address stands without http:// and path; expected \"%.*s%s\"", STR_ARG(host),
             has_port ? "" : ":80");
    return true;
}

/* The address of a server; also sets the text it is known by. */
static bool parse_address(const struct value *v, struct str text, struct server_conf *server)
{
    const char *why;
    if (bad_scheme(v, text))
        return false;
    if (str_starts(text, STR("unix:")) && text.n > 5) {
        struct str path = load_path(v->ld, value_where(v->ld, v->s).file, str_skip(text, 5));
        text = load_printf(v->ld, "unix:%.*s", STR_ARG(path));
    }
    if (!endpoint_parse(text, &server->endpoint, &why)) {
        struct str found = value_show(v);
        diag_bad(v, "found %.*s; expected %s", STR_ARG(found), why);
        return false;
    }
    if (server->endpoint.kind == ENDPOINT_ANY) {
        diag_bad(v, "a server needs a host; expected \"127.0.0.1:%u\"", server->endpoint.port);
        return false;
    }
    server->text = text;
    return true;
}

bool read_address(const struct value *v)
{
    struct str text;
    if (!value_text(v, &text))
        return diag_bad_type(v);
    return parse_address(v, text, v->t->server);
}

bool read_expect(const struct value *v)
{
    struct health_conf *health = &v->t->upstream->health;
    struct str text;
    int64_t status;
    if (value_number(v, &status)) {
        if (status < 100 || status > 599)
            return diag_bad_type(v);
        health->expect_low = health->expect_high = (uint16_t)status;
        return true;
    }
    uint64_t low, high;
    if (!value_text(v, &text))
        return diag_bad_type(v);
    ptrdiff_t dash = str_chr(text, '-', 0);
    if (dash < 0 || !str_to_u64(str_take(text, (size_t)dash), &low) ||
        !str_to_u64(str_skip(text, (size_t)dash + 1), &high) || low < 100 || high > 599 || low > high)
        return diag_bad_type(v);
    health->expect_low = (uint16_t)low;
    health->expect_high = (uint16_t)high;
    return true;
}

bool read_health(const struct value *v)
{
    struct health_conf *health = &v->t->upstream->health;
    struct str text;
    bool on;
    if (value_bool(v, &on)) {
        health->kind = on ? HEALTH_TCP : HEALTH_PASSIVE;
    } else if (value_is_group(v)) {
        area_read(v->ld, v->s, AREA_health, v->t);
        health->kind = health->path.n > 0 ? HEALTH_HTTP : HEALTH_TCP;
    } else {
        if (!value_text(v, &text) || text.n == 0 || text.p[0] != '/')
            return diag_bad_type(v);
        if (!value_check_url(v, text, false))
            return false;
        health->kind = HEALTH_HTTP;
        health->path = text;
    }
    return true;
}

bool read_sticky(const struct value *v)
{
    struct upstream_conf *u = v->t->upstream;
    struct str text;
    bool on;
    if (value_bool(v, &on)) {
        u->sticky = on ? STICKY_AUTO : STICKY_OFF;
    } else if (value_is_group(v)) {
        unsigned n_errors = v->ld->out->n_errors;
        area_read(v->ld, v->s, AREA_sticky, v->t);
        u->sticky = STICKY_COOKIE;
        if (u->sticky_cookie.n == 0 && v->ld->out->n_errors == n_errors)
            diag_bad(v, "not complete; expected { cookie = \"name\"; }");
    } else {
        if (!value_text(v, &text) || !str_eq_nocase(text, STR("auto")))
            return diag_bad_type(v);
        u->sticky = STICKY_AUTO;
    }
    return true;
}

static bool read_server(const struct value *v, const struct server_conf *inherited, struct server_conf *server)
{
    struct load *ld = v->ld;
    struct str text;
    *server = *inherited;
    server->where = value_where(ld, v->s);
    if (value_text(v, &text))
        return parse_address(v, text, server);
    if (!value_is_group(v))
        return diag_bad_type(v);
    config_setting_t *written[SET_COUNT] = { 0 };
    struct target t = { .scope = SCOPE_SERVER, .server = server, .written = written };
    scope_read(ld, v->s, &t);
    if (written[SET_server_address] == NULL)
        diag_bad(v, "no address; expected { address = \"127.0.0.1:3000\"; }");
    return server->text.p != NULL;
}

static void read_servers(const struct value *v, const struct server_conf *inherited, struct upstream_conf *u)
{
    unsigned n = value_count(v);
    struct server_conf *servers = load_array(v->ld, struct server_conf, n);
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(v, i);
        struct server_conf *server = &servers[u->n_servers];
        if (!read_server(&item, inherited, server))
            continue;
        struct server_conf *first = servers;
        while (!str_eq(first->text, server->text))
            first++;
        if (first < server) {
            /* There is one server, with one count of everything. */
            first->weight = first->weight + server->weight < WEIGHT_MAX ? first->weight + server->weight : WEIGHT_MAX;
            diag_warn(&item, "the same server twice; `weight` = %u says the same in one", first->weight);
            continue;
        }
        u->n_servers++;
    }
    u->servers = servers;
    if (n == 0)
        diag_bad(v, "no server; expected %s", type_expected[TYPE_SERVERS]);
}

static struct upstream_build *upstream_add(struct load *ld, struct str name, struct where where)
{
    struct upstream_build *b = load_new(ld, struct upstream_build);
    struct upstream_conf *u = load_new(ld, struct upstream_conf);
    *u = ld->upstream_defaults;
    u->name = name;
    u->where = where;
    b->upstream = u;
    *ld->upstreams_end = b;
    ld->upstreams_end = &b->next;
    return b;
}

struct upstream_build *upstream_find(struct load *ld, struct str name)
{
    for (struct upstream_build *b = ld->upstreams; b != NULL; b = b->next)
        if (str_eq(b->upstream->name, name))
            return b;
    return NULL;
}

static void read_upstream(const struct value *v, struct str name)
{
    struct load *ld = v->ld;
    struct upstream_build *b = upstream_find(ld, name);
    if (b != NULL) {
        diag_bad(v, "second upstream of that name; the first is in %s", where_show(ld, b->upstream->where).p);
        return;
    }
    b = upstream_add(ld, name, value_where(ld, v->s));
    if (!value_is_group(v)) {
        struct str found = value_show(v);
        diag_bad(v, "found %.*s; expected a group { servers = ( ... ); }", STR_ARG(found));
        return;
    }
    struct upstream_conf *u = b->upstream;
    struct server_conf inherited = ld->server_defaults;
    struct target t = {
        .scope = SCOPE_UPSTREAM,
        .scoped = &b->scoped,
        .upstream = u,
        .server = &inherited,
        .written = b->written,
    };
    scope_read(ld, v->s, &t);
    u->queue_size = inherited.queue_size;
    u->health.proxy_protocol = u->proxy_protocol;
    config_setting_t *servers = b->written[SET_upstream_servers];
    if (servers == NULL) {
        diag_bad(v, "no servers; expected servers = ( \"127.0.0.1:3000\" );");
        return;
    }
    struct value list = value_of(ld, servers, &settings[SET_upstream_servers], &t);
    read_servers(&list, &inherited, u);
    if (u->sticky == STICKY_AUTO) /* of its own, or two upstreams of one site would overwrite each other's */
        u->sticky_cookie = load_printf(ld, "weir_%.*s", STR_ARG(name));
    config_setting_t *factor = b->written[SET_upstream_hash_balance_factor];
    if (u->hash_balance_factor > 0 && u->hash_balance_factor <= 100) {
        struct value bound = value_of(ld, factor, &settings[SET_upstream_hash_balance_factor], &t);
        diag_bad(&bound, "%u leaves no room for all requests; expected a percentage over 100 (\"125\"), or 0 for no bound",
                 u->hash_balance_factor);
    }
    if (u->balance == BALANCE_HASH && u->hash.n == 0)
        diag_bad(v, "balance = \"hash\" needs to know of what; expected hash = \"$request_uri\"; or the like");
}

void upstreams_read(struct load *ld, config_setting_t *group)
{
    struct value v = value_of(ld, group, &settings[SET_top_upstreams], NULL);
    if (!value_is_group(&v)) {
        diag_bad_type(&v);
        return;
    }
    for (unsigned i = 0; i < (unsigned)config_setting_length(group); i++) {
        struct value item = v;
        item.s = config_setting_get_elem(group, i);
        struct str name = str_c(config_setting_name(item.s));
        if (name.p[0] !=
            '*') /* what stands for the second of two equal names (lint.c); nobody calls an upstream that */
            read_upstream(&item, load_dup(ld, name));
    }
}

static const struct upstream_conf *bad_name(const struct value *v, struct str text)
{
    struct nearest nearest;
    struct str found = value_show(v);
    uint64_t port;
    nearest_init(&nearest, text);
    for (struct upstream_build *b = v->ld->upstreams; b != NULL; b = b->next)
        if (!b->is_anonymous)
            nearest_offer(&nearest, b->upstream->name);
    if (nearest.best.n > 0)
        diag_bad(v, "no upstream %.*s; did you mean \"%.*s\"?", STR_ARG(found), STR_ARG(nearest.best));
    else if (str_to_u64(text, &port) && port > 0 && port < 65536)
        diag_bad(v, "found %.*s; expected an address with its host (\"127.0.0.1:%u\")", STR_ARG(found), (unsigned)port);
    else
        diag_bad(v,
                 "no upstream %.*s; expected the name of one in `upstreams`, or an address with its port "
                 "(\"127.0.0.1:3000\")",
                 STR_ARG(found));
    return NULL;
}

const struct upstream_conf *upstream_for(const struct value *v, struct str text)
{
    struct load *ld = v->ld;
    struct upstream_build *b;
    if (str_chr(text, ':', 0) < 0) {
        b = upstream_find(ld, text);
        if (b == NULL)
            return bad_name(v, text);
        b->is_used = true;
        return b->upstream;
    }
    struct server_conf *server = load_new(ld, struct server_conf);
    *server = ld->server_defaults;
    server->where = value_where(ld, v->s);
    if (!parse_address(v, text, server))
        return NULL;
    b = upstream_find(ld, server->text);
    if (b == NULL) {
        b = upstream_add(ld, server->text, server->where);
        b->is_anonymous = true;
        b->upstream->servers = server;
        b->upstream->n_servers = 1;
        b->upstream->queue_size = server->queue_size;
    }
    b->is_used = true;
    return b->upstream;
}

void upstreams_finish(struct load *ld)
{
    unsigned n = 0;
    for (struct upstream_build *b = ld->upstreams; b != NULL; b = b->next)
        n++;
    const struct upstream_conf **list = load_array(ld, const struct upstream_conf *, n);
    n = 0;
    for (struct upstream_build *b = ld->upstreams; b != NULL; b = b->next) {
        b->upstream->index = n;
        list[n++] = b->upstream;
    }
    ld->conf->upstreams = list;
    ld->conf->n_upstreams = n;
}
