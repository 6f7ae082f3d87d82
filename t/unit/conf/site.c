/* SPDX-License-Identifier: MIT */
/* Sites, their names, and the addresses they share. */
#include "conf_test.h"

static void tables_of_an_address(void **state)
{
    (void)state;
    struct loaded l =
        load("sites = ( { listen = \"80\"; names = ( \"A.example\", \"*.b.example\" ); respond = 200; },\n"
             "{ listen = ( \"*:80\", \"127.0.0.1:81\" ); names = ( \"*.x.b.example\", \"c.example.\" ); default = "
             "true; respond = 201; },\n"
             "{ listen = \"[::1]:82\"; respond = 202; } );");
    assert_int_equal(l.c->n_listens, 3);
    const struct listen_conf *any = &l.c->listens[0];
    struct site_conf *const *sites = (struct site_conf *const *)l.c->sites;
    assert_str(any->text, "*:80");
    assert_int_equal(any->endpoint.kind, ENDPOINT_ANY);
    assert_int_equal(any->endpoint.port, 80);
    assert_int_equal(any->n_sites, 2);
    assert_ptr_equal(any->sites[0], sites[0]);
    assert_ptr_equal(any->default_site, sites[1]);
    assert_ptr_equal(map_get(&any->names, STR("a.example")), sites[0]);
    assert_ptr_equal(map_get(&any->names, STR("c.example")), sites[1]);
    assert_null(map_get(&any->names, STR("A.example")));
    assert_int_equal(any->n_wildcards, 2);
    assert_str(any->wildcards[0].suffix, ".x.b.example");
    assert_ptr_equal(any->wildcards[0].site, sites[1]);
    assert_str(any->wildcards[1].suffix, ".b.example");
    assert_str(l.c->listens[1].text, "127.0.0.1:81");
    assert_str(l.c->listens[2].text, "[::1]:82");
    assert_ptr_equal(l.c->listens[2].default_site, sites[2]);
    assert_str(sites[0]->label, "a.example");
    assert_str(sites[1]->label, "*.x.b.example");
    assert_str(sites[2]->label, "[::1]:82");
    unload(&l);
}

static void options_of_an_address(void **state)
{
    (void)state;
    struct loaded l =
        load("sites = ( { listen = \"80\"; names = \"a\"; respond = 200; },\n"
             "{ listen = { address = 80; defer = false; backlog = 7; }; names = \"b\"; respond = 201; } );");
    assert_int_equal(l.c->n_listens, 1);
    assert_false(l.c->listens[0].defer);
    assert_int_equal(l.c->listens[0].backlog, 7);
    unload(&l);
    refuses(
        "sites = ( { listen = { address = \"80\"; backlog = 8; }; names = \"a\"; respond = 200; },\n"
        "{ listen = { address = \"80\"; backlog = 7; }; names = \"b\"; respond = 201; } );",
        "t.conf:2: sites[1].listen: another `backlog` for the same address than in t.conf:1; expected it once, or the "
        "same\n");
}

static void bad_listens(void **state)
{
    (void)state;
    refuses("sites = ( { respond = 200; }, { listen = ( \"localhost:80\", \"99999\", \"\" ); respond = 200; } );",
            "t.conf:1: sites[0]: no address to listen on; expected listen = \"8080\"; or the like\n"
            "t.conf:1: sites[1].listen[0]: found \"localhost:80\", a name; expected an address of this machine "
            "(\"127.0.0.1:80\", \"[::1]:80\", or \"80\" for all)\n"
            "t.conf:1: sites[1].listen[1]: found \"99999\"; expected a port from 1 to 65535\n"
            "t.conf:1: sites[1].listen[2]: found \"\"; expected a port from 1 to 65535\n");
    refuses("sites = ( { listen = \"80\"; respond = 200; }, { listen = \"0.0.0.0:80\"; respond = 200; } );",
            "t.conf:1: sites[1].listen: \"0.0.0.0:80\" and \"*:80\" (t.conf:1) overlap; expected one of them\n");
    refuses("sites = ( { listen = { backlog = 5; }; respond = 200; } );",
            "t.conf:1: sites[0].listen: no address; expected { address = \"8080\"; }\n");
}

