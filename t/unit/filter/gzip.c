/* SPDX-License-Identifier: MIT */
/*
 * The gzip filter. Which answers it takes and what it makes of their heads, row by row; and the body: every way to
 * cut the input, every size of the space for the output, and after a PAUSE nothing held back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "filter/gzip.h"
#include "http/fields.h"

static struct worker worker;
static void *state_;
static struct conf_result loaded;

static int set_up(void **state)
{
    (void)state;
    conf_load_text(STR("gzip = { types = \"application/x-own\"; min_length = \"20b\"; };"
                       " sites = ( { listen = \"80\"; respond = 200; } );"),
                   "test.conf", "/", &loaded);
    worker.loop = loop_new(0);
    state_ = worker.loop ? gzip_filter.open(&worker) : NULL;
    return loaded.conf == NULL || state_ == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    gzip_filter.close(&worker, state_);
    loop_free(worker.loop);
    conf_free(loaded.conf);
    conf_result_free(&loaded);
    return 0;
}

struct decoder {
    z_stream z;
    char out[64 * 1024];
    size_t n;
    bool ended;
};

static void decode(struct decoder *d, const char *p, size_t n)
{
    d->z.next_in = (z_const Bytef *)(uintptr_t)p;
    d->z.avail_in = (uInt)n;
    d->z.next_out = (Bytef *)d->out + d->n;
    d->z.avail_out = (uInt)(sizeof d->out - d->n);
    int rc = inflate(&d->z, Z_SYNC_FLUSH);
    assert_true(rc == Z_OK || rc == Z_STREAM_END || (rc == Z_BUF_ERROR && n == 0));
    assert_int_equal(d->z.avail_in, 0);
    d->n = sizeof d->out - d->z.avail_out;
    d->ended = rc == Z_STREAM_END;
}

/* Feeds one piece with room for `cap` bytes at a time; returns how many bytes came out. */
static size_t feed(void *use, struct decoder *d, struct str in, enum how how, size_t cap)
{
    char room[4096];
    size_t all = 0;
    for (bool done = false; !done;) {
        struct filter_out out = { .p = room, .cap = cap };
        done = gzip_filter.body(use, &in, how, &out);
        assert_true(out.n <= cap && (done || out.n == cap));
        if (out.n > 0)
            decode(d, room, out.n);
        all += out.n;
        assert_true(all < 2 * sizeof d->out);
    }
    assert_int_equal(in.n, 0);
    return all;
}

/* ---- the head ---- */

static void add_lines(struct fields *f, struct arena *a, const char *text)
{
    for (struct str rest = str_c(text); rest.n > 0;) {
        ptrdiff_t end = str_chr(rest, '|', 0), colon = str_chr(rest, ':', 0);
        struct str line = str_take(rest, end < 0 ? rest.n : (size_t)end);
        struct str name = str_take(line, (size_t)colon), value = str_trim(str_skip(line, (size_t)colon + 1));
        assert_true(fields_add(f, a, name, value, field_id_of(name)));
        rest = str_skip(rest, line.n + 1);
    }
}

static struct str print_lines(struct arena *a, const struct response *p)
{
    struct str out = arena_printf(a, "%.*s", STR_ARG(p->block));
    for (unsigned i = 0; i < p->fields.n; i++)
        out = arena_printf(a, "%.*s%s%.*s: %.*s", STR_ARG(out), i ? "|" : "", STR_ARG(p->fields.v[i].name),
                           STR_ARG(p->fields.v[i].value));
    return out;
}

enum took { LEFT, VARIES, CODED };

struct row {
    const char *asked, *answer; /* fields, separated by | */
    enum took took;
    int minor, status;
    int64_t length; /* -1: unknown */
    bool is_head;
};

