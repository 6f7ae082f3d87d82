/* SPDX-License-Identifier: MIT */
/* program.json: which URL is which file under which head; what Meteor leaves to the app; hostile and broken texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "handler/meteor_manifest.h"

#define SHA "da39a3ee5e6b4b0d3255bfef95601890afd80709"

static struct meteor_manifest *m;
static struct str reason;

static int fresh(void **state)
{
    (void)state;
    m = meteor_manifest_new();
    reason = STR_NONE;
    return m == NULL;
}

static int done(void **state)
{
    (void)state;
    meteor_manifest_free(m);
    return 0;
}

static bool add(const char *name, const char *items)
{
    struct arena a;
    arena_init(&a, NULL);
    struct str json = arena_printf(&a, "{ \"format\": \"web-program-pre1\", \"manifest\": [ %s ] }", items);
    bool is_added = meteor_manifest_add(m, str_c(name), STR("/srv/programs/x"), 7, json, &reason);
    arena_reset(&a);
    return is_added;
}

static bool add_text(const char *json)
{
    return meteor_manifest_add(m, STR("web.browser"), STR("/srv"), 7, str_c(json), &reason);
}

static enum meteor_answer ask(const char *path, const char *raw, const struct meteor_entry **e)
{
    return meteor_manifest_find(m, str_c(path), str_c(raw), e);
}

/* The file for a path that has no escapes; NULL: the app's. */
static const struct meteor_entry *file(const char *path)
{
    const struct meteor_entry *e;
    return ask(path, path, &e) == METEOR_FILE ? e : NULL;
}

static void is_text(struct str got, const char *expected)
{
    if (!str_eq(got, str_c(expected)))
        fail_msg("got \"%.*s\", expected \"%s\"", STR_ARG(got), expected);
}

static void an_entry_has_the_head_meteor_gives_it(void **state)
{
    (void)state;
    assert_true(add("web.browser",
                    "{\"path\":\"" SHA ".js\",\"where\":\"client\",\"type\":\"js\",\"cacheable\":true,\"url\":\"/" SHA
                    ".js?meteor_js_resource=true\",\"sourceMap\":\"" SHA ".js.map\",\"sourceMapUrl\":\"/" SHA
                    ".map\",\"size\":12,\"hash\":\"" SHA "\"}"));
    const struct meteor_entry *e = file("/" SHA ".js");
    assert_non_null(e);
    is_text(e->path, SHA ".js");
    is_text(e->block, "Content-Type: application/javascript; charset=UTF-8\r\nETag: \"" SHA "\"\r\n"
                      "Accept-Ranges: bytes\r\nCache-Control: public, max-age=31536000, immutable\r\n"
                      "SourceMap: /" SHA ".map\r\nX-SourceMap: /" SHA ".map\r\n");
    assert_int_equal(e->type_line, strlen("Content-Type: application/javascript; charset=UTF-8\r\n"));
    assert_int_equal(e->size, 12);
    assert_true(e->has_sha1 && e->sha1[0] == 0xda && e->sha1[19] == 0x09);
    const struct meteor_entry *map = file("/" SHA ".map");
    assert_non_null(map);
    is_text(map->path, SHA ".js.map");
    is_text(map->block, "Content-Type: application/json\r\nAccept-Ranges: bytes\r\n"
                        "Cache-Control: public, max-age=31536000, immutable\r\n");
    is_text(map->etag, "");
    assert_null(file("/" SHA ".js.map"));
}

static void the_type_goes_by_kind_then_by_name(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        { "js", "a.txt", "application/javascript; charset=UTF-8" },
        { "dynamic js", "dynamic/a.js", "application/javascript; charset=UTF-8" },
        { "css", "a.txt", "text/css; charset=UTF-8" },
        { "json", "a.txt", "application/json; charset=UTF-8" },
        { "asset", "app/a.png", "image/png" },
        { "asset", "app/a.html", "text/html; charset=utf-8" },
        { "asset", "app/a", "application/octet-stream" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char item[200], url[16];
        snprintf(url, sizeof url, "/%zu", i);
        snprintf(item, sizeof item, "{\"path\":\"%s\",\"where\":\"client\",\"type\":\"%s\",\"url\":\"%s\"}", rows[i][1],
                 rows[i][0], url);
        meteor_manifest_free(m);
        m = meteor_manifest_new();
        assert_true(add("web.browser", item));
        is_text(file(url)->type, rows[i][2]);
    }
}