static void bad_names(void **state)
{
    (void)state;
    refuses("sites = { listen = \"80\"; respond = 200; names = ( \"*\", \".a.b\", \"~ x\", \"a:80\", \"a b\", "
            "\"www.*\", 5, \"a..b\" ); };",
            "t.conf:1: sites.names[0]: found \"*\"; expected no `names` at all: a site without them answers to any\n"
            "t.conf:1: sites.names[1]: found \".a.b\"; expected ( \"a.b\", \"*.a.b\" )\n"
            "t.conf:1: sites.names[2]: found \"~ x\"; expected a name: regular expressions are for locations only\n"
            "t.conf:1: sites.names[3]: found \"a:80\"; expected a name without port\n"
            "t.conf:1: sites.names[4]: found \"a b\"; expected host names (\"example.com\", \"*.example.com\")\n"
            "t.conf:1: sites.names[5]: found \"www.*\"; expected host names (\"example.com\", \"*.example.com\")\n"
            "t.conf:1: sites.names[6]: found 5; expected host names (\"example.com\", \"*.example.com\")\n"
            "t.conf:1: sites.names[7]: found \"a..b\"; expected host names (\"example.com\", \"*.example.com\")\n");
    refuses("sites = { listen = \"80\"; respond = 200; names = \"b\xc3\xbc.test\"; };",
            "t.conf:1: sites.names: found \"b\\xC3\\xBC.test\"; expected the name as clients send it, in ASCII "
            "(\"xn--...\")\n");
}

static void twice(void **state)
{
    (void)state;
    refuses("sites = ( { listen = \"80\"; names = ( \"a\", \"*.b\" ); respond = 200; },\n"
            "{ listen = \"80\"; names = ( \"A\", \"*.b\" ); respond = 200; } );",
            "t.conf:2: name \"a\" on *:80 is also that of the site in t.conf:1; expected it once for an address\n"
            "t.conf:2: name \"*.b\" on *:80 is also that of the site in t.conf:1; expected it once for an address\n");
    refuses("sites = ( { listen = \"80\"; names = \"a\"; default = true; respond = 200; },\n"
            "{ listen = \"80\"; names = \"b\"; default = true; respond = 200; } );",
            "t.conf:2: second default site on *:80; the first is in t.conf:1\n");
    /* The same name on another address is another site. */
    struct loaded l = load("sites = ( { listen = \"80\"; names = \"a\"; respond = 200; },"
                           "{ listen = \"81\"; names = \"a\"; respond = 200; } );");
    unload(&l);
    warns("sites = { listen = ( \"80\", \"*:80\" ); names = ( \"a\", \"A\" ); respond = 200; };",
          "t.conf:1: warning: sites.names[1]: the same name twice\n"
          "t.conf:1: warning: sites.listen[1]: the same address twice in one site\n");
}

static void trusted_is_inherited(void **state)
{
    (void)state;
    struct loaded l = load("trusted = \"10.0.0.0/8\";\n"
                           "sites = ( { listen = \"80\"; respond = 200; }, { listen = \"81\"; respond = 200; trusted = "
                           "( \"unix\", \"::1\" ); } );");
    assert_int_equal(l.c->sites[0]->n_trusted, 1);
    assert_int_equal(l.c->sites[0]->trusted[0].bits, 8);
    assert_int_equal(l.c->sites[1]->n_trusted, 2);
    assert_true(l.c->sites[1]->trusted[0].unix_peers);
    unload(&l);
}

static void empty_files(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "\n", "# nothing\n", "sites = ();", "workers = 2;" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        refuses(
            texts[i],
            "t.conf:1: no site; expected at least sites = ( { listen = \"8080\"; proxy = \"127.0.0.1:3000\"; } );\n");
    refuses("sites = \"80\";", "t.conf:1: sites: found \"80\"; expected groups { listen, ... }\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_an_address),
        cmocka_unit_test(options_of_an_address),
        cmocka_unit_test(bad_listens),
        cmocka_unit_test(bad_names),
        cmocka_unit_test(twice),
        cmocka_unit_test(trusted_is_inherited),
        cmocka_unit_test(empty_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
