/* SPDX-License-Identifier: MIT */
/* A loop's turn: when memory is freed, when on_turn is called, what time it is, and that it waits without a watcher. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/conn.h"
#include "net/loop.h"

static char trace[64];

static void note(char c)
{
    size_t n = strlen(trace);
    if (n + 1 < sizeof trace)
        trace[n] = c;
}

struct thing {
    struct later later;
    struct loop *loop;
    char name;
    struct thing *next;
};

static void thing_free(struct later *x)
{
    struct thing *t = container_of(x, struct thing, later);
    note(t->name);
    if (t->next != NULL)
        loop_free_later(t->loop, &t->next->later);
    free(t);
}

static struct thing *thing_new(struct loop *l, char name)
{
    struct thing *t = calloc(1, sizeof *t);
    assert_non_null(t);
    *t = (struct thing){ .later = { .free_fn = thing_free }, .loop = l, .name = name };
    return t;
}

static struct thing *made;

static void on_turn(struct loop *l)
{
    (void)l;
    note('t');
}

static void first(struct ev_loop *ev, ev_timer *w, int revents)
{
    (void)ev;
    (void)revents;
    struct loop *l = w->data;
    note('1');
    made = thing_new(l, 'a');
    made->next = thing_new(l, 'b'); /* freeing one may give another */
    loop_free_later(l, &made->later);
}

static void second(struct ev_loop *ev, ev_timer *w, int revents)
{
    (void)ev;
    (void)revents;
    note('2');
    if (made != NULL)
        assert_int_equal(made->name, 'a'); /* same turn, later callback: still readable */
    loop_stop(w->data);
}

static void garbage_lives_until_the_turn_ends(void **state)
{
    (void)state;
    memset(trace, 0, sizeof trace);
    made = NULL;
    struct loop *l = loop_new(3);
    assert_non_null(l);
    assert_int_equal(l->index, 3);
    ev_timer a, b;
    ev_timer_init(&a, first, 0., 0.);
    ev_timer_init(&b, second, 0., 0.);
    ev_set_priority(&a, 1);
    a.data = b.data = l;
    ev_timer_start(l->ev, &a);
    ev_timer_start(l->ev, &b);
    l->on_turn = on_turn;
    loop_run(l);
    /* One turn end before epoll first waits, then the two callbacks, then the end of their turn. */
    assert_string_equal(trace, "t12tab");
    loop_free_later(l, &thing_new(l, 'z')->later);
    loop_free(l);
    assert_string_equal(trace, "t12tabz");
}

static void later_turn(struct ev_loop *ev, ev_timer *w, int revents)
{
    (void)ev;
    (void)revents;
    note('3');
    loop_stop(w->data);
}

static void garbage_is_freed_before_the_loop_waits(void **state)
{
    (void)state;
    memset(trace, 0, sizeof trace);
    made = NULL;
    struct loop *l = loop_new(0);
    ev_timer a, c;
    ev_timer_init(&a, first, 0., 0.);
    ev_timer_init(&c, later_turn, 0.03, 0.);
    a.data = c.data = l;
    ev_timer_start(l->ev, &a);
    ev_timer_start(l->ev, &c);
    loop_run(l);
    assert_string_equal(trace, "1ab3");
    loop_free(l);
}

static uint64_t seen_ms[2], seen_wall;

static void look_at_clock(struct ev_loop *ev, ev_timer *w, int revents)
{
    (void)ev;
    (void)revents;
    struct loop *l = w->data;
    seen_ms[0] = l->now_ms;
    seen_wall = l->wall_ms;
    struct timespec t = { .tv_nsec = 20 * 1000 * 1000 };
    nanosleep(&t, NULL);
    seen_ms[1] = l->now_ms;
    loop_stop(l);
}

static void time_stands_still_within_a_turn(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    ev_timer a;
    ev_timer_init(&a, look_at_clock, 0.05, 0.);
    a.data = l;
    ev_timer_start(l->ev, &a);
    uint64_t before = clock_monotonic_ms();
    loop_run(l);
    uint64_t after = clock_monotonic_ms();
    assert_int_equal(seen_ms[0], seen_ms[1]);
    assert_true(seen_ms[0] >= before + 45 && seen_ms[0] + 20 <= after); /* read after the wait, not before */
    assert_true(seen_wall + 1000 > clock_wall_ms() && seen_wall <= clock_wall_ms());
    loop_free(l);
}

static struct mail stop_mail;

static void run_stop(struct loop *l, struct mail *m)
{
    (void)m;
    loop_stop(l);
}