static void cacheable_is_what_javascript_takes_for_true(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool is_true;
    } rows[] = { { "true", true },  { "1", true },  { "\"yes\"", true }, { "[]", true },  { "{}", true },
                 { "false", false }, { "0", false }, { "\"\"", false },   { "null", false } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char item[200];
        snprintf(item, sizeof item, "{\"path\":\"a\",\"where\":\"client\",\"url\":\"/a\",\"cacheable\":%s}",
                 rows[i].json);
        meteor_manifest_free(m);
        m = meteor_manifest_new();
        assert_true(add("web.browser", item));
        assert_int_equal(file("/a")->cacheable, rows[i].is_true);
        is_text(file("/a")->block,
                rows[i].is_true ? "Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n"
                                  "Cache-Control: public, max-age=31536000\r\n"
                                : "Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n"
                                  "Cache-Control: public, max-age=0\r\n");
    }
}

static void only_client_files_with_a_url_count(void **state)
{
    (void)state;
    assert_true(add("web.browser", "{\"path\":\"head.html\",\"where\":\"internal\",\"url\":\"/head.html\"},"
                                   "{\"path\":\"b\",\"where\":\"client\"},"
                                   "{\"path\":\"c\",\"where\":\"client\",\"url\":\"\"},"
                                   "{\"path\":\"d\",\"url\":\"/d\"},7,null,\"text\",[],"
                                   "{\"path\":\"e\",\"where\":\"client\",\"url\":\"/e\"}"));
    assert_int_equal(m->programs[0].n_entries, 1);
    assert_int_equal(m->programs[0].n_left_out, 0);
    assert_non_null(file("/e"));
}

static void urls_are_decoded_and_lose_their_query(void **state)
{
    (void)state;
    assert_true(add("web.browser",
                    "{\"path\":\"app/a b.txt\",\"where\":\"client\",\"url\":\"/a%20b.txt?hash=x#y\"},"
                    "{\"path\":\"app/c d.txt\",\"where\":\"client\",\"url\":\"/c d.txt\"},"
                    "{\"path\":\"app/\u00fc.txt\",\"where\":\"client\",\"url\":\"/\u00fc.txt\"},"
                    "{\"path\":\"app/p.txt\",\"where\":\"client\",\"url\":\"/100%2525.txt\"}"));
    const struct meteor_entry *e;
    assert_int_equal(ask("/a b.txt", "/a%20b.txt", &e), METEOR_FILE);
    assert_int_equal(ask("/c d.txt", "/c%20d.txt", &e), METEOR_FILE);
    assert_int_equal(ask("/\u00fc.txt", "/%C3%BC.txt", &e), METEOR_FILE);
    /* Meteor also looks the path up as it came. */
    assert_int_equal(ask("/100%25.txt", "/100%2525.txt", &e), METEOR_FILE);
    assert_int_equal(ask("/100%.txt", "/100%25.txt", &e), METEOR_FILE);
    assert_int_equal(ask("/100.txt", "/100.txt", &e), METEOR_NONE);
}

static void of_two_entries_with_one_url_the_last_holds(void **state)
{
    (void)state;
    assert_true(add("web.browser", "{\"path\":\"one\",\"where\":\"client\",\"url\":\"/a?1\"},"
                                   "{\"path\":\"two\",\"where\":\"client\",\"url\":\"/a?2\"}"));
    is_text(file("/a")->path, "two");
    assert_int_equal(m->programs[0].n_entries, 1);
}

static void paths_that_lead_out_are_left_out(void **state)
{
    (void)state;
    static const char *const paths[] = { "../server/config.json", "/etc/passwd", "a/../../b", "a/..", ".", "..", "",
                                         "a//b", "a/./b", "a/" };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char item[200];
        snprintf(item, sizeof item, "{\"path\":\"%s\",\"where\":\"client\",\"url\":\"/x\",\"size\":1},"
                                    "{\"path\":\"good\",\"where\":\"client\",\"url\":\"/good\",\"sourceMap\":\"%s\","
                                    "\"sourceMapUrl\":\"/map\"}", paths[i], paths[i]);
        meteor_manifest_free(m);
        m = meteor_manifest_new();
        assert_true(add("web.browser", item));
        assert_null(file("/x"));
        assert_null(file("/map"));
        assert_non_null(file("/good"));
        assert_int_equal(m->programs[0].n_left_out, *paths[i] ? 2 : 1); /* an empty sourceMap is none */
        assert_true(str_starts(m->programs[0].left_out, STR("entry 0 (url /x")));
    }
}

static void urls_that_no_request_has_are_left_out(void **state)
{
    (void)state;
    static const char *const urls[] = { "a", "http://cdn/a", "?x", "/%", "/%4", "/%zz", "/%00", "#" };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        char item[200];
        snprintf(item, sizeof item, "{\"path\":\"p\",\"where\":\"client\",\"url\":\"%s\"}", urls[i]);
        meteor_manifest_free(m);
        m = meteor_manifest_new();
        assert_true(add("web.browser", item));
        assert_int_equal(m->programs[0].n_left_out, 1);
        assert_int_equal(m->programs[0].n_entries, 0);
    }
}

