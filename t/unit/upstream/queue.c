/* SPDX-License-Identifier: MIT */
/* The queue: who is served next, what is refused, who has left, and that no slot is lost between threads. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "upstream/queue.h"

enum { N = 2, WAITERS = 8 };

struct group {
    struct upstream u;
    struct server_set set;
    struct server servers[N];
    struct set_entry entries[N];
    struct loop *loop;
};

struct waiter {
    struct pick_query query;
    struct queue_entry *entry;
    struct server *got; /* by a grant */
    unsigned calls;
    unsigned nth; /* in the order of grants */
};

static unsigned n_grants;

static void on_granted(void *user, struct server *s)
{
    struct waiter *w = user;
    w->entry = NULL;
    w->got = s;
    w->calls++;
    w->nth = ++n_grants;
}

static void group_open(struct group *g, unsigned maxconn)
{
    *g = (struct group){ .set = { .pick = &pick_round_robin, .entries = g->entries, .n = N } };
    list_init(&g->u.servers);
    list_init(&g->u.queue.any);
    pthread_mutex_init(&g->u.queue.mutex, NULL);
    atomic_store(&g->u.queue_size, 1000);
    atomic_store(&g->u.redispatch, true);
    for (unsigned i = 0; i < N; i++) {
        struct server *s = &g->servers[i];
        atomic_store(&s->n_resolved, 1);
        atomic_store(&s->maxconn, maxconn);
        atomic_store(&s->queue_size, 1000);
        s->upstream = &g->u;
        list_init(&s->waiting);
        list_append(&g->u.servers, &s->link);
        g->entries[i] = (struct set_entry){ .server = s, .weight = 1 };
    }
    atomic_store(&g->u.set, &g->set);
    assert_true(pick_round_robin.prepare(&g->set));
    g->loop = loop_new(0);
    assert_non_null(g->loop);
    n_grants = 0;
}

static void group_close(struct group *g)
{
    loop_free(g->loop);
    assert_int_equal(atomic_load(&g->u.queue.waiting), 0);
    assert_int_equal(g->u.queue.n_any + g->u.queue.n_bound, 0);
    free(g->set.order[0]);
    free(g->set.order[1]);
    pthread_mutex_destroy(&g->u.queue.mutex);
}

/* Takes every slot. */
static void fill(struct group *g)
{
    for (unsigned i = 0; i < N; i++)
        while (server_take(&g->servers[i]))
            ;
}

static void empty(struct group *g)
{
    for (unsigned i = 0; i < N; i++)
        while (atomic_load(&g->servers[i].in_flight) > 0)
            server_give(&g->servers[i]);
}

/* Delivers the mails that have been posted. */
static void turn(struct group *g)
{
    ev_run(g->loop->ev, EVRUN_NOWAIT);
}

static enum queue_result enter(struct group *g, struct waiter *w, bool is_retry)
{
    struct server *s;
    enum queue_result result =
        queue_enter(&g->u, &w->query, is_retry, g->loop, on_granted, w, &w->entry, &s);
    if (result == QUEUE_TOOK)
        w->got = s;
    return result;
}

static void wait_for_slot(struct group *g, struct waiter *w)
{
    assert_int_equal(enter(g, w, false), QUEUE_WAITS);
}

static void first_come_first_served(void **state)
{
    (void)state;
    struct group g;
    struct waiter w[3] = { 0 };
    group_open(&g, 1);
    fill(&g);
    for (unsigned i = 0; i < 3; i++)
        wait_for_slot(&g, &w[i]);
    server_give(&g.servers[1]);
    assert_int_equal(atomic_load(&g.servers[1].in_flight), 1); /* handed over at once */
    assert_int_equal(w[0].calls, 0);                           /* and told in a later turn */
    turn(&g);
    assert_ptr_equal(w[0].got, &g.servers[1]);
    server_give(&g.servers[0]);
    server_give(&g.servers[1]);
    turn(&g);
    assert_ptr_equal(w[1].got, &g.servers[0]);
    assert_ptr_equal(w[2].got, &g.servers[1]);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(w[i].nth, i + 1);
    empty(&g);
    group_close(&g);
}

