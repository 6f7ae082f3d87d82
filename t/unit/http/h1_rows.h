/* SPDX-License-Identifier: MIT */
/*
 * Tables of messages for the tests of the HTTP/1 reader. Each row is a byte string and the transcript it must give;
 * every row is fed whole, cut in two at every place, and byte by byte, and the transcripts must be the same.
 */
#ifndef UNIT_HTTP_H1_ROWS_H
#define UNIT_HTTP_H1_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "http/h1_read.h"

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

/* What the rows are made of. */
#define H "Host: h\r\n"
#define POST "POST /p HTTP/1.1\r\n" H
#define NEXT "GET /n HTTP/1.1\r\n" H "\r\n"
#define NEXT_OUT "GET /n 1.1 - keep [Host=h]\nend\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define CHUNKED_OUT "POST /p 1.1 chunked keep [Host=h] [Transfer-Encoding=chunked]\n"

#endif
