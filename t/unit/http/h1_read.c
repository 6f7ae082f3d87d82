/* SPDX-License-Identifier: MIT */
/* The HTTP/1 reader as a whole: ends of connections, limits, states. What single bytes may stand where: h1_line,
 * h1_section, h1_chunk, h1_frame. */
#include "h1_rows.h"

static void test_eof(void **state)
{
    (void)state;
    static const struct row requests[] = {
        { S(""), "nothing\n" },
        { S("\r\n\r"), "nothing\n" },
        { S("G"), "bad TRUNCATED\n" },
        { S("GET / HTTP/1.1\r\n" H "\r"), "bad TRUNCATED\n" },
        { S("GET / HTTP/1.1\r\n" H "\r\n"), "GET / 1.1 - keep [Host=h]\nend\nnothing\n" },
        { S(POST "Content-Length: 2\r\n\r\nx"),
          "POST /p 1.1 length 2 keep [Host=h] [Content-Length=2]\nbody x\nbad TRUNCATED\n" },
        { S(CHUNKED "5\r\nhello\r\n"), CHUNKED_OUT "body hello\nbad TRUNCATED\n" },
        { S(CHUNKED "5\r\nhello\r\n0\r\n"), CHUNKED_OUT "body hello\nbad TRUNCATED\n" },
        { S(CHUNKED "5\r\nhello\r\n0\r\nX: y\r\n"), CHUNKED_OUT "body hello\nbad TRUNCATED\n" },
    };
    static const struct row responses[] = {
        { S(""), "nothing\n" },
        { S("HTTP/1.1 200 OK\r\n\r\n"), "200 (OK) 1.1 close close\nend\n" },
        { S("HTTP/1.1 200 OK\r\n\r\nabc"), "200 (OK) 1.1 close close\nbody abc\nend\n" },
        { S("HTTP/1.1 200 OK\r\nContent-Le"), "bad TRUNCATED\n" },
        { S("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
          "200 (OK) 1.1 length 9 keep [Content-Length=9]\nbody abc\nbad TRUNCATED\n" },
    };
    CHECK_ROWS(H1_REQUEST, requests, FIN);
    CHECK_ROWS(H1_RESPONSE, responses, FIN);
}

/* A head of n bytes exactly: before, n - ... bytes of c, after. */
static struct str padded(char *out, size_t n, struct str before, char c, struct str after)
{
    memset(out, c, n);
    memcpy(out, before.p, before.n);
    memcpy(out + n - after.n, after.p, after.n);
    return str_of(out, n);
}

static void expect_end(struct str in, const char *end)
{
    static struct transcript t;
    const size_t steps[] = { in.n, 1, 7 };
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        run(H1_REQUEST, in, 0, steps[i], steps[i], &t);
        struct str said = str_of(t.text, t.n);
        if (!str_ends(said, str_c(end)))
            fail_msg("%.40s ... in steps of %zu gave\n%swanted\n%s", in.p, steps[i], t.text, end);
    }
}

static void test_limits(void **state)
{
    (void)state;
    static char b[16384];
    /* The request line: 1024 bytes and CRLF pass. */
    size_t line = limits.uri_size;
    struct str tail = STR(" HTTP/1.1\r\n" H "\r\n");
    size_t rest = tail.n - STR(" HTTP/1.1").n;
    expect_end(padded(b, line + rest, STR("GET /"), 'a', tail), "[Host=h]\nend\n");
    expect_end(padded(b, line + 1 + rest, STR("GET /"), 'a', tail), "bad URI_TOO_LONG\n");
    expect_end(padded(b, 8192, STR("GET /"), 'a', tail), "bad URI_TOO_LONG\n");
    /* A method of 64 bytes passes. */
    expect_end(padded(b, 64 + 2 + tail.n, STR("GG"), 'G', STR(" / HTTP/1.1\r\n" H "\r\n")), "[Host=h]\nend\n");
    expect_end(padded(b, 65 + 2 + tail.n, STR("GG"), 'G', STR(" / HTTP/1.1\r\n" H "\r\n")), "bad METHOD\n");
    /* The head: 2048 bytes pass. */
    struct str head = STR("GET / HTTP/1.1\r\n" H "X: ");
    expect_end(padded(b, limits.head_size, head, 'v', STR("\r\n\r\n")), "v]\nend\n");
    expect_end(padded(b, limits.head_size + 1, head, 'v', STR("\r\n\r\n")), "bad HEAD_TOO_LARGE\n");
    expect_end(padded(b, 10000, STR("GET / HTTP/1.1\r\n"), 'x', STR(": y\r\n\r\n")), "bad HEAD_TOO_LARGE\n");
    /* Empty lines count. */
    for (size_t i = 0; i < 4096; i += 2)
        memcpy(b + i, "\r\n", 2);
    expect_end(str_of(b, 4096), "bad HEAD_TOO_LARGE\n");
    /* Fields: 40 pass. */
    size_t n = 0;
    struct str start = STR("GET / HTTP/1.1\r\n" H);
    memcpy(b, start.p, start.n);
    for (n = start.n; n < start.n + 39 * 6; n += 6)
        memcpy(b + n, "X: y\r\n", 6);
    memcpy(b + n, "\r\n", 2);
    expect_end(str_of(b, n + 2), "[X=y]\nend\n");
    memcpy(b + n, "X: y\r\n\r\n", 8);
    expect_end(str_of(b, n + 8), "bad TOO_MANY_FIELDS\n");
}