static void a_free_slot_is_taken_without_waiting(void **state)
{
    (void)state;
    struct group g;
    struct waiter w = { 0 };
    group_open(&g, 1);
    fill(&g);
    server_give(&g.servers[0]); /* between the look at the servers and the queue */
    assert_int_equal(enter(&g, &w, false), QUEUE_TOOK);
    assert_ptr_equal(w.got, &g.servers[0]);
    assert_null(w.entry);
    turn(&g);
    assert_int_equal(w.calls, 0);
    empty(&g);
    group_close(&g);
}

static void a_full_queue_refuses_at_once_but_no_retry(void **state)
{
    (void)state;
    struct group g;
    struct waiter w[3] = { 0 };
    group_open(&g, 1);
    atomic_store(&g.u.queue_size, 1);
    fill(&g);
    wait_for_slot(&g, &w[0]);
    assert_int_equal(enter(&g, &w[1], false), QUEUE_REFUSED);
    assert_null(w[1].entry);
    w[2].query.is_retry = true;
    assert_int_equal(enter(&g, &w[2], true), QUEUE_WAITS);
    server_give(&g.servers[0]);
    server_give(&g.servers[0]);
    turn(&g);
    assert_int_equal(w[2].nth, 1); /* before the one who came first */
    assert_int_equal(w[0].nth, 2);
    empty(&g);
    group_close(&g);
}

static void a_retry_never_gets_where_it_has_been(void **state)
{
    (void)state;
    struct group g;
    struct server *tried[1];
    struct waiter w[2] = { 0 };
    w[0].query = (struct pick_query){ .tried = tried, .n_tried = 1, .is_retry = true };
    group_open(&g, 1);
    tried[0] = &g.servers[0];
    fill(&g);
    assert_int_equal(enter(&g, &w[0], true), QUEUE_WAITS);
    wait_for_slot(&g, &w[1]);
    server_give(&g.servers[0]);
    turn(&g);
    assert_int_equal(w[0].calls, 0);
    assert_ptr_equal(w[1].got, &g.servers[0]);
    server_give(&g.servers[1]);
    turn(&g);
    assert_ptr_equal(w[0].got, &g.servers[1]);
    empty(&g);
    group_close(&g);
}

static void who_leaves_is_passed_over(void **state)
{
    (void)state;
    struct group g;
    struct waiter w[4] = { 0 };
    group_open(&g, 1);
    fill(&g);
    for (unsigned i = 0; i < 4; i++)
        wait_for_slot(&g, &w[i]);
    queue_leave(w[1].entry); /* while it waits */
    server_give(&g.servers[0]);
    queue_leave(w[0].entry); /* with the slot on its way: it goes on to the third */
    assert_int_equal(atomic_load(&g.servers[0].in_flight), 1);
    turn(&g);
    assert_int_equal(w[0].calls + w[1].calls + w[3].calls, 0);
    assert_ptr_equal(w[2].got, &g.servers[0]);
    queue_leave(w[3].entry);
    empty(&g);
    group_close(&g);
}

static void the_older_of_both_heads_is_next(void **state)
{
    (void)state;
    struct group g;
    struct waiter w[4] = { 0 };
    group_open(&g, 1);
    w[1].query.bound = w[2].query.bound = &g.servers[0];
    fill(&g);
    for (unsigned i = 0; i < 4; i++)
        wait_for_slot(&g, &w[i]);
    server_give(&g.servers[1]); /* the bound ones do not want it */
    turn(&g);
    assert_int_equal(w[0].nth, 1);
    for (unsigned i = 1; i < 4; i++) {
        server_give(&g.servers[0]);
        turn(&g);
        assert_int_equal(w[i].nth, i + 1);
        assert_ptr_equal(w[i].got, &g.servers[0]);
    }
    empty(&g);
    group_close(&g);
}

