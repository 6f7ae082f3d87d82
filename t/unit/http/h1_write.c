/* SPDX-License-Identifier: MIT */
/* Heads and chunks as bytes; what the writer makes, the reader must read back. */
#include "http/h1_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "http/h1_read.h"

static struct arena arena;
static struct fields two;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, NULL);
    two = (struct fields){ 0 };
    bool good = fields_add(&two, &arena, STR("X-MiXeD"), STR("q"), F_OTHER);
    return good && fields_add_id(&two, &arena, F_DATE, STR("")) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    arena_reset(&arena);
    return 0;
}

#define EXPECT(made, wanted) \
    do { \
        struct str made_ = (made), wanted_ = STR(wanted); \
        if (!str_eq(made_, wanted_)) \
            fail_msg("made\n%.*s\nwanted\n%s", STR_ARG(made_), wanted); \
    } while (0)

static void test_request(void **state)
{
    (void)state;
    struct fields none = { 0 };
    EXPECT(h1_write_request(&arena, STR("GET"), STR("/a?b"), &two),
        "GET /a?b HTTP/1.1\r\nX-MiXeD: q\r\nDate: \r\n\r\n");
    EXPECT(h1_write_request(&arena, STR("OPTIONS"), STR("*"), &none), "OPTIONS * HTTP/1.1\r\n\r\n");
}

static void test_response(void **state)
{
    (void)state;
    struct fields none = { 0 };
    EXPECT(h1_write_response(&arena, 200, STR_NONE, STR_NONE, &none), "HTTP/1.1 200 OK\r\n\r\n");
    EXPECT(h1_write_response(&arena, 404, STR("Nope"), STR("A: b\r\n"), &two),
        "HTTP/1.1 404 Nope\r\nA: b\r\nX-MiXeD: q\r\nDate: \r\n\r\n");
    EXPECT(h1_write_response(&arena, 299, STR_NONE, STR_NONE, &none), "HTTP/1.1 299 \r\n\r\n");
    EXPECT(h1_write_response(&arena, 999, STR("x y"), STR_NONE, &none), "HTTP/1.1 999 x y\r\n\r\n");
}

static void test_fields(void **state)
{
    (void)state;
    struct fields none = { 0 };
    EXPECT(h1_write_fields(&arena, &two), "X-MiXeD: q\r\nDate: \r\n");
    EXPECT(h1_write_fields(&arena, &none), "");
    assert_non_null(h1_write_fields(&arena, &none).p);
}

static void test_chunks(void **state)
{
    (void)state;
    struct fields none = { 0 };
    char out[H1_CHUNK_HEAD];
    EXPECT(str_of(out, h1_chunk_head(out, 1)), "1\r\n");
    EXPECT(str_of(out, h1_chunk_head(out, 15)), "f\r\n");
    EXPECT(str_of(out, h1_chunk_head(out, 16)), "10\r\n");
    EXPECT(str_of(out, h1_chunk_head(out, 0x1a2b)), "1a2b\r\n");
    EXPECT(str_of(out, h1_chunk_head(out, UINT64_MAX)), "ffffffffffffffff\r\n");
    EXPECT(h1_chunk_end(&arena, &none), "0\r\n\r\n");
    EXPECT(h1_chunk_end(&arena, &two), "0\r\nX-MiXeD: q\r\nDate: \r\n\r\n");
}

static void test_read_back(void **state)
{
    (void)state;
    static const struct h1_limits limits = { .head_size = 4096, .head_count = 30 };
    struct h1_read h;
    size_t used;
    struct str made = h1_write_response(&arena, 503, STR_NONE, STR("Content-Length: 0\r\n"), &two);
    h1_read_init(&h, H1_RESPONSE, &limits, &arena);
    assert_int_equal(h1_read_feed(&h, made.p, made.n, &used), H1_HEAD);
    assert_int_equal(used, made.n);
    assert_int_equal(h.head.status, 503);
    assert_true(str_eq(h.head.reason, STR("Service Unavailable")));
    assert_int_equal(h.head.fields.n, 3);
    assert_true(str_eq(h.head.fields.v[1].name, STR("X-MiXeD")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_response),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_read_back),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
