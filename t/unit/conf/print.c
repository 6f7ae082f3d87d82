/* SPDX-License-Identifier: MIT */
/* A configuration as text: it loads to the same one, and says only what differs from the defaults. */
#include "conf_test.h"

#include "conf/print.h"

/* The printed text, which must print to itself again. */
static char *round_trip(const char *text)
{
    struct loaded l = load_bytes(text, strlen(text));
    struct arena a;
    arena_init(&a, NULL);
    assert_non_null(l.c);
    struct str printed = conf_print(&a, l.c);
    assert_non_null(printed.p);
    struct loaded again = load_bytes(printed.p, printed.n);
    if (again.c == NULL)
        fail_msg("%s%s", again.said, printed.p);
    struct str twice = conf_print(&a, again.c);
    assert_str(twice, printed.p);
    char *copy = strndup(printed.p, printed.n);
    arena_reset(&a);
    unload(&again);
    unload(&l);
    return copy;
}

static void short_stays_short(void **state)
{
    (void)state;
    char *text = round_trip("sites = { listen = \"8080\"; root = \"public\"; proxy = \"127.0.0.1:3000\"; };");
    assert_string_equal(text, "sites = (\n"
                              "    {\n"
                              "        listen = \"*:8080\";\n"
                              "        root = \"/etc/weir/public\";\n"
                              "        proxy = \"127.0.0.1:3000\";\n"
                              "    }\n"
                              ");\n");
    free(text);
}

static void everything(void **state)
{
    (void)state;
    char *text = round_trip(
        "workers = 3; cpu_affinity = ( 0, 2 ); user = \"w\"; pid_file = \"p\"; error_log = \"e\"; log_level = "
        "\"debug\"; control = \"c\";\n"
        "timeouts = { header = \"1s\"; body = \"90s\"; tunnel = 0; queue = \"1500ms\"; };\n"
        "limits = { body_size = \"5g\"; clients = 7; header_count = 9; };\n"
        "file_cache = { entries = 0; small = 0; valid = \"2s\"; };\n"
        "trusted = ( \"10.0.0.0/8\", \"unix\", \"::1\" ); allow = ( \"10.0.0.0/8\" ); deny = ();\n"
        "access_log = { path = \"a\"; format = \"json\"; }; expires = \"epoch\"; via = false;\n"
        "request_headers = { X-A = \"$host\"; X-B = \"\"; }; response_headers = { X-C = ( \"1\", \"$$2\" ); };\n"
        "add_response_headers = { Vary = \"V\"; };\n"
        "gzip = { level = 2; types = ( \"a/b\" ); }; precompressed = false; buffer_request = \"64k\";\n"
        "error_pages = ( { status = ( 502, 503 ); file = \"/srv/oops.html\"; },\n"
        "  { status = 404; file = \"/e\"; intercept = true; } );\n"
        "upstreams = { u = { balance = \"hash\"; hash = \"$request_uri\"; retries = 0; redispatch = false; maxconn = "
        "5; hold = \"3s\"; hash_balance_factor = 150;\n"
        "  timeouts = { upstream_idle = \"9s\"; connect = \"7s\"; }; health = { path = \"/h\"; expect = 204; }; sticky "
        "= { cookie = \"c\"; key = \"k\"; };\n"
        "  servers = ( \"a:1\", { address = \"unix:s\"; weight = 2; backup = true; drain = true; maxconn = 9; } ); };\n"
        "  v = { servers = \"b:1\"; sticky = \"auto\"; health = true; }; };\n"
        "sites = ( { listen = ( \"80\", { address = \"[::1]:81\"; backlog = 5; defer = false; } ); names = ( \"a\", "
        "\"*.b\" ); default = true;\n"
        "  proxy = \"u\"; root = \"r\"; index = ( \"x\", \"y\" ); autoindex = \"json\"; dotfiles = true; follow = "
        "\"f\"; fallback = \"/fb\"; gzip = false;\n"
        "  locations = ( { match = \"~* \\.(a|b)$\"; root = \"q$$x\"; access_log = false; expires = \"30d\"; index = ( "
        "\"x\", \"y\" ); },\n"
        "    { match = \"= /e\"; redirect = { status = 302; to = \"/$host$$\"; }; }, { match = \"^~ /p\"; proxy = "
        "\"c:1\"; strip_prefix = true; timeouts = { send = \"1s\"; }; },\n"
        "    { match = \"/r\"; respond = { status = 201; body = \"a\\\"b\\\\c\\n$${X}\"; type = \"t/x\"; }; "
        "response_headers = { x-c = \"\"; }; add_response_headers = { Vary = \"W\"; }; },\n"
        "    { match = \"/s\"; internal = true; respond = 404; x_accel_redirect = false; },\n"
        "    { match = \"/t\"; respond = 404; x_sendfile = ( \"/f\", \"/g\" ); }, { match = \"/b\"; builtin = \"ready\"; rewrite = \"/n$uri\"; }, { "
        "match = \"/al\"; alias = \"z\"; proxy = \"v\"; strip_prefix = \"/x\"; } ); },\n"
        "  { listen = \"unix:u\"; redirect = \"https://$host/\"; gzip = true; } );\n");
    static const char *const parts[] = {
        "workers = 3;",
        "cpu_affinity = ( 0, 2 );",
        "timeouts = { body = \"90s\"; header = \"1s\"; queue = \"1500ms\"; tunnel = 0; };",
        "body_size = \"5g\"",
        "allow = ( \"10.0.0.0/8\" );",
        "format = \"json\"",
        "X-B = \"\"",
        "X-C = ( \"1\", \"$$2\" )",
        "defer = false",
        "trusted = ( \"10.0.0.0/8\", \"unix\", \"::1\" );",
        "match = \"~* \\\\.(a|b)$\";",
        "root = \"/etc/weir/q$x\";",
        "index = ( \"x\", \"y\" );",
        "types = ( \"a/b\" )",
        "connect = \"7s\"",
        "sticky = \"auto\";",
        "internal = true;",
        "intercept = true;",
        "x_sendfile = ( \"/f\", \"/g\" );",
        "expect = \"204-204\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (strstr(text, parts[i]) == NULL)
            fail_msg("no `%s` in\n%s", parts[i], text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_stays_short),
        cmocka_unit_test(everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