static void those_bound_to_a_server_that_is_down_go_elsewhere(void **state)
{
    (void)state;
    struct group g;
    struct waiter w[2] = { 0 };
    group_open(&g, 1);
    w[0].query.bound = w[1].query.bound = &g.servers[0];
    fill(&g);
    wait_for_slot(&g, &w[0]);
    atomic_store(&g.servers[0].barred, BARRED_CHECK);
    server_give(&g.servers[1]);
    queue_dispatch(&g.u);
    turn(&g);
    assert_ptr_equal(w[0].got, &g.servers[1]);
    assert_null(w[0].query.bound);
    atomic_store(&g.servers[0].barred, 0);
    wait_for_slot(&g, &w[1]);
    atomic_store(&g.u.redispatch, false);
    atomic_store(&g.servers[0].barred, BARRED_CHECK);
    queue_dispatch(&g.u);
    turn(&g);
    assert_int_equal(w[1].calls, 1);
    assert_null(w[1].got);
    empty(&g);
    group_close(&g);
}

/* When the last server that they could have goes, all who wait are told, at once; who waits for a full one waits. */
static void nobody_waits_for_what_will_not_come(void **state)
{
    (void)state;
    struct group g;
    struct server *tried[1];
    struct waiter w[5] = { 0 };
    group_open(&g, 1);
    fill(&g);
    for (unsigned i = 0; i < 3; i++)
        wait_for_slot(&g, &w[i]);
    w[3].query.bound = &g.servers[0];
    wait_for_slot(&g, &w[3]);
    tried[0] = &g.servers[0];
    w[4].query = (struct pick_query){ .tried = tried, .n_tried = 1, .is_retry = true };
    assert_int_equal(enter(&g, &w[4], true), QUEUE_WAITS);
    atomic_store(&g.servers[0].barred, BARRED_CHECK);
    queue_dispatch(&g.u);
    turn(&g);
    assert_int_equal(n_grants, 0); /* the second one is only full */
    atomic_store(&g.servers[0].barred, 0);
    atomic_store(&g.servers[1].barred, BARRED_DOWN);
    queue_dispatch(&g.u);
    turn(&g);
    assert_int_equal(n_grants, 1); /* the retry has been to the first */
    assert_int_equal(w[4].calls, 1);
    assert_null(w[4].got);
    atomic_store(&g.servers[0].barred, BARRED_CHECK);
    queue_dispatch(&g.u);
    assert_int_equal(atomic_load(&g.u.queue.waiting), 0);
    turn(&g);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(w[i].calls, 1);
        assert_null(w[i].got);
    }
    struct waiter late = { 0 };
    assert_int_equal(enter(&g, &late, false), QUEUE_TOOK); /* nor does who comes in this moment */
    assert_null(late.got);
    atomic_store(&g.servers[0].barred, 0);
    empty(&g);
    group_close(&g);
}

/* It may have one that fails too often, when it is free: there is hope. */
static void an_ejected_server_is_hope(void **state)
{
    (void)state;
    struct group g;
    struct waiter w = { 0 };
    group_open(&g, 1);
    fill(&g);
    wait_for_slot(&g, &w);
    atomic_store(&g.servers[0].barred, BARRED_CHECK);
    atomic_store(&g.servers[1].ejected_until, UINT64_MAX);
    queue_dispatch(&g.u);
    turn(&g);
    assert_int_equal(w.calls, 0);
    server_give(&g.servers[1]);
    turn(&g);
    assert_ptr_equal(w.got, &g.servers[1]);
    empty(&g);
    group_close(&g);
}

static void recovery_does_not_flood(void **state)
{
    (void)state;
    struct group g;
    struct waiter w[WAITERS] = { 0 };
    unsigned served = 0;
    group_open(&g, 2);
    fill(&g);
    for (unsigned i = 0; i < WAITERS; i++)
        wait_for_slot(&g, &w[i]);
    atomic_store(&g.servers[0].barred, BARRED_CHECK);
    server_give(&g.servers[0]);
    server_give(&g.servers[0]);
    turn(&g);
    assert_int_equal(n_grants, 0); /* free, but down */
    atomic_store(&g.servers[0].barred, 0);
    queue_dispatch(&g.u);
    turn(&g);
    assert_int_equal(n_grants, 2);
    assert_int_equal(atomic_load(&g.servers[0].in_flight), 2);
    for (unsigned i = 0; i < WAITERS; i++)
        served += w[i].got != NULL;
    assert_int_equal(served, 2);
    while (n_grants < WAITERS) {
        server_give(&g.servers[0]);
        turn(&g);
    }
    empty(&g);
    group_close(&g);
}