static void *stop_soon(void *arg)
{
    struct timespec t = { .tv_nsec = 50 * 1000 * 1000 };
    nanosleep(&t, NULL);
    stop_mail.run = run_stop;
    mailbox_post(arg, &stop_mail);
    return NULL;
}

static void an_idle_loop_waits_for_mail(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    pthread_t thread;
    uint64_t before = clock_monotonic_ms();
    clock_t cpu = clock();
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, l), 0);
    loop_run(l);
    assert_true(clock_monotonic_ms() >= before + 50);
    assert_true(clock() - cpu < CLOCKS_PER_SEC / 50); /* and does not spin */
    pthread_join(thread, NULL);
    loop_free(l);
}

static int refused_fd = -1;

/* Stands before the C library's: libev is told that the kernel will not watch this one. */
int epoll_ctl(int ep, int op, int fd, struct epoll_event *event)
{
    if (fd == refused_fd && op != EPOLL_CTL_DEL) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, ep, op, fd, event);
}

static int refused;

static void on_refused(struct conn *c, int error)
{
    refused = error;
    conn_close(c);
    loop_stop(c->loop);
}

/* libev knows before it blocks that a watcher was refused, and would tell only when something else wakes it. */
static void a_refused_watcher_is_told_at_once(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    ev_timer late;
    ev_timer_init(&late, later_turn, 5., 0.);
    late.data = l;
    ev_timer_start(l->ev, &late);
    static const struct conn_events events = { .failed = on_refused };
    struct conn c;
    int p[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p), 0);
    conn_open(&c, l, p[0], false, &events);
    refused_fd = p[0];
    conn_want_read(&c, true);
    memset(trace, 0, sizeof trace);
    loop_run(l);
    refused_fd = -1;
    assert_int_equal(refused, EIO);
    assert_string_equal(trace, ""); /* not woken by the timer */
    close(p[1]);
    loop_free(l);
}

/* The same at the start of a loop, for the mailbox. */
static void a_refused_mailbox_works_in_the_end(void **state)
{
    (void)state;
    log_set_level(LOG_EMERG);
    int next = dup(0);
    close(next);
    refused_fd = next + 1; /* epoll's own comes first */
    struct loop *l = loop_new(0);
    assert_int_equal(l->mailbox.fd, refused_fd);
    assert_false(ev_is_active(&l->mailbox.look));
    refused_fd = -1;
    uint64_t before = clock_monotonic_ms();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, l), 0);
    loop_run(l);
    assert_true(clock_monotonic_ms() - before < 3000);
    pthread_join(thread, NULL);
    loop_free(l);
}

static void a_write_to_a_closed_pipe_kills_nobody(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    int p[2];
    assert_int_equal(pipe(p), 0);
    close(p[0]);
    assert_int_equal(write(p[1], "x", 1), -1);
    close(p[1]);
    loop_free(l);
}

#if defined(__SANITIZE_ADDRESS__)
#define HAS_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_POISON 1
#endif
#endif

#ifdef HAS_POISON
#include <sanitizer/asan_interface.h>

static void read_some(struct conn *c)
{
    struct str s;
    assert_int_equal(conn_read_scratch(c, 100, &s), IO_OK);
    assert_false(__asan_address_is_poisoned(s.p));
    assert_true(str_eq(s, STR("x")));
    conn_want_read(c, false);
    loop_stop(c->loop);
}
#endif

/* A pointer into scratch that outlives its callback is found by the address sanitizer, whoever reads next. */
static void scratch_is_unreadable_between_callbacks(void **state)
{
    (void)state;
#ifdef HAS_POISON
    struct loop *l = loop_new(0);
    assert_true(__asan_address_is_poisoned(l->scratch));
    int p[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p), 0);
    static const struct conn_events events = { .readable = read_some };
    struct conn c;
    conn_open(&c, l, p[0], false, &events);
    conn_want_read(&c, true);
    assert_int_equal(write(p[1], "x", 1), 1);
    loop_run(l);
    assert_true(__asan_address_is_poisoned(l->scratch));
    conn_close(&c);
    close(p[1]);
    loop_free(l);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_lives_until_the_turn_ends),
        cmocka_unit_test(garbage_is_freed_before_the_loop_waits),
        cmocka_unit_test(time_stands_still_within_a_turn),
        cmocka_unit_test(an_idle_loop_waits_for_mail),
        cmocka_unit_test(scratch_is_unreadable_between_callbacks),
        cmocka_unit_test(a_refused_watcher_is_told_at_once),
        cmocka_unit_test(a_refused_mailbox_works_in_the_end),
        cmocka_unit_test(a_write_to_a_closed_pipe_kills_nobody),
    };
    return cmocka_run_group_tests_name("net/loop", tests, NULL, NULL);
}
