/* SPDX-License-Identifier: MIT */
/* HTTP dates, against the C library's calendar and against the formats of RFC 9110 §5.6.7. */
#include "http/date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const int64_t now = 1795000000; /* in 2026 */

static void test_print(void **state)
{
    (void)state;
    static const int64_t fixed[] = { 0, -1, 784111777, 951782399, 951782400, 4107542400, 253402300799, -62167219200 };
    for (size_t i = 0; i < 4000; i++) {
        int64_t t = i < ARRAY_LEN(fixed) ? fixed[i] : -62167219200 + (int64_t)i * 78889031 % 315569519999;
        char out[HTTP_DATE], wanted[64];
        struct tm tm;
        time_t libc = (time_t)t;
        date_print(out, t);
        assert_non_null(gmtime_r(&libc, &tm));
        static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
        static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
        int n = snprintf(wanted, sizeof wanted, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
                         months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
        if (!str_eq(str_of(out, HTTP_DATE), str_of(wanted, (size_t)n)))
            fail_msg("%lld: %.29s, not %s", (long long)t, out, wanted);
        int64_t back;
        assert_true(date_parse(str_of(out, HTTP_DATE), now, &back));
        assert_int_equal(back, t);
    }
}

static void expect(const char *text, int64_t wanted)
{
    int64_t seconds = -12345;
    if (!date_parse(str_c(text), now, &seconds))
        fail_msg("%s is no date", text);
    if (seconds != wanted)
        fail_msg("%s is %lld, not %lld", text, (long long)seconds, (long long)wanted);
}

static void test_formats(void **state)
{
    (void)state;
    expect("Sun, 06 Nov 1994 08:49:37 GMT", 784111777);
    expect("Sunday, 06-Nov-94 08:49:37 GMT", 784111777);
    expect("Sun Nov  6 08:49:37 1994", 784111777);
    expect("Sun Nov 16 08:49:37 1994", 784975777);
    expect("Tuesday, 01-Jan-30 00:00:00 GMT", 1893456000);  /* 2030 */
    expect("Wednesday, 01-Jan-76 00:00:00 GMT", 3345062400); /* 2076: 50 years ahead */
    expect("Saturday, 01-Jan-77 00:00:00 GMT", 220924800);   /* 1977: 2077 would be 51 */
    expect("Sat, 31 Dec 2016 23:59:60 GMT", 1483228799);
    expect("Tue, 29 Feb 2000 00:00:00 GMT", 951782400);
}

static void test_not_dates(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "xyz", "not a date", "Sun", "Sun,", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 6 Nov 1994 08:49:37 GMT", "sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 29 Feb 1995 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 06 Nov 94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
        "Sun Nov 06 08:49:37 94", "Sun Nov  6 08:49:37 1994 GMT", "Sun, 06 Nov +994 08:49:37 GMT", "784111777", "0",
        "-1",
    };
    int64_t seconds;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (date_parse(str_c(bad[i]), now, &seconds))
            fail_msg("\"%s\" was taken for a date", bad[i]);
    assert_false(date_parse(STR("Sun, 06 Nov 1994 08:49:37 GMT\0"), now, &seconds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_not_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
