/* SPDX-License-Identifier: MIT */
/* Upstreams and their servers as text. */
#include "conf/print_out.h"

#include "base/units.h"

void print_server(struct out *o, const struct server_conf *server, const struct server_conf *defaults)
{
    bool is_plain = true;
    for (size_t i = 0; i < SET_COUNT; i++)
        is_plain &=
            settings[i].base != IN_SERVER || print_is_same(&settings[i], (const char *)server, (const char *)defaults);
    print_indent(o);
    if (is_plain) {
        print_quote(o, server->text, false);
        return;
    }
    fputs("{ address = ", o->f);
    print_quote(o, server->text, false);
    fputs(";", o->f);
    for (size_t i = 0; i < SET_COUNT; i++) {
        if (settings[i].base != IN_SERVER || print_is_same(&settings[i], (const char *)server, (const char *)defaults))
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
    print_indent(o);
    fputs("health = { ", o->f);
    if (h->kind == HEALTH_HTTP) {
        fputs("path = ", o->f);
        print_quote(o, h->path, false);
        fputs("; ", o->f);
    }
    fprintf(o->f, "interval = \"%s\"; timeout = \"%s\"; rise = %u; fall = %u; expect = \"%u-%u\"; };\n", interval,
            timeout, h->rise, h->fall, h->expect_low, h->expect_high);
}

static void print_sticky(struct out *o, const struct upstream_conf *u)
{
    if (u->sticky == STICKY_OFF)
        return;
    print_indent(o);
    if (u->sticky == STICKY_AUTO) {
        fputs("sticky = \"auto\";\n", o->f);
        return;
    }
    fputs("sticky = { cookie = ", o->f);
    print_quote(o, u->sticky_cookie, false);
    if (u->sticky_key.n > 0) {
        fputs("; key = ", o->f);
        print_quote(o, u->sticky_key, false);
    }
    fputs("; };\n", o->f);
}

bool print_is_bare_address(const struct upstream_conf *u)
{
    return str_chr(u->name, ':', 0) >= 0;
}

void print_pool(struct out *o, const struct upstream_conf *u, const struct upstream_conf *defaults)
{
    char idle[UNITS_TEXT];
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct setting *row = &settings[i];
        if (row->base != IN_UPSTREAM || areas[row->area].kind != DIRECT ||
            print_is_same(row, (const char *)u, (const char *)defaults))
            continue;
        print_indent(o);
        fprintf(o->f, "%.*s = ", STR_ARG(row->name));
        print_value(o, row, (const char *)u);
        fputs(";\n", o->f);
    }
    if (u->has_upstream_idle) {
        duration_print(u->upstream_idle, idle);
        print_indent(o);
        fprintf(o->f, "timeouts = { upstream_idle = \"%s\"; };\n", idle);
    }
    print_health(o, &u->health);
    print_sticky(o, u);
}

void print_upstream(struct out *o, const struct upstream_conf *u, const struct upstream_conf *defaults)
{
    print_indent(o);
    fprintf(o->f, "%.*s = {\n", STR_ARG(u->name));
    o->depth++;
    print_pool(o, u, defaults);
    print_indent(o);
    fputs("servers = (\n", o->f);
    o->depth++;
    for (unsigned i = 0; i < u->n_servers; i++) {
        print_server(o, &u->servers[i], &defaults->servers[0]);
        fputs(i + 1 < u->n_servers ? ",\n" : "\n", o->f);
    }
    o->depth--;
    print_indent(o);
    fputs(");\n", o->f);
    o->depth--;
    print_indent(o);
    fputs("};\n", o->f);
}
