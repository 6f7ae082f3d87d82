/* SPDX-License-Identifier: MIT */
/* A conn over real sockets with a running loop: what is written arrives whole, whatever the kernel takes at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/conn.h"

enum { BIG = 1500 * 1000 };

/* The linker sends every malloc of the code under test here; it can run out of memory. */
static int allocations_left = -1; /* -1: no limit */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    if (allocations_left == 0)
        return NULL;
    if (allocations_left > 0)
        allocations_left--;
    return __real_malloc(size);
}

static struct loop *l;
static struct conn c;
static int peer; /* the other end, non-blocking, read by hand or by reader */
static char content[BIG];
static int file_fd = -1;
static int drained, progress, failed, released, readable;

static void on_readable(struct conn *x)
{
    (void)x;
    readable++;
}

static void on_drained(struct conn *x)
{
    (void)x;
    drained++;
    loop_stop(l);
}

static void on_progress(struct conn *x)
{
    (void)x;
    progress++;
}

static void on_failed(struct conn *x, int error)
{
    failed = error;
    conn_close(x);
    loop_stop(l);
}

static const struct conn_events events = {
    .readable = on_readable, .drained = on_drained, .progress = on_progress, .failed = on_failed
};

static void release(void *arg)
{
    (void)arg;
    released++;
}

static struct chunk range(uint64_t off, uint64_t n)
{
    return (struct chunk){ .kind = CHUNK_FILE, .fd = file_fd, .off = off, .n = n, .lease = { .release = release } };
}

/* The peer's side: a watcher that takes at most `step` bytes a turn and compares them with what is due. */
static ev_io reader;
static char *got;
static size_t got_n, step;
static bool got_eof, got_reset, stop_at_eof;

static void on_peer(struct ev_loop *ev, ev_io *w, int revents)
{
    (void)revents;
    ssize_t n = read(peer, got + got_n, step);
    if (n > 0) {
        got_n += (size_t)n;
        return;
    }
    if (n < 0 && errno == EAGAIN)
        return;
    got_eof = n == 0;
    got_reset = n < 0 && errno == ECONNRESET;
    ev_io_stop(ev, w);
    if (stop_at_eof)
        loop_stop(l);
}

static void start_reader(size_t bytes_per_turn)
{
    step = bytes_per_turn;
    ev_io_init(&reader, on_peer, peer, EV_READ);
    ev_io_start(l->ev, &reader);
}

static void finish_reading(void)
{
    stop_at_eof = true;
    conn_close(&c);
    if (ev_is_active(&reader))
        loop_run(l);
}

static void guard(struct ev_loop *ev, ev_timer *w, int revents)
{
    (void)ev;
    (void)w;
    (void)revents;
    fail_msg("the loop was still waiting after 10 s");
}

static ev_timer guard_timer;

static void open_over(int fd, int other, bool tcp)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fcntl(other, F_SETFL, O_NONBLOCK);
    peer = other;
    conn_open(&c, l, fd, tcp, &events);
}

