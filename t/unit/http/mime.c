/* SPDX-License-Identifier: MIT */
/* Media types by file name. The source is included for its table. */
#include "http/mime.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect(const char *name, const char *wanted)
{
    struct str got = mime_of(str_c(name));
    if (!str_eq(got, str_c(wanted)))
        fail_msg("%s: %.*s, not %s", name, STR_ARG(got), wanted);
}

static void test_types(void **state)
{
    (void)state;
    expect("a.html", "text/html; charset=utf-8");
    expect("a.HTML", "text/html; charset=utf-8");
    expect("a.b.css", "text/css; charset=utf-8");
    expect("/x.y/a.js", "text/javascript; charset=utf-8");
    expect("a.mjs", "text/javascript; charset=utf-8");
    expect("a.json", "application/json");
    expect("a.map", "application/json");
    expect("a.wasm", "application/wasm");
    expect("a.svg", "image/svg+xml");
    expect("a.webp", "image/webp");
    expect("a.avif", "image/avif");
    expect("a.woff2", "font/woff2");
    expect("a.ico", "image/x-icon");
    expect("a.webmanifest", "application/manifest+json");
    expect("a.mp4", "video/mp4");
    expect("a.tar.gz", "application/gzip");
    expect("a.txt", "text/plain; charset=utf-8");
    expect("a.xml", "text/xml; charset=utf-8");
    /* The ends of the table. */
    expect("a.3gp", "video/3gpp");
    expect("a.zst", "application/zstd");
}

static void test_unknown(void **state)
{
    (void)state;
    static const char *const names[] = {
        "", "noext", "a.", ".", "/x.html/a", "a.unknown", "a.htmlhtmlhtmlhtml", "a.ht", "a.htmll", "html", "a.html ",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        expect(names[i], "application/octet-stream");
    struct str got = mime_of(STR("a.js\0"));
    assert_true(str_eq(got, STR("application/octet-stream")));
}

/* The search by halves needs the table in order. */
static void test_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char name[EXTENSION_MAX + 4];
        snprintf(name, sizeof name, "a.%.*s", EXTENSION_MAX, types[i].extension);
        expect(name, types[i].type);
        if (i > 0)
            assert_true(memcmp(types[i - 1].extension, types[i].extension, EXTENSION_MAX) < 0);
    }
}

static void test_dense(void **state)
{
    (void)state;
    static const char *const dense[] = { "a.png", "a.jpg", "a.webp", "a.mp4", "a.mp3", "a.woff", "a.woff2", "a.zip",
                                         "a.gz", "a.br", "a.zst", "a.7z", "a.xz" };
    static const char *const plain[] = { "a.html", "a.js", "a.css", "a.svg", "a.json", "a.wasm", "a.ico", "a.ttf",
                                         "a.bmp", "a.xml", "a", "a.tar" };
    for (size_t i = 0; i < sizeof dense / sizeof dense[0]; i++)
        assert_true(mime_is_dense(mime_of(str_c(dense[i]))));
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        assert_false(mime_is_dense(mime_of(str_c(plain[i]))));
}

static void test_stored_coded(void **state)
{
    (void)state;
    struct str svg = STR("image/svg+xml");
    assert_true(mime_is_stored_coded(STR("a.svgz"), svg));
    assert_true(mime_is_stored_coded(STR("A.SVGZ"), svg));
    assert_false(mime_is_stored_coded(STR("a.svg"), svg));
    assert_false(mime_is_stored_coded(STR("svgz"), svg));
    assert_false(mime_is_stored_coded(STR("a.svgz"), STR("application/gzip")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_stored_coded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
