/* SPDX-License-Identifier: MIT */
/* Durations and sizes: values, refusals with their advice, and printing that parses back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/units.h"

static uint64_t duration(const char *text)
{
    uint64_t v = 12345;
    const char *why = NULL;
    if (!duration_parse(str_c(text), &v, &why))
        fail_msg("%s: %s", text, why);
    return v;
}

static uint64_t size(const char *text)
{
    uint64_t v = 12345;
    const char *why = NULL;
    if (!size_parse(str_c(text), &v, &why))
        fail_msg("%s: %s", text, why);
    return v;
}

static void values(void **state)
{
    (void)state;
    assert_int_equal(duration("500ms"), 500);
    assert_int_equal(duration("30s"), 30000);
    assert_int_equal(duration("5m"), 300000);
    assert_int_equal(duration("1h"), 3600000);
    assert_int_equal(duration("30d"), 2592000000);
    assert_int_equal(duration("0"), 0);
    assert_int_equal(duration("0s"), 0);
    assert_int_equal(size("512b"), 512);
    assert_int_equal(size("64k"), 65536);
    assert_int_equal(size("64K"), 65536);
    assert_int_equal(size("1m"), 1048576);
    assert_int_equal(size("5g"), 5368709120);
    assert_int_equal(size("0"), 0);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {
        { "30", "write \"30s\"" }, { "", "a number and a unit" }, { "s", "a number and a unit" },
        { "-1s", "a number" },     { "30x", "one of ms" },        { "1h30m", "one of ms" },
        { "1.5s", "one of ms" },   { "30 s", "one of ms" },       { "99999999999999999999s", "too large" },
        { "213503982335d", "too large" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t v = 7;
        const char *why = NULL;
        assert_false(duration_parse(str_c(rows[i].text), &v, &why));
        if (strstr(why, rows[i].part) == NULL)
            fail_msg("%s: %s", rows[i].text, why);
        assert_int_equal(v, 7);
    }
    uint64_t v;
    const char *why;
    assert_false(size_parse(STR("512"), &v, &why));
    assert_non_null(strstr(why, "write \"64k\""));
    assert_false(size_parse(STR("64kb"), &v, &why));
    assert_false(size_parse(STR("17179869184g"), &v, &why));
    assert_true(size_parse(STR("17179869183g"), &v, &why));
}

static void printing(void **state)
{
    (void)state;
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        { 0, "0" },       { 1, "1ms" },        { 1500, "1500ms" },    { 1000, "1s" },
        { 90000, "90s" }, { 3600000, "1h" },   { 5400000, "90m" },    { 86400000, "1d" },
        { 604800000, "7d" }, { UINT64_MAX, "18446744073709551615ms" },
    };
    char out[UNITS_TEXT];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(duration_print(rows[i].ms, out), strlen(rows[i].text));
        assert_string_equal(out, rows[i].text);
        assert_true(duration(out) == rows[i].ms);
    }
    static const uint64_t sizes[] = { 0, 1, 1023, 1024, 1536, 1048576, 1073741824, 1073741825, UINT64_MAX };
    static const char *const size_texts[] = { "0", "1b", "1023b", "1k", "1536b", "1m", "1g", "1073741825b",
                                              "18446744073709551615b" };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_print(sizes[i], out);
        assert_string_equal(out, size_texts[i]);
        assert_true(size(out) == sizes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(refusals),
        cmocka_unit_test(printing),
    };
    return cmocka_run_group_tests_name("base/units", tests, NULL, NULL);
}
