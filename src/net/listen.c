/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: opening them, and accepting on one. listen_open gives its descriptors to the caller; a listener
 * watches a descriptor that somebody else owns and closes.
 *
 * SO_REUSEPORT lets a second process of the same user join silently, so an address is first bound without it, for a
 * moment, only to find out whether it is in use. (SO_REUSEADDR is always on: it lets a restart pass TIME_WAIT, and does
 * not let two sockets listen.)
 *
 * Accepting never spins: what is wrong with one connection is passed over, anything else (no descriptors, no memory, a
 * socket that is none) pauses the listener for 100 ms, because the waiting connection keeps it readable.
 */
#include "net/listen.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

enum { ACCEPTS_PER_TURN = 64 };

static bool set_option(int fd, int level, int option)
{
    return setsockopt(fd, level, option, &(int){ 1 }, sizeof(int)) == 0;
}

static void close_keeping_errno(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
}

/* A bound socket, not yet listening; -1: errno and *step. */
static int bound_socket(const struct addr *a, bool v6only, bool reuseport, const char **step)
{
    int family = a->u.sa.sa_family;
    *step = "socket";
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    *step = "setsockopt";
    bool is_set = family == AF_UNIX || set_option(fd, SOL_SOCKET, SO_REUSEADDR);
    /* The system's default for this one may be either. */
    if (is_set && family == AF_INET6)
        is_set = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ v6only }, sizeof(int)) == 0;
    if (is_set && reuseport)
        is_set = set_option(fd, SOL_SOCKET, SO_REUSEPORT);
    if (is_set) {
        *step = "bind";
        if (bind(fd, &a->u.sa, a->len) == 0)
            return fd;
    }
    close_keeping_errno(fd);
    return -1;
}

static bool start_listening(int fd, const struct listen_options *o, bool is_tcp, const char **step)
{
    /* Failure would cost latency, not correctness. */
    if (is_tcp && o->defer)
        set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT);
    *step = "listen";
    return listen(fd, o->backlog) == 0;
}

/* "*:80" on a host without IPv6, or with it switched off, is 0.0.0.0:80. */
static bool can_fall_back(const struct addr *a, const struct listen_options *o)
{
    return a->u.sa.sa_family == AF_INET6 && !o->v6only && IN6_IS_ADDR_UNSPECIFIED(&a->u.in6.sin6_addr) &&
           (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL);
}

static struct addr any_v4(const struct addr *a)
{
    struct addr v4 = { .len = sizeof v4.u.in };
    v4.u.in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = a->u.in6.sin6_port };
    return v4;
}

static bool open_tcp(const struct addr *a, const struct listen_options *o, int *fds, unsigned n_fds, const char **step)
{
    struct addr at = *a;
    bool reuseport = o->reuseport || n_fds > 1;
    int probe = bound_socket(&at, o->v6only, o->join, step);
    if (probe < 0 && can_fall_back(&at, o)) {
        at = any_v4(a);
        probe = bound_socket(&at, o->v6only, false, step);
    }
    if (probe < 0)
        return false;
    if (reuseport) {
        /* Port 0 has become a real one: all sockets must share it. */
        socklen_t len = sizeof at.u;
        *step = "getsockname";
        bool is_known = getsockname(probe, &at.u.sa, &len) == 0;
        close_keeping_errno(probe);
        if (!is_known)
            return false;
    }
    for (unsigned i = 0; i < n_fds; i++) {
        fds[i] = reuseport ? bound_socket(&at, o->v6only, true, step) : probe;
        if (fds[i] < 0 || !start_listening(fds[i], o, true, step))
            return false;
    }
    return true;
}

