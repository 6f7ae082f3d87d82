/* SPDX-License-Identifier: MIT */
/* Opening and accepting: what is in use is found, nobody's socket is stolen, and a lack of descriptors never spins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/listen.h"

static struct addr loopback(uint16_t port)
{
    struct addr a = { .len = sizeof a.u.in };
    a.u.in = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) }, .sin_port = htons(port)
    };
    return a;
}

static struct addr any_v6(uint16_t port)
{
    struct addr a = { .len = sizeof a.u.in6 };
    a.u.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
    return a;
}

static uint16_t port_of(int fd)
{
    struct addr a = { .len = sizeof a.u };
    assert_int_equal(getsockname(fd, &a.u.sa, &a.len), 0);
    return ip_of(&a.u.sa).port;
}

static int option(int fd, int level, int name)
{
    int v = -1;
    socklen_t len = sizeof v;
    assert_int_equal(getsockopt(fd, level, name, &v, &len), 0);
    return v;
}

static const struct listen_options plain = { .backlog = 128 };
static const struct listen_options shared = { .backlog = 128, .reuseport = true, .defer = true };

static void sockets_share_a_port(void **state)
{
    (void)state;
    int fds[3];
    const char *step;
    struct addr a = loopback(0);
    assert_true(listen_open(&a, &shared, fds, 3, &step));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(port_of(fds[i]), port_of(fds[0]));
        assert_int_equal(option(fds[i], SOL_SOCKET, SO_ACCEPTCONN), 1);
        assert_int_equal(option(fds[i], SOL_SOCKET, SO_REUSEADDR), 1);
        assert_int_equal(option(fds[i], IPPROTO_TCP, TCP_DEFER_ACCEPT), 1);
        assert_true(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
        assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    }
    /* A second opening is told, although the first one's sockets allow reuse. */
    struct addr same = loopback(port_of(fds[0]));
    int more[2] = { 5, 5 };
    assert_false(listen_open(&same, &shared, more, 2, &step));
    assert_int_equal(errno, EADDRINUSE);
    assert_string_equal(step, "bind");
    assert_int_equal(more[0], -1);
    assert_int_equal(more[1], -1);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    /* And free again at once. */
    assert_true(listen_open(&same, &plain, more, 1, &step));
    assert_int_equal(option(more[0], IPPROTO_TCP, TCP_DEFER_ACCEPT), 0);
    close(more[0]);
}

static void time_wait_does_not_hinder_a_restart(void **state)
{
    (void)state;
    int lis, fd;
    const char *step;
    struct addr a = loopback(0);
    assert_true(listen_open(&a, &plain, &lis, 1, &step));
    a = loopback(port_of(lis));
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(peer, &a.u.sa, a.len), 0);
    while ((fd = accept(lis, NULL, NULL)) < 0 && errno == EAGAIN)
        ;
    close(fd); /* the server closes first: TIME_WAIT on its side */
    char byte;
    assert_int_equal(read(peer, &byte, 1), 0);
    close(peer);
    close(lis);
    assert_true(listen_open(&a, &plain, &lis, 1, &step));
    close(lis);
}

static void one_socket_for_both_families(void **state)
{
    (void)state;
    int lis;
    const char *step;
    struct addr a = any_v6(0);
    assert_true(listen_open(&a, &plain, &lis, 1, &step)); /* without IPv6: 0.0.0.0 */
    struct addr v4 = loopback(port_of(lis));
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(peer, &v4.u.sa, v4.len), 0);
    close(peer);
    close(lis);
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct addr one = any_v6(0);
    one.u.in6.sin6_addr = in6addr_loopback;
    bool has_v6 = probe >= 0 && bind(probe, &one.u.sa, one.len) == 0;
    if (probe >= 0)
        close(probe);
    if (!has_v6)
        return;
    struct listen_options only = { .backlog = 1, .v6only = true };
    assert_true(listen_open(&a, &only, &lis, 1, &step));
    assert_int_equal(option(lis, IPPROTO_IPV6, IPV6_V6ONLY), 1);
    v4 = loopback(port_of(lis));
    peer = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(peer, &v4.u.sa, v4.len), -1);
    close(peer);
    close(lis);
}

