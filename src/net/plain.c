/* SPDX-License-Identifier: MIT */
/*
 * The plain transport: one system call per function, its result put into enum io. Stateless; owns nothing.
 * What only a connection can decide (asking again later, giving up) is left to conn.c: here every call either moves
 * bytes, says IO_AGAIN, or fails with errno. A call that took nothing without an error is reported as ENOBUFS, so that
 * no caller can loop on it.
 * sendfile(2) refuses some filesystems; for those the bytes go through a small buffer with the same results.
 */
#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/conn.h"

enum { COPY = 16 * 1024 };

static enum io failure(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK ? IO_AGAIN : IO_ERROR;
}

static enum io plain_read(struct conn *c, char *to, size_t cap, size_t *got)
{
    ssize_t n;
    do
        n = recv(c->fd, to, cap, 0);
    while (n < 0 && errno == EINTR);
    *got = n > 0 ? (size_t)n : 0;
    return n > 0 ? IO_OK : n == 0 ? IO_EOF : failure();
}

static enum io plain_writev(struct conn *c, const struct iovec *iov, int n, size_t *done)
{
    /* sendmsg does not write through the pointer. */
    struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n };
    ssize_t sent;
    do
        sent = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    *done = sent > 0 ? (size_t)sent : 0;
    if (sent > 0)
        return IO_OK;
    if (sent == 0)
        errno = ENOBUFS;
    return failure();
}

static enum io copy_file(struct conn *c, int fd, uint64_t off, size_t n, size_t *done)
{
    char block[COPY];
    ssize_t got;
    do
        got = pread(fd, block, n < COPY ? n : COPY, (off_t)off);
    while (got < 0 && errno == EINTR);
    *done = 0;
    if (got == 0)
        errno = ESPIPE;
    if (got <= 0)
        return IO_ERROR;
    return plain_writev(c, &(struct iovec){ .iov_base = block, .iov_len = (size_t)got }, 1, done);
}

static enum io plain_sendfile(struct conn *c, int fd, uint64_t off, size_t n, size_t *done)
{
    off_t at = (off_t)off;
    ssize_t sent;
    do
        sent = sendfile(c->fd, fd, &at, n);
    while (sent < 0 && errno == EINTR);
    *done = sent > 0 ? (size_t)sent : 0;
    if (sent > 0)
        return IO_OK;
    if (sent < 0 && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
        return copy_file(c, fd, off, n, done);
    if (sent == 0)
        errno = ESPIPE; /* nothing where the range should be: the file has been truncated */
    return failure();
}

const struct transport transport_plain = {
    .read = plain_read,
    .writev = plain_writev,
    .sendfile = plain_sendfile,
};
