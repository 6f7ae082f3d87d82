/* SPDX-License-Identifier: MIT */
/*
 * One stream socket. Owns the descriptor, both watchers and the queue of unwritten bytes (with its leases) from
 * conn_open to conn_close; the struct itself belongs to whoever embeds it and outlives the turn of the close.
 *
 * Invariants: the write watcher is armed exactly while the queue is not empty, a connect is awaited or its owner wants
 * to be called again; fd is -1 exactly
 * when closed, and then both watchers are off and the queue is empty. After an event has been delivered nothing here
 * touches the conn again: the owner may have closed it.
 *
 * Bytes are never lost and never written twice: what a call of the transport reports as done leaves the queue, the rest
 * stays. A kernel without memory is asked again by the (level-triggered) write watcher a few times, then the write has
 * failed: a connection must not spin on it.
 */
#include "net/conn.h"

#include <errno.h>
#include <limits.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FILE_STEP = 2 * 1024 * 1024, /* file bytes per turn and connection */
    FLUSH_IOV = 16,
    STARVED_MAX = 7,
};

static void want_write(struct conn *c, bool want)
{
    if (want)
        ev_io_start(c->loop->ev, &c->wr);
    else
        ev_io_stop(c->loop->ev, &c->wr);
}

/* Accounts for what a write took; turns a passing want of kernel memory into IO_AGAIN. */
static enum io took(struct conn *c, enum io r, size_t done)
{
    c->written += done;
    if (done > 0)
        c->starved = 0;
    if (r == IO_ERROR && (errno == ENOBUFS || errno == ENOMEM) && c->starved < STARVED_MAX) {
        c->starved++;
        return IO_AGAIN;
    }
    return r;
}

/* Writes from the queue until it is empty, the kernel has enough, or this turn's share of file bytes is used up. */
static enum io flush(struct conn *c)
{
    size_t share = FILE_STEP;
    while (c->out.n > 0) {
        struct chunk first = buf_peek(&c->out);
        size_t done = 0, want = 0;
        enum io r;
        if (first.kind == CHUNK_FILE) {
            if (share == 0)
                return IO_AGAIN;
            want = first.n < share ? (size_t)first.n : share;
            r = c->transport->sendfile(c, first.fd, first.off, want, &done);
            share -= done;
        } else {
            struct iovec iov[FLUSH_IOV];
            int n = buf_iov(&c->out, iov, FLUSH_IOV);
            for (int i = 0; i < n; i++)
                want += iov[i].iov_len;
            r = c->transport->writev(c, iov, n, &done);
        }
        r = took(c, r, done);
        if (r == IO_ERROR)
            return r;
        buf_skip(&c->out, &c->loop->blocks, done);
        if (r == IO_AGAIN || done < want)
            return IO_AGAIN;
    }
    return IO_OK;
}

static void on_flush(struct conn *c)
{
    uint64_t before = c->written;
    enum io r = flush(c);
    if (r == IO_ERROR) {
        int error = errno;
        want_write(c, false);
        c->events->failed(c, error);
    } else if (r == IO_OK) {
        want_write(c, false);
        if (c->shut_when_drained)
            shutdown(c->fd, SHUT_WR);
        c->events->drained(c);
    } else if (c->written > before && c->events->progress != NULL) {
        c->events->progress(c);
    }
}

static void on_readable(struct ev_loop *ev, ev_io *w, int revents)
{
    (void)ev;
    struct conn *c = container_of(w, struct conn, rd);
    struct loop *l = c->loop;
    if (revents & EV_ERROR)
        c->events->failed(c, EIO); /* the kernel refused to watch it; libev has stopped both watchers */
    else
        c->events->readable(c);
    loop_scratch_done(l);
}

