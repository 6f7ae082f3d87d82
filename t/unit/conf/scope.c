/* SPDX-License-Identifier: MIT */
/* Names, places and inheritance: what the settings tables say about a group. */
#include "conf_test.h"

static void unknown_names(void **state)
{
    (void)state;
    refuses("workres = 2;\n" SITE, "t.conf:1: workres: no such setting; did you mean `workers`?\n");
    refuses("sites = ( { listen = \"80\"; respond = 200;\n locatoins = (); } );\n",
            "t.conf:2: sites[0].locatoins: no such setting; did you mean `locations`?\n");
    refuses("limits = { body_sise = \"1m\"; };\n" SITE,
            "t.conf:1: limits.body_sise: no such setting; did you mean `body_size`?\n");
    refuses("timeout = { };\n" SITE, "t.conf:1: timeout: no such setting; did you mean `timeouts`?\n");
    refuses("file_cache = { colour = 1; };\n" SITE,
            "t.conf:1: file_cache.colour: no such setting; expected one of entries, small, valid\n");
    refuses("quux = 1;\n" SITE, "t.conf:1: quux: no such setting; see proxy.conf(5) for all of them\n");
    /* A name that differs from a word's meaning in nothing but - and _. */
    refuses("log-level = \"info\";\n" SITE, "t.conf:1: log-level: no such setting; did you mean `log_level`?\n");
}

static void names_in_wrong_places(void **state)
{
    (void)state;
    refuses("sites = { listen = \"80\"; respond = 200;\n workers = 2; };\n",
            "t.conf:2: sites.workers: cannot stand here; expected at the top\n");
    refuses("listen = \"80\";\n" SITE, "t.conf:1: listen: cannot stand here; expected in a site\n");
    refuses("body_size = \"1m\";\n" SITE,
            "t.conf:1: body_size: no such setting here; expected limits = { body_size = ...; }\n");
    refuses("sites = { listen = \"80\"; respond = 200;\n timeouts = { header = \"1s\"; }; };\n",
            "t.conf:2: sites.timeouts.header: cannot stand here; expected at the top\n");
    refuses("root = \"x\";\n" SITE, "t.conf:1: root: cannot stand here; expected in a site or in a location\n");
}

static void words_of_other_front_ends(void **state)
{
    (void)state;
    refuses("sites = { listen = \"80\"; server_name = \"a\"; proxy_pass = \"http://a\"; respond = 200; };\n",
            "t.conf:1: sites.server_name: no such setting; expected names\n"
            "t.conf:1: sites.proxy_pass: no such setting; expected proxy\n");
}

static void nearest_wins(void **state)
{
    (void)state;
    struct loaded l = load(
        "timeouts = { body = \"1s\"; send = \"2s\"; };\n"
        "via = false;\n"
        "sites = { listen = \"80\"; timeouts = { send = \"3s\"; }; dotfiles = true; root = \"r\";\n"
        "  locations = ( { match = \"/a\"; timeouts = { body = \"4s\"; }; via = true; }, { match = \"/b\"; } ); };");
    const struct site_conf *site = l.c->sites[0];
    const struct scope_conf *a = &site->all[0]->s, *b = &site->all[1]->s;
    assert_int_equal(l.c->s->timeouts.send, 2000);
    assert_int_equal(site->s->timeouts.body, 1000);
    assert_int_equal(site->s->timeouts.send, 3000);
    assert_int_equal(a->timeouts.body, 4000);
    assert_int_equal(a->timeouts.send, 3000);
    assert_int_equal(b->timeouts.body, 1000);
    assert_true(a->via);
    assert_false(b->via);
    assert_true(b->dotfiles);
    /* Where each of them was written. */
    assert_int_equal(a->where[SET_timeouts_body].line, 4);
    assert_int_equal(a->where[SET_timeouts_send].line, 3);
    assert_int_equal(b->where[SET_timeouts_body].line, 1);
    assert_int_equal(b->where[SET_timeouts_connect].line, 0);
    struct arena arena;
    arena_init(&arena, NULL);
    assert_str(where_print(&arena, l.c, a->where[SET_timeouts_send]), "t.conf:3");
    assert_str(where_print(&arena, l.c, b->where[SET_timeouts_connect]), "default");
    arena_reset(&arena);
    unload(&l);
}

/* Location, upstream, site, top: in this order. */
static void timeouts_of_an_upstream(void **state)
{
    (void)state;
    struct loaded l =
        load("timeouts = { connect = \"1s\"; server = \"1s\"; tunnel = \"1s\"; };\n"
             "upstreams = { u = { servers = \"a:1\"; timeouts = { connect = \"2s\"; server = \"2s\"; }; }; v = { "
             "servers = \"a:2\"; }; };\n"
             "sites = { listen = \"80\"; proxy = \"u\"; timeouts = { connect = \"3s\"; tunnel = \"3s\"; };\n"
             "  locations = ( { match = \"/l\"; timeouts = { connect = \"4s\"; }; }, { match = \"/v\"; proxy = \"v\"; "
             "} ); };");
    const struct site_conf *site = l.c->sites[0];
    const struct scope_conf *own = &site->all[0]->s, *other = &site->all[1]->s, *implicit = &site->all[2]->s;
    assert_int_equal(own->timeouts.connect, 4000);
    assert_int_equal(own->timeouts.server, 2000);
    assert_int_equal(own->timeouts.tunnel, 3000);
    assert_int_equal(other->timeouts.connect, 3000);
    assert_int_equal(other->timeouts.server, 1000);
    assert_int_equal(implicit->timeouts.connect, 2000);
    assert_int_equal(implicit->timeouts.tunnel, 3000);
    assert_int_equal(site->s->timeouts.connect, 3000);
    assert_int_equal(implicit->where[SET_timeouts_connect].line, 2);
    unload(&l);
}

