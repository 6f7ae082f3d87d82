/* SPDX-License-Identifier: MIT */
/* Locations: match, which actions they end up with, the tables of a site; and what can never match. */
#include "conf_test.h"

#define AT(locations) "sites = { listen = \"80\"; locations = ( " locations " ); };"

static void matches(void **state)
{
    (void)state;
    struct loaded l =
        load(AT("{ match = \"= /e\"; respond = 200; }, { match = \"/pp\"; respond = 200; }, { match = \"^~ /ppp\"; "
                "respond = 200; },"
                "{ match = \"~ \\.a$\"; respond = 200; }, { match = \"~*\\.b$\"; respond = 200; }, { respond = 200; },"
                "{ match = \"=/d\"; respond = 200; }"));
    const struct site_conf *s = l.c->sites[0];
    assert_int_equal(s->n_exact, 2);
    assert_str(s->exact[0]->pattern, "/d");
    assert_str(s->exact[1]->pattern, "/e");
    assert_str(s->exact[1]->match, "= /e");
    assert_ptr_equal(map_get(&s->exact_map, STR("/e")), s->exact[1]);
    assert_int_equal(s->n_prefix, 3);
    assert_str(s->prefix[0]->pattern, "/ppp");
    assert_int_equal(s->prefix[0]->kind, MATCH_PREFIX_FINAL);
    assert_str(s->prefix[1]->pattern, "/pp");
    assert_str(s->prefix[2]->pattern, "/");
    assert_str(s->sorted[0]->pattern, "/");
    assert_str(s->sorted[1]->pattern, "/pp");
    assert_str(s->sorted[2]->pattern, "/ppp");
    assert_null(s->sorted[0]->shorter);
    assert_ptr_equal(s->sorted[1]->shorter, s->sorted[0]);
    assert_ptr_equal(s->sorted[2]->shorter, s->sorted[1]);
    assert_int_equal(s->n_regex, 2);
    assert_str(s->regex[0]->pattern, "\\.a$");
    assert_false(s->regex[0]->nocase);
    assert_true(s->regex[1]->nocase);
    assert_int_equal(s->n_all, 7);
    for (unsigned i = 0; i < s->n_all; i++) {
        assert_int_equal(s->all[i]->order, i);
        assert_ptr_equal(s->all[i]->site, s);
        assert_false(s->all[i]->implicit);
    }
    pcre2_match_data *data = pcre2_match_data_create(4, NULL);
    assert_true(pcre2_match(s->regex[1]->regex, (PCRE2_SPTR) "/X.B", 4, 0, 0, data, NULL) > 0);
    assert_true(pcre2_match(s->regex[0]->regex, (PCRE2_SPTR) "/X.A", 4, 0, 0, data, NULL) < 0);
    size_t jit = 0;
    assert_int_equal(pcre2_pattern_info(s->regex[0]->regex, PCRE2_INFO_JITSIZE, &jit), 0);
    uint32_t has_jit = 0;
    (void)pcre2_config(PCRE2_CONFIG_JIT, &has_jit);
    assert_true(jit > 0 || !has_jit);
    pcre2_match_data_free(data);
    unload(&l);
}

static void bad_matches(void **state)
{
    (void)state;
    static const char expected[] =
        "found %s; expected \"= /exact\", \"^~ /prefix\", \"~ regex\", \"~* regex\" or \"/prefix\"";
    static const char *const values[] = { "\"foo\"", "\"= foo\"", "\"@named\"", "\"^~\"", "\"~\"", "\"\"", "5" };
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char text[300], what[200], said[300];
        snprintf(text, sizeof text, AT("{ match = %s; respond = 200; }"), values[i]);
        snprintf(what, sizeof what, expected, values[i]);
        snprintf(said, sizeof said, "t.conf:1: sites.locations[0].match: %s\n", what);
        refuses(text, said);
    }
    refuses(
        AT("{ match = \"~ a(b\"; respond = 200; }"),
        "t.conf:1: sites.locations[0].match: the regular expression does not compile: missing closing parenthesis, at "
        "its end\n");
    refuses(AT("{ match = \"~ a)b\"; respond = 200; }"), "t.conf:1: sites.locations[0].match: the regular expression "
                                                         "does not compile: unmatched closing parenthesis, at "
                                                         "offset 1 before `)b`\n");
    refuses(AT("{ match = \"~* \\\"^/a\\\"\"; respond = 200; }"),
            "t.conf:1: sites.locations[0].match: quotes around the regular expression; expected it without them\n");
    refuses(AT("5"), "t.conf:1: sites.locations[0]: found 5; expected groups { match, ... }\n");
}

