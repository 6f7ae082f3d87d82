/* SPDX-License-Identifier: MIT */
/* What the fields of a head say together: Host, lengths, codings, persistence (RFC 9112 §3.2, §6, §9.3). */
#include "h1_rows.h"

static void test_host(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S("GET / HTTP/1.1\r\n\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.1\r\n" H H "\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.0\r\n" H "hOST: i\r\n\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.1\r\nHost:\r\n\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.0\r\nHost:\r\n\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"), "bad HOST\n" },
        { S("GET http://h/ HTTP/1.1\r\n\r\n"), "bad HOST\n" },
        { S("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"), "GET / 1.1 - keep [Host=[::1]:8080]\nend\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

static void test_lengths(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S(POST "Content-Length: 5\r\n\r\nhello" NEXT),
          "POST /p 1.1 length 5 keep [Host=h] [Content-Length=5]\nbody hello\nend\n" NEXT_OUT },
        { S(POST "content-length:05 \r\n\r\nhello\r\n" NEXT),
          "POST /p 1.1 length 5 keep [Host=h] [content-length=05]\nbody hello\nend\n" NEXT_OUT },
        { S(POST "Content-Length: \t5 \t\r\n\r\nhello"),
          "POST /p 1.1 length 5 keep [Host=h] [Content-Length=5]\nbody hello\nend\n" },
        { S(POST "Content-Length: 0\r\n\r\n" NEXT),
          "POST /p 1.1 - 0 keep [Host=h] [Content-Length=0]\nend\n" NEXT_OUT },
        { S(POST "\r\n" NEXT), "POST /p 1.1 - keep [Host=h]\nend\n" NEXT_OUT },
        { S("GET /p HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nhi" NEXT),
          "GET /p 1.1 length 2 keep [Host=h] [Content-Length=2]\nbody hi\nend\n" NEXT_OUT },
        { S(POST "Content-Length: 9223372036854775807\r\n\r\nhello"),
          "POST /p 1.1 length 9223372036854775807 keep [Host=h] [Content-Length=9223372036854775807]\nbody hello" },
        { S(POST "Content-Length: 9223372036854775808\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: 18446744073709551621\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: 4\r\nContent-Length: 5\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: 4\r\nContent-Length: 4\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: 4, 4\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: +4\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: -4\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: 0x4\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: 4 4\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: 4;\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length:\r\n\r\n"), "bad LENGTH\n" },
        { S(POST "Content-Length: \xef\xbc\x95\r\n\r\n"), "bad LENGTH\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

static void test_codings(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S(POST "TRANSFER-ENCODING:\t cHuNkEd \r\n\r\n0\r\n\r\n" NEXT),
          "POST /p 1.1 chunked keep [Host=h] [TRANSFER-ENCODING=cHuNkEd]\nend\n" NEXT_OUT },
        { S(POST "Transfer-Encoding:\tchunked\t \t\r\nX:\ta\t\tb\t\r\n\r\n0\r\n\r\n"),
          "POST /p 1.1 chunked keep [Host=h] [Transfer-Encoding=chunked] [X=a\t\tb]\nend\n" },
        { S("GET /p HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n" NEXT),
          "GET /p 1.1 chunked keep [Host=h] [Transfer-Encoding=chunked]\nbody hi\nend\n" NEXT_OUT },
        { S(POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"), "bad FRAMING\n" },
        { S(POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n"), "bad FRAMING\n" },
        { S("POST /p HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n"), "bad FRAMING\n" },
        { S(POST "Transfer-Encoding: gzip\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: identity\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: xchunked\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: \"chunked\"\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: chunked, identity\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding:\r\n\r\n"), "bad CODING\n" },
        { S(POST "Transfer-Encoding: \x0b" "chunked\r\n\r\n"), "bad FIELD\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

static void test_request_connection(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S("GET / HTTP/1.1\r\n" H "Connection: foo, CLOSE\r\n\r\n"),
          "GET / 1.1 - close [Host=h] [Connection=foo, CLOSE]\nend\n" },
        { S("GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: close\r\n\r\n"),
          "GET / 1.1 - close [Host=h] [Connection=keep-alive] [Connection=close]\nend\n" },
        { S("GET / HTTP/1.1\r\n" H "Connection: closed, x-close\r\n\r\n"),
          "GET / 1.1 - keep [Host=h] [Connection=closed, x-close]\nend\n" },
        { S("GET / HTTP/1.1\r\n" H "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"),
          "GET / 1.1 - keep upgrade [Host=h] [Connection=keep-alive, Upgrade] [Upgrade=websocket]\nend\n" },
        { S("GET / HTTP/1.1\r\n" H "Connection: upgrade\r\n\r\n"),
          "GET / 1.1 - keep [Host=h] [Connection=upgrade]\nend\n" },
        { S("GET / HTTP/1.1\r\n" H "Upgrade: x\r\n\r\n"), "GET / 1.1 - keep [Host=h] [Upgrade=x]\nend\n" },
        { S("GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
          "GET / 1.0 - close [Connection=Upgrade] [Upgrade=x]\nend\n" },
        { S(POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"),
          "POST /p 1.1 length 1 keep expect [Host=h] [Expect=100-Continue] [Content-Length=1]\nbody x\nend\n" },
        { S(POST "Expect: y 100-continue\r\n\r\n"), "POST /p 1.1 - keep [Host=h] [Expect=y 100-continue]\nend\n" },
        { S("POST /p HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"), "POST /p 1.0 - close [Expect=100-continue]\nend\n" },
        /* CONNECT: what its fields say about a body means nothing. */
        { S("CONNECT h:80 HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\n"),
          "CONNECT h:80 1.1 - 3 close [Host=h] [Content-Length=3]\nend\n" },
        { S("CONNECT h:80 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"),
          "CONNECT h:80 1.1 - close [Host=h] [Transfer-Encoding=chunked]\nend\n" },
    };
    CHECK_ROWS(H1_REQUEST, rows, 0);
}

static void test_responses(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 Not  Found\r\nContent-Length: 0\r\n\r\n"),
          "200 (OK) 1.1 length 2 keep [Content-Length=2]\nbody ok\nend\n"
          "404 (Not  Found) 1.1 length 0 keep [Content-Length=0]\nend\n" },
        { S("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"), "200 () 1.1 length 0 keep [Content-Length=0]\nend\n" },
        { S("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"), "200 () 1.1 length 0 keep [Content-Length=0]\nend\n" },
        { S("HTTP/1.1 200 d\xe9j\xe0 \tvu\r\nContent-Length: 0\r\n\r\n"),
          "200 (d\xe9j\xe0 \tvu) 1.1 length 0 keep [Content-Length=0]\nend\n" },
        { S("HTTP/1.1 299 x\r\nTransfer-Encoding: Chunked\r\n\r\n0003;a=b\r\nhel\r\n0\r\nX: y\r\n\r\n"),
          "299 (x) 1.1 chunked keep [Transfer-Encoding=Chunked]\nbody hel\nend [X=y]\n" },
        { S("HTTP/1.1 200 OK\r\n\r\nall of it"), "200 (OK) 1.1 close close\nbody all of it" },
        { S("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nall"),
          "200 (OK) 1.0 close close [Connection=keep-alive]\nbody all" },
        { S("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx"),
          "200 (OK) 1.0 length 1 keep [Connection=keep-alive] [Content-Length=1]\nbody x\nend\n" },
        { S("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"),
          "200 (OK) 1.0 length 1 close [Content-Length=1]\nbody x\nend\n" },
        /* No body, whatever the fields say (§6.3 rule 1); a Host means nothing in an answer. */
        { S("HTTP/1.1 204 No\r\nContent-Length: 5\r\nHost: a\r\nHost: b\r\n\r\n"),
          "204 (No) 1.1 - 5 keep [Content-Length=5] [Host=a] [Host=b]\nend\n" },
        { S("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n"),
          "204 (No) 1.1 - keep [Transfer-Encoding=chunked]\nend\n" },
        { S("HTTP/1.1 304 No\r\nContent-Length: 77\r\n\r\n"), "304 (No) 1.1 - 77 keep [Content-Length=77]\nend\n" },
        { S("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: <a>\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
          "100 (Continue) 1.1 - keep\nend\n103 (Early) 1.1 - keep [Link=<a>]\nend\n"
          "200 (OK) 1.1 length 1 keep [Content-Length=1]\nbody x\nend\n" },
        { S("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
          "101 (Switching) 1.1 - keep upgrade [Connection=Upgrade] [Upgrade=websocket]\nend\n" },
        /* What must become 502 (§6.3 rules 3 to 5, §4). */
        { S("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"), "bad LENGTH\n" },
        { S("HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello"), "bad LENGTH\n" },
        { S("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello"), "bad LENGTH\n" },
        { S("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"), "bad FRAMING\n" },
        { S("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), "bad FRAMING\n" },
        { S("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"), "bad CODING\n" },
        { S("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n"), "bad CODING\n" },
        { S("HTTP/1.1 204 No\r\nTransfer-Encoding: a\r\nTransfer-Encoding: b\r\n\r\n"), "bad CODING\n" },
        { S("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n"),
          "200 (OK) 1.1 chunked keep [Transfer-Encoding=chunked]\nbad CHUNK\n" },
        { S("HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\n\r\n"), "bad FIELD\n" },
        { S("HTTP/1.1 200 OK\r\nX-A : a\r\n\r\n"), "bad FIELD\n" },
        { S("hello there\r\n\r\n"), "bad START_LINE\n" },
        { S("ICY 200 OK\r\n\r\n"), "bad START_LINE\n" },
        { S("\r\nHTTP/1.1 200 OK\r\n\r\n"), "bad START_LINE\n" },
        { S("HTTP/1.1  200 OK\r\n"), "bad START_LINE\n" },
        { S("HTTP/1.1 20 OK\r\n"), "bad START_LINE\n" },
        { S("HTTP/1.1 2000 OK\r\n"), "bad START_LINE\n" },
        { S("HTTP/1.1 2x0 OK\r\n"), "bad START_LINE\n" },
        { S("HTTP/1.1 000 OK\r\n"), "bad START_LINE\n" },
        { S("HTTP/1.1 099 OK\r\n"), "bad START_LINE\n" },
        { S("HTTP/1.1 200 O\rK\r\n"), "bad START_LINE\n" },
        { S("HTTP/1.1 200 OK\n"), "bad START_LINE\n" },
        { S("HTTP/3.0 200 OK\r\n"), "bad VERSION\n" },
    };
    CHECK_ROWS(H1_RESPONSE, rows, 0);
}

static void test_response_to_head(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "HTTP/1.1 200 OK\r\n\r\n"),
          "200 (OK) 1.1 - 1234 keep [Content-Length=1234]\nend\n"
          "200 (OK) 1.1 - keep [Transfer-Encoding=chunked]\nend\n200 (OK) 1.1 - keep\nend\n" },
    };
    CHECK_ROWS(H1_RESPONSE, rows, HEAD_ASKED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_codings),
        cmocka_unit_test(test_request_connection),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_response_to_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