static void open_pair(void)
{
    int s[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    open_over(s[0], s[1], false);
}

/* A TCP pair over loopback with small buffers, so that writes are cut short. */
static void open_tcp(void)
{
    int lis = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof at;
    int size = 16384;
    setsockopt(lis, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    assert_int_equal(bind(lis, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(lis, 1), 0);
    assert_int_equal(getsockname(lis, (struct sockaddr *)&at, &len), 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
    int other = accept(lis, NULL, NULL);
    assert_true(other >= 0);
    close(lis);
    open_over(fd, other, true);
}

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < BIG; i++)
        content[i] = (char)(i * 2654435761u >> 13);
    char name[] = "/tmp/weir-conn-XXXXXX";
    file_fd = mkstemp(name);
    if (file_fd < 0 || write(file_fd, content, BIG) != BIG)
        return -1;
    unlink(name);
    l = loop_new(0);
    got = malloc(4 * BIG);
    got_n = 0;
    got_eof = got_reset = stop_at_eof = false;
    drained = progress = failed = released = readable = 0;
    ev_io_init(&reader, on_peer, 0, EV_READ);
    ev_timer_init(&guard_timer, guard, 10., 0.);
    ev_timer_start(l->ev, &guard_timer);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    conn_close(&c);
    ev_io_stop(l->ev, &reader);
    ev_timer_stop(l->ev, &guard_timer);
    loop_free(l);
    close(peer);
    close(file_fd);
    free(got);
    return 0;
}

static void a_small_write_goes_out_at_once(void **state)
{
    (void)state;
    open_pair();
    struct iovec iov[] = { { (void *)(uintptr_t)"ab", 2 }, { NULL, 0 }, { (void *)(uintptr_t)"cd", 2 } };
    assert_int_equal(conn_writev(&c, iov, 3), IO_OK);
    assert_int_equal(conn_write(&c, STR_NONE), IO_OK);
    assert_int_equal(conn_queued(&c), 0);
    assert_false(ev_is_active(&c.wr));
    assert_true(c.written == 4);
    assert_int_equal(read(peer, got, 10), 4);
    assert_memory_equal(got, "abcd", 4);
}

static void a_big_write_is_queued_and_drained(void **state)
{
    (void)state;
    open_tcp();
    assert_int_equal(conn_write(&c, str_of(content, BIG)), IO_AGAIN);
    assert_true(conn_queued(&c) > 0);
    assert_true(ev_is_active(&c.wr));
    assert_int_equal(conn_write_room(&c), 0);
    assert_int_equal(drained, 0);
    /* More is appended behind it, also nothing. */
    assert_int_equal(conn_write(&c, STR("tail")), IO_AGAIN);
    assert_int_equal(conn_write(&c, STR_NONE), IO_AGAIN);
    start_reader(7000);
    loop_run(l);
    assert_int_equal(drained, 1);
    assert_true(progress > 3);
    assert_int_equal(conn_queued(&c), 0);
    assert_false(ev_is_active(&c.wr));
    assert_true(c.written == BIG + 4);
    finish_reading();
    assert_int_equal(got_n, BIG + 4);
    assert_memory_equal(got, content, BIG);
    assert_memory_equal(got + BIG, "tail", 4);
}

static void many_pieces(void **state)
{
    (void)state;
    open_tcp();
    enum { PIECES = 3000 }; /* more than one sendmsg takes */
    static struct iovec iov[PIECES];
    for (size_t i = 0; i < PIECES; i++)
        iov[i] = (struct iovec){ content + i * 100, i % 7 == 0 ? 0 : 100 };
    size_t total = 0;
    char *expected = malloc(PIECES * 100);
    for (size_t i = 0; i < PIECES; i++) {
        memcpy(expected + total, content + i * 100, iov[i].iov_len);
        total += iov[i].iov_len;
    }
    assert_int_equal(conn_writev(&c, iov, PIECES), IO_AGAIN);
    start_reader(65536);
    loop_run(l);
    finish_reading();
    assert_int_equal(got_n, total);
    assert_memory_equal(got, expected, total);
    free(expected);
}

static void memory_and_file_ranges_mix(void **state)
{
    (void)state;
    open_tcp();
    assert_int_equal(conn_write(&c, STR("head")), IO_OK);
    assert_int_equal(conn_send_file(&c, range(1000, 1200000)), IO_AGAIN);
    assert_int_equal(released, 0);
    assert_int_equal(conn_write(&c, STR("--boundary--")), IO_AGAIN);
    assert_int_equal(conn_send_file(&c, range(5, 0)), IO_AGAIN);
    assert_int_equal(released, 1);
    assert_int_equal(conn_send_file(&c, range(0, 10)), IO_AGAIN);
    assert_int_equal(conn_write(&c, STR("end")), IO_AGAIN);
    conn_shutdown(&c);
    start_reader(50000);
    loop_run(l);
    assert_int_equal(released, 3);
    stop_at_eof = true;
    if (ev_is_active(&reader))
        loop_run(l);
    assert_true(got_eof); /* FIN came after everything, the conn is still open */
    assert_true(conn_is_open(&c));
    assert_int_equal(got_n, 4 + 1200000 + 12 + 10 + 3);
    assert_memory_equal(got, "head", 4);
    assert_memory_equal(got + 4, content + 1000, 1200000);
    assert_memory_equal(got + 1200004, "--boundary--", 12);
    assert_memory_equal(got + 1200016, content, 10);
    assert_memory_equal(got + 1200026, "end", 3);
}

static void a_small_file_goes_out_at_once(void **state)
{
    (void)state;
    open_tcp();
    assert_int_equal(conn_send_file(&c, range(100, 2000)), IO_OK);
    assert_int_equal(released, 1);
    assert_int_equal(conn_send_file(&c, range(100, 0)), IO_OK);
    assert_int_equal(released, 2);
    assert_false(ev_is_active(&c.wr));
    start_reader(65536);
    finish_reading();
    assert_int_equal(got_n, 2000);
    assert_memory_equal(got, content + 100, 2000);
}

/* sendfile(2) stand-in that takes everything, to see how much is offered in one turn. */
static size_t most_per_call;
static int calls_per_turn, most_calls_per_turn;
static uint64_t sunk;

static enum io sink_sendfile(struct conn *x, int fd, uint64_t off, size_t n, size_t *done)
{
    (void)x;
    (void)fd;
    assert_true(off == sunk);
    if (n > most_per_call)
        most_per_call = n;
    if (++calls_per_turn > most_calls_per_turn)
        most_calls_per_turn = calls_per_turn;
    *done = n;
    sunk += n;
    return IO_OK;
}

static void count_turn(struct loop *x)
{
    (void)x;
    calls_per_turn = 0;
}

static void one_file_does_not_keep_a_turn_to_itself(void **state)
{
    (void)state;
    open_pair();
    static const struct transport sink = { .sendfile = sink_sendfile };
    c.transport = &sink;
    l->on_turn = count_turn;
    sunk = 0;
    assert_int_equal(conn_send_file(&c, range(0, 40 * 1000 * 1000)), IO_AGAIN);
    loop_run(l);
    assert_true(sunk == 40 * 1000 * 1000);
    assert_int_equal(most_per_call, 2 * 1024 * 1024);
    assert_int_equal(most_calls_per_turn, 1);
    assert_int_equal(progress, 18); /* 20 steps: the first at once, the last drains */
    assert_int_equal(released, 1);
}

static void a_truncated_file_is_an_error(void **state)
{
    (void)state;
    open_tcp();
    assert_int_equal(conn_send_file(&c, range(BIG, 10)), IO_ERROR);
    assert_int_equal(errno, ESPIPE);
    assert_int_equal(released, 1);
    /* Half of the range is there. */
    assert_int_equal(conn_send_file(&c, range(BIG - 5000, 10000)), IO_AGAIN);
    start_reader(65536);
    loop_run(l);
    assert_int_equal(failed, ESPIPE);
    assert_int_equal(released, 2);
    assert_int_equal(drained, 0);
    /* It shrinks while it is being sent. */
    close(peer);
    ev_io_stop(l->ev, &reader);
    failed = 0;
    open_tcp();
    assert_int_equal(conn_send_file(&c, range(0, BIG)), IO_AGAIN);
    assert_int_equal(ftruncate(file_fd, BIG / 2), 0);
    start_reader(20000);
    loop_run(l);
    assert_int_equal(failed, ESPIPE);
    assert_int_equal(released, 3);
}

static void a_filesystem_without_sendfile_is_copied(void **state)
{
    (void)state;
    open_tcp();
    /* sendfile(2) wants a file that can be mapped; seq_files cannot. */
    int fd = open("/proc/self/status", O_RDONLY);
    char expected[64];
    assert_int_equal(pread(fd, expected, 60, 0), 60);
    struct chunk file = { .kind = CHUNK_FILE, .fd = fd, .n = 60 };
    assert_int_equal(conn_send_file(&c, file), IO_OK);
    file.off = 1 << 20;
    assert_int_equal(conn_send_file(&c, file), IO_ERROR);
    assert_int_equal(errno, ESPIPE);
    start_reader(65536);
    finish_reading();
    assert_int_equal(got_n, 60);
    assert_memory_equal(got, expected, 60);
    close(fd);
}

/* A kernel that takes one byte, says EAGAIN, has no memory, or takes nothing, in turn. */
static int trouble_calls;
static bool is_trouble_forever;

static enum io trouble_writev(struct conn *x, const struct iovec *iov, int n, size_t *done)
{
    *done = 0;
    int kind = trouble_calls++ % 4;
    if (is_trouble_forever || kind == 1) {
        errno = ENOBUFS;
        return IO_ERROR;
    }
    if (kind == 2)
        return IO_AGAIN;
    if (kind == 3) {
        errno = ENOMEM;
        return IO_ERROR;
    }
    (void)n;
    struct iovec one = { iov[0].iov_base, iov[0].iov_len < 3 ? iov[0].iov_len : 3 };
    return transport_plain.writev(x, &one, 1, done);
}

static void a_struggling_kernel_loses_nothing(void **state)
{
    (void)state;
    open_pair();
    static const struct transport trouble = { .writev = trouble_writev };
    c.transport = &trouble;
    is_trouble_forever = false;
    trouble_calls = 0;
    struct iovec iov[] = { { content, 100 }, { content + 100, 1 }, { content + 101, 899 } };
    assert_int_equal(conn_writev(&c, iov, 3), IO_AGAIN);
    start_reader(65536);
    loop_run(l);
    assert_int_equal(failed, 0);
    assert_int_equal(drained, 1);
    finish_reading();
    assert_int_equal(got_n, 1000);
    assert_memory_equal(got, content, 1000);
}

static void a_kernel_without_memory_is_not_asked_forever(void **state)
{
    (void)state;
    open_pair();
    static const struct transport trouble = { .writev = trouble_writev };
    c.transport = &trouble;
    is_trouble_forever = true;
    trouble_calls = 0;
    assert_int_equal(conn_write(&c, STR("x")), IO_AGAIN);
    loop_run(l);
    assert_int_equal(failed, ENOBUFS);
    assert_true(trouble_calls < 20);
}

static void a_peer_that_is_gone(void **state)
{
    (void)state;
    open_pair();
    close(peer);
    assert_int_equal(conn_write(&c, STR("x")), IO_CLOSED);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(conn_send_file(&c, range(0, 10)), IO_CLOSED);
    assert_int_equal(released, 1);
    conn_close(&c);
    /* While the queue waits: told by the event. */
    open_tcp();
    assert_int_equal(conn_send_file(&c, range(0, BIG)), IO_AGAIN);
    assert_int_equal(conn_write(&c, str_of(content, BIG)), IO_AGAIN);
    close(peer); /* with unread bytes: RST */
    peer = -1;
    loop_run(l);
    assert_true(failed == ECONNRESET || failed == EPIPE);
    assert_int_equal(released, 2);
    assert_int_equal(drained, 0);
}

static void closing(void **state)
{
    (void)state;
    struct conn never = { 0 };
    conn_close(&never); /* must not close descriptor 0 */
    assert_false(conn_is_open(&never));
    assert_true(fcntl(0, F_GETFD) >= 0 || errno == EBADF);
    open_tcp();
    assert_true(conn_is_open(&c));
    conn_want_read(&c, true);
    assert_int_equal(conn_send_file(&c, range(0, BIG)), IO_AGAIN);
    int fd = c.fd;
    conn_close(&c);
    conn_close(&c);
    assert_false(conn_is_open(&c));
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(released, 1);
    assert_int_equal(conn_queued(&c), 0);
    assert_false(ev_is_active(&c.rd) || ev_is_active(&c.wr));
    /* Everything is refused, nothing crashes. */
    size_t n;
    assert_int_equal(conn_read(&c, got, 10, &n), IO_ERROR);
    assert_int_equal(conn_write(&c, STR("x")), IO_CLOSED);
    assert_int_equal(conn_send_file(&c, range(0, 10)), IO_CLOSED);
    assert_int_equal(released, 2);
    conn_want_read(&c, true);
    assert_false(conn_is_reading(&c));
    conn_shutdown(&c);
    conn_reset(&c);
    assert_int_equal(conn_write_room(&c), 0);
}

static void close_in_readable(struct conn *x)
{
    readable++;
    struct str s;
    assert_int_equal(conn_read_scratch(x, 100, &s), IO_OK);
    conn_close(x);
    loop_stop(l);
}

static void an_owner_may_close_inside_an_event(void **state)
{
    (void)state;
    open_pair();
    static const struct conn_events closing_events = {
        .readable = close_in_readable, .drained = on_drained, .failed = on_failed
    };
    c.events = &closing_events;
    /* Both events are pending in the same turn: the second must not come. */
    assert_int_equal(conn_send_file(&c, range(0, 300 * 1024)), IO_AGAIN);
    conn_want_read(&c, true);
    while (read(peer, got, BIG) > 0)
        ;
    assert_int_equal(write(peer, "abc", 3), 3);
    ev_feed_event(l->ev, &c.wr, EV_WRITE);
    ev_feed_event(l->ev, &c.rd, EV_READ); /* the last fed is the first served */
    loop_run(l);
    assert_int_equal(readable, 1);
    assert_int_equal(drained, 0);
    assert_int_equal(released, 1);
}

static void a_reset_is_seen_as_one(void **state)
{
    (void)state;
    open_tcp();
    assert_int_equal(conn_write(&c, STR("part")), IO_OK);
    start_reader(65536);
    ev_run(l->ev, EVRUN_NOWAIT);
    stop_at_eof = true;
    conn_reset(&c);
    loop_run(l);
    assert_true(got_reset);
    assert_false(got_eof);
}

static void reading(void **state)
{
    (void)state;
    open_pair();
    struct str s;
    size_t n = 9;
    assert_int_equal(conn_read(&c, got, 10, &n), IO_AGAIN);
    assert_int_equal(n, 0);
    assert_int_equal(write(peer, "hello", 5), 5);
    assert_int_equal(conn_read(&c, got, 2, &n), IO_OK); /* one read, no more than asked */
    assert_int_equal(n, 2);
    assert_int_equal(conn_read_scratch(&c, 1 << 30, &s), IO_OK);
    assert_true(str_eq(s, STR("llo")));
    assert_int_equal(conn_read_scratch(&c, 100, &s), IO_AGAIN);
    shutdown(peer, SHUT_WR);
    assert_int_equal(conn_read_scratch(&c, 100, &s), IO_EOF);
    assert_int_equal(conn_write(&c, STR("half-closed")), IO_OK);
}

static void the_read_watcher_does_as_told(void **state)
{
    (void)state;
    open_pair();
    assert_false(conn_is_reading(&c));
    assert_int_equal(write(peer, "x", 1), 1);
    ev_run(l->ev, EVRUN_NOWAIT);
    assert_int_equal(readable, 0);
    conn_want_read(&c, true);
    conn_want_read(&c, true);
    assert_true(conn_is_reading(&c));
    ev_run(l->ev, EVRUN_NOWAIT);
    assert_int_equal(readable, 1);
    conn_want_read(&c, false);
    ev_run(l->ev, EVRUN_NOWAIT);
    assert_int_equal(readable, 1);
}

/* What libev does when epoll_ctl fails. */
static void a_refused_watch_fails_the_conn(void **state)
{
    (void)state;
    open_pair();
    conn_want_read(&c, true);
    ev_io_stop(l->ev, &c.rd);
    ev_feed_event(l->ev, &c.rd, EV_ERROR | EV_READ | EV_WRITE);
    loop_run(l);
    assert_int_equal(failed, EIO);
    assert_int_equal(readable, 0);
}

static void write_room_shrinks(void **state)
{
    (void)state;
    open_tcp();
    size_t before = conn_write_room(&c);
    assert_true(before > 4096 && before < 1 << 20);
    while (conn_write(&c, str_of(content, 1000)) == IO_OK)
        ;
    assert_int_equal(conn_write_room(&c), 0);
}

static int listen_on(struct addr *at, int backlog)
{
    int fd = socket(at->u.sa.sa_family, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, &at->u.sa, at->len), 0);
    if (backlog >= 0)
        assert_int_equal(listen(fd, backlog), 0);
    if (at->u.sa.sa_family != AF_UNIX)
        assert_int_equal(getsockname(fd, &at->u.sa, &at->len), 0);
    return fd;
}

static struct addr loopback(void)
{
    struct addr at = { .len = sizeof at.u.in };
    at.u.in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    return at;
}

static void connecting_over_tcp(void **state)
{
    (void)state;
    struct addr at = loopback();
    int lis = listen_on(&at, 1), fd;
    enum io r = conn_connect(&at, &fd);
    assert_true(r == IO_OK || r == IO_AGAIN);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    peer = -1;
    conn_open(&c, l, fd, true, &events);
    conn_want_connect(&c);
    loop_run(l);
    assert_int_equal(drained, 1);
    assert_int_equal(conn_connect_result(fd), 0);
    assert_false(ev_is_active(&c.wr));
    close(lis);
}

static void what_is_written_while_connecting_follows(void **state)
{
    (void)state;
    struct addr at = loopback();
    int lis = listen_on(&at, 1), fd;
    enum io r = conn_connect(&at, &fd);
    assert_true(r == IO_OK || r == IO_AGAIN);
    conn_open(&c, l, fd, true, &events);
    conn_want_connect(&c);
    assert_int_equal(conn_write(&c, STR("early")), IO_AGAIN);
    loop_run(l);
    assert_int_equal(drained, 1); /* the connect */
    loop_run(l);
    assert_int_equal(drained, 2); /* the bytes */
    peer = accept(lis, NULL, NULL);
    assert_int_equal(read(peer, got, 10), 5);
    close(lis);
}

static void a_refused_connect_is_told(void **state)
{
    (void)state;
    struct addr at = loopback();
    int bound = listen_on(&at, -1), fd; /* bound, not listening: refused */
    peer = -1;
    enum io r = conn_connect(&at, &fd);
    if (r == IO_ERROR) {
        assert_int_equal(errno, ECONNREFUSED);
    } else {
        conn_open(&c, l, fd, true, &events);
        conn_want_connect(&c);
        loop_run(l);
        assert_int_equal(drained, 1);
        assert_int_equal(conn_connect_result(fd), ECONNREFUSED);
    }
    close(bound);
}

static void unix_connects_that_fail(void **state)
{
    (void)state;
    char dir[] = "/tmp/weir-conn-XXXXXX", text[64];
    assert_non_null(mkdtemp(dir));
    int n = snprintf(text, sizeof text, "unix:%s/s", dir);
    struct endpoint e;
    const char *why;
    assert_true(endpoint_parse(str_of(text, (size_t)n), &e, &why));
    peer = -1;
    int fd = 0;
    assert_int_equal(conn_connect(&e.addr, &fd), IO_ERROR);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(fd, -1);

    int lis = listen_on(&e.addr, 0), fds[8];
    int made = 0;
    enum io r = IO_OK;
    while (made < 8 && (r = conn_connect(&e.addr, &fds[made])) == IO_OK)
        made++;
    assert_true(made > 0 && made < 8);
    assert_int_equal(r, IO_ERROR); /* a full backlog is no connect in progress: no event would end it */
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fds[made], -1);
    while (made > 0)
        close(fds[--made]);
    close(lis);
    assert_int_equal(conn_connect(&e.addr, &fd), IO_ERROR);
    assert_int_equal(errno, ECONNREFUSED);
    unlink(e.addr.u.un.sun_path);
    rmdir(dir);
}