/* --- threads: each with a loop, all for the same few slots --- */

enum { THREADS = 4, ROUNDS = 3000 };

struct client {
    struct group *g;
    struct loop *loop;
    pthread_t thread;
    struct pick_query query;
    struct queue_entry *entry;
    struct server *has;
    unsigned random, served, left;
};

static atomic_int busy[N];
static atomic_uint worst;

static void client_granted(void *user, struct server *s)
{
    struct client *c = user;
    c->entry = NULL;
    c->has = s;
}

static unsigned next_random(struct client *c)
{
    c->random = c->random * 1103515245u + 12345u;
    return c->random >> 16;
}

static void use_slot(struct client *c)
{
    long at = c->has - c->g->servers;
    unsigned now = (unsigned)atomic_fetch_add(&busy[at], 1) + 1;
    if (now > atomic_load(&worst))
        atomic_store(&worst, now);
    if (next_random(c) % 2 == 0)
        sched_yield();
    atomic_fetch_sub(&busy[at], 1);
    server_give(c->has);
    c->has = NULL;
    c->served++;
}

static void *client_main(void *arg)
{
    struct client *c = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        bool is_full;
        c->query = (struct pick_query){ .bound = next_random(c) % 4 == 0 ? &c->g->servers[next_random(c) % N] : NULL };
        c->has = queue_has_waiters(&c->g->u) ? NULL : pick_server(&c->g->u, &c->query, &is_full);
        if (c->has == NULL) {
            enum queue_result result = queue_enter(&c->g->u, &c->query, false, c->loop, client_granted, c, &c->entry,
                                                   &c->has);
            if (result != QUEUE_TOOK && result != QUEUE_WAITS)
                abort();
        }
        if (c->entry != NULL && next_random(c) % 3 == 0) {
            queue_leave(c->entry);
            c->entry = NULL;
            c->left++;
            continue;
        }
        while (c->entry != NULL)
            ev_run(c->loop->ev, EVRUN_ONCE);
        use_slot(c);
    }
    return NULL;
}

static void no_slot_is_lost_or_given_twice(void **state)
{
    (void)state;
    struct group g;
    struct client clients[THREADS] = { 0 };
    unsigned served = 0, left = 0;
    group_open(&g, 1);
    for (unsigned i = 0; i < THREADS; i++) {
        clients[i] = (struct client){ .g = &g, .loop = loop_new(i + 1), .random = i + 1 };
        assert_non_null(clients[i].loop);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(clients[i].thread, NULL);
        served += clients[i].served;
        left += clients[i].left;
        loop_free(clients[i].loop);
    }
    assert_int_equal(served + left, THREADS * ROUNDS);
    assert_true(left > 0);
    assert_int_equal(atomic_load(&worst), 1);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(atomic_load(&g.servers[i].in_flight), 0);
    group_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_come_first_served),
        cmocka_unit_test(a_free_slot_is_taken_without_waiting),
        cmocka_unit_test(a_full_queue_refuses_at_once_but_no_retry),
        cmocka_unit_test(a_retry_never_gets_where_it_has_been),
        cmocka_unit_test(who_leaves_is_passed_over),
        cmocka_unit_test(the_older_of_both_heads_is_next),
        cmocka_unit_test(those_bound_to_a_server_that_is_down_go_elsewhere),
        cmocka_unit_test(nobody_waits_for_what_will_not_come),
        cmocka_unit_test(an_ejected_server_is_hope),
        cmocka_unit_test(recovery_does_not_flood),
        cmocka_unit_test(no_slot_is_lost_or_given_twice),
    };
    alarm(120); /* a lost slot shows itself as a thread that waits for ever */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
