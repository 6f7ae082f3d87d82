/* SPDX-License-Identifier: MIT */
/*
 * The request path over the memory client with a configuration from text and handlers of the test's own: which site and location
 * a request reaches, what a declined action leads to, reroutes and their limit, what every failure answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "serve/client_memory.h"
#include "serve/handler.h"
#include "serve/respond.h"
#include "serve/vars.h"

static struct worker *worker;
static struct conf_result loaded;
static struct snapshot snapshot;
static struct server_shared shared = { .clients_max = 10 };
static char seen[64];      /* the location the last handler was started for */
static unsigned n_started;
static const char *reroute_to;

static enum handled start_fixed(struct request *r)
{
    n_started++;
    snprintf(seen, sizeof(seen), "%.*s", STR_ARG(r->location->match));
    if (reroute_to) {
        request_reroute(r, str_c(reroute_to));
        return HANDLED;
    }
    respond_simple(r, r->action->u.respond.status, STR("text/plain"), r->action->u.respond.body);
    return HANDLED;
}

static enum handled start_declined(struct request *r)
{
    (void)r;
    n_started++;
    return DECLINED;
}

static enum handled start_redirect(struct request *r)
{
    n_started++;
    respond_redirect(r, 301, vars_eval(r, &r->action->u.redirect.to));
    return HANDLED;
}

static const struct handler declining = { .name = "declining", .start = start_declined };
static const struct handler fixed = { .name = "fixed", .start = start_fixed };
static const struct handler redirecting = { .name = "redirecting", .start = start_redirect };
static const struct handler *const handlers[ACTION_COUNT] = {
    [ACTION_FILE] = &declining,         [ACTION_PROXY] = &declining, [ACTION_REDIRECT] = &redirecting,
    [ACTION_RESPOND] = &fixed,          [ACTION_BUILTIN] = &declining,
    [ACTION_METEOR] = &declining,
};

static void keep(struct snapshot *s)
{
    (void)s;
}

static void load(const char *text)
{
    conf_load_text(str_c(text), "test.conf", "/", &loaded);
    if (loaded.conf == NULL) {
        struct arena a;
        arena_init(&a, NULL);
        for (struct diagnostic *d = loaded.first; d; d = d->next)
            print_error("%.*s", STR_ARG(diagnostic_print(&a, &loaded, d)));
        arena_reset(&a);
    }
    assert_non_null(loaded.conf);
    snapshot = (struct snapshot){ .conf = loaded.conf, .generation = 1, .free_fn = keep };
    atomic_init(&snapshot.loops, 1);
    worker = worker_new(0, &shared, &snapshot, handlers);
    assert_non_null(worker);
}

static int unload(void **state)
{
    (void)state;
    worker_free(worker);
    conf_free(loaded.conf);
    conf_result_free(&loaded);
    worker = NULL;
    reroute_to = NULL;
    n_started = 0;
    return 0;
}

static uint16_t ask(const char *request, struct memory_answer *out)
{
    struct ip peer;
    assert_true(ip_parse(STR("127.0.0.1"), &peer));
    seen[0] = '\0';
    (void)!client_memory_run(worker, &loaded.conf->listens[0], str_c(request), &peer, NULL, out);
    return out->status;
}

static uint16_t status_of(const char *request)
{
    struct memory_answer a;
    uint16_t status = ask(request, &a);
    memory_answer_free(&a);
    return status;
}

static const char *location_of(const char *path)
{
    char request[512];
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    status_of(request);
    return seen;
}

static void locations_by_nginx_precedence(void **state)
{
    (void)state;
    load("sites = ( { listen = \"80\"; respond = 200; locations = ("
         " { match = \"= /a\"; respond = 201; }, { match = \"/a\"; respond = 202; },"
         " { match = \"/img/\"; respond = 203; }, { match = \"^~ /img/raw/\"; respond = 204; },"
         " { match = \"~* \\.(png|jpg)$\"; respond = 205; }, { match = \"~ \\.png$\"; respond = 206; } ); } );");
    assert_string_equal(location_of("/a"), "= /a");
    assert_string_equal(location_of("/ab"), "/a");
    assert_string_equal(location_of("/A"), "/");
    assert_string_equal(location_of("/img/x.PNG"), "~* \\.(png|jpg)$");
    assert_string_equal(location_of("/img/x.png"), "~* \\.(png|jpg)$");
    assert_string_equal(location_of("/img/raw/x.png"), "^~ /img/raw/");
    assert_string_equal(location_of("/img/x.gif"), "/img/");
    assert_string_equal(location_of("//a"), "= /a");
    assert_string_equal(location_of("/x/../a"), "= /a");
    assert_string_equal(location_of("/%61"), "= /a");
    assert_string_equal(location_of("/%61?x=/img/"), "= /a");
    assert_string_equal(location_of("/other"), "/");
}