static void actions(void **state)
{
    (void)state;
    struct loaded l =
        load("sites = { listen = \"80\"; root = \"r\"; proxy = \"a:1\"; locations = (\n"
             "{ match = \"/none\"; }, { match = \"/root\"; root = \"q\"; }, { match = \"/both\"; proxy = \"a:2\"; "
             "alias = \"q\"; },\n"
             "{ match = \"/respond\"; respond = \"hello\"; }, { match = \"/idx\"; index = \"i\"; } ); };");
    const struct site_conf *s = l.c->sites[0];
    assert_int_equal(s->n_all, 6);
    const struct location_conf *none = s->all[0], *root = s->all[1], *both = s->all[2], *respond = s->all[3],
                               *idx = s->all[4], *implicit = s->all[5];
    /* None of its own: the site's. */
    assert_int_equal(none->n_actions, 2);
    assert_int_equal(none->actions[0]->kind, ACTION_FILE);
    assert_true(none->actions[0]->u.file.or_proxy);
    assert_int_equal(none->actions[1]->kind, ACTION_PROXY);
    /* One of its own: nothing of the site's. */
    assert_int_equal(root->n_actions, 1);
    assert_false(root->actions[0]->u.file.or_proxy);
    assert_str(root->actions[0]->u.file.root, "/etc/weir/q");
    assert_int_equal(respond->n_actions, 1);
    assert_true(respond->actions[0]->u.respond.has_body);
    /* The file first, whatever the order. */
    assert_int_equal(both->n_actions, 2);
    assert_true(both->actions[0]->u.file.alias);
    assert_str(both->actions[1]->u.proxy.upstream->name, "a:2");
    /* An index of its own. */
    assert_true(idx->actions[0]->u.file.own_index);
    assert_false(none->actions[0]->u.file.own_index);
    assert_true(implicit->implicit);
    assert_str(implicit->match, "/");
    assert_int_equal(implicit->n_actions, 2);
    assert_false(implicit->actions[0]->u.file.own_index);
    unload(&l);
    /* A "/" of the site's own leaves no room for an implicit one. */
    l = load("sites = { listen = \"80\"; respond = 200; index = \"x\"; locations = { match = \"^~ /\"; respond = 201; "
             "}; };");
    assert_int_equal(l.c->sites[0]->n_all, 1);
    unload(&l);
    l = load("sites = { listen = \"80\"; root = \"r\"; index = \"x\"; };");
    assert_true(l.c->sites[0]->all[0]->actions[0]->u.file.own_index);
    unload(&l);
}

static void responses(void **state)
{
    (void)state;
    struct loaded l = load(AT("{ match = \"/1\"; respond = 404; }, { match = \"/2\"; respond = \"503\"; }, { match = "
                              "\"/3\"; respond = \"ok\"; },"
                              "{ match = \"/4\"; respond = { status = 201; body = \"$$x\"; type = \"text/x\"; }; }, { "
                              "match = \"/5\"; respond = { status = 204; }; },"
                              "{ match = \"/6\"; redirect = \"/x\"; }, { match = \"/7\"; redirect = { status = 308; to "
                              "= \"/y\"; }; }, { match = \"/8\"; builtin = \"ready\"; }"));
    const struct action *a[8];
    for (unsigned i = 0; i < 8; i++)
        a[i] = l.c->sites[0]->all[i]->actions[0];
    assert_int_equal(a[0]->u.respond.status, 404);
    assert_false(a[0]->u.respond.has_body);
    assert_int_equal(a[1]->u.respond.status, 503);
    assert_int_equal(a[2]->u.respond.status, 200);
    assert_str(a[2]->u.respond.body, "ok");
    assert_str(a[2]->u.respond.type, "text/plain; charset=utf-8");
    assert_int_equal(a[3]->u.respond.status, 201);
    assert_str(a[3]->u.respond.body, "$x");
    assert_str(a[3]->u.respond.type, "text/x");
    assert_int_equal(a[4]->u.respond.status, 204);
    assert_false(a[4]->u.respond.has_body);
    assert_int_equal(a[5]->u.redirect.status, 0);
    assert_str(a[5]->u.redirect.to.source, "/x");
    assert_int_equal(a[6]->u.redirect.status, 308);
    assert_int_equal(a[7]->u.builtin, BUILTIN_READY);
    unload(&l);
    refuses(AT("{ respond = 700; }"),
            "t.conf:1: sites.locations[0].respond: 700 is no status of an answer; expected one "
            "from 200 to 599\n");
    refuses(
        AT("{ respond = { status = 99; }; }"),
        "t.conf:1: sites.locations[0].respond.status: 99 is out of range; expected a whole number from 200 to 599\n");
    refuses(AT("{ redirect = { status = 200; to = \"/\"; }; }"),
            "t.conf:1: sites.locations[0].redirect.status: found 200; expected 301, 302, 303, 307 or 308\n");
    refuses(AT("{ redirect = { status = 301; }; }"), "t.conf:1: sites.locations[0].redirect: no place to go; expected "
                                                     "a URL such as \"https://$host$request_uri\"\n");
    refuses(AT("{ builtin = \"redy\"; }"),
            "t.conf:1: sites.locations[0].builtin: found \"redy\"; did you mean \"ready\"?\n");
}

