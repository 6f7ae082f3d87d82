/* SPDX-License-Identifier: MIT */
/* Range requests: one value, one length, and the plan (RFC 9110 §14). */
#include "http/range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect(const char *value, uint64_t length, const char *wanted)
{
    struct range v[RANGE_MAX];
    unsigned count = 99;
    char text[512];
    int n = 0;
    enum range_result result = range_plan(str_c(value), length, v, &count);
    if (result == RANGE_NONE)
        snprintf(text, sizeof text, "none");
    else if (result == RANGE_UNSATISFIABLE)
        snprintf(text, sizeof text, "416");
    for (unsigned i = 0; result == RANGE_SOME && i < count; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%llu+%llu", i > 0 ? " " : "", (unsigned long long)v[i].off,
            (unsigned long long)v[i].n);
    if (strcmp(text, wanted) != 0)
        fail_msg("%.60s of %llu: %s, not %s", value, (unsigned long long)length, text, wanted);
}

static void test_single(void **state)
{
    (void)state;
    expect("bytes=0-99", 1000, "0+100");
    expect("bytes=0-0", 1000, "0+1");
    expect("bytes=999-999", 1000, "999+1");
    expect("bytes=990-", 1000, "990+10");
    expect("bytes=-100", 1000, "900+100");
    expect("bytes=990-2000", 1000, "990+10");
    expect("bytes=-2000", 1000, "0+1000");
    expect("Bytes=0-4", 1000, "0+5");
    expect("bytes=4294967296-4294967305", 5368709120, "4294967296+10");
    expect("bytes=0-99999999999999999999999999", 1000, "0+1000");
    expect("bytes=0-", UINT64_MAX, "0+18446744073709551615");
}

static void test_outside(void **state)
{
    (void)state;
    expect("bytes=1000-", 1000, "416");
    expect("bytes=-0", 1000, "416");
    expect("bytes=99999999999999999999999999-", 1000, "416");
    expect("bytes=18446744073709551616-18446744073709551620", 1000, "416");
    expect("bytes=1000-,1005-1009", 1000, "416");
    expect("bytes=0-9", 0, "416");
    expect("bytes=-5", 0, "416");
}

static void test_ignored(void **state)
{
    (void)state;
    static const char *const values[] = {
        "", "bytes", "bytes=", "bytes=-", "bytes=,", "bytes=abc", "bytes=4-2", "bytes=0-1-2", "bytes= 0-1",
        "bytes=0 -1", "bytes=0- 1", "bytes=0-x", "bytes 0-5", "=0-5", "bytes=--5", "bytes=+0-5", "bytes=0-1 2-3",
        "bytes=0-1,x", "bytes=0-1,5-2", "bytes =0-1", "items=0-5", "lines=0-1", "bytes=0x1-2", "bytes=1",
        "bytes=0-1;q", "xbytes=0-1",
    };
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        expect(values[i], 1000, "none");
}

static void test_several(void **state)
{
    (void)state;
    expect("bytes=0-9,50-59,990-", 1000, "0+10 50+10 990+10");
    expect("bytes=990-,0-9", 1000, "990+10 0+10");
    expect("bytes=,0-4,", 1000, "0+5");
    expect("bytes=0-4 ,\t10-14", 1000, "0+5 10+5");
    expect("bytes=, ,0-4", 1000, "0+5");
    expect("bytes=0-9,2000-", 1000, "0+10");
    /* Coalesced: overlapping, adjacent, and by a third. */
    expect("bytes=0-9,5-14", 1000, "0+15");
    expect("bytes=0-9,10-14", 1000, "0+15");
    expect("bytes=0-9,11-14", 1000, "0+10 11+4");
    expect("bytes=500-,0-9,5-600", 1000, "0+1000");
    expect("bytes=20-29,0-9,40-49,5-25", 1000, "0+30 40+10");
    expect("bytes=40-49,0-9,20-29,8-21", 1000, "40+10 0+30");
    expect("bytes=0-,0-,0-,0-", 1000, "0+1000");
    expect("bytes=-1,-2,-3", 1000, "997+3");
}

static void test_many(void **state)
{
    (void)state;
    char value[16384];
    char wanted[256] = "";
    size_t n = 0;
    for (int i = 0; i <= RANGE_MAX; i++) {
        n += (size_t)snprintf(value + n, sizeof value - n, "%s%d-%d", i == 0 ? "bytes=" : ",", 2 * i, 2 * i);
        if (i == RANGE_MAX - 1) {
            size_t m = 0;
            for (int k = 0; k < RANGE_MAX; k++)
                m += (size_t)snprintf(wanted + m, sizeof wanted - m, "%s%d+1", k > 0 ? " " : "", 2 * k);
            expect(value, 1000, wanted);
        }
    }
    expect(value, 1000, "none");
    /* Any number of them that come to one range is one range. */
    n = 0;
    for (int i = 0; i < 1000; i++)
        n += (size_t)snprintf(value + n, sizeof value - n, "%s%d-%d", i == 0 ? "bytes=" : ",", i, i);
    expect(value, 2000, "0+1000");
}

/* Whatever is asked for, the plan stays within the file, and no byte is in it twice. */
static void test_sums(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        char value[512];
        size_t n = (size_t)snprintf(value, sizeof value, "bytes=");
        uint64_t length = 1 + (seed >> 8) % 64;
        unsigned asked = 1 + (seed >> 16) % 12;
        for (unsigned i = 0; i < asked; i++) {
            seed = seed * 1664525 + 1013904223;
            unsigned a = seed >> 25, b = (seed >> 18) & 127;
            const char *comma = i > 0 ? "," : "";
            if (seed >> 16 & 1)
                n += (size_t)snprintf(value + n, sizeof value - n, "%s%u-%u", comma, a < b ? a : b, a < b ? b : a);
            else
                n += (size_t)snprintf(value + n, sizeof value - n, seed >> 17 & 1 ? "%s%u-" : "%s-%u", comma, a);
        }
        struct range v[RANGE_MAX];
        unsigned count;
        bool seen[64] = { false };
        enum range_result result = range_plan(str_of(value, n), length, v, &count);
        assert_int_not_equal(result, RANGE_NONE);
        assert_int_equal(result == RANGE_SOME, count > 0);
        for (unsigned i = 0; i < count; i++) {
            assert_true(v[i].n > 0 && v[i].off + v[i].n <= length);
            for (uint64_t k = v[i].off; k < v[i].off + v[i].n; k++) {
                assert_false(seen[k]);
                seen[k] = true;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_ignored),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
