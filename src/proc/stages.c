/* SPDX-License-Identifier: MIT */
/*
 * How a server ends, in stages that only move forward.
 *
 * LAME_DUCK: everything is still accepted, but says Connection: close and "not ready", while balancers in front notice;
 * TCP_DEFER_ACCEPT is taken off first, or the kernel would reset the connections it holds back. DRAINING: the sockets
 * stop listening, running requests are answered, WebSockets are told. ENDING: at once. timeouts.shutdown bounds the
 * first two together; a second signal skips what is left of them.
 *
 * Handing over to another server of this host is the same, but nothing is accepted from the beginning, the sockets are
 * left as they are, and nobody is told that the host is not ready.
 */
#include <netinet/tcp.h>

#include "base/clock.h"
#include "proc/server_private.h"

enum { TELL_MS = 40 * 1000 }; /* for WebSockets to be told that it ends, if timeouts.shutdown has no limit */

static void set_listeners(const struct process *p, bool with_given, void (*act)(int fd))
{
    const struct listeners *ls = p->o->listeners;
    for (unsigned i = 0; i < ls->n; i++)
        for (unsigned j = 0; j < ls->all[i]->n && (with_given || !ls->all[i]->given); j++)
            act(ls->all[i]->fds[j]);
}

static void defer_off(int fd)
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){ 0 }, sizeof(int));
}

/* Whoever connects from now on is refused instead of never answered. Closing is for whoever opened the socket. */
static void listen_off(int fd)
{
    (void)shutdown(fd, SHUT_RDWR);
}

/* Mails run in order: the loop has dealt with worker_stop by now. */
static void on_accepts_no_more(struct loop *l, struct mail *mail)
{
    (void)l;
    struct loop_thread *t = container_of(mail, struct loop_thread, accepts_no_more);
    atomic_store(&t->accepts, false);
    server_wake(t->process);
}

/* After what tells the loops so. */
static void ask_when_none_accepts(struct process *p)
{
    for (unsigned i = 0; i < p->n_threads && !p->sent_no_more; i++) {
        p->threads[i].accepts_no_more.run = on_accepts_no_more;
        mailbox_post(p->threads[i].worker->loop, &p->threads[i].accepts_no_more);
    }
    p->sent_no_more = true;
}

static void drain(struct process *p)
{
    uint64_t now = clock_monotonic_ms();
    /* What has to be told to end gets three quarters of the time that is left. */
    uint64_t left = p->end_at == 0 ? TELL_MS : p->end_at > now ? p->end_at - now : 0;
    atomic_store(&p->shared.drain_ms, left / 4 * 3);
    server_stop_workers(p, false);
    ask_when_none_accepts(p);
}

static bool some_loop_accepts(const struct process *p)
{
    for (unsigned i = 0; i < p->n_threads; i++)
        if (atomic_load(&p->threads[i].accepts))
            return true;
    return false;
}

static void enter(struct process *p, enum stage stage)
{
    p->stage = stage;
    p->stage_until = 0;
    if (stage == STAGE_LAME_DUCK) {
        const struct conf *c = server_conf(p);
        uint64_t now = clock_monotonic_ms();
        atomic_store(&p->shared.draining, true);
        if (!p->handed_over) {
            atomic_store(&p->shared.unready, true);
            set_listeners(p, true, defer_off);
        }
        p->stage_until = now + c->timeouts.lame_duck;
        p->end_at = c->timeouts.shutdown > 0 ? now + c->timeouts.shutdown : 0;
    } else if (stage == STAGE_DRAINING) {
        drain(p);
    } else {
        server_stop_workers(p, true);
    }
}

void stages_stop(struct process *p, bool now)
{
    if (p->stage == STAGE_SERVING)
        server_say(p, LINK_STOPPING);
    if (now || p->stage >= STAGE_LAME_DUCK) {
        log_write(LOG_NOTICE, "ending at once");
        enter(p, STAGE_ENDING);
        return;
    }
    log_write(LOG_NOTICE, "draining: %u clients", atomic_load(&p->shared.clients));
    enter(p, STAGE_LAME_DUCK);
}

/* The sockets stay as they are. The clients of this server are served as in any draining; nothing tells a balancer in
 * front that this host is going. */
void stages_hand_over(struct process *p)
{
    if (p->stage != STAGE_SERVING)
        return;
    log_write(LOG_NOTICE, "another server has taken over; draining: %u clients", atomic_load(&p->shared.clients));
    commands_answer_upgrade(p, NULL);
    control_free(p->control);
    p->control = NULL;
    p->n_asked = p->n_asked_again = 0;
    p->handed_over = true;
    atomic_store(&p->shared.handed_over, true);
    enter(p, STAGE_LAME_DUCK);
    for (unsigned i = 0; i < p->n_threads; i++)
        worker_hand_over(p->threads[i].worker);
    ask_when_none_accepts(p);
}

/* No loop accepts any more. What another server accepts on stays, and so do the service manager's sockets: who connects
 * there is served by the next one. */
static void stop_listening(struct process *p)
{
    p->deaf = true;
    if (!p->handed_over)
        set_listeners(p, false, listen_off);
}

void stages_tick(struct process *p, uint64_t now)
{
    if (p->sent_no_more && !p->deaf && !some_loop_accepts(p))
        stop_listening(p);
    if (p->end_at != 0 && now >= p->end_at && p->stage < STAGE_ENDING) {
        log_write(LOG_WARN, "timeouts.shutdown is over: %u clients are cut off", atomic_load(&p->shared.clients));
        enter(p, STAGE_ENDING);
    } else if (p->stage == STAGE_LAME_DUCK && now >= p->stage_until) {
        enter(p, STAGE_DRAINING);
    }
}

uint64_t stages_due(const struct process *p)
{
    uint64_t next = UINT64_MAX;
    if (p->stage < STAGE_ENDING && p->end_at != 0)
        next = p->end_at;
    if (p->stage == STAGE_LAME_DUCK && p->stage_until < next)
        next = p->stage_until;
    return next;
}