static enum took ask(struct request *r, const struct row *row)
{
    struct head head = { .minor = (uint8_t)row->minor, .method = row->is_head ? METHOD_HEAD : METHOD_GET };
    arena_init(&r->arena, NULL);
    add_lines(&head.fields, &r->arena, row->asked);
    r->w = &worker;
    r->s = loaded.conf->s;
    r->head = &head;
    r->resp.status = (uint16_t)row->status;
    r->resp.has_length = row->length >= 0;
    r->resp.length = (uint64_t)row->length;
    r->resp.bodyless = row->is_head || row->status == 204 || row->status == 304;
    add_lines(&r->resp.fields, &r->arena, row->answer);
    void *use = gzip_filter.head(r, state_);
    bool is_coded = fields_get(&r->resp.fields, F_CONTENT_ENCODING) != NULL &&
                    str_eq(fields_get(&r->resp.fields, F_CONTENT_ENCODING)->value, STR("gzip")) &&
                    strstr(row->answer, "Content-Encoding") == NULL;
    assert_true((use != NULL) == (is_coded && !r->resp.bodyless));
    if (is_coded)
        assert_false(r->resp.has_length);
    else
        assert_int_equal(r->resp.has_length, row->length >= 0);
    if (use)
        gzip_filter.free(state_, use);
    if (is_coded)
        return CODED;
    bool is_varied = fields_have_token(&r->resp.fields, F_VARY, STR("Accept-Encoding"));
    return is_varied && strstr(row->answer, "Vary") == NULL ? VARIES : LEFT;
}

#define GZ "Accept-Encoding: gzip"
#define HTML "Content-Type: text/html; charset=utf-8"

static void decisions(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { GZ, HTML, CODED, 1, 200, 1000, false },
        { GZ, HTML, CODED, 1, 200, -1, false },
        { GZ, HTML, CODED, 1, 200, 1000, true },
        { GZ, HTML, CODED, 1, 404, 1000, false },
        { GZ, HTML, CODED, 1, 200, 20, false },
        { GZ, HTML, LEFT, 1, 200, 19, false },
        { GZ, HTML, LEFT, 1, 200, 0, false },
        { GZ, HTML, VARIES, 1, 206, 1000, false },
        { GZ, "Content-Type: image/png", LEFT, 1, 206, 1000, false },
        { GZ, HTML, LEFT, 1, 204, -1, false },
        { GZ, HTML, VARIES, 1, 304, 1000, false },
        { GZ, "X: y", VARIES, 1, 304, -1, false },
        { GZ, "Content-Type: image/png", LEFT, 1, 304, -1, false },
        { GZ, HTML "|Content-Range: bytes 0-1/2", LEFT, 1, 200, 1000, false },
        { GZ, HTML "|Content-Encoding: gzip", LEFT, 1, 200, 1000, false },
        { GZ, HTML "|Content-Encoding: br", LEFT, 1, 200, 1000, false },
        { GZ, HTML "|Content-Encoding: identity", LEFT, 1, 200, 1000, false },
        { GZ, HTML "|Cache-Control: max-age=5, No-Transform", LEFT, 1, 200, 1000, false },
        { GZ, HTML "|Content-MD5: Q2hlY2sgSW50ZWdyaXR5IQ==", LEFT, 1, 200, 1000, false },
        { GZ, "Content-Type: image/png", LEFT, 1, 200, 1000, false },
        { GZ, "X: y", LEFT, 1, 200, 1000, false },
        { GZ, "Content-Type: textual/html", LEFT, 1, 200, 1000, false },
        { GZ, "Content-Type: TEXT/Plain", CODED, 1, 200, 1000, false },
        { GZ, "Content-Type: application/x-own ;a=b", CODED, 1, 200, 1000, false },
        { GZ, "Content-Type: application/json", CODED, 1, 200, 1000, false },
        { GZ, "Content-Type: text/event-stream", CODED, 1, 200, -1, false },
        { GZ, HTML, VARIES, 0, 200, 1000, false },
        { GZ "|Cache-Control: no-transform", HTML, VARIES, 1, 200, 1000, false },
        { "X: y", HTML, VARIES, 1, 200, 1000, false },
        { "X: y", HTML "|Vary: *", LEFT, 1, 200, 1000, false },
        { "X: y", HTML "|Vary: Origin, accept-encoding", LEFT, 1, 200, 1000, false },
        { "Accept-Encoding: gzip;q=0", HTML, VARIES, 1, 200, 1000, false },
        { "Accept-Encoding: br, *;q=0", HTML, VARIES, 1, 200, 1000, false },
        { "Accept-Encoding: gzip;q=0.5, identity", HTML, VARIES, 1, 200, 1000, false },
        { "Accept-Encoding: gzip;q=0.5, identity;q=0.4", HTML, CODED, 1, 200, 1000, false },
        { "Accept-Encoding: gzip;q=0.001", HTML, CODED, 1, 200, 1000, false },
        { "Accept-Encoding: *", HTML, CODED, 1, 200, 1000, false },
        { "Accept-Encoding: x-gzip", HTML, CODED, 1, 200, 1000, false },
        { "Accept-Encoding: br|" GZ, HTML, CODED, 1, 200, 1000, false },
        { GZ "|Via: 1.1 x", HTML, CODED, 1, 200, 1000, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request r = { 0 };
        enum took took = ask(&r, &rows[i]);
        if (took != rows[i].took)
            fail_msg("row %zu: %s -> %s: %d", i, rows[i].asked, rows[i].answer, took);
        arena_reset(&r.arena);
    }
}

