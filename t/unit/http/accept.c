/* SPDX-License-Identifier: MIT */
/* Quality values of codings and media types. */
#include "http/accept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef int quality(const struct fields *f, struct str what);

static int ask(quality *q, enum field_id id, const char *value, const char *second, const char *what)
{
    struct arena a;
    struct fields f = { 0 };
    arena_init(&a, NULL);
    if (value != NULL)
        assert_true(fields_add_id(&f, &a, id, str_c(value)));
    if (second != NULL)
        assert_true(fields_add_id(&f, &a, id, str_c(second)));
    int result = q(&f, str_c(what));
    arena_reset(&a);
    return result;
}

static int quality_of_coding(const struct fields *f, struct str what)
{
    struct accept_codings q;
    accept_codings(f, &q);
    return str_eq(what, STR("gzip")) ? q.gzip : str_eq(what, STR("br")) ? q.br : str_eq(what, STR("zstd")) ? q.zstd
                                                                                                           : q.identity;
}

static int coding(const char *value, const char *what)
{
    return ask(quality_of_coding, F_ACCEPT_ENCODING, value, NULL, what);
}

static int type(const char *value, const char *what)
{
    return ask(accept_type_q, F_ACCEPT, value, NULL, what);
}

static void test_codings(void **state)
{
    (void)state;
    assert_int_equal(coding("gzip", "gzip"), 1000);
    assert_int_equal(coding("deflate, GZIP;q=0.5, br", "gzip"), 500);
    assert_int_equal(coding("gzip ; q=0.25", "gzip"), 250);
    assert_int_equal(coding("gzip;Q=0.125", "gzip"), 125);
    assert_int_equal(coding("gzip;q=0", "gzip"), 0);
    assert_int_equal(coding("gzip;q=0.000", "gzip"), 0);
    assert_int_equal(coding("gzip;q=1.000", "gzip"), 1000);
    assert_int_equal(coding("x-gzip", "gzip"), 1000);
    assert_int_equal(coding("*", "gzip"), 1000);
    assert_int_equal(coding("*;q=0.3", "gzip"), 300);
    assert_int_equal(coding("*;q=0, gzip", "gzip"), 1000);
    assert_int_equal(coding("*, gzip;q=0", "gzip"), 0);
    assert_int_equal(coding("br, deflate", "gzip"), 0);
    assert_int_equal(coding("xgzip, gzipx", "gzip"), 0);
    assert_int_equal(coding("", "gzip"), 0);
    assert_int_equal(coding(NULL, "gzip"), 0);
    assert_int_equal(coding("zstd, br;q=0.9, gzip;q=0.8", "zstd"), 1000);
    assert_int_equal(coding("zstd, br;q=0.9, gzip;q=0.8", "br"), 900);
    assert_int_equal(coding("br;q=0.2, br;q=0.9", "br"), 200);
    assert_int_equal(coding("br;q=0, *;q=0.9", "br"), 0);
    assert_int_equal(coding("br;q=0, *;q=0.9", "zstd"), 900);
    assert_int_equal(ask(quality_of_coding, F_ACCEPT_ENCODING, "br", "gzip;q=0.7", "gzip"), 700);
}

static void test_identity(void **state)
{
    (void)state;
    assert_int_equal(coding(NULL, "identity"), -1);
    assert_int_equal(coding("", "identity"), -1);
    assert_int_equal(coding("gzip", "identity"), -1);
    assert_int_equal(coding("identity;q=0.5", "identity"), 500);
    assert_int_equal(coding("identity;q=0", "identity"), 0);
    assert_int_equal(coding("gzip, *;q=0", "identity"), -1);
    assert_int_equal(coding("*;q=0, identity;q=0.1", "identity"), 100);
}

static void test_malformed(void **state)
{
    (void)state;
    assert_int_equal(coding("gzip;q=2", "gzip"), 0);
    assert_int_equal(coding("gzip;q=1.001", "gzip"), 0);
    assert_int_equal(coding("gzip;q=0.1234", "gzip"), 0);
    assert_int_equal(coding("gzip;q=", "gzip"), 0);
    assert_int_equal(coding("gzip;q=-1", "gzip"), 0);
    assert_int_equal(coding("gzip;q=.5", "gzip"), 0);
    assert_int_equal(coding("gzip;q=0,5", "gzip"), 0);
    assert_int_equal(coding("gzip;q=0.x", "gzip"), 0);
    assert_int_equal(coding("gzip;q=x, gzip;q=0.4", "gzip"), 400);
}

static void test_types(void **state)
{
    (void)state;
    assert_int_equal(type(NULL, "text/html"), 1000);
    assert_int_equal(type("text/html", "text/html"), 1000);
    assert_int_equal(type("TEXT/HTML;q=0.8", "text/html"), 800);
    assert_int_equal(type("text/*;q=0.5", "text/html"), 500);
    assert_int_equal(type("*/*;q=0.1", "text/html"), 100);
    assert_int_equal(type("*/*, text/*;q=0.5, text/html;q=0.2", "text/html"), 200);
    assert_int_equal(type("text/html;q=0, */*", "text/html"), 0);
    assert_int_equal(type("application/json", "text/html"), 0);
    assert_int_equal(type("text/htmlx, tex/*", "text/html"), 0);
    assert_int_equal(type("text/html;level=1;q=0.9, */*;q=0.2", "text/html"), 200);
    assert_int_equal(type("", "text/html"), 0);
    assert_int_equal(ask(accept_type_q, F_ACCEPT, "a/b", "text/html;q=0.6", "text/html"), 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codings),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