/* Is there a socket file on which nobody accepts? */
static bool is_stale(const struct addr *a)
{
    struct stat st;
    if (lstat(a->u.un.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool is_refused = connect(fd, &a->u.sa, a->len) != 0 && errno == ECONNREFUSED;
    close(fd);
    return is_refused;
}

static bool open_unix(const struct addr *a, const struct listen_options *o, int *fd, const char **step)
{
    size_t max = sizeof a->u.un.sun_path;
    *step = "bind";
    if (a->len > sizeof a->u.un || strnlen(a->u.un.sun_path, max) == max) {
        errno = ENAMETOOLONG;
        return false;
    }
    *fd = bound_socket(a, false, false, step);
    if (*fd < 0 && errno == EADDRINUSE) {
        if (!is_stale(a)) {
            errno = EADDRINUSE;
            return false;
        }
        *step = "unlink";
        if (unlink(a->u.un.sun_path) != 0)
            return false;
        *fd = bound_socket(a, false, false, step);
    }
    return *fd >= 0 && start_listening(*fd, o, false, step);
}

bool listen_open(const struct addr *a, const struct listen_options *o, int *fds, unsigned n_fds, const char **step)
{
    bool is_unix = a->u.sa.sa_family == AF_UNIX;
    CHECK(n_fds > 0 && (!is_unix || n_fds == 1));
    for (unsigned i = 0; i < n_fds; i++)
        fds[i] = -1;
    if (is_unix ? open_unix(a, o, fds, step) : open_tcp(a, o, fds, n_fds, step))
        return true;
    for (unsigned i = 0; i < n_fds; i++) {
        if (fds[i] >= 0)
            close_keeping_errno(fds[i]);
        fds[i] = -1;
    }
    return false;
}

/* One line a second for the whole process: every loop meets the same limit at the same time. */
static void log_pause(struct listener *l, int error)
{
    static atomic_uint_fast64_t last_ms;
    uint64_t now = l->loop->now_ms;
    uint_fast64_t last = atomic_load_explicit(&last_ms, memory_order_relaxed);
    if (last != 0 && now < last + 1000)
        return;
    if (atomic_compare_exchange_strong(&last_ms, &last, now))
        log_write(LOG_ERROR, "accept: %s; accepting pauses for 100 ms", strerror(error));
}

/* Errors that concern the one connection that was waiting (accept(2): network errors are passed on by it). */
static bool is_passing(int error)
{
    switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
        return true;
    default:
        return false;
    }
}

static void on_ready(struct ev_loop *ev, ev_io *w, int revents)
{
    (void)ev;
    struct listener *l = container_of(w, struct listener, accept);
    struct loop *loop = l->loop;
    if (revents & EV_ERROR) {
        log_pause(l, EIO);
        listener_pause(l);
        return;
    }
    /* on_accept may stop or pause the listener. */
    for (int i = 0; i < ACCEPTS_PER_TURN && ev_is_active(&l->accept); i++) {
        struct addr from = { .len = sizeof from.u };
        int fd = accept4(l->fd, &from.u.sa, &from.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (is_passing(errno))
                continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                log_pause(l, errno);
                listener_pause(l);
            }
            return;
        }
        struct ip peer = ip_of(&from.u.sa);
        l->on_accept(l, fd, &peer);
        loop_scratch_done(loop);
    }
}

static void on_pause_over(struct ev_loop *ev, ev_timer *w, int revents)
{
    if (revents & EV_ERROR)
        return;
    ev_io_start(ev, &container_of(w, struct listener, pause)->accept);
}

void listener_start(struct listener *l)
{
    ev_io_init(&l->accept, on_ready, l->fd, EV_READ);
    ev_init(&l->pause, on_pause_over);
    if (l->tcp) /* accepted sockets inherit it: one call less for each (tcp(7)) */
        setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    ev_io_start(l->loop->ev, &l->accept);
}

void listener_sweep(struct listener *l)
{
    struct pollfd p = { .fd = l->fd, .events = POLLIN };
    for (int i = 0; i < 64 && ev_is_active(&l->accept) && poll(&p, 1, 0) > 0; i++)
        on_ready(l->loop->ev, &l->accept, EV_READ);
}

void listener_stop(struct listener *l)
{
    ev_io_stop(l->loop->ev, &l->accept);
    ev_timer_stop(l->loop->ev, &l->pause);
}

void listener_pause(struct listener *l)
{
    ev_io_stop(l->loop->ev, &l->accept);
    ev_timer_stop(l->loop->ev, &l->pause);
    ev_timer_set(&l->pause, 0.1, 0.);
    ev_timer_start(l->loop->ev, &l->pause);
}
