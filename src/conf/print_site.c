/* SPDX-License-Identifier: MIT */
/* Sites and their locations as text: how they are reached, what they do, what is different in each. */
#include "conf/print_out.h"

static void print_redirect(struct out *o, const struct action *a)
{
    if (a->u.redirect.status == 0) {
        print_quote(o, a->u.redirect.to.source, true);
        return;
    }
    fprintf(o->f, "{ status = %u; to = ", a->u.redirect.status);
    print_quote(o, a->u.redirect.to.source, true);
    fputs("; }", o->f);
}

static void print_respond(struct out *o, const struct action *a)
{
    if (!a->u.respond.has_body) {
        fprintf(o->f, "%u", a->u.respond.status);
        return;
    }
    fprintf(o->f, "{ status = %u; body = ", a->u.respond.status);
    print_quote(o, a->u.respond.body, false);
    fputs("; type = ", o->f);
    print_quote(o, a->u.respond.type, false);
    fputs("; }", o->f);
}

void print_actions(struct out *o, const struct location_conf *location)
{
    for (unsigned i = 0; i < location->n_actions; i++) {
        const struct action *a = location->actions[i];
        static const char *const names[] = { "root", "proxy", "redirect", "respond", "builtin", "meteor_bundle" };
        print_indent(o);
        fprintf(o->f, "%s = ", a->kind == ACTION_FILE && a->u.file.alias ? "alias" : names[a->kind]);
        if (a->kind == ACTION_FILE)
            print_quote(o, a->u.file.root, false);
        else if (a->kind == ACTION_METEOR)
            print_quote(o, a->u.meteor.bundle, false);
        else if (a->kind == ACTION_PROXY)
            print_quote(o, a->u.proxy.upstream->name, false);
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
            print_is_same(&settings[SET_files_index], (const char *)&location->s, (const char *)location->site->s)) {
            print_indent(o);
            fputs("index = ", o->f);
            print_list(o, &settings[SET_files_index], (const char *)&location->s);
            fputs(";\n", o->f);
        }
    }
}

static void print_listens(struct out *o, const struct site_conf *site, const struct listen_conf *defaults)
{
    unsigned n = 0, n_here = 0;
    print_indent(o);
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
        print_quote(o, l->text, false);
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
    print_indent(o);
    fputs("names = ( ", o->f);
    for (unsigned i = 0; i < site->n_names; i++)
        fprintf(o->f, "%s\"%s%.*s\"", i > 0 ? ", " : "", site->names[i].wildcard ? "*" : "",
                STR_ARG(site->names[i].name));
    fputs(" );\n", o->f);
}

void print_internal(struct out *o, const struct location_conf *location)
{
    if (!location->internal)
        return;
    print_indent(o);
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
            print_indent(o);
            fputs("locations = (\n", o->f);
            is_open = true;
        } else {
            fputs(",\n", o->f);
        }
        o->depth++;
        print_indent(o);
        fputs("{\n", o->f);
        o->depth++;
        print_indent(o);
        fputs("match = ", o->f);
        print_quote(o, location->match, false);
        fputs(";\n", o->f);
        print_internal(o, location);
        print_actions(o, location);
        print_scope(o, &location->s, site->s, (struct pair){ NULL, NULL });
        o->depth--;
        print_indent(o);
        fputs("}", o->f);
        o->depth--;
        bool is_last = i + 1 == site->n_all || is_site_enough(site, site->all[i + 1]);
        if (is_last) {
            fputc('\n', o->f);
            print_indent(o);
            fputs(");\n", o->f);
        }
    }
}

void print_reach(struct out *o, const struct site_conf *site, const struct listen_conf *defaults)
{
    const struct setting *trusted = &settings[SET_site_trusted];
    print_listens(o, site, defaults);
    print_names(o, site);
    if (site->is_default) {
        print_indent(o);
        fputs("default = true;\n", o->f);
    }
    if (site->n_trusted > 0) {
        const struct {
            const struct cidr *list;
            unsigned n;
        } pair = { site->trusted, site->n_trusted };
        _Static_assert(sizeof pair == 16, "the shape that the row of `trusted` describes");
        print_indent(o);
        fputs("trusted = ", o->f);
        print_list(o, trusted, (const char *)&pair);
        fputs(";\n", o->f);
    }
}

void print_site(struct out *o, const struct site_conf *site, const struct listen_conf *defaults)
{
    o->depth++;
    print_indent(o);
    fputs("{\n", o->f);
    o->depth++;
    print_reach(o, site, defaults);
    print_scope(o, site->s, o->conf->s, (struct pair){ NULL, NULL });
    print_locations(o, site);
    o->depth--;
    print_indent(o);
    fputc('}', o->f);
    o->depth--;
}
