/* SPDX-License-Identifier: MIT */
/*
 * A configuration taken apart: what each part is known by, and all it says as text. What was read from other files
 * counts, for a reload reads them again.
 */
#include "conf/print_out.h"

#include <stdlib.h>

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
    fprintf(o->f, "%llu", (unsigned long long)c->mime_hash);
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
    struct parts p = { .o = { .conf = c, .compares = true },
                       .a = a,
                       .v = arena_array(a, struct conf_part, count_parts(c)) };
    p.failed = !print_load_defaults(&defaults) || p.v == NULL;
    if (!p.failed)
        add_parts(&p, c, defaults.conf);
    print_free_defaults(&defaults);
    *out = p.v;
    *n = p.n;
    return !p.failed;
}
