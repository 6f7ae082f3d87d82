/* SPDX-License-Identifier: MIT */
/* Chunks and trailer sections (RFC 9112 §7.1). */
#include "h1_rows.h"

static void test_chunks(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S(CHUNKED "5\r\nhello\r\nA\r\n0123456789\r\n000\r\n\r\n" NEXT),
          CHUNKED_OUT "body hello0123456789\nend\n" NEXT_OUT },
        { S(CHUNKED "0000000000000005\r\nhello\r\n0\r\n\r\n"), CHUNKED_OUT "body hello\nend\n" },
        { S(CHUNKED "5;a=b\r\nhello\r\n0;c\r\n\r\n"), CHUNKED_OUT "body hello\nend\n" },
        { S(CHUNKED "5;a=\"b;c\\\"d\\\\\";e\r\nhello\r\n0\r\n\r\n"), CHUNKED_OUT "body hello\nend\n" },
        { S(CHUNKED "5 ; a = b ;\tc ; d=\"\" ;e\r\nhello\r\n0\r\n\r\n"), CHUNKED_OUT "body hello\nend\n" },
        /* RFC 9112 §7.1: 1*HEXDIG, CRLF, and what overflows. */
        { S(CHUNKED "0x5\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "+5\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "-5\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED " 5\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5 \r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5_0\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5g\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED ";a\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "7fffffffffffffff\r\nhello"), CHUNKED_OUT "body hello" },
        { S(CHUNKED "8000000000000000"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "fffffffffffffffff"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "00000000000000001"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5\rh"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;a\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;a\rb"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;a\0"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;a=\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;a=\"b\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;a=\"b\\\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;a=\"b\"c\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5;a b\r\n"), CHUNKED_OUT "bad CHUNK\n" },
        { S(CHUNKED "5\r\nhelloX"), CHUNKED_OUT "body hello\nbad CHUNK\n" },
        { S(CHUNKED "5\r\nhello\n"), CHUNKED_OUT "body hello\nbad CHUNK\n" },
        { S(CHUNKED "5\r\nhello\rX"), CHUNKED_OUT "body hello\nbad CHUNK\n" },
        { S(CHUNKED "5\r\nhello\r\nzz\r\n"), CHUNKED_OUT "body hello\nbad CHUNK\n" },
        { S(CHUNKED "0\n"), CHUNKED_OUT "bad CHUNK\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

static void test_trailers(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S(CHUNKED "5\r\nhello\r\n0\r\nX-T: v\r\nContent-Length: 9\r\nHost: evil\r\n\r\n" NEXT),
          CHUNKED_OUT "body hello\nend [X-T=v] [Content-Length=9] [Host=evil]\n" NEXT_OUT },
        { S(CHUNKED "0\r\nTransfer-Encoding: identity\r\n\r\n"), CHUNKED_OUT "end [Transfer-Encoding=identity]\n" },
        { S(CHUNKED "0\r\n\n"), CHUNKED_OUT "bad TRAILER\n" },
        { S(CHUNKED "0\r\n\rX"), CHUNKED_OUT "bad TRAILER\n" },
        { S(CHUNKED "0\r\nfoo\r\n"), CHUNKED_OUT "bad TRAILER\n" },
        { S(CHUNKED "0\r\nX : y\r\n"), CHUNKED_OUT "bad TRAILER\n" },
        { S(CHUNKED "0\r\n: y\r\n"), CHUNKED_OUT "bad TRAILER\n" },
        { S(CHUNKED "0\r\nX: a\rY: b\r\n"), CHUNKED_OUT "bad TRAILER\n" },
        { S(CHUNKED "0\r\nX: a\0"), CHUNKED_OUT "bad TRAILER\n" },
        { S(CHUNKED "0\r\nX: a\r\n b\r\n\r\n"), CHUNKED_OUT "bad TRAILER\n" },
        { S(CHUNKED "0\r\n X: a\r\n\r\n"), CHUNKED_OUT "bad TRAILER\n" },
        { S(CHUNKED "0\r\n" NEXT), CHUNKED_OUT "bad TRAILER\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_trailers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