static void a_prefix_that_would_be_cut_gives_way_to_a_shorter_one(void **state)
{
    (void)state;
    load("sites = ( { listen = \"80\"; locations = ( { match = \"/a\"; respond = 201; },"
         " { match = \"/ab\"; strip_prefix = true; respond = 202; },"
         " { match = \"/abc/\"; strip_prefix = true; respond = 203; } ); } );");
    assert_string_equal(location_of("/ab"), "/ab");
    assert_string_equal(location_of("/ab/c"), "/ab");
    assert_string_equal(location_of("/abc/d"), "/abc/");
    assert_string_equal(location_of("/abc"), "/a");
    assert_string_equal(location_of("/abd"), "/a");
    assert_string_equal(location_of("/b"), "");
}

static void a_prefix_of_ones_own_is_all_that_matches(void **state)
{
    (void)state;
    load("sites = ( { listen = \"80\"; locations = ( { match = \"/\"; respond = 201; },"
         " { match = \"= /x/y\"; strip_prefix = \"/z\"; respond = 202; },"
         " { match = \"/x\"; strip_prefix = \"/x/y\"; respond = 203; },"
         " { match = \"~ \\.png$\"; strip_prefix = \"/img\"; respond = 204; } ); } );");
    assert_string_equal(location_of("/x/y"), "/x");
    assert_string_equal(location_of("/x/y/z"), "/x");
    assert_string_equal(location_of("/x/yz"), "/");
    assert_string_equal(location_of("/x"), "/");
    assert_string_equal(location_of("/img/a.png"), "~ \\.png$");
    assert_string_equal(location_of("/imgs/a.png"), "/");
}

/* Many prefixes of few letters, and many paths: the search finds what looking at all of them finds. */
static void the_longest_prefix_is_found(void **state)
{
    (void)state;
    enum { PREFIXES = 120, PATHS = 3000, LENGTH = 8 };
    static char prefixes[PREFIXES][LENGTH + 2], text[PREFIXES * 64 + 256];
    uint32_t seed = 1;
    size_t n = (size_t)snprintf(text, sizeof(text), "sites = ( { listen = \"80\"; locations = ( ");
    for (int i = 0; i < PREFIXES; i++) {
        bool is_new = false;
        while (!is_new) {
            seed = seed * 1103515245u + 12345u;
            size_t length = 1 + (seed >> 16) % LENGTH;
            for (size_t k = 0; k < length; k++)
                prefixes[i][k] = k == 0 ? '/' : "ab"[(seed = seed * 1103515245u + 12345u) >> 16 & 1];
            prefixes[i][length] = '\0';
            is_new = true;
            for (int k = 0; k < i; k++)
                is_new &= strcmp(prefixes[k], prefixes[i]) != 0;
        }
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s{ match = \"%s\"; respond = 200; }", i ? ", " : "",
                              prefixes[i]);
    }
    snprintf(text + n, sizeof(text) - n, " ); } );");
    load(text);
    for (int i = 0; i < PATHS; i++) {
        char path[LENGTH + 4] = "/";
        const char *want = "";
        seed = seed * 1103515245u + 12345u;
        size_t length = 1 + (seed >> 16) % (LENGTH + 2);
        for (size_t k = 1; k < length; k++)
            path[k] = "abc"[((seed = seed * 1103515245u + 12345u) >> 16) % 3];
        for (int k = 0; k < PREFIXES; k++)
            if (strncmp(path, prefixes[k], strlen(prefixes[k])) == 0 && strlen(prefixes[k]) > strlen(want))
                want = prefixes[k];
        assert_string_equal(location_of(path), want);
    }
}

