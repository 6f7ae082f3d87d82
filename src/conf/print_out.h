/* SPDX-License-Identifier: MIT */
/*
 * Between the files that print a configuration only: print.c (the whole), print_rows.c (settings and what a scope
 * holds), print_site.c, print_upstream.c, parts.c (taken apart, to be compared).
 */
#ifndef CONF_PRINT_OUT_H
#define CONF_PRINT_OUT_H

#include <stdio.h>

#include "conf/print.h"
#include "conf/settings.h"

struct out {
    FILE *f;
    unsigned depth;
    const struct conf *conf;
    bool compares; /* what was read from other files counts, too */
};

/* An object and what it is compared with, for each base whose rows stand together; groups (timeouts, limits) have rows
 * of both. */
struct pair {
    const void *object, *outer;
};

/* print_rows.c */
void print_indent(struct out *o);
/* As libconfig reads it. A dollar that weir would take for the beginning of something is doubled, except in templates. */
void print_quote(struct out *o, struct str s, bool is_template);
void print_word(struct out *o, enum word_set set, int value);
void print_list(struct out *o, const struct setting *row, const char *base);
/* Is the value that of the outer scope? */
bool print_is_same(const struct setting *row, const char *base, const char *outer);
void print_value(struct out *o, const struct setting *row, const char *base);
/* Groups are opened when they have something to say. */
void print_rows(struct out *o, struct pair conf, struct pair scoped);
/* conf: the settings that only the top has, or nothing. */
void print_scope(struct out *o, const struct scope_conf *s, const struct scope_conf *outer, struct pair conf);

/* print_site.c */
void print_actions(struct out *o, const struct location_conf *location);
void print_internal(struct out *o, const struct location_conf *location);
/* How a site is reached. */
void print_reach(struct out *o, const struct site_conf *site, const struct listen_conf *defaults);
void print_site(struct out *o, const struct site_conf *site, const struct listen_conf *defaults);

/* print_upstream.c */
void print_server(struct out *o, const struct server_conf *server, const struct server_conf *defaults);
/* Is it an address that stands in a `proxy`, and nothing more? */
bool print_is_bare_address(const struct upstream_conf *u);
/* All of an upstream but its servers. */
void print_pool(struct out *o, const struct upstream_conf *u, const struct upstream_conf *defaults);
void print_upstream(struct out *o, const struct upstream_conf *u, const struct upstream_conf *defaults);

/* print.c */
/* What the values of a configuration are compared with: the smallest file's. */
bool print_load_defaults(struct conf_result *out) MUST_USE;
void print_free_defaults(struct conf_result *defaults);

#endif
