/* SPDX-License-Identifier: MIT */
/* Frame ends of a WebSocket, in whatever pieces the bytes come. */
#include "http/ws_frames.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdlib.h>

struct sample {
    const char *header;
    size_t header_size;
    size_t payload;
};

#define SAMPLE(header, payload) { (header), sizeof(header) - 1, (payload) }

static const struct sample samples[] = {
    SAMPLE("\x81\x05", 5),                                   /* text */
    SAMPLE("\x89\x00", 0),                                   /* an empty ping */
    SAMPLE("\x82\x7e\x00\x7e", 126),                         /* 16-bit length */
    SAMPLE("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x01", 65537), /* 64-bit length */
    SAMPLE("\x81\x83\x01\x02\x03\x04", 3),                   /* masked, as no server should */
    SAMPLE("\x01\x01", 1),                                   /* a first fragment */
    SAMPLE("\x80\x00", 0),                                   /* and its end */
};

static char *stream(size_t *n, size_t ends[])
{
    char *all = calloc(1, 200000);
    *n = 0;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        memcpy(all + *n, samples[i].header, samples[i].header_size);
        *n += samples[i].header_size + samples[i].payload;
        ends[i] = *n;
    }
    return all;
}

static bool is_end(size_t at, const size_t ends[])
{
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (ends[i] == at)
            return true;
    return at == 0;
}

static void every_end_is_found_whatever_the_pieces(void **state)
{
    (void)state;
    size_t n, ends[sizeof samples / sizeof samples[0]];
    char *all = stream(&n, ends);
    for (size_t step = 1; step < 2000; step = step * 3 + 1) {
        struct ws_frames f = { 0 };
        for (size_t at = 0; at < n;) {
            size_t piece = step < n - at ? step : n - at;
            assert_int_equal(ws_frames_feed(&f, str_of(all + at, piece), false), piece);
            at += piece;
            assert_int_equal(ws_frames_between(&f), is_end(at, ends));
        }
        assert_false(f.is_over);
    }
    free(all);
}

static void stopping_gives_one_frame_at_a_time(void **state)
{
    (void)state;
    size_t n, ends[sizeof samples / sizeof samples[0]], at = 0;
    char *all = stream(&n, ends);
    struct ws_frames f = { 0 };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        at += ws_frames_feed(&f, str_of(all + at, n - at), true);
        assert_int_equal(at, ends[i]);
        assert_true(ws_frames_between(&f));
    }
    free(all);
}

static void a_close_frame_is_noticed(void **state)
{
    (void)state;
    struct ws_frames f = { 0 };
    char frame[WS_CLOSE_FRAME];
    ws_close_frame(WS_SERVICE_RESTART, frame);
    assert_memory_equal(frame, "\x88\x02\x03\xf4", WS_CLOSE_FRAME);
    assert_int_equal(ws_frames_feed(&f, str_of(frame, sizeof frame), false), sizeof frame);
    assert_true(f.is_over && ws_frames_between(&f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_is_found_whatever_the_pieces),
        cmocka_unit_test(stopping_gives_one_frame_at_a_time),
        cmocka_unit_test(a_close_frame_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
