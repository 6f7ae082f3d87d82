/* SPDX-License-Identifier: MIT */
/*
 * Follows the frames of one direction of a WebSocket by their headers alone. Owns nothing and checks nothing: what is
 * not RFC 6455 is relayed all the same, and whoever made it has to live with a frame end in the wrong place.
 */
#include "http/ws_frames.h"

enum { OPCODE_CLOSE = 8, MASK_KEY = 4 };

/* The whole header's length, as far as the bytes so far tell. */
static size_t header_size(const struct ws_frames *f)
{
    if (f->have < 2)
        return 2;
    unsigned n = f->header[1] & 0x7fu;
    return n == 126 ? 4 : n == 127 ? 10 : 2;
}

static void begin_payload(struct ws_frames *f)
{
    uint64_t n = f->header[1] & 0x7fu;
    if (n >= 126) {
        size_t size = n == 126 ? 2 : 8;
        n = 0;
        for (size_t i = 0; i < size; i++)
            n = n << 8 | f->header[2 + i];
    }
    if (f->header[1] & 0x80u)
        n += MASK_KEY;
    f->left = n;
    f->have = 0;
    f->is_over |= (f->header[0] & 0x0fu) == OPCODE_CLOSE;
}

size_t ws_frames_feed(struct ws_frames *f, struct str s, bool stop)
{
    size_t at = 0;
    bool ended = false;
    while (at < s.n && !(stop && ended)) {
        if (f->left > 0) {
            size_t step = f->left < s.n - at ? (size_t)f->left : s.n - at;
            f->left -= step;
            at += step;
            ended = f->left == 0;
            continue;
        }
        f->header[f->have++] = (uint8_t)s.p[at++];
        if (f->have < header_size(f))
            continue;
        begin_payload(f);
        ended = f->left == 0;
    }
    return at;
}

bool ws_frames_between(const struct ws_frames *f)
{
    return f->left == 0 && f->have == 0;
}

void ws_close_frame(unsigned code, char out[WS_CLOSE_FRAME])
{
    out[0] = (char)(0x80 | OPCODE_CLOSE);
    out[1] = 2;
    out[2] = (char)(code >> 8);
    out[3] = (char)(code & 0xff);
}