static unsigned turns;

static void count_turns(struct loop *x)
{
    (void)x;
    turns++;
}

static void stop_now(struct ev_loop *ev, ev_timer *w, int revents)
{
    (void)ev;
    (void)w;
    (void)revents;
    loop_stop(l);
}

static void a_blocked_conn_does_not_turn_the_loop(void **state)
{
    (void)state;
    open_tcp();
    assert_int_equal(conn_send_file(&c, range(0, BIG)), IO_AGAIN);
    conn_want_read(&c, true);
    ev_timer stop;
    ev_timer_init(&stop, stop_now, 0.2, 0.);
    ev_timer_start(l->ev, &stop);
    l->on_turn = count_turns;
    turns = 0;
    loop_run(l);
    assert_true(turns < 20);
    assert_true(conn_queued(&c) > 0);
}

static void without_memory_the_conn_is_lost(void **state)
{
    (void)state;
    open_tcp();
    allocations_left = 0;
    assert_int_equal(conn_write(&c, str_of(content, BIG)), IO_CLOSED);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(conn_send_file(&c, range(0, BIG)), IO_CLOSED);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(released, 1);
    allocations_left = -1;
}

static void detaching_keeps_socket_and_bytes(void **state)
{
    (void)state;
    open_tcp();
    conn_want_read(&c, true);
    assert_int_equal(conn_send_file(&c, range(0, BIG)), IO_AGAIN);
    uint64_t queued = conn_queued(&c);
    struct buf unsent;
    int fd = conn_detach(&c, &unsent);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    assert_false(conn_is_open(&c));
    assert_int_equal(conn_queued(&c), 0);
    assert_false(ev_is_active(&c.rd) || ev_is_active(&c.wr));
    assert_true(unsent.n == queued);
    conn_close(&c); /* does not touch what was given away */
    assert_true(fcntl(fd, F_GETFD) >= 0);
    assert_int_equal(released, 0);
    buf_clear(&unsent, &l->blocks);
    assert_int_equal(released, 1);
    close(fd);
}