static void test_limits_in_bodies(void **state)
{
    (void)state;
    static char b[65536];
    struct str start = STR(CHUNKED "5;");
    size_t n = start.n + limits.head_size;
    struct str tail = STR("\r\nhello\r\n0\r\n\r\n");
    /* Extensions of the size of a head pass: the ';' counts. */
    expect_end(padded(b, n - 1 + tail.n, start, 'a', tail), "body hello\nend\n");
    expect_end(padded(b, n + tail.n, start, 'a', tail), "bad CHUNK\n");
    /* In small doses, too, unless there is data with them. */
    start = STR(CHUNKED);
    memcpy(b, start.p, start.n);
    n = start.n;
    for (int i = 0; i < 600; i++, n += 11)
        memcpy(b + n, "1;sig=\r\nx\r\n", 11), b[n + 5] = 'g';
    expect_end(str_of(b, n), "bad CHUNK\n");
    /* Trailer sections are bounded like heads. */
    start = STR(CHUNKED "0\r\nX: ");
    tail = STR("\r\n\r\n");
    size_t head_part = start.n - STR("X: ").n;
    expect_end(padded(b, head_part + limits.head_size, start, 'v', tail), "v]\n");
    expect_end(padded(b, head_part + limits.head_size + 1, start, 'v', tail), "bad TRAILER\n");
}

/* Signed uploads carry some 85 bytes of extension with each 64 KB: no limit may stop them in the long run. */
static void test_extensions_with_data(void **state)
{
    (void)state;
    struct arena arena;
    struct h1_read h;
    struct transcript t = { .n = 0 };
    static char chunk[65536 + 128];
    struct str line = STR("10000;chunk-signature=0123456789012345678901234567890123456789012345678901234567890123\r\n");
    arena_init(&arena, NULL);
    h1_read_init(&h, H1_REQUEST, &limits, &arena);
    assert_true(feed(&h, &t, CHUNKED, sizeof CHUNKED - 1));
    memcpy(chunk, line.p, line.n);
    memcpy(chunk + line.n + 65536, "\r\n", 2);
    for (int i = 0; i < 200; i++) {
        size_t used, n = line.n + 65538;
        assert_int_equal(h1_read_feed(&h, chunk, n, &used), H1_BODY);
        assert_int_equal(h.body.n, 65536);
        size_t more;
        assert_int_equal(h1_read_feed(&h, chunk + used, n - used, &more), H1_MORE);
        assert_int_equal(used + more, n);
    }
    arena_reset(&arena);
}

static void test_states(void **state)
{
    (void)state;
    struct arena arena;
    struct h1_read h;
    size_t used;
    arena_init(&arena, NULL);
    h1_read_init(&h, H1_REQUEST, &limits, &arena);
    assert_null(arena.blocks);
    assert_int_equal(h1_read_feed(&h, "\r\n", 2, &used), H1_MORE);
    assert_false(h1_read_has_begun(&h));
    assert_null(arena.blocks);
    assert_int_equal(h1_read_feed(&h, "P", 1, &used), H1_MORE);
    assert_true(h1_read_has_begun(&h));
    static const char rest[] = "OST / HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nxy";
    assert_int_equal(h1_read_feed(&h, rest, sizeof rest - 1, &used), H1_HEAD);
    assert_int_equal(used, sizeof rest - 3);
    assert_int_equal(h.head_bytes, 2 + 1 + used);
    assert_true(h1_read_in_body(&h));
    assert_int_equal(h1_read_feed(&h, rest + used, 2, &used), H1_BODY);
    assert_false(h1_read_in_body(&h));
    assert_int_equal(h1_read_feed(&h, NULL, 0, &used), H1_END);
    assert_int_equal(h1_read_feed(&h, NULL, 0, &used), H1_MORE);
    assert_int_equal(h1_read_eof(&h), H1_MORE);
    h1_read_next(&h);
    assert_false(h1_read_has_begun(&h));
    assert_int_equal(h1_read_feed(&h, "\x16zzz", 4, &used), H1_BAD);
    assert_int_equal(h1_read_feed(&h, "GET", 3, &used), H1_BAD);
    assert_int_equal(h1_read_eof(&h), H1_BAD);
    arena_reset(&arena);
}

/* A body is handed over where it lies, as far as it goes. */
static void test_bodies_are_not_copied(void **state)
{
    (void)state;
    struct arena arena;
    struct h1_read h;
    size_t used, more;
    static const char in[] = POST "Content-Length: 9\r\n\r\n123456";
    arena_init(&arena, NULL);
    h1_read_init(&h, H1_REQUEST, &limits, &arena);
    assert_int_equal(h1_read_feed(&h, in, sizeof in - 1, &used), H1_HEAD);
    assert_int_equal(h1_read_feed(&h, in + used, sizeof in - 1 - used, &more), H1_BODY);
    assert_ptr_equal(h.body.p, in + used);
    assert_int_equal(h.body.n, 6);
    assert_int_equal(h.left, 3);
    arena_reset(&arena);
}

static void test_reasons(void **state)
{
    (void)state;
    assert_int_equal(h1_bad_status(H1_BAD_HOST), 400);
    assert_int_equal(h1_bad_status(H1_BAD_CODING), 501);
    assert_int_equal(h1_bad_status(H1_BAD_URI_TOO_LONG), 414);
    assert_string_equal(h1_bad_name(H1_BAD_CHUNK), "CHUNK");
    assert_string_equal(h1_bad_text(H1_BAD_CHUNK), "malformed chunk");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eof),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_limits_in_bodies),
        cmocka_unit_test(test_extensions_with_data),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_bodies_are_not_copied),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