static void what_the_head_says_then(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } rows[] = {
        { HTML "|ETag: \"a\"|Accept-Ranges: bytes|X: y",
          HTML "|ETag: W/\"a\"|X: y|Vary: Accept-Encoding|Content-Encoding: gzip" },
        { HTML "|ETag: W/\"a\"|Vary: Origin",
          HTML "|ETag: W/\"a\"|Vary: Origin|Vary: Accept-Encoding|Content-Encoding: gzip" },
        { HTML "|Vary: accept-encoding", HTML "|Vary: accept-encoding|Content-Encoding: gzip" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request r = { 0 };
        assert_int_equal(ask(&r, &(struct row){ GZ, rows[i].before, CODED, 1, 200, 1000, false }), CODED);
        struct str got = print_lines(&r.arena, &r.resp);
        if (!str_eq(got, str_c(rows[i].after)))
            fail_msg("%.*s", STR_ARG(got));
        arena_reset(&r.arena);
    }
}

static void a_file_in_memory_is_compressed_once(void **state)
{
    (void)state;
    static const char lines[] = "Content-Type: text/css\r\nETag: \"a\"\r\nAccept-Ranges: bytes\r\n";
    static const char coded[] = "Content-Type: text/css\r\nETag: W/\"a\"\r\nContent-Encoding: gzip\r\n"
                                "Vary: Accept-Encoding\r\n";
    char body[5000];
    memset(body, 'x', sizeof body);
    struct stored stored = { .length = sizeof body, .body = str_of(body, sizeof body) };
    const char *kept = NULL;
    for (int i = 0; i < 4; i++) {
        bool is_head = i == 1, is_304 = i == 2;
        struct request r = { .w = &worker, .s = loaded.conf->s };
        struct head head = { .minor = 1, .method = is_head ? METHOD_HEAD : METHOD_GET };
        arena_init(&r.arena, NULL);
        add_lines(&head.fields, &r.arena, GZ);
        r.head = &head;
        r.resp = (struct response){ .status = is_304 ? 304 : 200, .block = str_c(lines), .type = STR("text/css"),
                                    .has_length = !is_304, .length = sizeof body, .stored = &stored,
                                    .bodyless = is_head || is_304 };
        if (is_304)
            r.resp.block = str_skip(r.resp.block, sizeof("Content-Type: text/css\r\n") - 1);
        assert_null(gzip_filter.head(&r, state_));
        struct str got = print_lines(&r.arena, &r.resp);
        if (is_304) {
            assert_true(str_eq(got, STR("ETag: W/\"a\"\r\nVary: Accept-Encoding\r\n")));
        } else {
            assert_true(str_eq(got, str_c(coded)));
            assert_true(r.resp.has_length && r.resp.length == stored.coded.n && stored.coded.n < 100);
            assert_ptr_equal(r.resp.instead.p, stored.coded.p);
            assert_true(kept == NULL || kept == stored.coded.p);
            kept = stored.coded.p;
        }
        arena_reset(&r.arena);
    }
    stored_free(&stored);
}

