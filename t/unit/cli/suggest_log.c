/* SPDX-License-Identifier: MIT */
/* Lines of access logs: combined and common, JSON by several names, escapes, and what is neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/suggest_log.h"

#define HEAD "192.0.2.1 - - [30/Nov/2026:12:00:00 +0000] "

static const struct {
    const char *line, *method, *target;
    unsigned status;
    uint64_t bytes;
} rows[] = {
    { HEAD "\"GET /a.png HTTP/1.1\" 200 1234 \"-\" \"curl\"", "GET", "/a.png", 200, 1234 },
    { HEAD "\"GET /a.png HTTP/1.1\" 304 -", "GET", "/a.png", 304, 0 },
    { HEAD "\"HEAD /a?b=\\\"c\\\" HTTP/1.0\" 206 5 0.001 \"x\"", "HEAD", "/a?b=\"c\"", 206, 5 },
    { HEAD "\"GET /\\xC3\\xBC\\x22 HTTP/1.1\" 200 1", "GET", "/\xC3\xBC\"", 200, 1 },
    { HEAD "\"GET /x\\\\y HTTP/1.1\" 200 1", "GET", "/x\\y", 200, 1 },
    { HEAD "\"GET /old\" 200 7", "GET", "/old", 200, 7 },
    { "host.example 192.0.2.1 \"POST /p HTTP/1.1\" 500 18446744073709551615", "POST", "/p", 500, UINT64_MAX },
    { "  \"GET / HTTP/1.1\" 200 3  ", "GET", "/", 200, 3 },
    { "{\"method\":\"GET\",\"uri\":\"/a?b\",\"status\":200,\"body_bytes_sent\":10,\"bytes_sent\":99}", "GET", "/a?b",
      200, 10 },
    { "{\"request_method\":\"GET\",\"request_uri\":\"/\\u00fc\",\"status\":\"200\",\"bytes_sent\":\"7\"}", "GET",
      "/\xC3\xBC", 200, 7 },
    { "{\"request\":\"GET /r HTTP/1.1\",\"status\":404}", "GET", "/r", 404, 0 },
    { "{\"verb\":\"PUT\",\"path\":\"/v\",\"response\":201,\"size\":null}", "PUT", "/v", 201, 0 },
};

static void lines_are_read(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct logged l;
        if (!suggest_log_line(&a, str_c(rows[i].line), &l))
            fail_msg("not read: %s", rows[i].line);
        if (!str_eq(l.method, str_c(rows[i].method)) || !str_eq(l.target, str_c(rows[i].target)) ||
            l.status != rows[i].status || l.bytes != rows[i].bytes)
            fail_msg("%s: got %.*s %.*s %u %llu", rows[i].line, STR_ARG(l.method), STR_ARG(l.target), l.status,
                     (unsigned long long)l.bytes);
    }
    arena_reset(&a);
}

static void other_lines_are_not(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "", " ", "text", "\"", "\"GET / HTTP/1.1", HEAD "\"GET / HTTP/1.1\"", HEAD "\"GET / HTTP/1.1\" x 1",
        HEAD "\"\" 400 0", HEAD "\"GET\" 400 0", HEAD "\"-\" 400 0", HEAD "\"GET / HTTP/1.1\" 20 1", HEAD "\"GET /\\",
        "{", "{}", "{\"method\":\"GET\",\"uri\":\"/\"}", "{\"method\":\"GET\",\"status\":200}",
        "{\"uri\":\"/\",\"status\":200}", "{\"method\":1.5,\"uri\":[],\"status\":200}",
        "{\"method\":\"GET\",\"uri\":\"/a\\u0000b\",\"status\":200}",
    };
    struct arena a;
    arena_init(&a, NULL);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct logged l;
        if (suggest_log_line(&a, str_c(lines[i]), &l))
            fail_msg("read: %s", lines[i]);
    }
    arena_reset(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read),
        cmocka_unit_test(other_lines_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
