/* SPDX-License-Identifier: MIT */
/* What counts as a UTF-8 sequence: RFC 3629's table, its edges and what lies beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/utf8.h"

static void sequences(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n, length;
    } rows[] = {
        { "a", 1, 1 }, { "\0", 1, 1 }, { "\x7f", 1, 1 }, { "\x80", 1, 0 }, { "\xc3\xa4", 2, 2 }, { "\xc3\xa4z", 3, 2 },
        { "\xc3", 1, 0 }, { "\xc3z", 2, 0 }, { "\xc0\xaf", 2, 0 }, { "\xc1\xbf", 2, 0 }, { "\xc2\x80", 2, 2 },
        { "\xe0\x9f\xbf", 3, 0 }, { "\xe0\xa0\x80", 3, 3 }, { "\xed\x9f\xbf", 3, 3 }, { "\xed\xa0\x80", 3, 0 },
        { "\xe6\x97\xa5", 3, 3 }, { "\xe6\x97", 2, 0 }, { "\xf0\x8f\xbf\xbf", 4, 0 }, { "\xf0\x90\x80\x80", 4, 4 },
        { "\xf4\x8f\xbf\xbf", 4, 4 }, { "\xf4\x90\x80\x80", 4, 0 }, { "\xf5\x80\x80\x80", 4, 0 }, { "\xff", 1, 0 },
        { "\xf0\x9f\x98z", 4, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(utf8_length(str_of(rows[i].text, rows[i].n)), rows[i].length);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sequences) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
