/* SPDX-License-Identifier: MIT */
/*
 * The link between supervisor and server. Encoding and decoding are pure; sending and receiving add the descriptors
 * (SCM_RIGHTS, unix(7)). Stateless: whoever waits for an answer remembers that himself.
 *
 * On the wire, host byte order (both ends are on one host): a fixed head, then the text. A reader takes a longer head
 * than its own and ignores the rest, so fields may be added at its end.
 *
 * Only a call ever waits, and not for long: a supervisor must not wait for a server that hangs, and a server goes on
 * when its supervisor is stopped. That the peer has gone is believed when poll says so, not when a read returns
 * nothing.
 */
#include "proc/sup_link.h"

#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CALL_MS = 5000 };

struct head {
    uint32_t head_size, text_size;
    uint32_t kind;
    int32_t backlog;
    uint64_t n;
    uint32_t addr_len, have;
    uint8_t defer, v6only, unused[6];
    uint8_t addr[128];
};

_Static_assert(sizeof(struct head) + LINK_TEXT <= LINK_BYTES, "a message fits");
_Static_assert(sizeof(((struct addr *)0)->u) <= 128, "an address fits");

size_t link_encode(const struct link_message *m, char *out)
{
    struct str text = str_take(m->text, LINK_TEXT);
    struct head h = {
        .head_size = sizeof h,
        .text_size = (uint32_t)text.n,
        .kind = (uint32_t)m->kind,
        .backlog = m->listen.backlog,
        .n = m->n,
        .addr_len = m->listen.addr.len,
        .have = m->have,
        .defer = m->listen.defer,
        .v6only = m->listen.v6only,
    };
    memcpy(h.addr, &m->listen.addr.u, sizeof m->listen.addr.u);
    memcpy(out, &h, sizeof h);
    if (text.n > 0)
        memcpy(out + sizeof h, text.p, text.n);
    return sizeof h + text.n;
}

bool link_decode(struct link_message *m, const char *bytes, size_t n)
{
    struct head h;
    if (n < sizeof h)
        return false;
    memcpy(&h, bytes, sizeof h);
    if (h.head_size < sizeof h || h.head_size > n || h.text_size > LINK_TEXT || h.text_size != n - h.head_size ||
        h.addr_len > sizeof m->listen.addr.u)
        return false;
    m->kind = (enum link_kind)h.kind;
    m->n = h.n;
    m->have = h.have;
    m->listen = (struct link_listen){ .backlog = h.backlog, .defer = h.defer != 0, .v6only = h.v6only != 0 };
    m->listen.addr.len = h.addr_len;
    memcpy(&m->listen.addr.u, h.addr, sizeof m->listen.addr.u);
    memcpy(m->buffer, bytes + h.head_size, h.text_size);
    m->text = str_of(m->buffer, h.text_size);
    return true;
}

bool link_open(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0;
}

enum io link_send(int fd, const struct link_message *m)
{
    char bytes[LINK_BYTES];
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof m->fds)];
    } control;
    struct iovec iov = { .iov_base = bytes, .iov_len = link_encode(m, bytes) };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (m->n_fds > 0) {
        size_t size = m->n_fds * sizeof m->fds[0];
        memset(&control, 0, sizeof control);
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(c), m->fds, size);
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return IO_OK;
    return errno == EAGAIN ? IO_AGAIN : IO_ERROR;
}

void link_begin(struct link_message *m, enum link_kind kind, uint64_t n, struct str text)
{
    m->kind = kind;
    m->n = n;
    m->have = 0;
    m->listen = (struct link_listen){ 0 };
    m->text = text;
    m->n_fds = 0;
}

enum io link_say(int fd, enum link_kind kind, uint64_t n)
{
    struct link_message m;
    link_begin(&m, kind, n, STR_NONE);
    return link_send(fd, &m);
}

/* Descriptors that came with a message. More than there is room for are closed. */
static void take_fds(struct link_message *m, struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (m->n_fds < LINK_FDS)
                m->fds[m->n_fds++] = fd;
            else
                (void)close(fd);
        }
    }
}

static bool has_gone(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

enum io link_receive(int fd, struct link_message *m)
{
    char bytes[LINK_BYTES];
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof m->fds)];
    } control;
    struct iovec iov = { .iov_base = bytes, .iov_len = sizeof bytes };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    m->n_fds = 0;
    ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EAGAIN)
        return IO_AGAIN;
    if (got <= 0)
        return has_gone(fd) ? IO_EOF : IO_ERROR;
    take_fds(m, &msg);
    if ((msg.msg_flags & MSG_TRUNC) == 0 && link_decode(m, bytes, (size_t)got))
        return IO_OK;
    link_close_fds(m);
    return IO_ERROR;
}

void link_close_fds(struct link_message *m)
{
    for (unsigned i = 0; i < m->n_fds; i++)
        (void)close(m->fds[i]);
    m->n_fds = 0;
}

bool link_wait(int fd, struct link_message *m)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    enum io io;
    do {
        int n = poll(&p, 1, CALL_MS);
        if (n == 0)
            errno = ETIME;
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        io = link_receive(fd, m);
    } while (io == IO_AGAIN);
    if (io == IO_EOF)
        errno = EPIPE;
    return io == IO_OK;
}

bool link_call(int fd, struct link_message *m)
{
    return link_send(fd, m) == IO_OK && link_wait(fd, m);
}
