/* SPDX-License-Identifier: MIT */
/* Start lines: what is taken, and that what can never become a message is refused at once. */
#include "h1_rows.h"

static void test_start_lines(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S("GET / HTTP/1.1\r\n" H "\r\n"), "GET / 1.1 - keep [Host=h]\nend\n" },
        { S("GET /a?b=%zz|{}\"<>^`\\ HTTP/1.1\r\n" H "\r\n"), "GET /a?b=%zz|{}\"<>^`\\ 1.1 - keep [Host=h]\nend\n" },
        /* Any token is a method, and case counts. */
        { S("get /a HTTP/1.1\r\n" H "\r\n"), "get /a 1.1 - keep [Host=h]\nend\n" },
        { S("M-!#$%&'*+.^_`|~1 /a HTTP/1.1\r\n" H "\r\n"), "M-!#$%&'*+.^_`|~1 /a 1.1 - keep [Host=h]\nend\n" },
        { S("PROPFIND /a HTTP/1.1\r\n" H "\r\n"), "PROPFIND /a 1.1 - keep [Host=h]\nend\n" },
        /* Minor versions above 1 count as 1. */
        { S("GET / HTTP/1.2\r\n" H "\r\n"), "GET / 1.1 - keep [Host=h]\nend\n" },
        { S("GET / HTTP/1.9\r\n" H "\r\n"), "GET / 1.1 - keep [Host=h]\nend\n" },
        { S("GET / HTTP/1.0\r\n\r\n"), "GET / 1.0 - close\nend\n" },
        { S("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), "GET / 1.0 - keep [Connection=keep-alive]\nend\n" },
        { S("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"),
          "GET / 1.0 - close [Connection=keep-alive, close]\nend\n" },
        /* Other targets are bytes here. */
        { S("OPTIONS * HTTP/1.1\r\n" H "\r\n"), "OPTIONS * 1.1 - keep [Host=h]\nend\n" },
        { S("GET http://o/x HTTP/1.1\r\n" H "\r\n"), "GET http://o/x 1.1 - keep [Host=h]\nend\n" },
        /* Empty lines before a request. */
        { S("\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n\r\nGET /2 HTTP/1.1\r\n" H "\r\n"),
          "GET / 1.1 - keep [Host=h]\nend\nGET /2 1.1 - keep [Host=h]\nend\n" },
        { S("\nGET / HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S("\rGET / HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S(" GET / HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S("\0GET / HTTP/1.1\r\n"), "bad START_LINE\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

static void test_bad_start_lines(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* Separators are one SP each, the end is CRLF. */
        { S("GET  / HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S("GET /  HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S("GET\t/ HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S("GET /\tHTTP/1.1\r\n"), "bad TARGET\n" },
        { S("GET / HTTP/1.1 \r\n"), "bad START_LINE\n" },
        { S("GET / HTTP/1.1\n"), "bad START_LINE\n" },
        { S("GET / HTTP/1.1\r\r\n"), "bad START_LINE\n" },
        { S("GET / HTTP/1.1\rX"), "bad START_LINE\n" },
        { S("GET / b HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S("GET / HTTP/1.1 HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S("GET\r\n"), "bad START_LINE\n" },
        { S("GET HTTP/1.1\r\n"), "bad START_LINE\n" },
        /* Versions. */
        { S("GET / HTTP/2.0\r\n"), "bad VERSION\n" },
        { S("GET / HTTP/0.9\r\n"), "bad VERSION\n" },
        { S("GET / HTTP/9."), "bad VERSION\n" },
        { S("GET / HTTP/01.1\r\n"), "bad START_LINE\n" },
        { S("GET / HTTP/11.1\r\n"), "bad START_LINE\n" },
        { S("GET / HTTP/1.10\r\n"), "bad START_LINE\n" },
        { S("GET / HTTP/1.\r\n"), "bad START_LINE\n" },
        { S("GET / HTTP/1,1\r\n"), "bad START_LINE\n" },
        { S("GET / HTTP/1\r\n"), "bad START_LINE\n" },
        { S("GET / http/1.1\r\n"), "bad START_LINE\n" },
        { S("GET / HTTPS/1.1\r\n"), "bad START_LINE\n" },
        { S("GET /\r\n"), "bad START_LINE\n" },
        /* Bytes no target and no method may hold. */
        { S("GET /a#f HTTP/1.1\r\n"), "bad TARGET\n" },
        { S("GET /\xc3\xa9 HTTP/1.1\r\n"), "bad TARGET\n" },
        { S("GET /\x7f HTTP/1.1\r\n"), "bad TARGET\n" },
        { S("GET /\x01 HTTP/1.1\r\n"), "bad TARGET\n" },
        { S("GET /\0 HTTP/1.1\r\n"), "bad TARGET\n" },
        { S("GE(T / HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S("G\xc9T / HTTP/1.1\r\n"), "bad START_LINE\n" },
        { S("GET/ HTTP/1.1\r\n"), "bad START_LINE\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

/* Traffic that can never become a request is refused at the byte that shows it, not at a timeout. */
static void test_other_protocols(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S("\x16"), "bad START_LINE\n" },                           /* TLS */
        { S("\x03"), "bad START_LINE\n" },                           /* RDP */
        { S("SSH-2.0-x\r"), "bad START_LINE\n" },                    /* SSH without a comment */
        { S("SSH-2.0-x y\r"), "bad START_LINE\n" },                  /* and with one */
        { S("PROXY TCP4 1"), "bad START_LINE\n" },                   /* PROXY protocol 1 */
        { S("\r\n\r\n\0"), "bad START_LINE\n" },                     /* and 2 */
        { S("PRI * HTTP/2."), "bad VERSION\n" },                     /* HTTP/2 preface */
        { S("HTTP/"), "bad START_LINE\n" },                          /* an answer */
        { S("GET /\r"), "bad START_LINE\n" },                        /* HTTP/0.9 */
        { S("\x80"), "bad START_LINE\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_lines),
        cmocka_unit_test(test_bad_start_lines),
        cmocka_unit_test(test_other_protocols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
