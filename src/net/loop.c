/* SPDX-License-Identifier: MIT */
/*
 * The event loop of one thread. Owns libev's loop, the scratch buffer, both block pools, the deadlines, the mailbox and
 * the list of what is freed later; owns no connection.
 *
 * A turn: epoll returns; the check watcher (highest priority) reads the clocks; callbacks run, I/O before deadlines;
 * the prepare watcher (lowest priority, last thing before epoll blocks again) ends the turn: on_turn, then the garbage.
 * So memory handed to loop_free_later stays readable until every callback of the turn has returned.
 *
 * Process-wide, once: SIGPIPE is ignored (sendfile has no MSG_NOSIGNAL), and a failing system call inside libev is
 * logged and retried slowly instead of ending the process.
 */
#include "net/loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/deadline.h"

#if WEIR_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p))
#endif

enum {
    BLOCKS_KEPT = 32, /* 512 KB each: a steady load calls no malloc, and a rest keeps little */
    ARENAS_KEPT = 128,
};

static void on_syserr(const char *what)
{
    static _Thread_local uint64_t last_ms;
    int error = errno;
    uint64_t now = clock_monotonic_ms();
    if (last_ms == 0 || now - last_ms >= 1000) {
        last_ms = now;
        log_write(LOG_ERROR, "event loop: %s: %s", what, strerror(error));
    }
    nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
}

static void set_up_process(void)
{
    ev_set_syserr_cb(on_syserr);
    signal(SIGPIPE, SIG_IGN);
}

/*
 * Called right before epoll_wait. A watcher that epoll_ctl has just refused is pending with EV_ERROR now, but libev would
 * block all the same, up to a minute, before it tells anybody.
 */
static void before_wait(struct ev_loop *ev) EV_NOEXCEPT
{
    struct loop *l = ev_userdata(ev);
    if (UNLIKELY(ev_pending_count(ev) > 0))
        mailbox_wake(&l->mailbox);
}

static void read_clocks(struct loop *l)
{
    l->now_ms = clock_monotonic_ms();
    l->wall_ms = clock_wall_ms();
}

static void free_garbage(struct loop *l)
{
    while (l->garbage != NULL) {
        struct later *x = l->garbage;
        l->garbage = x->next;
        x->free_fn(x);
    }
}

static void end_turn(struct loop *l)
{
    if (l->on_turn != NULL)
        l->on_turn(l);
    free_garbage(l);
}

static void on_prepare(struct ev_loop *ev, ev_prepare *w, int revents)
{
    (void)ev;
    if (!(revents & EV_ERROR))
        end_turn(container_of(w, struct loop, prepare));
}

static void on_check(struct ev_loop *ev, ev_check *w, int revents)
{
    (void)ev;
    if (!(revents & EV_ERROR))
        read_clocks(container_of(w, struct loop, check));
}

struct loop *loop_new(unsigned index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up_process);

    struct loop *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->index = index;
    read_clocks(l);
    block_pool_init(&l->blocks, LOOP_BLOCK, BLOCKS_KEPT);
    block_pool_init(&l->arenas, ARENA_BLOCK, ARENAS_KEPT);
    l->scratch = malloc(LOOP_SCRATCH);
    l->ev = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    if (l->scratch == NULL || l->ev == NULL || (l->deadlines = deadlines_new(l)) == NULL)
        goto fail;
    if (!mailbox_open(&l->mailbox, l))
        goto fail;
    loop_scratch_done(l);
    /* If it is the mailbox itself that cannot be watched, this turn starts its timer. */
    ev_run(l->ev, EVRUN_NOWAIT);
    ev_set_userdata(l->ev, l);
    ev_set_loop_release_cb(l->ev, before_wait, NULL);

    ev_prepare_init(&l->prepare, on_prepare);
    ev_set_priority(&l->prepare, EV_MINPRI);
    ev_prepare_start(l->ev, &l->prepare);
    ev_check_init(&l->check, on_check);
    ev_set_priority(&l->check, EV_MAXPRI);
    ev_check_start(l->ev, &l->check);
    return l;

fail:
    if (l->deadlines != NULL)
        deadlines_free(l->deadlines);
    if (l->ev != NULL)
        ev_loop_destroy(l->ev);
    free(l->scratch);
    free(l);
    return NULL;
}

void loop_run(struct loop *l)
{
    ev_now_update(l->ev);
    read_clocks(l);
    ev_run(l->ev, 0);
    end_turn(l); /* the turn that stopped it met no prepare watcher */
}

void loop_stop(struct loop *l)
{
    ev_break(l->ev, EVBREAK_ALL);
}

void loop_free(struct loop *l)
{
    mailbox_close(&l->mailbox, l);
    free_garbage(l);
    deadlines_free(l->deadlines);
    ev_prepare_stop(l->ev, &l->prepare);
    ev_check_stop(l->ev, &l->check);
    ev_loop_destroy(l->ev);
    block_pool_free(&l->blocks);
    block_pool_free(&l->arenas);
    loop_scratch_use(l);
    free(l->scratch);
    free(l);
}

void loop_scratch_done(struct loop *l)
{
    ASAN_POISON_MEMORY_REGION(l->scratch, LOOP_SCRATCH);
}

void loop_scratch_use(struct loop *l)
{
    ASAN_UNPOISON_MEMORY_REGION(l->scratch, LOOP_SCRATCH);
}

void loop_free_later(struct loop *l, struct later *x)
{
    x->next = l->garbage;
    l->garbage = x;
}
