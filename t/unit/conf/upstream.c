/* SPDX-License-Identifier: MIT */
/* Upstreams and their servers: inheritance, bare addresses, what is wrong with an address. */
#include "conf_test.h"

static void servers_inherit(void **state)
{
    (void)state;
    struct loaded l = load(
        "upstreams = { u = { keepalive = 5; retries = 7; redispatch = false; timeouts = { upstream_idle = \"9s\"; };\n"
        "  servers = ( \"a:1\", { address = \"[::1]:2\"; weight = 3; keepalive = 6; }, \"unix:run/a.sock\" ); };\n"
        "  v = { servers = \"1.2.3.4:5\"; }; };\n"
        "sites = { listen = \"80\"; proxy = \"u\"; locations = { match = \"/v\"; proxy = \"v\"; }; };");
    const struct upstream_conf *u = l.c->upstreams[0], *v = l.c->upstreams[1];
    assert_str(u->name, "u");
    assert_int_equal(u->index, 0);
    assert_int_equal(v->index, 1);
    assert_int_equal(u->retries, 7);
    assert_false(u->redispatch);
    assert_true(u->has_upstream_idle);
    assert_int_equal(u->upstream_idle, 9000);
    assert_int_equal(u->n_servers, 3);
    assert_int_equal(u->servers[0].keepalive, 5);
    assert_int_equal(u->servers[0].weight, 1);
    assert_int_equal(u->servers[0].endpoint.kind, ENDPOINT_NAME);
    assert_int_equal(u->servers[1].keepalive, 6);
    assert_int_equal(u->servers[1].weight, 3);
    assert_int_equal(u->servers[1].endpoint.kind, ENDPOINT_IP);
    assert_int_equal(u->servers[1].endpoint.port, 2);
    assert_str(u->servers[2].text, "unix:/etc/weir/run/a.sock");
    assert_int_equal(v->retries, 2);
    assert_true(v->redispatch);
    assert_false(v->has_upstream_idle);
    assert_int_equal(v->servers[0].keepalive, 64);
    assert_int_equal(v->servers[0].queue_size, 1000);
    assert_int_equal(v->servers[0].maxconn, 0);
    unload(&l);
}

/* One upstream for each distinct address, whoever names it. */
static void bare_addresses(void **state)
{
    (void)state;
    struct loaded l =
        load("sites = { listen = \"80\"; proxy = \"127.0.0.1:1\"; locations = ( { match = \"/a\"; proxy = "
             "\"127.0.0.1:2\"; },\n"
             " { match = \"/b\"; proxy = \"127.0.0.1:1\"; }, { match = \"/c\"; proxy = \"unix:s\"; } ); };");
    assert_int_equal(l.c->n_upstreams, 3);
    const struct site_conf *site = l.c->sites[0];
    const struct upstream_conf *b = site->all[1]->actions[0]->u.proxy.upstream;
    assert_ptr_equal(b, site->all[3]->actions[0]->u.proxy.upstream);
    assert_str(b->name, "127.0.0.1:1");
    assert_int_equal(b->n_servers, 1);
    assert_int_equal(b->servers[0].keepalive, 64);
    assert_str(site->all[2]->actions[0]->u.proxy.upstream->name, "unix:/etc/weir/s");
    unload(&l);
}

static void refuses_proxy(const char *proxy, const char *what)
{
    char text[300], said[400];
    snprintf(text, sizeof text,
             "upstreams = { meteor = { servers = \"a:1\"; }; };\nsites = ( { listen = \"80\"; proxy = \"meteor\"; },\n"
             "{ listen = \"81\"; proxy = \"%s\"; } );\n",
             proxy);
    snprintf(said, sizeof said, "t.conf:3: sites[1].proxy: %s\n", what);
    refuses(text, said);
}

