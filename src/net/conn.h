/* SPDX-License-Identifier: MIT */
/*
 * One stream socket, client's or backend's: reading, writing with a queue for what the kernel would not take, closing.
 * Knows no HTTP. Embedded in its owner (struct client, struct upstream_conn, ...), who finds itself with container_of
 * and is told of events through conn_events. conn_close is idempotent, callable from anywhere, effective at once:
 * afterwards no event comes; the owner frees its own memory with loop_free_later.
 *
 * Reading: the read watcher stays as it is until told. A readable event that the owner may not take must be answered
 * with conn_want_read(c, false) in that callback. Writing: the write watcher is armed only after EAGAIN and disarmed
 * when the queue is empty; file ranges go out in steps of at most 2 MB a turn.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include <sys/uio.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/io.h"
#include "net/loop.h"

struct conn;

struct conn_events {
    void (*readable)(struct conn *c);
    /* The whole queue has been written after a call returned IO_AGAIN. */
    void (*drained)(struct conn *c);
    /* Some, not all, of the queue was written (for deadlines and counters); may be NULL. */
    void (*progress)(struct conn *c);
    /* A queued write failed, a file was truncated under its sendfile, or the kernel would not watch the descriptor.
     * errno-style cause in `error` (ESPIPE for a truncated file, EIO for the watch). The owner is expected to close;
     * nothing more is written. */
    void (*failed)(struct conn *c, int error);
};

/* How bytes cross: plain sockets now, TLS later. Same results as the conn_ functions below. */
struct transport {
    enum io (*read)(struct conn *c, char *to, size_t cap, size_t *got);
    enum io (*writev)(struct conn *c, const struct iovec *iov, int n, size_t *done);
    enum io (*sendfile)(struct conn *c, int fd, uint64_t off, size_t n, size_t *done);
};
extern const struct transport transport_plain;

struct conn {
    ev_io rd, wr;
    struct loop *loop;
    const struct transport *transport;
    const struct conn_events *events;
    struct buf out;
    uint64_t written;      /* bytes the kernel has taken, ever */
    int fd;                /* -1 when closed */
    bool shut_when_drained : 1;
    bool connecting : 1;   /* the write watcher waits for the connect */
    uint8_t starved : 3;   /* writes in a row for which the kernel had no memory */
};

/* Takes over a non-blocking socket; sets TCP_NODELAY if tcp. Watchers are off: call conn_want_read. */
void conn_open(struct conn *c, struct loop *l, int fd, bool tcp, const struct conn_events *events);
/* One read of at most cap bytes (never loops). IO_OK with *got > 0, IO_AGAIN, IO_EOF, or IO_ERROR (errno). */
enum io conn_read(struct conn *c, char *to, size_t cap, size_t *got) MUST_USE;
/* Into the loop's scratch buffer. */
enum io conn_read_scratch(struct conn *c, size_t cap, struct str *got) MUST_USE;
void conn_want_read(struct conn *c, bool want);
bool conn_is_reading(const struct conn *c);

/* Writes the pieces, after whatever is queued already; may change the iovecs. IO_OK: the kernel has it all. IO_AGAIN:
 * the rest was copied into pooled blocks; `drained` will be called. IO_CLOSED: the peer is gone or memory is out
 * (errno); the caller closes. Never calls back. */
enum io conn_writev(struct conn *c, struct iovec *iov, int n) MUST_USE;
enum io conn_write(struct conn *c, struct str s) MUST_USE;
/* The same for a file range; the conn takes the lease over in any case. IO_ERROR: the file ended early (ESPIPE) or
 * cannot be read (errno); cut the connection. */
enum io conn_send_file(struct conn *c, struct chunk file) MUST_USE;

/* Bytes in our queue, file ranges included. */
uint64_t conn_queued(const struct conn *c);
/* An estimate of what the kernel would take now without EAGAIN (SO_MEMINFO); 0 when the queue is not empty. */
size_t conn_write_room(const struct conn *c);
/* Calls drained in a later turn, also when nothing is queued: for an owner who has more to write and lets others go
 * first. */
void conn_want_drained(struct conn *c);
/* FIN after everything queued. */
void conn_shutdown(struct conn *c);
/* Harmless on a closed conn and on a zeroed one that was never opened. */
void conn_close(struct conn *c);
/* Close with RST, so that the peer cannot take what it got for a complete close-delimited answer. */
void conn_reset(struct conn *c);
/* Gives the open socket away: the descriptor, and in *unsent what the kernel has not taken yet (the caller's to write
 * or clear, from the same loop's pool). The conn is closed afterwards, the socket is not. */
int conn_detach(struct conn *c, struct buf *unsent) MUST_USE;
bool conn_is_open(const struct conn *c);

/* Starts a non-blocking connect. IO_OK: connected at once (*fd is set); IO_AGAIN: in progress (*fd set; conn_open,
 * conn_want_connect, and in drained conn_connect_result); IO_ERROR: errno. A unix socket with a full backlog is
 * IO_ERROR with EAGAIN. */
enum io conn_connect(const struct addr *to, int *fd) MUST_USE;
/* SO_ERROR after the connect: 0 or an errno. */
int conn_connect_result(int fd);
/* Waits for a connect: calls drained when it has ended either way. conn_open first. What is written meanwhile is queued
 * and has a drained of its own. */
void conn_want_connect(struct conn *c);

#endif
