/* SPDX-License-Identifier: MIT */
/* Status lines and reasons. */
#include "http/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_known(void **state)
{
    (void)state;
    assert_true(str_eq(status_line(200), STR("HTTP/1.1 200 OK\r\n")));
    assert_true(str_eq(status_reason(200), STR("OK")));
    assert_true(str_eq(status_reason(431), STR("Request Header Fields Too Large")));
    assert_true(str_eq(status_line(511), STR("HTTP/1.1 511 Network Authentication Required\r\n")));
}

/* Every line spells its own code, and the reason is the rest of it. */
static void test_all(void **state)
{
    (void)state;
    unsigned known = 0;
    for (unsigned code = 0; code <= UINT16_MAX; code++) {
        char line[80];
        struct str reason = status_reason((uint16_t)code);
        if (reason.n == 0) {
            assert_int_equal(status_line((uint16_t)code).n, 0);
            continue;
        }
        int n = snprintf(line, sizeof line, "HTTP/1.1 %u %.*s\r\n", code, STR_ARG(reason));
        assert_true(str_eq(status_line((uint16_t)code), str_of(line, (size_t)n)));
        known++;
    }
    assert_true(known > 50);
    assert_int_equal(status_reason(99).n + status_reason(299).n + status_reason(600).n, 0);
}

static void test_no_body(void **state)
{
    (void)state;
    assert_true(status_has_no_body(100));
    assert_true(status_has_no_body(101));
    assert_true(status_has_no_body(199));
    assert_true(status_has_no_body(204));
    assert_true(status_has_no_body(304));
    assert_false(status_has_no_body(200));
    assert_false(status_has_no_body(205));
    assert_false(status_has_no_body(404));
    assert_false(status_has_no_body(999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_no_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
