/* SPDX-License-Identifier: MIT */
/* Log records: levels, one record one line, cutting, escaping, errno kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

static char got[8192];
static size_t got_n;
static int calls;
static enum log_level got_level;

static void sink(void *arg, enum log_level level, struct str text)
{
    assert_ptr_equal(arg, &calls);
    calls++;
    got_level = level;
    got_n = text.n;
    memcpy(got, text.p, text.n);
    got[text.n] = '\0';
    errno = EBADF;
}

static int use_sink(void **state)
{
    (void)state;
    log_set_sink(sink, &calls);
    log_set_level(LOG_NOTICE);
    calls = 0;
    return 0;
}

static void levels(void **state)
{
    (void)state;
    log_write(LOG_INFO, "dropped");
    assert_int_equal(calls, 0);
    assert_false(log_is_on(LOG_INFO));
    log_write(LOG_NOTICE, "kept %d", 1);
    assert_int_equal(calls, 1);
    assert_string_equal(got, "kept 1");
    assert_int_equal(got_level, LOG_NOTICE);
    log_set_level(LOG_DEBUG);
    log_write(LOG_DEBUG, "%s", "now");
    assert_int_equal(calls, 2);
    log_set_level(LOG_EMERG);
    assert_false(log_is_on(LOG_ERROR));
    assert_true(log_is_on(LOG_EMERG));
    assert_string_equal(log_level_name(LOG_EMERG), "emerg");
    assert_string_equal(log_level_name(LOG_DEBUG), "debug");
}

static void a_record_is_one_line(void **state)
{
    (void)state;
    log_write(LOG_ERROR, "a\nb\r\x1b[0m\x7f\tend \xc3\xa9");
    assert_string_equal(got, "a?b??[0m??end \xc3\xa9");
}

static void a_long_record_is_cut(void **state)
{
    (void)state;
    log_write(LOG_ERROR, "%*d", 6000, 1);
    assert_int_equal(got_n, 4095);
    assert_string_equal(got + 4091, " ...");
}

static void errno_is_kept(void **state)
{
    (void)state;
    errno = EAGAIN;
    log_write(LOG_ERROR, "x");
    assert_int_equal(calls, 1);
    assert_int_equal(errno, EAGAIN);
}

static void escaping(void **state)
{
    (void)state;
    char out[64];
    size_t n = log_escape(out, sizeof out, str_of("a\"\\\n\x7f\xff\0z", 8));
    assert_true(str_eq(str_of(out, n), STR("a\\x22\\x5C\\x0A\\x7F\\xFF\\x00z")));
    assert_int_equal(log_escape(out, 4, STR("ab\n")), 2); /* the piece that does not fit is left off whole */
    assert_int_equal(log_escape(out, 6, STR("ab\n")), 6);
    assert_int_equal(log_escape(out, 2, STR("abc")), 2);
    assert_int_equal(log_escape(out, 0, STR("abc")), 0);
}

static void escaping_for_json(void **state)
{
    (void)state;
    char out[64];
    size_t n = log_escape_json(out, sizeof out, STR("a\"\\\n\x7f\xff\xc3\xa9z"));
    assert_true(str_eq(str_of(out, n), STR("a\\u0022\\u005c\\u000a\\u007f\\u00ff\xc3\xa9z")));
    assert_int_equal(log_escape_json(out, 6, STR("a\n")), 1);
    assert_int_equal(log_escape_json(out, 2, STR("a\xc3\xa9")), 1);
}

static void lines(void **state)
{
    (void)state;
    char out[512], want[512];
    setenv("TZ", "UTC-2", 1);
    tzset();
    size_t n = log_line_print(out, sizeof out, LOG_STYLE_TEXT, 1700000000123, LOG_WARN, "0", STR("say \"x\""));
    snprintf(want, sizeof want, "2023/11/15 00:13:20 [warn] %ld#0: say \"x\"\n", (long)getpid());
    assert_true(str_eq(str_of(out, n), str_c(want)));
    n = log_line_print(out, sizeof out, LOG_STYLE_JSON, 1700000000123, LOG_WARN, "0", STR("say \"x\""));
    snprintf(want, sizeof want,
             "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"warn\",\"pid\":%ld,\"thread\":\"0\","
             "\"message\":\"say \\u0022x\\u0022\"}\n",
             (long)getpid());
    assert_true(str_eq(str_of(out, n), str_c(want)));
    char all[400];
    memset(all, '"', sizeof all);
    n = log_line_print(out, 256, LOG_STYLE_JSON, 1700000000123, LOG_WARN, "0", str_of(all, sizeof all));
    assert_true(n <= 256 && n > 240);
    assert_memory_equal(out + n - 9, "\\u0022\"}\n", 9);
    n = log_line_print(out, 256, LOG_STYLE_TEXT, 1700000000123, LOG_WARN, "0", str_of(all, sizeof all));
    assert_int_equal(n, 256);
    assert_int_equal(out[255], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(levels, use_sink),
        cmocka_unit_test_setup(a_record_is_one_line, use_sink),
        cmocka_unit_test_setup(a_long_record_is_cut, use_sink),
        cmocka_unit_test_setup(errno_is_kept, use_sink),
        cmocka_unit_test_setup(escaping, use_sink),
        cmocka_unit_test(escaping_for_json),
        cmocka_unit_test(lines),
    };
    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