static void sites_by_name(void **state)
{
    (void)state;
    load("sites = ( { listen = \"80\"; names = \"first\"; respond = \"1\"; },"
         " { listen = \"80\"; names = ( \"a.example.com\", \"*.example.com\" ); respond = \"2\"; },"
         " { listen = \"80\"; names = \"*.b.example.com\"; respond = \"3\"; },"
         " { listen = \"80\"; names = \"d\"; default = true; respond = \"4\"; } );");
    static const struct {
        const char *host, *body;
    } rows[] = {
        { "first", "1" },          { "FIRST:8080", "1" },   { "a.example.com", "2" }, { "x.example.com", "2" },
        { "x.y.example.com", "2" }, { "x.b.example.com", "3" }, { "example.com", "4" },   { "nobody", "4" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char request[256];
        struct memory_answer a;
        snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", rows[i].host);
        assert_int_equal(ask(request, &a), 200);
        assert_int_equal(a.body.n, 1);
        assert_int_equal(a.body.p[0], rows[i].body[0]);
        memory_answer_free(&a);
    }
    assert_int_equal(status_of("GET http://first/ HTTP/1.1\r\nHost: nobody\r\n\r\n"), 200);
}

static void declined_actions_lead_to_404(void **state)
{
    (void)state;
    load("sites = ( { listen = \"80\"; root = \"/\"; proxy = \"127.0.0.1:1\"; } );");
    assert_int_equal(status_of("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"), 404);
    assert_int_equal(n_started, 2);
}

static void reroutes_are_limited(void **state)
{
    (void)state;
    load("sites = ( { listen = \"80\"; respond = 200; } );");
    struct memory_answer a;
    reroute_to = "/again";
    assert_int_equal(ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n", &a), 500);
    assert_int_equal(a.fail, FAIL_REROUTE_LOOP);
    assert_int_equal(n_started, 6);
    memory_answer_free(&a);
}

static void refusals(void **state)
{
    (void)state;
    load("limits = { body_size = \"10k\"; }; sites = ( { listen = \"80\"; respond = 200;"
         " locations = ( { match = \"/secret\"; deny = \"127.0.0.0/8\"; respond = 200; },"
         " { match = \"/only\"; allow = \"10.0.0.0/8\"; respond = 200; } ); } );");
    static const struct {
        const char *request;
        uint16_t status;
        enum fail fail;
    } rows[] = {
        { "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", 405, FAIL_CONNECT_REFUSED },
        { "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", 405, FAIL_METHOD_REFUSED },
        { "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, FAIL_TARGET_MALFORMED },
        { "GET /../x HTTP/1.1\r\nHost: h\r\n\r\n", 400, FAIL_TARGET_ABOVE_ROOT },
        { "GET / HTTP/1.1\r\nHost: h\r\nExpect: foo\r\n\r\n", 417, FAIL_EXPECTATION },
        { "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10241\r\n\r\n", 413, FAIL_BODY_TOO_LARGE },
        { "GET / HTTP/1.1\r\n\r\n", 400, FAIL_BAD_HOST },
        { "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, FAIL_BAD_HOST },
        { "GET /secret/x HTTP/1.1\r\nHost: h\r\n\r\n", 403, FAIL_DENIED },
        { "GET //secret HTTP/1.1\r\nHost: h\r\n\r\n", 403, FAIL_DENIED },
        { "GET /only HTTP/1.1\r\nHost: h\r\n\r\n", 403, FAIL_DENIED },
        { "GET / HTTP/1.0\r\n\r\n", 200, FAIL_NONE },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct memory_answer a;
        assert_int_equal(ask(rows[i].request, &a), rows[i].status);
        assert_int_equal(a.fail, rows[i].fail);
        assert_true(a.complete);
        memory_answer_free(&a);
    }
}

static void options_asterisk_is_about_the_server(void **state)
{
    (void)state;
    load("sites = ( { listen = \"80\"; respond = 200; } );");
    struct memory_answer a;
    assert_int_equal(ask("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", &a), 204);
    assert_non_null(fields_get(&a.fields, F_ALLOW));
    memory_answer_free(&a);
}

static void templates(void **state)
{
    (void)state;
    load("sites = ( { listen = \"80\"; names = \"www\"; redirect = \"https://$host$request_uri\";"
         " locations = ( { match = \"~ ^/u/([a-z]+)/(.*)$\"; redirect = \"/$2/$1$is_args$args\"; },"
         " { match = \"/v\"; redirect = \"/?a=$arg_a&c=$cookie_c&h=$http_x_y&m=$request_method\"; } ); } );");
    static const struct {
        const char *request, *location;
    } rows[] = {
        { "GET /a%20b?c HTTP/1.1\r\nHost: Ex.org:81\r\n\r\n", "https://ex.org/a%20b?c" },
        { "GET / HTTP/1.0\r\n\r\n", "https://www/" },
        { "GET /u/ann/x?q=1 HTTP/1.1\r\nHost: h\r\n\r\n", "/x/ann?q=1" },
        { "GET /v?b=2&a=1 HTTP/1.1\r\nHost: h\r\nCookie: d=4; c=3\r\nX-Y: z\r\n\r\n", "/?a=1&c=3&h=z&m=GET" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct memory_answer a;
        assert_int_equal(ask(rows[i].request, &a), 301);
        const struct field *f = fields_get(&a.fields, F_LOCATION);
        assert_non_null(f);
        char location[256];
        snprintf(location, sizeof(location), "%.*s", STR_ARG(f->value));
        assert_string_equal(location, rows[i].location);
        memory_answer_free(&a);
    }
}

static void a_redirect_cannot_split_the_head(void **state)
{
    (void)state;
    load("sites = ( { listen = \"80\"; redirect = \"/$uri\"; } );");
    struct memory_answer a;
    assert_int_equal(ask("GET /x%0d%0aSet-Cookie:a=1 HTTP/1.1\r\nHost: h\r\n\r\n", &a), 400);
    assert_null(fields_get(&a.fields, F_SET_COOKIE));
    assert_null(fields_get(&a.fields, F_LOCATION));
    memory_answer_free(&a);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, unload)
    const struct CMUnitTest tests[] = {
        T(locations_by_nginx_precedence), T(sites_by_name),      T(declined_actions_lead_to_404),
        T(reroutes_are_limited),          T(refusals),           T(options_asterisk_is_about_the_server),
        T(templates),                     T(a_redirect_cannot_split_the_head),
        T(the_longest_prefix_is_found),   T(a_prefix_that_would_be_cut_gives_way_to_a_shorter_one),
   T(a_prefix_of_ones_own_is_all_that_matches),
    };
    log_set_level(LOG_EMERG);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