static void what_cannot_stand_in_a_header_does_not(void **state)
{
    (void)state;
    assert_true(add("web.browser",
                    "{\"path\":\"a\",\"where\":\"client\",\"url\":\"/a\",\"hash\":\"x\\\"y\","
                    "\"sourceMapUrl\":\"/m\\r\\nSet-Cookie: a\"},"
                    "{\"path\":\"b\",\"where\":\"client\",\"url\":\"/b\",\"hash\":\"x\\r\\ny\","
                    "\"sourceMapUrl\":\"/\u00fc\"},"
                    "{\"path\":\"c\",\"where\":\"client\",\"url\":\"/c\",\"hash\":5,"
                    "\"sourceMapUrl\":{},\"size\":\"9\"}"));
    static const char *const urls[] = { "/a", "/b", "/c" };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        is_text(file(urls[i])->block, "Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n"
                                      "Cache-Control: public, max-age=0\r\n");
        assert_int_equal(file(urls[i])->size, -1);
        assert_false(file(urls[i])->has_sha1);
    }
}

static void a_hash_of_another_kind_is_a_tag_all_the_same(void **state)
{
    (void)state;
    assert_true(add("web.browser", "{\"path\":\"a\",\"where\":\"client\",\"url\":\"/a\",\"hash\":\"abc123\"}"));
    is_text(file("/a")->etag, "\"abc123\"");
    assert_false(file("/a")->has_sha1);
}

static void broken_texts_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "", "line 1: " },
        { "{", "line 1: " },
        { "{\n\"format\": \"web-program-pre1\",\n\"manifest\": [ { ]\n}", "line 3: " },
        { "[]", "format is ``; expected `web-program-pre1`" },
        { "{\"format\":\"javascript-image-pre1\"}", "format is `javascript-image-pre1`; expected" },
        { "{\"format\":\"web-program-pre1\"}", "no list `manifest` in it" },
        { "{\"format\":\"web-program-pre1\",\"manifest\":{}}", "no list `manifest` in it" },
        { "{\"format\":\"web-program-pre1\",\"manifest\":[{\"path\":\"a\\u0000b\"}]}", "line 1: " },
        { "{\"format\":\"web-program-pre1\",\"manifest\":[]} x", "line 1: " },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_false(add_text(rows[i][0]));
        if (!str_starts(reason, str_c(rows[i][1])))
            fail_msg("\"%s\": \"%.*s\", expected \"%s\"", rows[i][0], STR_ARG(reason), rows[i][1]);
        assert_int_equal(m->n_programs, 0);
    }
}

static void nesting_without_end_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    char *deep = malloc(DEPTH + 1);
    assert_non_null(deep);
    memset(deep, '[', DEPTH);
    deep[DEPTH] = '\0';
    assert_false(add_text(deep));
    free(deep);
}

static void a_large_manifest_is_read(void **state)
{
    (void)state;
    enum { N = 50000 };
    char *json = malloc(N * 80 + 100);
    assert_non_null(json);
    size_t n = (size_t)snprintf(json, 100, "{\"format\":\"web-program-pre1\",\"manifest\":[");
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(json + n, 80, "%s{\"path\":\"f/%d\",\"where\":\"client\",\"url\":\"/%d\"}", i ? "," : "",
                              i, i);
    n += (size_t)snprintf(json + n, 3, "]}");
    assert_true(meteor_manifest_add(m, STR("web.browser"), STR("/srv"), 7, str_of(json, n), &reason));
    free(json);
    assert_int_equal(m->programs[0].n_entries, N);
    is_text(file("/49999")->path, "f/49999");
}

static void there_is_an_end_to_programs(void **state)
{
    (void)state;
    for (int i = 0; i < METEOR_PROGRAMS_MAX; i++)
        assert_true(add("web.x", ""));
    assert_false(add("web.x", ""));
}

#define ENTRY(path, url, hash) \
    "{\"path\":\"" path "\",\"where\":\"client\",\"url\":\"" url "\",\"hash\":\"" hash "\"}"

static void a_file_of_any_program_is_found_without_prefix(void **state)
{
    (void)state;
    assert_true(add("web.browser", ENTRY("m.js", "/m.js", "m")));
    assert_true(add("web.browser.legacy", ENTRY("l.js", "/l.js", "l")));
    assert_true(add("web.cordova", ENTRY("c.js", "/c.js", "c")));
    is_text(file("/m.js")->path, "m.js");
    is_text(file("/l.js")->path, "l.js");
    is_text(file("/c.js")->path, "c.js");
}

