/* SPDX-License-Identifier: MIT */
/* Response heads: framing by status, method and version; what weir adds and what it leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/h1_head.h"

static const char DATE[] = "Sun, 06 Nov 1994 08:49:37 GMT";

static struct arena arena;

static void expect(struct response *p, enum h1_framing framing, bool close, bool keep10, const char *want)
{
    struct str got = h1_head_print(&arena, p, framing, close, keep10, DATE);
    assert_non_null(got.p);
    char text[1024];
    assert_true(got.n < sizeof(text));
    memcpy(text, got.p, got.n);
    text[got.n] = '\0';
    assert_string_equal(text, want);
    arena_reset(&arena);
}

static void own_answer_with_length(void **state)
{
    (void)state;
    struct response p = { .status = 200, .is_own = true, .has_length = true, .length = 687 };
    expect(&p, H1_FRAMING_LENGTH, false, false,
           "HTTP/1.1 200 OK\r\nServer: weir\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 687\r\n\r\n");
}

static void backend_server_and_date_pass(void **state)
{
    (void)state;
    struct response p = { .status = 299, .reason = STR("Odd"), .has_length = true, .length = 0 };
    assert_true(fields_add(&p.fields, &arena, STR("sErVeR"), STR("x"), F_SERVER));
    assert_true(fields_add(&p.fields, &arena, STR("Date"), STR("d"), F_DATE));
    expect(&p, H1_FRAMING_LENGTH, true, false,
           "HTTP/1.1 299 Odd\r\nsErVeR: x\r\nDate: d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

static void no_length_and_no_coding_on_204(void **state)
{
    (void)state;
    struct response p = { .status = 204, .bodyless = true, .has_length = true, .length = 5 };
    expect(&p, H1_FRAMING_NONE, false, false,
           "HTTP/1.1 204 No Content\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n");
}

static void head_and_304_keep_the_length(void **state)
{
    (void)state;
    struct response p = { .status = 304, .bodyless = true, .has_length = true, .length = 77 };
    expect(&p, H1_FRAMING_NONE, false, true,
           "HTTP/1.1 304 Not Modified\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 77\r\n"
           "Connection: keep-alive\r\n\r\n");
}

static void ready_made_block_comes_first(void **state)
{
    (void)state;
    struct response p = { .status = 200, .block = STR("ETag: \"a\"\r\n"), .has_length = false };
    expect(&p, H1_FRAMING_CHUNKED, false, false,
           "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
           "Transfer-Encoding: chunked\r\n\r\n");
}

static void framing_by_version(void **state)
{
    (void)state;
    struct response known = { .status = 200, .has_length = true };
    struct response unknown = { .status = 200 };
    struct response bodyless = { .status = 200, .bodyless = true, .has_length = true };
    assert_int_equal(h1_head_framing(&known, 0), H1_FRAMING_LENGTH);
    assert_int_equal(h1_head_framing(&known, 1), H1_FRAMING_LENGTH);
    assert_int_equal(h1_head_framing(&unknown, 1), H1_FRAMING_CHUNKED);
    assert_int_equal(h1_head_framing(&unknown, 0), H1_FRAMING_CLOSE);
    assert_int_equal(h1_head_framing(&bodyless, 1), H1_FRAMING_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_answer_with_length),       cmocka_unit_test(backend_server_and_date_pass),
        cmocka_unit_test(no_length_and_no_coding_on_204), cmocka_unit_test(head_and_304_keep_the_length),
        cmocka_unit_test(ready_made_block_comes_first), cmocka_unit_test(framing_by_version),
    };
    arena_init(&arena, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
