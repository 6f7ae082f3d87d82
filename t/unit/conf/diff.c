/* SPDX-License-Identifier: MIT */
/* What a reload would say about two configurations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "conf/diff.h"

static void expect(const char *before, const char *after, const char *want)
{
    struct conf_result old, new;
    struct arena a;
    char text[256];
    arena_init(&a, NULL);
    conf_load_text(str_c(before), "a.conf", "/", &old);
    conf_load_text(str_c(after), "a.conf", "/", &new);
    assert_non_null(old.conf);
    assert_non_null(new.conf);
    snprintf(text, sizeof(text), "%.*s", STR_ARG(conf_diff(&a, old.conf, new.conf)));
    assert_string_equal(text, want);
    conf_free(old.conf);
    conf_free(new.conf);
    conf_result_free(&old);
    conf_result_free(&new);
    arena_reset(&a);
}

#define SITE(settings) "sites = ( { listen = \"80\"; respond = 200; " settings " } );"
#define POOL(servers) "upstreams = { u = { servers = ( " servers " ); }; }; sites = ( { listen = \"80\"; proxy = \"u\"; } );"

static void comments_and_order_change_nothing(void **state)
{
    (void)state;
    expect("log_level = \"info\"; " SITE("gzip = false;"), "# a comment\n" SITE("gzip = false;") "log_level = \"info\";",
           "nothing changed");
}

static void locations(void **state)
{
    (void)state;
    expect(SITE("locations = ( { match = \"/a\"; respond = 201; }, { match = \"/b\"; respond = 202; } );"),
           SITE("locations = ( { match = \"/a\"; respond = 203; }, { match = \"/c\"; respond = 204; },"
                " { match = \"/d\"; respond = 204; } );"),
           "+2 locations, 1 location changed, -1 location");
}

static void who_may_reach_a_location(void **state)
{
    (void)state;
    expect(SITE("locations = ( { match = \"/a\"; respond = 201; } );"),
           SITE("locations = ( { match = \"/a\"; respond = 201; internal = true; } );"), "1 location changed");
}

static void an_inherited_setting_changes_every_location_below(void **state)
{
    (void)state;
    expect(SITE("locations = ( { match = \"/a\"; respond = 201; } );"),
           SITE("timeouts = { send = \"7s\"; }; locations = ( { match = \"/a\"; respond = 201; } );"),
           "2 locations changed");
}

static void servers_and_upstreams(void **state)
{
    (void)state;
    expect(POOL("\"127.0.0.1:1\", \"127.0.0.1:2\""), POOL("\"127.0.0.1:1\", { address = \"127.0.0.1:2\"; weight = 3; }"),
           "1 server changed");
    expect(POOL("\"127.0.0.1:1\""), POOL("\"127.0.0.1:1\", \"127.0.0.1:2\""), "+1 server");
}

static void sites_and_listeners(void **state)
{
    (void)state;
    expect("sites = ( { listen = \"80\"; names = \"a\"; respond = 200; } );",
           "sites = ( { listen = \"80\"; names = \"a\"; respond = 200; },"
           " { listen = \"81\"; names = \"b\"; respond = 200; } );",
           "+1 listener, +1 site, +1 location");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_and_order_change_nothing),
        cmocka_unit_test(locations),
        cmocka_unit_test(who_may_reach_a_location),
        cmocka_unit_test(an_inherited_setting_changes_every_location_below),
        cmocka_unit_test(servers_and_upstreams),
        cmocka_unit_test(sites_and_listeners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