static void where_the_programs_differ_the_browser_decides(void **state)
{
    (void)state;
    const struct meteor_entry *e;
    assert_true(add("web.browser", ENTRY("a", "/same", "1") "," ENTRY("b", "/other", "2")));
    assert_true(add("web.browser.legacy", ENTRY("a", "/same", "1") "," ENTRY("b", "/other", "3")));
    assert_int_equal(ask("/same", "/same", &e), METEOR_FILE);
    assert_int_equal(ask("/other", "/other", &e), METEOR_DEPENDS);
    is_text(e->etag, "\"2\"");
    assert_int_equal(ask("/__browser/other", "/__browser/other", &e), METEOR_FILE);
    is_text(e->etag, "\"2\"");
    assert_int_equal(ask("/__browser.legacy/other", "/__browser.legacy/other", &e), METEOR_FILE);
    is_text(e->etag, "\"3\"");
}

static void without_hashes_nobody_can_tell_that_files_are_the_same(void **state)
{
    (void)state;
    const struct meteor_entry *e;
    assert_true(add("web.browser", "{\"path\":\"a\",\"where\":\"client\",\"url\":\"/a\"}"));
    assert_true(add("web.browser.legacy", "{\"path\":\"a\",\"where\":\"client\",\"url\":\"/a\"}"));
    assert_int_equal(ask("/a", "/a", &e), METEOR_DEPENDS);
    /* but for names made of one */
    meteor_manifest_free(m);
    m = meteor_manifest_new();
    for (int i = 0; i < 2; i++)
        assert_true(add(i ? "web.browser.legacy" : "web.browser",
                        "{\"path\":\"a\",\"where\":\"client\",\"cacheable\":true,\"url\":\"/" SHA ".map\"}"));
    assert_non_null(file("/" SHA ".map"));
}

static void prefixes_name_programs(void **state)
{
    (void)state;
    const struct meteor_entry *e;
    assert_true(add("web.browser", ENTRY("m", "/a b", "1") "," ENTRY("v", "/__browserx/v", "2")));
    assert_true(add("web.cordova", ENTRY("c", "/c", "3")));
    assert_int_equal(ask("/__cordova/c", "/__cordova/c", &e), METEOR_FILE);
    assert_int_equal(ask("/__browser/c", "/__browser/c", &e), METEOR_FILE); /* asked of one, found in the other */
    /* After a prefix the path is looked up as it came: escapes are not decoded. */
    assert_int_equal(ask("/__browser/a b", "/__browser/a%20b", &e), METEOR_NONE);
    assert_int_equal(ask("/__browser.legacy/c", "/__browser.legacy/c", &e), METEOR_NONE); /* no such program */
    assert_int_equal(ask("/__browser", "/__browser", &e), METEOR_NONE);
    assert_int_equal(ask("/__browserx/v", "/__browserx/v", &e), METEOR_FILE);
}

static void what_the_app_makes_up_is_the_apps(void **state)
{
    (void)state;
    const struct meteor_entry *e;
    assert_true(add("web.browser", ENTRY("app/manifest.json", "/manifest.json", "1") ","
                                   ENTRY("x", "/meteor_runtime_config.js", "2")));
    assert_int_equal(ask("/manifest.json", "/manifest.json", &e), METEOR_FILE);
    assert_int_equal(ask("/__browser/manifest.json", "/__browser/manifest.json", &e), METEOR_NONE);
    assert_int_equal(ask("/meteor_runtime_config.js", "/meteor_runtime_config.js", &e), METEOR_NONE);
    static const char *const paths[] = { "/", "/sockjs/info", "/websocket", "/any/page", "/_timesync",
                                         "/__meteor__/dynamic-import/fetch" };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(ask(paths[i], paths[i], &e), METEOR_NONE);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, fresh, done)
    const struct CMUnitTest tests[] = {
        T(an_entry_has_the_head_meteor_gives_it),
        T(the_type_goes_by_kind_then_by_name),
        T(cacheable_is_what_javascript_takes_for_true),
        T(only_client_files_with_a_url_count),
        T(urls_are_decoded_and_lose_their_query),
        T(of_two_entries_with_one_url_the_last_holds),
        T(paths_that_lead_out_are_left_out),
        T(urls_that_no_request_has_are_left_out),
        T(what_cannot_stand_in_a_header_does_not),
        T(a_hash_of_another_kind_is_a_tag_all_the_same),
        T(broken_texts_are_refused_with_a_reason),
        T(nesting_without_end_is_refused),
        T(a_large_manifest_is_read),
        T(there_is_an_end_to_programs),
        T(a_file_of_any_program_is_found_without_prefix),
        T(where_the_programs_differ_the_browser_decides),
        T(without_hashes_nobody_can_tell_that_files_are_the_same),
        T(prefixes_name_programs),
        T(what_the_app_makes_up_is_the_apps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
