/* SPDX-License-Identifier: MIT */
/*
 * The HTTP/1 reader. Each row is a byte string and the transcript it must give; every row is fed whole, cut in two at
 * every place, and byte by byte, and the transcripts must be the same. Rows cite the rule they stand for.
 */
#include "http/h1_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct row {
    struct str in;
    const char *out;
};

enum { FIN = 1, HEAD_ASKED = 2 };

static const struct h1_limits limits = { .head_size = 2048, .uri_size = 1024, .head_count = 40 };

static const char *const body_names[] = {
    [BODY_NONE] = "-", [BODY_LENGTH] = "length", [BODY_CHUNKED] = "chunked", [BODY_UNTIL_CLOSE] = "close",
};

struct transcript {
    char text[4096];
    size_t n;
    bool in_body;
};

static void say(struct transcript *t, const char *fmt, ...) PRINTF(2, 3);
static void say(struct transcript *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->text + t->n, sizeof t->text - t->n, fmt, ap);
    va_end(ap);
    assert_true(n >= 0 && (size_t)n < sizeof t->text - t->n);
    t->n += (size_t)n;
}

static void say_fields(struct transcript *t, const struct fields *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        assert_int_equal(f->v[i].id, field_id_of(f->v[i].name));
        say(t, " [%.*s=%.*s]", STR_ARG(f->v[i].name), STR_ARG(f->v[i].value));
    }
}

static void say_head(struct transcript *t, const struct h1_read *h)
{
    const struct head *head = &h->head;
    if (h->kind == H1_REQUEST)
        say(t, "%.*s %.*s", STR_ARG(head->method_text), STR_ARG(head->target));
    else
        say(t, "%u (%.*s)", head->status, STR_ARG(head->reason));
    say(t, " 1.%u %s", head->minor, body_names[head->body]);
    if (head->has_length)
        say(t, " %llu", (unsigned long long)head->length);
    say(t, "%s%s%s", head->keep_alive ? " keep" : " close", head->expect_continue ? " expect" : "",
        head->wants_upgrade ? " upgrade" : "");
    say_fields(t, &head->fields);
    say(t, "\n");
}

static void say_event(struct transcript *t, const struct h1_read *h, enum h1_event event)
{
    if (event == H1_BODY) {
        say(t, "%s%.*s", t->in_body ? "" : "body ", STR_ARG(h->body));
        t->in_body = true;
        return;
    }
    if (event != H1_MORE && t->in_body) {
        say(t, "\n");
        t->in_body = false;
    }
    if (event == H1_HEAD) {
        say_head(t, h);
    } else if (event == H1_END) {
        say(t, "end");
        say_fields(t, &h->trailers);
        say(t, "\n");
    } else if (event == H1_BAD) {
        say(t, "bad %s\n", h1_bad_name(h->bad));
    }
}

/* Feeds one piece, which is gone from memory afterwards. False: nothing more may be fed. */
static bool feed(struct h1_read *h, struct transcript *t, const char *bytes, size_t n)
{
    char *piece = malloc(n + 1);
    memcpy(piece, bytes, n);
    size_t at = 0;
    enum h1_event event;
    do {
        size_t used = 0;
        event = h1_read_feed(h, piece + at, n - at, &used);
        assert_true(used <= n - at);
        assert_true(event != H1_MORE || used == n - at);
        at += used;
        say_event(t, h, event);
        if (event == H1_END)
            h1_read_next(h);
    } while (event != H1_MORE && event != H1_BAD);
    free(piece);
    return event != H1_BAD;
}

static void run(enum h1_kind kind, struct str in, unsigned how, size_t first, size_t step, struct transcript *t)
{
    struct arena arena;
    struct h1_read h;
    arena_init(&arena, NULL);
    h1_read_init(&h, kind, &limits, &arena);
    if (how & HEAD_ASKED)
        h1_read_expect(&h, METHOD_HEAD);
    *t = (struct transcript){ .n = 0 };
    bool good = true;
    for (size_t at = 0; at < in.n && good;) {
        size_t n = at == 0 ? first : step;
        if (n > in.n - at)
            n = in.n - at;
        good = feed(&h, t, in.p + at, n);
        at += n;
    }
    if (good && (how & FIN)) {
        enum h1_event event = h1_read_eof(&h);
        say_event(t, &h, event);
        if (event == H1_MORE)
            say(t, "nothing\n");
    }
    say_event(t, &h, H1_MORE);
    arena_reset(&arena);
}