static void bad_actions(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "sites = { listen = \"80\"; };", "t.conf:1: sites: nothing answers here; expected one of root, alias, " },
        { AT("{ match = \"/a\"; }"),
          "t.conf:1: sites.locations[0]: nothing answers here; expected one of root, alias, " },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct loaded l = load_bytes(rows[i].text, strlen(rows[i].text));
        assert_null(l.c);
        assert_int_equal(l.r.n_errors, 1);
        assert_true(str_starts(str_c(l.said), str_c(rows[i].says)));
        unload(&l);
    }
    refuses(AT("{ root = \"a\"; respond = 200; }, { match = \"/b\"; root = \"a\"; alias = \"b\"; }"),
            "t.conf:1: sites.locations[0]: more than one action (`root` and `respond`); expected one, or root or alias "
            "together with proxy\n"
            "t.conf:1: sites.locations[1]: more than one action (`root` and `alias`); expected one, or root or alias "
            "together with proxy\n");
    refuses(
        AT("{ match = \"~ x\"; alias = \"a\"; }"),
        "t.conf:1: sites.locations[0]: alias cuts off a prefix, and a regular expression has none; expected root, or "
        "another match\n");
    /* What tried to answer is not also said to be missing. */
    refuses(AT("{ proxy = \"nope\"; }"),
            "t.conf:1: sites.locations[0].proxy: no upstream \"nope\"; expected the name of "
            "one in `upstreams`, or an address with its port (\"127.0.0.1:3000\")\n");
}

static void twice(void **state)
{
    (void)state;
    refuses(AT("{ match = \"/a\"; respond = 200; },\n{ match = \"^~ /a\"; respond = 201; },\n{ match = \"= /a\"; "
               "respond = 202; },\n"
               "{ match = \"~ a\"; respond = 200; },\n{ match = \"~a\"; respond = 200; },\n{ match = \"=/a\"; respond "
               "= 200; }"),
            "t.conf:2: second location for \"^~ /a\"; the first is in t.conf:1\n"
            "t.conf:5: second location for \"~a\"; the first is in t.conf:4\n"
            "t.conf:6: second location for \"=/a\"; the first is in t.conf:3\n");
    /* Case apart: the second still matches what the first does not. */
    struct loaded l = load(AT("{ match = \"~ a\"; respond = 200; }, { match = \"~* a\"; respond = 200; }"));
    unload(&l);
    refuses(AT("{ match = \"~* a\"; respond = 200; }, { match = \"~ a\"; respond = 200; }"),
            "t.conf:1: second location for \"~ a\"; the first is in t.conf:1\n");
}

