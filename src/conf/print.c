/* SPDX-License-Identifier: MIT */
/*
 * The way back: a struct conf as text, by the same rows that read it. A setting is printed where its value differs from
 * that of the scope around it (at the top: from the defaults, which a load of the smallest file supplies). What was
 * resolved stays resolved: timeouts that came from an upstream stand in the locations, and paths are absolute.
 */
#include "conf/print_out.h"

#include <stdlib.h>

static void print_conf(struct out *o, const struct conf *c, const struct conf *defaults)
{
    struct conf top = *c;
    if (c->where[SET_top_workers].line == 0)
        top.workers = defaults->workers; /* "auto": of the machine that reads the text, not of this one */
    print_scope(o, c->s, defaults->s, (struct pair){ &top, defaults });
    bool is_open = false;
    for (unsigned i = 0; i < c->n_upstreams; i++) {
        if (print_is_bare_address(c->upstreams[i]))
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

bool print_load_defaults(struct conf_result *out)
{
    conf_load_flags(STR("sites = { listen = \"1\"; proxy = \"a:1\"; };"), "defaults", "/", CONF_NO_FILES, out);
    return out->conf != NULL;
}

void print_free_defaults(struct conf_result *defaults)
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
    bool is_loaded = print_load_defaults(&defaults);
    FILE *f = open_memstream(&text, &n);
    if (f != NULL && is_loaded) {
        struct out o = { .f = f, .conf = c };
        print_conf(&o, c, defaults.conf);
    }
    if (f != NULL && fclose(f) == 0 && is_loaded)
        copy = arena_dup(a, str_of(text, n));
    free(text);
    print_free_defaults(&defaults);
    return copy;
}
