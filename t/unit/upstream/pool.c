/* SPDX-License-Identifier: MIT */
/* Idle connections: which is taken, how many are kept, and what ends them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "upstream/pool.h"

struct rig {
    struct loop *loop;
    struct pool pool;
    struct server server;
    struct addr addr;
    int listener;
};

static void never(struct conn *c)
{
    (void)c;
    fail();
}

static void never_failed(struct conn *c, int error)
{
    (void)c;
    (void)error;
    fail();
}

static void nothing(struct conn *c)
{
    (void)c;
}

static const struct conn_events events = { .readable = never, .drained = nothing, .failed = never_failed };

static void rig_open(struct rig *rig, unsigned keepalive)
{
    *rig = (struct rig){ .loop = loop_new(0) };
    assert_non_null(rig->loop);
    pool_init(&rig->pool, rig->loop);
    atomic_store(&rig->server.keepalive, keepalive);
    rig->listener = socket(AF_INET, SOCK_STREAM, 0);
    rig->addr.u.in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    rig->addr.len = sizeof rig->addr.u.in;
    assert_int_equal(bind(rig->listener, &rig->addr.u.sa, rig->addr.len), 0);
    assert_int_equal(listen(rig->listener, 16), 0);
    assert_int_equal(getsockname(rig->listener, &rig->addr.u.sa, &rig->addr.len), 0);
}

static void rig_close(struct rig *rig)
{
    pool_close(&rig->pool);
    assert_int_equal(atomic_load(&rig->server.idle), 0);
    loop_free(rig->loop);
    close(rig->listener);
}

/* A connection in use; *peer is the server's end. */
static struct upstream_conn *connect_one(struct rig *rig, int *peer)
{
    struct upstream_conn *uc = pool_connect(&rig->pool, &rig->server, &rig->addr, &events, rig);
    assert_non_null(uc);
    *peer = accept(rig->listener, NULL, NULL);
    assert_true(*peer >= 0);
    conn_want_read(&uc->c, true);
    return uc;
}

static struct upstream_conn *take(struct rig *rig)
{
    return pool_take(&rig->pool, &rig->server, false, &events, rig);
}

static void turn(struct rig *rig)
{
    ev_run(rig->loop->ev, EVRUN_NOWAIT);
}

static void the_last_one_put_is_taken_first(void **state)
{
    (void)state;
    struct rig rig;
    int peers[3];
    struct upstream_conn *conns[3];
    rig_open(&rig, 8);
    assert_null(take(&rig));
    for (int i = 0; i < 3; i++)
        conns[i] = connect_one(&rig, &peers[i]);
    for (int i = 0; i < 3; i++)
        pool_put(conns[i], 1000);
    assert_int_equal(atomic_load(&rig.server.idle), 3);
    for (int i = 2; i >= 0; i--)
        assert_ptr_equal(take(&rig), conns[i]);
    assert_null(take(&rig));
    for (int i = 0; i < 3; i++) {
        upstream_conn_close(conns[i]);
        close(peers[i]);
    }
    rig_close(&rig);
}

static void keepalive_bounds_them_the_oldest_goes(void **state)
{
    (void)state;
    struct rig rig;
    int peers[3];
    struct upstream_conn *conns[3];
    rig_open(&rig, 2);
    for (int i = 0; i < 3; i++)
        conns[i] = connect_one(&rig, &peers[i]);
    for (int i = 0; i < 3; i++)
        pool_put(conns[i], 1000);
    assert_int_equal(atomic_load(&rig.server.idle), 2);
    char byte;
    assert_int_equal(recv(peers[0], &byte, 1, 0), 0); /* closed */
    assert_int_equal(recv(peers[1], &byte, 1, MSG_DONTWAIT), -1);
    assert_ptr_equal(take(&rig), conns[2]);
    assert_ptr_equal(take(&rig), conns[1]);
    upstream_conn_close(conns[1]);
    upstream_conn_close(conns[2]);
    /* Others hold the whole allowance: nothing of ours may go instead. */
    atomic_store(&rig.server.idle, 2);
    close(peers[0]);
    struct upstream_conn *late = connect_one(&rig, &peers[0]);
    pool_put(late, 1000);
    assert_null(take(&rig));
    assert_int_equal(atomic_load(&rig.server.idle), 2);
    atomic_store(&rig.server.idle, 0);
    for (int i = 0; i < 3; i++)
        close(peers[i]);
    rig_close(&rig);
}