static void what_would_not_shrink_stays(void **state)
{
    (void)state;
    char body[300];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)((x = x * 1103515245u + 12345u) >> 16);
    struct stored stored = { .length = sizeof body, .body = str_of(body, sizeof body) };
    struct request r = { .w = &worker, .s = loaded.conf->s };
    struct head head = { .minor = 1 };
    arena_init(&r.arena, NULL);
    add_lines(&head.fields, &r.arena, GZ);
    r.head = &head;
    r.resp = (struct response){ .status = 200, .type = STR("text/css"), .has_length = true, .length = sizeof body,
                                .stored = &stored };
    assert_null(gzip_filter.head(&r, state_));
    assert_true(r.resp.instead.p == NULL && r.resp.length == sizeof body && stored.is_coded && stored.coded.p == NULL);
    assert_true(str_eq(print_lines(&r.arena, &r.resp), STR("Vary: Accept-Encoding")));
    arena_reset(&r.arena);
}

/* A file that is not in memory: what the first client got is kept, if it was all. */
static void a_stream_of_a_file_is_kept(void **state)
{
    (void)state;
    static struct decoder d;
    char body[5000];
    memset(body, 'x', sizeof body);
    for (size_t given = sizeof body - 1; given <= sizeof body; given++) {
        struct stored stored = { .length = sizeof body };
        struct request r = { .w = &worker, .s = loaded.conf->s };
        struct head head = { .minor = 1 };
        arena_init(&r.arena, NULL);
        add_lines(&head.fields, &r.arena, GZ);
        r.head = &head;
        r.resp = (struct response){ .status = 200, .type = STR("text/css"), .stored = &stored };
        void *use = gzip_filter.head(&r, state_);
        assert_non_null(use);
        d = (struct decoder){ 0 };
        assert_int_equal(inflateInit2(&d.z, 31), Z_OK);
        size_t n = feed(use, &d, str_of(body, 2000), HOW_MORE, 16);
        n += feed(use, &d, str_of(body, given - 2000), HOW_LAST, 16);
        gzip_filter.free(state_, use);
        assert_true(d.ended && d.n == given);
        inflateEnd(&d.z);
        assert_int_equal(stored.is_coded, given == sizeof body);
        if (stored.is_coded) {
            assert_int_equal(stored.coded.n, n);
            r.resp = (struct response){ .status = 200, .type = STR("text/css"), .stored = &stored };
            assert_null(gzip_filter.head(&r, state_));
            assert_true(r.resp.has_length && r.resp.length == n && r.resp.instead.p == stored.coded.p);
        }
        stored_free(&stored);
        arena_reset(&r.arena);
    }
}

static void there_is_a_bound(void **state)
{
    (void)state;
    void *uses[1000];
    struct request r[ARRAY_LEN(uses)];
    unsigned n = 0;
    for (; n < ARRAY_LEN(uses); n++) {
        struct head head = { .minor = 1 };
        r[n] = (struct request){ .w = &worker, .s = loaded.conf->s, .head = &head };
        arena_init(&r[n].arena, NULL);
        add_lines(&head.fields, &r[n].arena, GZ);
        add_lines(&r[n].resp.fields, &r[n].arena, HTML);
        r[n].resp.status = 200;
        uses[n] = gzip_filter.head(&r[n], state_);
        if (uses[n] == NULL)
            break;
    }
    assert_in_range(n, 32, 128);
    assert_true(str_eq(print_lines(&r[n].arena, &r[n].resp), STR(HTML "|Vary: Accept-Encoding")));
    for (unsigned i = 0; i <= n; i++) {
        if (uses[i])
            gzip_filter.free(state_, uses[i]);
        arena_reset(&r[i].arena);
    }
}

/* ---- the body ---- */

static void *open_stream(struct request *r, struct head *head)
{
    arena_init(&r->arena, NULL);
    *head = (struct head){ .minor = 1 };
    add_lines(&head->fields, &r->arena, GZ);
    add_lines(&r->resp.fields, &r->arena, HTML);
    r->w = &worker;
    r->s = loaded.conf->s;
    r->head = head;
    r->resp.status = 200;
    void *use = gzip_filter.head(r, state_);
    assert_non_null(use);
    return use;
}

static void close_stream(struct request *r, void *use)
{
    gzip_filter.free(state_, use);
    arena_reset(&r->arena);
}