static void bad_addresses(void **state)
{
    (void)state;
    refuses_proxy("metoer", "no upstream \"metoer\"; did you mean \"meteor\"?");
    refuses_proxy("node", "no upstream \"node\"; expected the name of one in `upstreams`, or an address with its port "
                          "(\"127.0.0.1:3000\")");
    refuses_proxy("3000", "found \"3000\"; expected an address with its host (\"127.0.0.1:3000\")");
    refuses_proxy("https://a",
                  "TLS to backends is not available in this version yet; expected an address that speaks plain "
                  "HTTP, without https://");
    refuses_proxy("http://a:3000/x/", "an address stands without http:// and path; expected \"a:3000\"");
    refuses_proxy("http://a", "an address stands without http:// and path; expected \"a:80\"");
    refuses_proxy("*:80", "a server needs a host; expected \"127.0.0.1:80\"");
    refuses_proxy("a:99999", "found \"a:99999\"; expected a port from 1 to 65535");
    refuses_proxy("::1:80", "found \"::1:80\"; expected brackets around an IPv6 address (\"[::1]:80\")");
}

static void incomplete(void **state)
{
    (void)state;
    refuses("upstreams = { u = { }; v = { servers = (); }; w = \"a:1\"; x = { servers = { weight = 2; }; }; };\n"
            "sites = ( { listen = \"80\"; respond = 200; } );\n",
            "t.conf:1: upstreams.u: no servers; expected servers = ( \"127.0.0.1:3000\" );\n"
            "t.conf:1: upstreams.v.servers: no server; expected addresses (\"127.0.0.1:3000\"), or groups { address, "
            "... }\n"
            "t.conf:1: upstreams.w: found \"a:1\"; expected a group { servers = ( ... ); }\n"
            "t.conf:1: upstreams.x.servers: no address; expected { address = \"127.0.0.1:3000\"; }\n"
            "t.conf:1: warning: upstreams.u: no `proxy` names it\n"
            "t.conf:1: warning: upstreams.v: no `proxy` names it\n"
            "t.conf:1: warning: upstreams.w: no `proxy` names it\n"
            "t.conf:1: warning: upstreams.x: no `proxy` names it\n");
    refuses("upstreams = ( \"a\" );\n" SITE,
            "t.conf:1: upstreams: found a list; expected a group of pools: NAME = { servers = ( ... ); };\n");
}

static void weights(void **state)
{
    (void)state;
    warns("upstreams = { u = { servers = ( { address = \"a:1\"; weight = 0; }, \"a:1\" ); };\n"
          " z = { servers = { address = \"a:1\"; weight = 0; }; }; };\n"
          "sites = ( { listen = \"80\"; proxy = \"u\"; }, { listen = \"81\"; proxy = \"z\"; } );\n",
          "t.conf:1: warning: upstreams.u.servers[1]: the same server twice; `weight` = 1 says the same in one\n"
          "t.conf:2: warning: upstreams.z: every server has weight 0, so that none takes a request\n");
    refuses("upstreams = { u = { servers = { address = \"a:1\"; weight = 1000; }; }; };\nsites = { listen = \"80\"; "
            "proxy = \"u\"; };",
            "t.conf:1: upstreams.u.servers.weight: 1000 is out of range; expected a whole number from 0 to 256\n");
}

static void bounded_hashes(void **state)
{
    (void)state;
    struct loaded l = load("upstreams = { u = { balance = \"ip-hash\"; hash_balance_factor = 125; servers = \"a:1\"; };\n"
                           " v = { servers = \"a:1\"; }; };\n"
                           "sites = { listen = \"80\"; proxy = \"u\"; locations = { match = \"/v\"; proxy = \"v\"; }; };");
    assert_int_equal(l.c->upstreams[0]->hash_balance_factor, 125);
    assert_int_equal(l.c->upstreams[1]->hash_balance_factor, 0);
    unload(&l);
    refuses("upstreams = { u = { balance = \"ip-hash\"; servers = \"a:1\";\n hash_balance_factor = 100; }; };\n"
            "sites = { listen = \"80\"; proxy = \"u\"; };",
            "t.conf:2: upstreams.u.hash_balance_factor: 100 leaves no room for all requests; expected a percentage over "
            "100 (\"125\"), or 0 for no bound\n");
}

