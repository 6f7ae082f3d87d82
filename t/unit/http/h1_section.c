/* SPDX-License-Identifier: MIT */
/* Field lines (RFC 9112 §2.2, §5). Rows cite the rule they stand for. */
#include "h1_rows.h"

static void test_fields(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S("GET / HTTP/1.1\r\nHost:\t h \t\r\nX-A:\r\nx-b: \t \r\nX_c:a:b::\r\nX-D: caf\xc3\xa9 \xff\tz\r\n\r\n"),
          "GET / 1.1 - keep [Host=h] [X-A=] [x-b=] [X_c=a:b::] [X-D=caf\xc3\xa9 \xff\tz]\nend\n" },
        { S("GET / HTTP/1.1\r\n" H "A: 1\r\na: 2\r\nA: 3\r\n\r\n"),
          "GET / 1.1 - keep [Host=h] [A=1] [a=2] [A=3]\nend\n" },
        /* RFC 9112 §5.1: no space before the colon; a name is a token. */
        { S("GET / HTTP/1.1\r\nHost : h\r\n\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nHost\t: h\r\n\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nContent-Length : 5\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nXYZ\r\n\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\n: a\r\n\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX A: 1\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX(A: 1\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX\0A: 1\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\n\x0bX: 1\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX\xff: 1\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nContent-Length\x0b: 1\r\n"), "bad FIELD\n" },
        /* §5.2: folded lines, also the first one and empty ones. */
        { S("GET / HTTP/1.1\r\n X: y\r\n" H "\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\n\tX: y\r\n" H "\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX: a\r\n\tb\r\n\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX:\r\n b\r\n\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX: a\r\n \r\n\r\n"), "bad FIELD\n" },
        { S("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n 0\r\n\r\n"), "bad FIELD\n" },
        { S("POST / HTTP/1.1\r\n" H "Content-Length:\r\n 5\r\n\r\n"), "bad FIELD\n" },
        { S("POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n chunked\r\n\r\n"), "bad FIELD\n" },
        /* §2.2: a CR or LF alone ends nothing. */
        { S("GET / HTTP/1.1\r\nX: a\rb\r\n\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX: \rTransfer-Encoding: chunked\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX: a\r\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX: a\nY: b\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX:\nY: b\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX: a\n\rY: b\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\n" H "\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\n\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nHost: h\n\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nHost: h\n\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\n" H "\rGET /smuggled HTTP/1.1\r\n" H "\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\n" H "\rX"), "bad FIELD\n" },
        /* Controls in values. */
        { S("GET / HTTP/1.1\r\nX: a\0b\r\n"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX: a\x01"), "bad FIELD\n" },
        { S("GET / HTTP/1.1\r\nX: a\x7f"), "bad FIELD\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