static const char text[] = "event: a\ndata: {\"n\": 1, \"text\": \"the quick brown fox jumps over the lazy dog\"}\n\n"
                           "event: a\ndata: {\"n\": 2, \"text\": \"the quick brown fox jumps over the lazy cat\"}\n\n";

/* Two pieces of every length, with every `how` for the first, into spaces of several sizes. */
static void every_split(void **state)
{
    (void)state;
    static const size_t caps[] = { 7, 8, 64, 4096 };
    static struct decoder d;
    struct str all = STR(text);
    for (size_t cut = 0; cut <= all.n; cut++) {
        for (size_t c = 0; c < ARRAY_LEN(caps); c++) {
            for (enum how how = HOW_MORE; how <= HOW_PAUSE; how++) {
                struct request r = { 0 };
                struct head head;
                void *use = open_stream(&r, &head);
                d = (struct decoder){ 0 };
                assert_int_equal(inflateInit2(&d.z, 31), Z_OK);
                feed(use, &d, str_take(all, cut), how, caps[c]);
                if (how == HOW_PAUSE)
                    assert_int_equal(d.n, cut);
                feed(use, &d, str_skip(all, cut), HOW_LAST, caps[c]);
                assert_true(d.ended);
                assert_int_equal(d.n, all.n);
                assert_memory_equal(d.out, all.p, all.n);
                inflateEnd(&d.z);
                close_stream(&r, use);
            }
        }
    }
}

/* After each PAUSE everything that went in can be read, whatever the size of the pieces. */
static void nothing_is_held_back_at_a_pause(void **state)
{
    (void)state;
    static struct decoder d;
    static char long_text[30000];
    uint32_t x = 7;
    for (size_t i = 0; i < sizeof long_text; i++)
        long_text[i] = i % 3 ? text[i % sizeof text] : (char)((x = x * 1103515245u + 12345u) >> 16);
    static const size_t steps[] = { 1, 7, 100, 1000, 9999, 30000 };
    for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
        struct request r = { 0 };
        struct head head;
        void *use = open_stream(&r, &head);
        size_t end = steps[k] == 1 ? 2000 : sizeof long_text;
        d = (struct decoder){ 0 };
        assert_int_equal(inflateInit2(&d.z, 31), Z_OK);
        for (size_t at = 0; at < end; at += steps[k]) {
            feed(use, &d, str_take(str_of(long_text + at, end - at), steps[k]), HOW_PAUSE, 1024);
            assert_int_equal(d.n, at + steps[k] < end ? at + steps[k] : end);
            assert_int_equal(feed(use, &d, STR_NONE, HOW_PAUSE, 1024), 0); /* nothing to say, nothing said */
        }
        feed(use, &d, STR_NONE, HOW_LAST, 1024);
        assert_true(d.ended && d.n == end);
        assert_memory_equal(d.out, long_text, end);
        inflateEnd(&d.z);
        close_stream(&r, use);
    }
}

static void an_empty_body_is_a_whole_stream(void **state)
{
    (void)state;
    static struct decoder d;
    struct request r = { 0 };
    struct head head;
    void *use = open_stream(&r, &head);
    assert_int_equal(inflateInit2(&d.z, 31), Z_OK);
    assert_int_equal(feed(use, &d, STR_NONE, HOW_MORE, 1024), 0);
    assert_int_equal(feed(use, &d, STR_NONE, HOW_PAUSE, 1024), 0);
    assert_int_equal(feed(use, &d, STR_NONE, HOW_LAST, 1024), 20);
    assert_true(d.ended && d.n == 0);
    inflateEnd(&d.z);
    close_stream(&r, use);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions),
        cmocka_unit_test(what_the_head_says_then),
        cmocka_unit_test(a_file_in_memory_is_compressed_once),
        cmocka_unit_test(what_would_not_shrink_stays),
        cmocka_unit_test(a_stream_of_a_file_is_kept),
        cmocka_unit_test(there_is_a_bound),
        cmocka_unit_test(every_split),
        cmocka_unit_test(nothing_is_held_back_at_a_pause),
        cmocka_unit_test(an_empty_body_is_a_whole_stream),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