static void nothing_is_kept_without_keepalive_or_when_retired(void **state)
{
    (void)state;
    struct rig rig;
    int peer;
    rig_open(&rig, 0);
    pool_put(connect_one(&rig, &peer), 1000);
    assert_null(take(&rig));
    close(peer);
    atomic_store(&rig.server.keepalive, 8);
    atomic_store(&rig.server.retired, true);
    pool_put(connect_one(&rig, &peer), 1000);
    assert_null(take(&rig));
    close(peer);
    rig_close(&rig);
}

static void a_byte_on_an_idle_connection_ends_it(void **state)
{
    (void)state;
    struct rig rig;
    int peer;
    rig_open(&rig, 8);
    pool_put(connect_one(&rig, &peer), 1000);
    turn(&rig);
    assert_int_equal(atomic_load(&rig.server.idle), 1);
    assert_int_equal(send(peer, "H", 1, 0), 1);
    turn(&rig);
    assert_int_equal(atomic_load(&rig.server.idle), 0);
    assert_null(take(&rig));
    close(peer);
    rig_close(&rig);
}

static void fin_on_an_idle_connection_ends_it(void **state)
{
    (void)state;
    struct rig rig;
    int peer;
    rig_open(&rig, 8);
    pool_put(connect_one(&rig, &peer), 1000);
    close(peer);
    turn(&rig);
    assert_null(take(&rig));
    rig_close(&rig);
}

static void an_idle_connection_ages(void **state)
{
    (void)state;
    struct rig rig;
    int peer;
    rig_open(&rig, 8);
    pool_put(connect_one(&rig, &peer), 20);
    while (atomic_load(&rig.server.idle) > 0)
        ev_run(rig.loop->ev, EVRUN_ONCE);
    assert_null(take(&rig));
    close(peer);
    rig_close(&rig);
}

static void a_request_that_cannot_be_repeated_is_careful(void **state)
{
    (void)state;
    struct rig rig;
    int peers[3];
    struct upstream_conn *conns[3];
    rig_open(&rig, 8);
    for (int i = 0; i < 3; i++)
        conns[i] = connect_one(&rig, &peers[i]);
    for (int i = 0; i < 3; i++)
        pool_put(conns[i], 10000);
    close(peers[2]); /* the loop has not looked since */
    assert_int_equal(send(peers[1], "H", 1, 0), 1);
    assert_ptr_equal(pool_take(&rig.pool, &rig.server, true, &events, &rig), conns[0]);
    assert_int_equal(atomic_load(&rig.server.idle), 0);
    pool_put(conns[0], 10000);
    rig.loop->now_ms += POOL_SAFE_MS + 1;
    assert_null(pool_take(&rig.pool, &rig.server, true, &events, &rig));
    assert_ptr_equal(take(&rig), conns[0]);
    upstream_conn_close(conns[0]);
    close(peers[0]);
    close(peers[1]);
    rig_close(&rig);
}

static void a_refused_connection_fails_with_nothing_written(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 8);
    close(rig.listener);
    struct upstream_conn *uc = pool_connect(&rig.pool, &rig.server, &rig.addr, &events, &rig);
    if (uc != NULL) {
        enum io io = conn_write(&uc->c, STR("GET"));
        assert_true(io == IO_CLOSED || io == IO_AGAIN);
        assert_int_equal(uc->c.written, 0);
        upstream_conn_close(uc);
    } else {
        assert_int_equal(errno, ECONNREFUSED);
    }
    rig.listener = socket(AF_INET, SOCK_STREAM, 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_one_put_is_taken_first),
        cmocka_unit_test(keepalive_bounds_them_the_oldest_goes),
        cmocka_unit_test(nothing_is_kept_without_keepalive_or_when_retired),
        cmocka_unit_test(a_byte_on_an_idle_connection_ends_it),
        cmocka_unit_test(fin_on_an_idle_connection_ends_it),
        cmocka_unit_test(an_idle_connection_ages),
        cmocka_unit_test(a_request_that_cannot_be_repeated_is_careful),
        cmocka_unit_test(a_refused_connection_fails_with_nothing_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