static void an_address_that_is_not_ours(void **state)
{
    (void)state;
    int lis = 7;
    const char *step;
    struct addr a = loopback(80);
    a.u.in.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, RFC 5737 */
    assert_false(listen_open(&a, &plain, &lis, 1, &step));
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_string_equal(step, "bind");
    assert_int_equal(lis, -1);
}

static void unix_sockets(void **state)
{
    (void)state;
    char dir[] = "/tmp/weir-listen-XXXXXX", text[64];
    assert_non_null(mkdtemp(dir));
    int n = snprintf(text, sizeof text, "unix:%s/s", dir), lis, second;
    struct endpoint e;
    const char *why, *step, *path = e.addr.u.un.sun_path;
    assert_true(endpoint_parse(str_of(text, (size_t)n), &e, &why));
    assert_true(listen_open(&e.addr, &shared, &lis, 1, &step));

    /* Somebody accepts: never stolen. */
    assert_false(listen_open(&e.addr, &plain, &second, 1, &step));
    assert_int_equal(errno, EADDRINUSE);
    assert_string_equal(step, "bind");
    /* Also not while its backlog is full. */
    int peers[200];
    int made = 0;
    do
        peers[made] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    while (connect(peers[made], &e.addr.u.sa, e.addr.len) == 0 && ++made < 199);
    assert_true(made < 199);
    assert_false(listen_open(&e.addr, &plain, &second, 1, &step));
    assert_int_equal(errno, EADDRINUSE);
    for (int i = 0; i <= made; i++)
        close(peers[i]);

    /* Left behind by a crash: replaced. */
    close(lis);
    assert_int_equal(access(path, F_OK), 0);
    assert_true(listen_open(&e.addr, &plain, &lis, 1, &step));
    int peer = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(peer, &e.addr.u.sa, e.addr.len), 0);
    close(peer);
    close(lis);
    unlink(path);

    /* A file that is no socket: never removed. */
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    close(file);
    assert_false(listen_open(&e.addr, &plain, &lis, 1, &step));
    assert_int_equal(errno, EADDRINUSE);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
    rmdir(dir);

    memset(e.addr.u.un.sun_path, 'p', sizeof e.addr.u.un.sun_path);
    e.addr.len = sizeof e.addr.u.un;
    assert_false(listen_open(&e.addr, &plain, &lis, 1, &step));
    assert_int_equal(errno, ENAMETOOLONG);
}

static struct loop *l;
static struct listener lis;
static int accepted[256], n_accepted, stop_after, most_per_turn, this_turn;
static struct ip last_peer;
static unsigned turns;
static int lines;

static void on_accept(struct listener *x, int fd, const struct ip *peer)
{
    assert_ptr_equal(x, &lis);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    last_peer = *peer;
    accepted[n_accepted++] = fd;
    if (++this_turn > most_per_turn)
        most_per_turn = this_turn;
    if (n_accepted == stop_after)
        loop_stop(x->loop);
}

static void on_turn(struct loop *x)
{
    (void)x;
    this_turn = 0;
    turns++;
}

static void sink(void *arg, enum log_level level, struct str text)
{
    (void)arg;
    (void)level;
    lines += str_starts(text, STR("accept: "));
}

static void stop_now(struct ev_loop *ev, ev_timer *w, int revents)
{
    (void)ev;
    (void)w;
    (void)revents;
    loop_stop(l);
}

static void run_for(double seconds)
{
    ev_timer stop;
    ev_timer_init(&stop, stop_now, seconds, 0.);
    ev_timer_start(l->ev, &stop);
    loop_run(l);
    ev_timer_stop(l->ev, &stop);
}

static int set_up(void **state)
{
    (void)state;
    log_set_sink(sink, NULL);
    l = loop_new(0);
    l->on_turn = on_turn;
    n_accepted = most_per_turn = this_turn = lines = 0;
    turns = 0;
    stop_after = -1;
    const char *step;
    struct addr a = loopback(0);
    int fd;
    if (!listen_open(&a, &(struct listen_options){ .backlog = 256 }, &fd, 1, &step))
        return -1;
    lis = (struct listener){ .loop = l, .fd = fd, .tcp = true, .on_accept = on_accept };
    listener_start(&lis);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    listener_stop(&lis);
    close(lis.fd);
    for (int i = 0; i < n_accepted; i++)
        close(accepted[i]);
    loop_free(l);
    log_set_sink(NULL, NULL);
    return 0;
}

