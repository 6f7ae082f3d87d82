/* SPDX-License-Identifier: MIT */
/*
 * What the supervisor and a server say to each other: messages over SOCK_SEQPACKET socketpairs, each whole or not at
 * all, with descriptors beside them. A server has two: one for what happens, and one for calls, on which it asks and
 * waits for the answer, from whichever of its threads. The two may be of different versions after an upgrade: kinds
 * and fields are only ever added (an unknown kind is ignored), and LINK_VERSION says when that was not enough.
 */
#ifndef PROC_SUP_LINK_H
#define PROC_SUP_LINK_H

#include "base/addr.h"
#include "base/io.h"

enum { LINK_VERSION = 1, LINK_STYLE_SHIFT = 8 };

enum link_kind {
    /* from the server */
    LINK_RUNNING = 1, /* a configuration is in force: n = its generation, have = its log_level and, LINK_STYLE_SHIFT bits up, the
                         style of its error log, text = that log, a descriptor: its text, unless it is the one that was inherited */
    LINK_RELOADING,   /* a load begins; it ends with LINK_RUNNING or LINK_REFUSED */
    LINK_REFUSED,
    LINK_STOPPING, /* it drains or ends */
    LINK_OPEN,     /* a call: wants n sockets of the address `text`, `listen`, and has `have` of them */
    LINK_CLOSE,    /* a call: wants nothing more from the address `text` */
    LINK_UPGRADE,  /* somebody asked it for an upgrade */
    LINK_PONG,
    /* from the supervisor */
    LINK_OPENED,         /* the answer to LINK_OPEN: n = all that are to come, in one or more messages of some */
    LINK_OPEN_FAILED,    /* or this: n = errno, text = the step that failed */
    LINK_CLOSED,         /* the answer to LINK_CLOSE */
    LINK_UPGRADE_FAILED, /* text = why */
    LINK_HAND_OVER,      /* another server has taken over: drain, and leave the sockets as they are */
    LINK_PING,
};

enum {
    LINK_TEXT = 4000, /* longer texts are cut */
    LINK_FDS = 64,    /* in one message */
};

/* An address, as LINK_OPEN carries it. */
struct link_listen {
    struct addr addr;
    int backlog;
    bool defer, v6only;
};

struct link_message {
    enum link_kind kind;
    uint64_t n;
    uint32_t have;
    struct link_listen listen;
    struct str text; /* received: in `buffer` */
    int fds[LINK_FDS];
    unsigned n_fds; /* received: the caller closes them */
    char buffer[LINK_TEXT];
};

/* The bytes of a message; `out` has LINK_BYTES. Returns how many. */
enum { LINK_BYTES = LINK_TEXT + 256 };
size_t link_encode(const struct link_message *m, char *out);
/* False: that is none. Descriptors are not touched. */
bool link_decode(struct link_message *m, const char *bytes, size_t n) MUST_USE;

/* A message without descriptors; text is borrowed. */
void link_begin(struct link_message *m, enum link_kind kind, uint64_t n, struct str text);
/* Two ends, close-on-exec. False: errno. */
bool link_open(int ends[2]) MUST_USE;
/* IO_OK; IO_AGAIN: the other side does not read (nothing was sent); IO_ERROR: errno. */
enum io link_send(int fd, const struct link_message *m);
/* A message without anything but its kind and n. */
enum io link_say(int fd, enum link_kind kind, uint64_t n);
/* IO_OK; IO_AGAIN: nothing there; IO_EOF: the other process has gone; IO_ERROR: not a message, or an error that passes.
 */
enum io link_receive(int fd, struct link_message *m);
void link_close_fds(struct link_message *m);
/* Waits for a message on a link for calls. False: errno (ETIME: the supervisor does not answer). */
bool link_wait(int fd, struct link_message *m) MUST_USE;
/* Sends m and waits for an answer, which it becomes. False: errno. */
bool link_call(int fd, struct link_message *m) MUST_USE;

#endif