static void on_writable(struct ev_loop *ev, ev_io *w, int revents)
{
    (void)ev;
    struct conn *c = container_of(w, struct conn, wr);
    struct loop *l = c->loop;
    if (revents & EV_ERROR) {
        c->events->failed(c, EIO);
    } else if (c->connecting) {
        c->connecting = false;
        want_write(c, c->out.n > 0);
        c->events->drained(c);
    } else {
        on_flush(c);
    }
    loop_scratch_done(l);
}

void conn_open(struct conn *c, struct loop *l, int fd, bool tcp, const struct conn_events *events)
{
    *c = (struct conn){ .loop = l, .transport = &transport_plain, .events = events, .fd = fd };
    ev_io_init(&c->rd, on_readable, fd, EV_READ);
    ev_io_init(&c->wr, on_writable, fd, EV_WRITE);
    /* Failure would cost latency, not correctness. */
    if (tcp)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
}

enum io conn_read(struct conn *c, char *to, size_t cap, size_t *got)
{
    *got = 0;
    if (c->fd < 0) {
        errno = EBADF;
        return IO_ERROR;
    }
    return c->transport->read(c, to, cap, got);
}

enum io conn_read_scratch(struct conn *c, size_t cap, struct str *got)
{
    struct loop *l = c->loop;
    loop_scratch_use(l);
    size_t n;
    enum io r = conn_read(c, l->scratch, cap < LOOP_SCRATCH ? cap : LOOP_SCRATCH, &n);
    *got = str_of(l->scratch, n);
    return r;
}

void conn_want_read(struct conn *c, bool want)
{
    if (want && c->fd >= 0)
        ev_io_start(c->loop->ev, &c->rd);
    else
        ev_io_stop(c->loop->ev, &c->rd);
}

bool conn_is_reading(const struct conn *c)
{
    return ev_is_active(&c->rd);
}

/* Drops n bytes, and empty pieces, from the front of *iov. */
static void iov_skip(struct iovec **iov, int *n, size_t skip)
{
    while (*n > 0 && skip >= (*iov)->iov_len) {
        skip -= (*iov)->iov_len;
        ++*iov;
        --*n;
    }
    if (*n > 0) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + skip;
        (*iov)->iov_len -= skip;
    }
}

enum io conn_writev(struct conn *c, struct iovec *iov, int n)
{
    if (c->fd < 0) {
        errno = EPIPE;
        return IO_CLOSED;
    }
    iov_skip(&iov, &n, 0);
    bool is_full = c->out.n > 0 || c->connecting;
    while (n > 0 && !is_full) {
        int pieces = n < IOV_MAX ? n : IOV_MAX;
        size_t want = 0, done = 0;
        for (int i = 0; i < pieces; i++)
            want += iov[i].iov_len;
        enum io r = c->transport->writev(c, iov, pieces, &done);
        r = took(c, r, done);
        if (r == IO_ERROR)
            return IO_CLOSED;
        iov_skip(&iov, &n, done);
        is_full = r == IO_AGAIN || done < want;
    }
    for (int i = 0; i < n; i++)
        if (!buf_add(&c->out, &c->loop->blocks, str_of(iov[i].iov_base, iov[i].iov_len))) {
            errno = ENOMEM;
            return IO_CLOSED;
        }
    if (c->out.n == 0)
        return IO_OK;
    want_write(c, true);
    return IO_AGAIN;
}

enum io conn_write(struct conn *c, struct str s)
{
    struct iovec iov = { .iov_base = (void *)(uintptr_t)s.p, .iov_len = s.n };
    return conn_writev(c, &iov, 1);
}

static void lease_end(const struct chunk *file)
{
    int saved = errno;
    if (file->lease.release != NULL)
        file->lease.release(file->lease.arg);
    errno = saved;
}

static bool is_peer_gone(int error)
{
    return error == EPIPE || error == ECONNRESET || error == ETIMEDOUT || error == ENOTCONN;
}