static void never_matching(void **state)
{
    (void)state;
    warns(AT("{ match = \"/a\"; respond = 200; },\n{ match = \"~ ^/\"; respond = 200; },\n{ match = \"~ b\"; respond = "
             "200; },\n{ match = \"^~ /c\"; respond = 200; }"),
          "t.conf:1: warning: location \"/a\" never matches: a regular expression takes every path (t.conf:2)\n"
          "t.conf:3: warning: location \"~ b\" never matches: an earlier regular expression takes every path "
          "(t.conf:2)\n");
    warns(AT("{ match = \"^~ /packages\"; respond = 200; },\n{ match = \"~ ^/packages/.*\\.js$\"; respond = 200; }"),
          "t.conf:2: warning: location \"~ ^/packages/.*\\.js$\" never matches: a `^~` prefix takes all of its paths "
          "(t.conf:1)\n");
    warns(AT("{ match = \"/a%20b\"; respond = 200; }, { match = \"^~ /b//c\"; respond = 200; }, { match = \"/d?e=1\"; "
             "respond = 200; }, { match = \"/f/../g\"; respond = 200; }, { match = \"= /h/.\"; respond = 200; }"),
          "t.conf:1: warning: sites.locations[0].match: found \"/a%20b\", but a path is decoded before it is compared; "
          "expected the characters themselves\n"
          "t.conf:1: warning: sites.locations[1].match: found \"^~ /b//c\", but . and .. are resolved and // is / before "
          "a path is compared; expected it so\n"
          "t.conf:1: warning: sites.locations[2].match: found \"/d?e=1\", but a path is compared without its query; "
          "expected it without ?\n"
          "t.conf:1: warning: sites.locations[3].match: found \"/f/../g\", but . and .. are resolved and // is / before "
          "a path is compared; expected it so\n"
          "t.conf:1: warning: sites.locations[4].match: found \"= /h/.\", but . and .. are resolved and // is / before a "
          "path is compared; expected it so\n");
    warns(AT("{ match = \"/100%\"; respond = 200; }, { match = \"/.a/..b/.\"; respond = 200; }, { match = \"~ ^/a%20//?\"; "
             "respond = 200; }"), "");
    /* Not so: other paths, another case, a longer prefix below, an alternative. */
    static const char *const fine[] = {
        AT("{ match = \"^~ /packages\"; respond = 200; }, { match = \"~ ^/packs?/x\"; respond = 200; }"),
        AT("{ match = \"^~ /packages\"; respond = 200; }, { match = \"~* ^/packages/x\"; respond = 200; }"),
        AT("{ match = \"^~ /packages\"; respond = 200; }, { match = \"/packages/x\"; respond = 200; }, { match = \"~ "
           "^/packages/x\"; respond = 200; }"),
        AT("{ match = \"^~ /packages\"; respond = 200; }, { match = \"~ ^/packages/x|^/y\"; respond = 200; }"),
        AT("{ match = \"^~ /packages\"; respond = 200; }, { match = \"~ ^/package?s/x\"; respond = 200; }"),
        AT("{ match = \"^~ /packages\"; respond = 200; }, { match = \"~ \\.js$\"; respond = 200; }"),
    };
    for (size_t i = 0; i < ARRAY_LEN(fine); i++)
        warns(fine[i], "");
    warns("sites = ( { listen = \"80\"; respond = 200; },\n{ listen = \"80\"; respond = 201; } );",
          "t.conf:2: warning: this site never answers: it has no names, and the site in t.conf:1 is the default of its "
          "address\n");
}

static void strip_prefix(void **state)
{
    (void)state;
    static const char text[] =
        "strip_prefix = true;\nsites = { listen = \"80\"; locations = ( { match = \"/api/\"; proxy = \"a:1\"; },\n"
        "{ match = \"/b\"; proxy = \"a:1\"; strip_prefix = \"/b/c\"; }, { match = \"~ x\"; proxy = \"a:1\"; },"
        "{ match = \"/n\"; proxy = \"a:1\"; strip_prefix = false; } ); };";
    struct loaded l = load_bytes(text, sizeof text - 1);
    assert_non_null(l.c);
    const struct site_conf *s = l.c->sites[0];
    assert_str(s->all[0]->s.strip_prefix, "/api/");
    assert_str(s->all[1]->s.strip_prefix, "/b/c");
    assert_str(s->all[2]->s.strip_prefix, "");
    assert_str(s->all[3]->s.strip_prefix, "");
    unload(&l);
    struct loaded bad = load_bytes(AT("{ match = \"~ x\"; proxy = \"a:1\"; strip_prefix = true; }"),
                                   strlen(AT("{ match = \"~ x\"; proxy = \"a:1\"; strip_prefix = true; }")));
    assert_int_equal(bad.r.n_errors, 1);
    assert_non_null(strstr(bad.said, "a regular expression has none"));
    unload(&bad);
    warns("sites = { listen = \"80\"; proxy = \"a:1\"; strip_prefix = \"/api\"; locations = (\n{ match = \"/img/\"; respond = "
          "200; },\n{ match = \"= /ap\"; respond = 200; },\n{ match = \"/apix\"; respond = 200; },\n{ match = \"/ap\"; respond "
          "= 200; }, { match = \"= /api\"; respond = 200; }, { match = \"/api/x\"; respond = 200; },\n{ match = \"/c\"; respond = "
          "200; strip_prefix = \"/c//d\"; } ); };",
          "t.conf:2: warning: sites.locations[0]: location \"/img/\" never matches: its strip_prefix is \"/api\"\n"
          "t.conf:3: warning: sites.locations[1]: location \"= /ap\" never matches: its strip_prefix is \"/api\"\n"
          "t.conf:4: warning: sites.locations[2]: location \"/apix\" never matches: its strip_prefix is \"/api\"\n"
          "t.conf:6: warning: sites.locations[6]: strip_prefix \"/c//d\" is in no path; expected it decoded, without query, dot "
          "segments and //\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches),        cmocka_unit_test(bad_matches),  cmocka_unit_test(actions),
        cmocka_unit_test(responses),      cmocka_unit_test(bad_actions),  cmocka_unit_test(twice),
        cmocka_unit_test(never_matching), cmocka_unit_test(strip_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