static void health_and_sticky(void **state)
{
    (void)state;
    static const char text[] =
        "upstreams = { a = { servers = \"a:1\"; health = true; sticky = \"auto\"; };\n"
        "b = { servers = \"a:1\"; health = \"/up\"; sticky = { cookie = \"s\"; key = \"k\"; }; };\n"
        "c = { servers = \"a:1\"; health = { path = \"/h\"; interval = \"5s\"; rise = 4; expect = 204; }; };\n"
        "d = { servers = \"a:1\"; health = false; sticky = false; }; };\n"
        "sites = { listen = \"80\"; proxy = \"a\"; };";
    struct loaded l = load_bytes(text, sizeof text - 1);
    assert_non_null(l.c);
    struct upstream_conf *const *u = (struct upstream_conf *const *)l.c->upstreams;
    assert_int_equal(u[0]->health.kind, HEALTH_TCP);
    assert_int_equal(u[0]->sticky, STICKY_AUTO);
    assert_str(u[0]->sticky_cookie, "weir_a");
    assert_int_equal(u[1]->health.kind, HEALTH_HTTP);
    assert_str(u[1]->health.path, "/up");
    assert_int_equal(u[1]->health.expect_low, 200);
    assert_int_equal(u[1]->health.expect_high, 399);
    assert_int_equal(u[1]->sticky, STICKY_COOKIE);
    assert_str(u[1]->sticky_cookie, "s");
    assert_int_equal(u[2]->health.interval, 5000);
    assert_int_equal(u[2]->health.rise, 4);
    assert_int_equal(u[2]->health.fall, 3);
    assert_int_equal(u[2]->health.expect_high, 204);
    assert_int_equal(u[3]->health.kind, HEALTH_PASSIVE);
    assert_int_equal(u[3]->sticky, STICKY_OFF);
    unload(&l);
}

/* What `weir check` says of two servers behind this location. */
static void sessions(const char *location, const char *upstream, const char *said)
{
    char text[600];
    int n = snprintf(text, sizeof text,
                     "upstreams = { u = { servers = ( \"a:1\", \"b:1\" ); %s }; };\n"
                     "sites = { listen = \"80\"; locations = ( %s ); };",
                     upstream, location);
    struct loaded l = load_bytes(text, (size_t)n);
    assert_non_null(l.c);
    assert_string_equal(l.said, said);
    unload(&l);
}

static void sessions_that_would_be_scattered(void **state)
{
    (void)state;
    static const char io[] = "{ match = \"/socket.io/\"; proxy = \"u\"; }";
    static const char expected[] =
        "t.conf:2: warning: socket.io loses a session whose requests go to several servers; expected sticky = "
        "\"auto\"; in upstreams.u\n";
    sessions(io, "", expected);
    sessions("{ match = \"~* ^/x/Socket\\.IO/\"; proxy = \"u\"; }", "balance = \"least-conn\";", expected);
    sessions("{ match = \"^~ /sockjs\"; proxy = \"u\"; }", "",
             "t.conf:2: warning: SockJS loses a session whose requests go to several servers; expected sticky = "
             "\"auto\"; in upstreams.u\n");
    sessions(io, "sticky = \"auto\";", "");
    sessions(io, "balance = \"ip-hash\";", "");
    sessions("{ match = \"/socketio\"; proxy = \"u\"; }", "", "");
    sessions("{ match = \"/socket.io/\"; proxy = \"c:1\"; }, { match = \"/x\"; proxy = \"u\"; }", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_inherit), cmocka_unit_test(bare_addresses), cmocka_unit_test(bad_addresses),
        cmocka_unit_test(incomplete),      cmocka_unit_test(weights),        cmocka_unit_test(bounded_hashes),
        cmocka_unit_test(health_and_sticky),
        cmocka_unit_test(sessions_that_would_be_scattered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