static const struct header_rule *rule(const struct header_rule *rules, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (str_eq(rules[i].name, str_c(name)))
            return &rules[i];
    return NULL;
}

static void header_rules_merge_by_name(void **state)
{
    (void)state;
    static const char text[] =
        "request_headers = { X-A = \"top\"; X-B = \"top\"; };\n"
        "sites = { listen = \"80\"; respond = 200;\n"
        "  add_response_headers = { Vary = \"A\"; Link = \"x\"; }; response_headers = { Server = \"\"; Vary = \"B\"; "
        "};\n"
        "  locations = { match = \"/x\"; request_headers = { x-a = ( \"one\", \"$host\" ); };\n"
        "    response_headers = { Link = \"only\"; }; add_response_headers = { Vary = \"C\"; }; }; };\n";
    struct loaded l = load_bytes(text, sizeof text - 1);
    assert_non_null(l.c);
    const struct scope_conf *site = l.c->sites[0]->s, *s = &l.c->sites[0]->all[0]->s;
    assert_int_equal(s->n_request_headers, 2);
    assert_null(rule(s->request_headers, 2, "X-A"));
    const struct header_rule *own = rule(s->request_headers, 2, "x-a");
    assert_int_equal(own->n_values, 2);
    assert_int_equal(own->values[1].pieces[0].var, VAR_HOST);
    assert_str(rule(s->request_headers, 2, "X-B")->values[0].source, "top");
    /* What is added comes after what is set, in whatever order they are written. */
    assert_int_equal(site->n_response_headers, 4);
    assert_str(site->response_headers[0].name, "Server");
    assert_int_equal(site->response_headers[0].n_values, 0);
    assert_false(site->response_headers[1].append);
    assert_true(site->response_headers[2].append);
    /* The location's rule replaces all outer rules for Link, and adds a third Vary. */
    assert_int_equal(s->n_response_headers, 5);
    assert_str(rule(s->response_headers, 5, "Link")->values[0].source, "only");
    assert_str(s->response_headers[4].values[0].source, "C");
    assert_true(s->response_headers[4].append);
    unload(&l);
}

static void header_errors(void **state)
{
    (void)state;
    refuses("response_headers = { Content-Length = \"1\"; };\n" SITE,
            "t.conf:1: response_headers.Content-Length: this field says how long the body is, and weir sends "
            "that itself; expected another name\n");
    refuses("request_headers = { host = \"\"; };\n" SITE,
            "t.conf:1: request_headers.host: a request has exactly one Host; expected one text\n");
    refuses(
        "response_headers = { X-A = \"1\"; x-a = \"2\"; };\n" SITE,
        "t.conf:1: response_headers.x-a: second rule for the same field (names compare without case); the first is in "
        "line 1\n");
    refuses("response_headers = { X-A = \"a\\nb\"; };\n" SITE,
            "t.conf:1: response_headers.X-A: a line break or control character in it; expected a single line\n");
    refuses("response_headers = { X-A = 5; };\n" SITE,
            "t.conf:1: response_headers.X-A: found 5; expected a text, or a list of texts\n");
    refuses("response_headers = \"X-A: 1\";\n" SITE,
            "t.conf:1: response_headers: found \"X-A: 1\"; expected a group of header fields { Name = \"value\"; }\n");
}

static void variables_that_come_too_late(void **state)
{
    (void)state;
    static const char text[] = "request_headers = { X-A = \"$host $status\"; X-B = \"$sent_http_etag\"; };\n"
                               "response_headers = { X-A = \"$status $request_time\"; X-B = ( \"a\", \"$bytes_sent\" ); };\n" SITE;
    struct loaded l = load_bytes(text, sizeof text - 1);
    assert_non_null(l.c);
    assert_string_equal(l.said,
                        "t.conf:1: warning: request_headers.X-A: $status is not known yet when this field is sent\n"
                        "t.conf:1: warning: request_headers.X-B: $sent_http_etag is not known yet when this field is sent\n"
                        "t.conf:2: warning: response_headers.X-B[1]: $bytes_sent is not known yet when this field is sent\n");
    unload(&l);
}

static void types_merge(void **state)
{
    (void)state;
    static const char text[] =
        "gzip = { types = \"font/ttf\"; };\n"
        "sites = { listen = \"80\"; respond = 200; gzip = { level = 9; types = ( \"a/b\", \"text/*\" ); }; };";
    struct loaded l = load_bytes(text, sizeof text - 1);
    const struct gzip_conf *g = &l.c->sites[0]->s->gzip, *top = &l.c->s->gzip;
    assert_true(g->on);
    assert_int_equal(g->level, 9);
    assert_int_equal(g->n_types, top->n_types + 1);
    assert_str(g->types[top->n_types - 1], "font/ttf");
    assert_str(g->types[top->n_types], "a/b");
    unload(&l);
    l = load_bytes("gzip = { types = \"css\"; };\n" SITE, strlen("gzip = { types = \"css\"; };\n" SITE));
    assert_null(l.c);
    assert_non_null(strstr(l.said, "gzip.types: found \"css\"; expected media types (\"text/css\", \"text/*\")\n"));
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names),
        cmocka_unit_test(names_in_wrong_places),
        cmocka_unit_test(words_of_other_front_ends),
        cmocka_unit_test(nearest_wins),
        cmocka_unit_test(timeouts_of_an_upstream),
        cmocka_unit_test(header_rules_merge_by_name),
        cmocka_unit_test(header_errors),
        cmocka_unit_test(variables_that_come_too_late),
        cmocka_unit_test(types_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