static void check_rows(enum h1_kind kind, const struct row *rows, size_t count, unsigned how)
{
    static struct transcript whole, cut;
    for (size_t i = 0; i < count; i++) {
        struct str in = rows[i].in;
        run(kind, in, how, in.n, in.n, &whole);
        if (strcmp(whole.text, rows[i].out) != 0)
            fail_msg("row %zu: %.60s\ngave\n%swanted\n%s", i, in.p, whole.text, rows[i].out);
        run(kind, in, how, 1, 1, &cut);
        if (strcmp(cut.text, whole.text) != 0)
            fail_msg("row %zu byte by byte: %.60s\ngave\n%swanted\n%s", i, in.p, cut.text, whole.text);
        for (size_t at = 1; at < in.n; at++) {
            run(kind, in, how, at, in.n, &cut);
            if (strcmp(cut.text, whole.text) != 0)
                fail_msg("row %zu cut at %zu: %.60s\ngave\n%swanted\n%s", i, at, in.p, cut.text, whole.text);
        }
    }
}

#define S(literal) { literal, sizeof(literal) - 1 }
#define CHECK_ROWS(kind, rows, how) check_rows(kind, rows, ARRAY_LEN(rows), how)
#define H "Host: h\r\n"

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

static void test_fields(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S("GET / HTTP/1.1\r\nHost:\t h \t\r\nX-A:\r\nx-b: \t \r\nX_c:a:b::\r\nX-D: caf\xc3\xa9 \xff\tz\r\n\r\n"),
          "GET / 1.1 - keep [Host=h] [X-A=] [x-b=] [X_c=a:b::] [X-D=caf\xc3\xa9 \xff\tz]\nend\n" },
        { S("GET / HTTP/1.1\r\n" H "A: 1\r\na: 2\r\nA: 3\r\n\r\n"), "GET / 1.1 - keep [Host=h] [A=1] [a=2] [A=3]\nend\n" },
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

#define POST "POST /p HTTP/1.1\r\n" H
#define NEXT "GET /n HTTP/1.1\r\n" H "\r\n"
#define NEXT_OUT "GET /n 1.1 - keep [Host=h]\nend\n"

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
        { S(POST "Content-Length: 0\r\n\r\n" NEXT), "POST /p 1.1 - 0 keep [Host=h] [Content-Length=0]\nend\n" NEXT_OUT },
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

#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define CHUNKED_OUT "POST /p 1.1 chunked keep [Host=h] [Transfer-Encoding=chunked]\n"

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

static void test_chunks(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { S(CHUNKED "5\r\nhello\r\nA\r\n0123456789\r\n000\r\n\r\n" NEXT), CHUNKED_OUT "body hello0123456789\nend\n" NEXT_OUT },
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
        { S("GET / HTTP/1.1\r\n" H "Connection: upgrade\r\n\r\n"), "GET / 1.1 - keep [Host=h] [Connection=upgrade]\nend\n" },
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
        { S("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"), "200 (OK) 1.0 length 1 close [Content-Length=1]\nbody x\nend\n" },
        /* No body, whatever the fields say (§6.3 rule 1); a Host means nothing in an answer. */
        { S("HTTP/1.1 204 No\r\nContent-Length: 5\r\nHost: a\r\nHost: b\r\n\r\n"),
          "204 (No) 1.1 - 5 keep [Content-Length=5] [Host=a] [Host=b]\nend\n" },
        { S("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n"), "204 (No) 1.1 - keep [Transfer-Encoding=chunked]\nend\n" },
        { S("HTTP/1.1 304 No\r\nContent-Length: 77\r\n\r\n"), "304 (No) 1.1 - 77 keep [Content-Length=77]\nend\n" },
        { S("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
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
        cmocka_unit_test(test_start_lines),
        cmocka_unit_test(test_other_protocols),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_codings),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_trailers),
        cmocka_unit_test(test_request_connection),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_response_to_head),
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
