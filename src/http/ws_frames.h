/* SPDX-License-Identifier: MIT */
/* Where frames of a WebSocket end (RFC 6455 §5.2), for whoever relays them without looking inside. */
#ifndef HTTP_WS_FRAMES_H
#define HTTP_WS_FRAMES_H

#include "base/str.h"

enum {
    WS_GOING_AWAY = 1001,
    WS_SERVICE_RESTART = 1012,
    WS_CLOSE_FRAME = 4, /* bytes */
};

/* One direction, from its first byte on; zeroed at first. */
struct ws_frames {
    uint64_t left;    /* of the frame under way, beyond its header */
    uint8_t header[10];
    uint8_t have;     /* bytes of a header that is incomplete */
    bool is_over;     /* a close frame has gone by: nothing may follow it */
};

/* Takes bytes. Returns how many: all of them, or, if `stop`, up to the end of the frame under way, if that is there. */
size_t ws_frames_feed(struct ws_frames *f, struct str s, bool stop);
/* Would a frame of our own stand between two others? */
bool ws_frames_between(const struct ws_frames *f);
/* A server's close frame with this code. */
void ws_close_frame(unsigned code, char out[WS_CLOSE_FRAME]);

#endif