static void dial(int *fds, int n)
{
    struct addr a = loopback(port_of(lis.fd));
    for (int i = 0; i < n; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fds[i], &a.u.sa, a.len), 0);
    }
}

static void hang_up(const int *fds, int n)
{
    for (int i = 0; i < n; i++)
        close(fds[i]);
}

static void all_are_accepted_but_not_all_in_one_turn(void **state)
{
    (void)state;
    int fds[150];
    dial(fds, 150);
    stop_after = 150;
    run_for(5);
    assert_int_equal(n_accepted, 150);
    assert_int_equal(most_per_turn, 64);
    assert_int_equal(last_peer.family, 4);
    assert_int_equal(last_peer.b[0], 127);
    assert_int_equal(last_peer.port, port_of(fds[149]));
    hang_up(fds, 150);
}

static void without_descriptors_it_waits_and_recovers(void **state)
{
    (void)state;
    struct rlimit old, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    int fds[5];
    dial(fds, 5);
    int next = dup(0);
    close(next);
    low = old;
    low.rlim_cur = (rlim_t)next + 2; /* two are left */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    run_for(0.5);
    assert_int_equal(n_accepted, 2);
    assert_true(turns < 30); /* about ten retries */
    assert_int_equal(lines, 1);
    close(accepted[--n_accepted]);
    run_for(0.25);
    assert_int_equal(n_accepted, 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    stop_after = 4;
    run_for(5);
    assert_int_equal(n_accepted, 4);
    hang_up(fds, 5);
}

static void accept_and_pause(struct listener *x, int fd, const struct ip *peer)
{
    on_accept(x, fd, peer);
    listener_pause(x);
}

static void a_pause_lasts_100_ms(void **state)
{
    (void)state;
    lis.on_accept = accept_and_pause;
    int fds[3];
    dial(fds, 3);
    uint64_t start = clock_monotonic_ms();
    stop_after = 3;
    run_for(5);
    assert_int_equal(n_accepted, 3);
    assert_int_equal(most_per_turn, 1);
    assert_true(clock_monotonic_ms() - start >= 195);
    hang_up(fds, 3);
}

static void accept_and_stop(struct listener *x, int fd, const struct ip *peer)
{
    on_accept(x, fd, peer);
    listener_stop(x);
}

static void stopping_inside_on_accept(void **state)
{
    (void)state;
    lis.on_accept = accept_and_stop;
    int fds[3];
    dial(fds, 3);
    run_for(0.25);
    assert_int_equal(n_accepted, 1);
    listener_start(&lis);
    listener_pause(&lis);
    listener_stop(&lis); /* ends the pause as well */
    run_for(0.25);
    assert_int_equal(n_accepted, 1);
    hang_up(fds, 3);
}

/* What libev does when epoll_ctl fails; and a descriptor that cannot accept at all. */
static void a_broken_listener_does_not_spin(void **state)
{
    (void)state;
    int fds[1];
    dial(fds, 1);
    ev_io_stop(l->ev, &lis.accept);
    ev_feed_event(l->ev, &lis.accept, EV_ERROR | EV_READ);
    stop_after = 1;
    run_for(5);
    assert_int_equal(n_accepted, 1);
    hang_up(fds, 1);

    stop_after = -1;
    turns = 0;
    assert_int_equal(shutdown(lis.fd, SHUT_RDWR), 0); /* accept gives EINVAL from now on */
    run_for(0.3);
    assert_true(turns < 20);
}

#define LISTENER_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_share_a_port),
        cmocka_unit_test(time_wait_does_not_hinder_a_restart),
        cmocka_unit_test(one_socket_for_both_families),
        cmocka_unit_test(an_address_that_is_not_ours),
        cmocka_unit_test(unix_sockets),
        LISTENER_TEST(all_are_accepted_but_not_all_in_one_turn),
        LISTENER_TEST(without_descriptors_it_waits_and_recovers),
        LISTENER_TEST(a_pause_lasts_100_ms),
        LISTENER_TEST(stopping_inside_on_accept),
        LISTENER_TEST(a_broken_listener_does_not_spin),
    };
    return cmocka_run_group_tests_name("net/listen", tests, NULL, NULL);
}