#define CONN_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONN_TEST(a_small_write_goes_out_at_once),
        CONN_TEST(a_big_write_is_queued_and_drained),
        CONN_TEST(many_pieces),
        CONN_TEST(memory_and_file_ranges_mix),
        CONN_TEST(a_small_file_goes_out_at_once),
        CONN_TEST(one_file_does_not_keep_a_turn_to_itself),
        CONN_TEST(a_truncated_file_is_an_error),
        CONN_TEST(a_filesystem_without_sendfile_is_copied),
        CONN_TEST(a_struggling_kernel_loses_nothing),
        CONN_TEST(a_kernel_without_memory_is_not_asked_forever),
        CONN_TEST(a_peer_that_is_gone),
        CONN_TEST(closing),
        CONN_TEST(an_owner_may_close_inside_an_event),
        CONN_TEST(a_reset_is_seen_as_one),
        CONN_TEST(reading),
        CONN_TEST(the_read_watcher_does_as_told),
        CONN_TEST(a_refused_watch_fails_the_conn),
        CONN_TEST(write_room_shrinks),
        CONN_TEST(connecting_over_tcp),
        CONN_TEST(what_is_written_while_connecting_follows),
        CONN_TEST(a_refused_connect_is_told),
        CONN_TEST(unix_connects_that_fail),
        CONN_TEST(without_memory_the_conn_is_lost),
        CONN_TEST(detaching_keeps_socket_and_bytes),
        CONN_TEST(a_blocked_conn_does_not_turn_the_loop),
    };
    return cmocka_run_group_tests_name("net/conn", tests, NULL, NULL);
}
