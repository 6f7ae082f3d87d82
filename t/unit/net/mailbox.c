/* SPDX-License-Identifier: MIT */
/* Mails from several threads: each runs exactly once, in its poster's order, on the loop's thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "net/loop.h"

enum { POSTERS = 4, MAILS = 5000 };

struct numbered {
    struct mail mail;
    int poster, number;
};

static struct loop *loop;
static pthread_t loop_thread;
static int next_number[POSTERS];
static int ran, out_of_order, wrong_thread;

static void run_numbered(struct loop *l, struct mail *m)
{
    struct numbered *n = container_of(m, struct numbered, mail);
    wrong_thread += !pthread_equal(pthread_self(), loop_thread);
    out_of_order += n->number != next_number[n->poster]++;
    free(n);
    if (++ran == POSTERS * MAILS)
        loop_stop(l);
}

static void *post_many(void *arg)
{
    int poster = *(int *)arg;
    for (int i = 0; i < MAILS; i++) {
        struct numbered *n = malloc(sizeof *n);
        *n = (struct numbered){ .mail = { .run = run_numbered }, .poster = poster, .number = i };
        mailbox_post(loop, &n->mail);
        if (i % 1000 == 0)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); /* let the box run empty now and then */
    }
    return NULL;
}

static void many_posters(void **state)
{
    (void)state;
    loop = loop_new(0);
    assert_non_null(loop);
    loop_thread = pthread_self();
    pthread_t threads[POSTERS];
    int ids[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        ids[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &ids[i]), 0);
    }
    loop_run(loop);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(ran, POSTERS * MAILS);
    assert_int_equal(out_of_order, 0);
    assert_int_equal(wrong_thread, 0);
    loop_free(loop);
}

static struct mail again;
static int again_runs;

static void run_again(struct loop *l, struct mail *m)
{
    if (++again_runs == 100)
        loop_stop(l);
    else
        mailbox_post(l, m);
}

static void a_mail_may_post_itself_again(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    again.run = run_again;
    mailbox_post(l, &again);
    loop_run(l);
    assert_int_equal(again_runs, 100);
    loop_free(l);
}

static int left;

static void run_left(struct loop *l, struct mail *m)
{
    (void)l;
    left++;
    free(m);
}

static void run_left_and_post(struct loop *l, struct mail *m)
{
    run_left(l, m);
    struct mail *more = calloc(1, sizeof *more);
    more->run = run_left;
    mailbox_post(l, more);
}

static void closing_runs_what_is_left(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    for (int i = 0; i < 3; i++) {
        struct mail *m = calloc(1, sizeof *m);
        m->run = i == 1 ? run_left_and_post : run_left;
        mailbox_post(l, m);
    }
    loop_free(l);
    assert_int_equal(left, 4);
}

static void run_stop(struct loop *l, struct mail *m)
{
    (void)m;
    loop_stop(l);
}

/* What libev does when epoll_ctl fails: the watcher is stopped and told EV_ERROR. */
static void a_failed_watcher_is_rearmed(void **state)
{
    (void)state;
    struct loop *l = loop_new(0);
    ev_io_stop(l->ev, &l->mailbox.look);
    ev_feed_event(l->ev, &l->mailbox.look, EV_ERROR | EV_READ);
    ev_run(l->ev, EVRUN_NOWAIT);
    assert_false(ev_is_active(&l->mailbox.look));
    struct mail stop = { .run = run_stop };
    mailbox_post(l, &stop);
    loop_run(l); /* would never return */
    assert_true(ev_is_active(&l->mailbox.look));
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_posters),
        cmocka_unit_test(a_mail_may_post_itself_again),
        cmocka_unit_test(closing_runs_what_is_left),
        cmocka_unit_test(a_failed_watcher_is_rearmed),
    };
    return cmocka_run_group_tests_name("net/mailbox", tests, NULL, NULL);
}
