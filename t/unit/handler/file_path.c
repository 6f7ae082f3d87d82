/* SPDX-License-Identifier: MIT */
/* What a path means: the part below a root or an alias, dotfiles, hashes in names. */
#include "handler/file_path.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect_below(const char *pattern, enum match_kind kind, bool alias, const char *path, const char *want)
{
    struct location_conf l = { .kind = kind, .pattern = str_c(pattern) };
    struct action a = { .kind = ACTION_FILE, .u.file.alias = alias };
    struct str got = file_path_below(&l, &a, str_c(path));
    if (!str_eq(got, str_c(want)))
        fail_msg("%s of %s gives \"%.*s\", not \"%s\"", path, pattern, STR_ARG(got), want);
}

static void test_a_root_keeps_the_whole_path(void **state)
{
    (void)state;
    expect_below("/", MATCH_PREFIX, false, "/", "");
    expect_below("/a", MATCH_PREFIX, false, "/a/b.txt", "a/b.txt");
    expect_below("/packages", MATCH_PREFIX_FINAL, false, "/packages/", "packages/");
    expect_below("\\.png$", MATCH_REGEX, false, "/x/y.png", "x/y.png");
}

static void test_an_alias_cuts_the_prefix_off(void **state)
{
    (void)state;
    expect_below("/files", MATCH_PREFIX, true, "/files/a.txt", "a.txt");
    expect_below("/files/", MATCH_PREFIX, true, "/files/a.txt", "a.txt");
    expect_below("/files", MATCH_PREFIX, true, "/files/", "");
    expect_below("/files", MATCH_PREFIX, true, "/files", "");
    expect_below("/favicon.ico", MATCH_EXACT, true, "/favicon.ico", "");
    expect_below("/", MATCH_PREFIX, true, "/a/b", "a/b");
    expect_below("\\.png$", MATCH_REGEX, true, "/x/y.png", "x/y.png");
}

static void expect_stripped(const char *strip, bool alias, const char *path, const char *want)
{
    struct location_conf l = { .kind = MATCH_PREFIX, .pattern = STR("/a"), .s.strip_prefix = str_c(strip) };
    struct action a = { .kind = ACTION_FILE, .u.file.alias = alias };
    struct str got = file_path_below(&l, &a, str_c(path));
    if (!str_eq(got, str_c(want)))
        fail_msg("%s without %s gives \"%.*s\", not \"%s\"", path, strip, STR_ARG(got), want);
}

static void test_strip_prefix_is_for_a_root(void **state)
{
    (void)state;
    expect_stripped("/a/b", false, "/a/b/c.txt", "c.txt");
    expect_stripped("/a/b/", false, "/a/b/c.txt", "c.txt");
    expect_stripped("/a/b", false, "/a/b", "");
    expect_stripped("/a/b", true, "/a/b/c.txt", "b/c.txt");
}

static void test_dotfiles_are_hidden_but_well_known(void **state)
{
    (void)state;
    static const struct {
        const char *below;
        bool top, hidden;
    } rows[] = {
        { "", true, false },
        { "a.txt", true, false },
        { "a/b.c/d.", true, false },
        { ".env", true, true },
        { "..file", true, true },
        { "a/.htpasswd", true, true },
        { ".git/config", true, true },
        { ".well-known", true, false },
        { ".well-known/acme-challenge/x", true, false },
        { ".well-known/.x", true, true },
        { ".well-knownx/a", true, true },
        { "a/.well-known/x", true, true },
        { ".well-known/x", false, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (file_path_is_hidden(str_c(rows[i].below), rows[i].top) != rows[i].hidden)
            fail_msg("\"%s\" is %shidden", rows[i].below, rows[i].hidden ? "not " : "");
}

static void test_the_name_is_what_follows_the_last_slash(void **state)
{
    (void)state;
    assert_true(str_eq(file_path_name(STR("a/b/c.txt")), STR("c.txt")));
    assert_true(str_eq(file_path_name(STR("c.txt")), STR("c.txt")));
    assert_int_equal(file_path_name(STR("a/")).n, 0);
    assert_int_equal(file_path_name(STR_NONE).n, 0);
}

static void test_a_content_hash_in_the_name(void **state)
{
    (void)state;
    static const char *const hashed[] = {
        "app.3f2a9c1d.js",
        "app-3f2a9c1d.js",
        "main.3F2A9C1D0b.chunk.css",
        "3f2a9c1d.css",
        "9ab3cde83f1a2b3c4d5e6f708192a3b4c5d6e7f8.js",
        "zz9b3cde83f1a2b3c4d5e6f708192a3b4c5d6e7f.css",
        "app.d41d8cd98f00b204e9800998ecf8427e.js.map",
    };
    static const char *const plain[] = {
        "",
        "app.js",
        "3f2a9c1d",
        "report-20240131.pdf",
        "deadbeef.txt",
        "app.3f2a9c1.js",
        "jquery-3.7.1.min.js",
        "550e8400-e29b-41d4-a716-446655440000.png",
        "x.3f2a9c1d",
        "app_3f2a9c1d.js",
        "iphone15promax.png",
        "zz9b3cde83f1a2b3c4d5e6f708192a3b4c5d6e7.css",
    };
    for (size_t i = 0; i < ARRAY_LEN(hashed); i++)
        if (!file_path_has_hash(str_c(hashed[i])))
            fail_msg("%s has a hash", hashed[i]);
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        if (file_path_has_hash(str_c(plain[i])))
            fail_msg("%s has no hash", plain[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_root_keeps_the_whole_path),
        cmocka_unit_test(test_an_alias_cuts_the_prefix_off),
        cmocka_unit_test(test_strip_prefix_is_for_a_root),
        cmocka_unit_test(test_dotfiles_are_hidden_but_well_known),
        cmocka_unit_test(test_the_name_is_what_follows_the_last_slash),
        cmocka_unit_test(test_a_content_hash_in_the_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