enum io conn_send_file(struct conn *c, struct chunk file)
{
    if (c->fd < 0) {
        errno = EPIPE;
        lease_end(&file);
        return IO_CLOSED;
    }
    if (c->out.n == 0 && !c->connecting && file.n > 0) {
        size_t done = 0;
        size_t want = file.n < FILE_STEP ? (size_t)file.n : FILE_STEP;
        enum io r = c->transport->sendfile(c, file.fd, file.off, want, &done);
        r = took(c, r, done);
        if (r == IO_ERROR) {
            lease_end(&file);
            return is_peer_gone(errno) ? IO_CLOSED : IO_ERROR;
        }
        file.off += done;
        file.n -= done;
    }
    /* Takes the lease, and ends it at once if nothing is left. */
    if (!buf_add_file(&c->out, &c->loop->blocks, file)) {
        errno = ENOMEM;
        return IO_CLOSED;
    }
    if (c->out.n == 0)
        return IO_OK;
    want_write(c, true);
    return IO_AGAIN;
}

uint64_t conn_queued(const struct conn *c)
{
    return c->out.n;
}

size_t conn_write_room(const struct conn *c)
{
    uint32_t info[SK_MEMINFO_VARS] = { 0 };
    socklen_t len = sizeof info;
    if (c->fd < 0 || c->out.n > 0 || getsockopt(c->fd, SOL_SOCKET, SO_MEMINFO, info, &len) != 0)
        return 0;
    /* TCP counts what waits in WMEM_QUEUED, unix sockets in WMEM_ALLOC. */
    uint32_t used = info[SK_MEMINFO_WMEM_QUEUED];
    if (used < info[SK_MEMINFO_WMEM_ALLOC])
        used = info[SK_MEMINFO_WMEM_ALLOC];
    return used < info[SK_MEMINFO_SNDBUF] ? info[SK_MEMINFO_SNDBUF] - used : 0;
}

void conn_want_drained(struct conn *c)
{
    if (c->fd >= 0)
        want_write(c, true);
}

void conn_shutdown(struct conn *c)
{
    if (c->fd < 0)
        return;
    if (c->out.n > 0)
        c->shut_when_drained = true;
    else
        shutdown(c->fd, SHUT_WR);
}

void conn_close(struct conn *c)
{
    if (!conn_is_open(c))
        return;
    ev_io_stop(c->loop->ev, &c->rd);
    ev_io_stop(c->loop->ev, &c->wr);
    int fd = c->fd;
    c->fd = -1;
    close(fd); /* Linux closes it even when it says EINTR */
    buf_clear(&c->out, &c->loop->blocks);
}

void conn_reset(struct conn *c)
{
    if (!conn_is_open(c))
        return;
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
    conn_close(c);
}

int conn_detach(struct conn *c, struct buf *unsent)
{
    int fd = c->fd;
    ev_io_stop(c->loop->ev, &c->rd);
    ev_io_stop(c->loop->ev, &c->wr);
    c->fd = -1;
    *unsent = c->out;
    c->out = (struct buf){ 0 };
    return fd;
}

bool conn_is_open(const struct conn *c)
{
    return c->loop != NULL && c->fd >= 0;
}

enum io conn_connect(const struct addr *to, int *fd)
{
    *fd = socket(to->u.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return IO_ERROR;
    if (connect(*fd, &to->u.sa, to->len) == 0)
        return IO_OK;
    /* Interrupted, a non-blocking connect goes on by itself. EAGAIN (a unix backlog that is full) does not: no event
     * would ever say that there is room. */
    if (errno == EINPROGRESS || (errno == EINTR && to->u.sa.sa_family != AF_UNIX))
        return IO_AGAIN;
    int error = errno;
    close(*fd);
    *fd = -1;
    errno = error;
    return IO_ERROR;
}

int conn_connect_result(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

void conn_want_connect(struct conn *c)
{
    if (c->fd < 0)
        return;
    c->connecting = true;
    want_write(c, true);
}
