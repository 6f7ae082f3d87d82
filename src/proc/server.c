/* SPDX-License-Identifier: MIT */
/*
 * One server process: N loop threads that do all the work, the log writer's thread, now and then a loader thread, and
 * this main thread, which sleeps in poll until a signal, a finished load, an ended loop or a deadline wakes it. Owns
 * all of them, the generations of the configuration and the upstream table; not the listening sockets (who opened them
 * also closes them), which the loops only watch.
 *
 * Signals are blocked in every thread and read from a signalfd, so none interrupts anything. SIGPIPE and SIGXFSZ are
 * ignored: a client that has gone and a log at its size limit are errors of one write.
 *
 * How it ends is in stages.c, what comes over the control socket in commands.c.
 */
#include "proc/server.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/crash.h"
#include "proc/orders.h"
#include "proc/privileges.h"
#include "proc/running_text.h"
#include "proc/server_private.h"
#include "serve/auth.h"
#include "serve/limit.h"

enum {
    RESOLVE_EVERY_MS = 10 * 1000,
    RESOLVE_SOON_MS = 1000, /* while a name has not resolved; doubled each time up to the other */
    FIRST_NAMES_MS = 2000,  /* a start waits for names */
    LOADER_END_MS = 500,    /* the end waits for a load */
};

void server_wake(const struct process *p)
{
    uint64_t one = 1;
    ssize_t ignored = write(p->wake_fd, &one, sizeof one);
    (void)ignored; /* full means it is awake already */
}

/* --- loop threads --- */

static void *run_loop(void *arg)
{
    struct loop_thread *t = arg;
    (void)pthread_setname_np(pthread_self(), t->name);
    log_writer_bind_thread(t->ring, t->worker->index);
    crash_thread_begin(t->name, t->worker);
    if (t->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)t->cpu, &set);
        int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
        if (error != 0)
            log_write(LOG_WARN, "cpu_affinity: loop %u cannot run on CPU %d: %s", t->worker->index, t->cpu,
                      strerror(error));
    }
    worker_run(t->worker);
    crash_thread_end();
    struct process *p = t->process;
    atomic_store(&t->accepts, false); /* the mail may have come too late to be read */
    atomic_store(&t->ended, true);
    atomic_fetch_sub(&p->running, 1);
    server_wake(p);
    return NULL;
}

static bool make_workers(struct process *p)
{
    const struct conf *c = server_conf(p);
    if ((p->shared.limiter = limiter_new()) == NULL || (p->shared.auth = auth_new()) == NULL)
        return false;
    for (unsigned i = 0; i < p->n_threads; i++) {
        struct loop_thread *t = &p->threads[i];
        t->process = p;
        t->cpu = -1;
        if (c->n_cpu_affinity > 0 && c->cpu_affinity[i % c->n_cpu_affinity] < CPU_SETSIZE)
            t->cpu = (int)c->cpu_affinity[i % c->n_cpu_affinity];
        (void)snprintf(t->name, sizeof t->name, "weir-loop-%u", i % 100000);
        t->ring = log_ring_new(LOG_RING_SIZE);
        if (t->ring == NULL || !log_writer_add_ring(p->logs, t->ring, i))
            return false;
        t->worker = worker_new(i, &p->shared, &p->generations->snapshot, p->o->handlers);
        if (t->worker == NULL || !worker_filter(t->worker, p->o->filters))
            return false;
        t->worker->ring = t->ring;
        p->workers[i] = t->worker;
    }
    return true;
}

static bool start_threads(struct process *p)
{
    for (unsigned i = 0; i < p->n_threads; i++) {
        struct loop_thread *t = &p->threads[i];
        atomic_fetch_add(&p->running, 1);
        atomic_store(&t->accepts, true);
        int error = pthread_create(&t->thread, NULL, run_loop, t);
        if (error != 0) {
            atomic_fetch_sub(&p->running, 1);
            errno = error;
            return false;
        }
        t->runs = true;
    }
    return true;
}

void server_stop_workers(struct process *p, bool now)
{
    for (unsigned i = 0; i < p->n_threads; i++)
        if (p->threads[i].runs)
            worker_stop(p->threads[i].worker, now);
}

/* --- the supervisor --- */

void server_say(const struct process *p, enum link_kind kind)
{
    (void)link_say(p->o->link, kind, 0);
}

/* What is in force now; with its text, unless it is the one this process was started with. */
static void say_running(const struct process *p, bool with_text)
{
    const struct conf *c = server_conf(p);
    struct link_message m;
    link_begin(&m, LINK_RUNNING, p->generations->snapshot.generation, c->error_log);
    m.have = (uint32_t)c->log_level | (uint32_t)c->error_log_style << LINK_STYLE_SHIFT;
    m.fds[0] = with_text ? running_text_seal(c->text) : -1;
    m.n_fds = m.fds[0] >= 0;
    if (link_send(p->o->link, &m) != IO_OK || (with_text && m.n_fds == 0))
        log_write(LOG_WARN, "the supervisor keeps the text of an older generation: %s", strerror(errno));
    link_close_fds(&m);
}

void server_save_orders(const struct process *p)
{
    if (!p->handed_over) /* else it is the other one's */
        orders_save(p->o->orders_fd, p->upstreams);
}

/* --- generations --- */

static void sweep_generations(struct process *p)
{
    for (struct generation **at = &p->generations->next; *at != NULL;) {
        struct generation *g = *at;
        if (!atomic_load_explicit(&g->released, memory_order_acquire)) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        log_writer_forget(p->logs, g->snapshot.generation);
        generation_free(g);
    }
    if (p->generations->next == NULL && !server_is_loading(p))
        upstream_table_sweep(p->upstreams);
}

static bool has_names(const struct conf *c)
{
    for (unsigned i = 0; i < c->n_upstreams; i++)
        for (unsigned j = 0; j < c->upstreams[i]->n_servers; j++)
            if (c->upstreams[i]->servers[j].endpoint.kind == ENDPOINT_NAME)
                return true;
    return false;
}

/* When names are looked up again. */
static void plan_resolving(struct process *p)
{
    const struct conf *c = server_conf(p);
    p->resolve_at = 0;
    if (!has_names(c))
        return;
    bool is_complete = upstream_table_is_resolved(p->upstreams);
    uint64_t longer = p->resolve_delay > 0 ? 2 * p->resolve_delay : RESOLVE_SOON_MS;
    p->resolve_delay = is_complete || longer > RESOLVE_EVERY_MS ? RESOLVE_EVERY_MS : longer;
    p->resolve_at = clock_monotonic_ms() + p->resolve_delay;
    if (is_complete)
        p->resolve_delay = 0;
}

static bool wait_for_loader(struct process *p, int ms)
{
    uint64_t until = clock_monotonic_ms() + (uint64_t)ms, count;
    while (!atomic_load(&p->loader.done) && ms > 0) {
        struct pollfd fd = { .fd = p->wake_fd, .events = POLLIN };
        (void)poll(&fd, 1, ms);
        ssize_t ignored = read(p->wake_fd, &count, sizeof count);
        (void)ignored;
        ms = (int)(until - clock_monotonic_ms());
    }
    return atomic_load(&p->loader.done);
}

/* A name server that does not answer must not hold up the start, or a restart after a crash, for long: what has not
 * resolved by then goes on beside the requests. */
static void look_up_names(struct process *p)
{
    if (!has_names(server_conf(p)))
        return;
    if (!loader_start(&p->loader, LOADER_NAMES, NULL, 0))
        log_write(LOG_WARN, "names are not resolved yet: no thread: %s", strerror(errno));
    else if (wait_for_loader(p, FIRST_NAMES_MS))
        (void)loader_collect(&p->loader);
    else
        log_write(LOG_WARN, "looking up the names of servers takes long; those that are not known yet are not used");
}

static void check_servers(struct process *p)
{
    if (!checks_apply(p->checks, server_conf(p), p->generations->snapshot.upstreams))
        log_write(LOG_ERROR, "health checks stay as they were: %s", strerror(errno));
}

static void log_generation(const struct process *p)
{
    const struct conf *c = server_conf(p);
    log_set_level(c->log_level);
    if (p->loader.changes != NULL)
        log_write(LOG_NOTICE, "generation %llu: %s, %u connections kept", server_generation(p), p->loader.changes,
                  atomic_load(&p->shared.clients));
    else
        log_write(LOG_NOTICE, "generation %llu: %s (sites: %u, upstreams: %u)", server_generation(p), p->o->name,
                  c->n_sites, c->n_upstreams);
}

const char *server_reload_obstacle(const struct process *p)
{
    if (p->stage != STAGE_SERVING)
        return "the server is stopping";
    return p->o->path == NULL ? "there is no configuration file to load again" : NULL;
}

void server_reload(struct process *p)
{
    const char *obstacle = server_reload_obstacle(p);
    if (obstacle != NULL) {
        log_write(LOG_ERROR, "reload refused: %s", obstacle);
        return;
    }
    if (server_is_loading(p)) {
        p->reload_again = true;
        return;
    }
    if (addresses_is_busy(&p->addresses)) {
        p->reload_again = true; /* a moment later: loader and addresses share the calls to the supervisor */
        return;
    }
    p->reload_again = false;
    for (; p->n_asked_again > 0; p->n_asked++)
        p->asked[p->n_asked] = p->asked_again[--p->n_asked_again];
    server_say(p, LINK_RELOADING);
    if (loader_start(&p->loader, LOADER_CONF, server_conf(p), p->generations->snapshot.generation + 1))
        return;
    log_write(LOG_ERROR, "reload failed: no thread: %s", strerror(errno));
    server_say(p, LINK_REFUSED);
    commands_answer_reload(p, false);
}

static uint64_t set_clients_max(struct process *p, const struct conf *c)
{
    uint64_t clients = c->limits.clients > 0 ? c->limits.clients : p->descriptors / 2;
    atomic_store(&p->shared.clients_max, clients < UINT32_MAX ? (unsigned)clients : UINT32_MAX);
    if (clients > p->descriptors / 2)
        log_write(LOG_WARN,
                  "limits.clients = %llu needs up to %llu descriptors, and the limit is %llu (ulimit -n, LimitNOFILE=)",
                  (unsigned long long)clients, (unsigned long long)(2 * clients), (unsigned long long)p->descriptors);
    return clients;
}

static void on_loader_done(struct process *p)
{
    bool was_conf = p->loader.job == LOADER_CONF;
    struct generation *g = loader_collect(&p->loader);
    if (g != NULL) {
        g->next = p->generations;
        p->generations = g;
        for (unsigned i = 0; i < p->n_threads; i++)
            worker_adopt(p->threads[i].worker, &g->snapshot);
        addresses_adopt(&p->addresses, g->next->snapshot.conf, g->snapshot.conf, &p->loader.opened);
        set_clients_max(p, g->snapshot.conf);
        check_servers(p);
        p->is_taking = true;
    } else if (was_conf) {
        log_write(LOG_ERROR, "reload refused: still on generation %llu",
                  (unsigned long long)p->generations->snapshot.generation);
        server_say(p, LINK_REFUSED);
        commands_answer_reload(p, false);
    }
    plan_resolving(p);
    if (p->reload_again)
        server_reload(p);
}

/* Every loop has the new configuration: whoever hears so now and asks for something is answered under it. */
static void on_taken(struct process *p)
{
    p->is_taking = false;
    log_generation(p);
    say_running(p, true);
    server_save_orders(p);
    commands_answer_reload(p, true);
    if (p->reload_again)
        server_reload(p);
}

/* A loop that hangs: first a look at where, then a new server in the place of this one. */
static void watch(struct process *p, uint64_t now)
{
    bool counts = now < p->watch_at + 2 * WATCHDOG_TICK_MS;
    p->watch_at = now + WATCHDOG_TICK_MS;
    for (unsigned i = 0; i < p->n_threads; i++) {
        struct loop_thread *t = &p->threads[i];
        enum watch w = WATCH_FINE;
        if (t->runs && !atomic_load(&t->ended))
            w = watchdog_tick(&t->watched, t->worker->loop, counts);
        if (w == WATCH_FINE)
            continue;
        log_write(LOG_EMERG, "loop %u has not turned for %d s%s", i,
                  (w == WATCH_DEAD ? WATCHDOG_DEAD_MS : WATCHDOG_SILENT_MS) / 1000, w == WATCH_DEAD ? ": ending" : "");
        if (w == WATCH_SILENT)
            crash_ask(t->thread);
        else
            (void)pthread_kill(t->thread, SIGABRT);
    }
}

static void on_deadlines(struct process *p)
{
    uint64_t now = clock_monotonic_ms();
    if (p->stage == STAGE_SERVING && !server_is_loading(p)) {
        addresses_tick(&p->addresses, now);
        if (p->reload_again && !addresses_is_busy(&p->addresses))
            server_reload(p);
    }
    stages_tick(p, now);
    if (now >= p->watch_at)
        watch(p, now);
    if (p->resolve_at != 0 && now >= p->resolve_at && p->stage == STAGE_SERVING && !server_is_loading(p)) {
        p->resolve_at = now + RESOLVE_EVERY_MS;
        if (!loader_start(&p->loader, LOADER_NAMES, NULL, 0))
            log_write(LOG_WARN, "names are not resolved again: no thread: %s", strerror(errno));
    }
}

/* Milliseconds for poll until the next deadline. */
static int until_deadline(const struct process *p)
{
    uint64_t next = p->watch_at;
    if (stages_due(p) < next)
        next = stages_due(p);
    if (p->stage == STAGE_SERVING && !server_is_loading(p) && p->resolve_at != 0 && p->resolve_at < next)
        next = p->resolve_at;
    if (p->stage == STAGE_SERVING && !server_is_loading(p) && addresses_due(&p->addresses) < next)
        next = addresses_due(&p->addresses);
    if (p->control != NULL && control_due(p->control) < next)
        next = control_due(p->control);
    uint64_t now = clock_monotonic_ms();
    return next <= now ? 0 : next - now > 60000 ? 60000 : (int)(next - now);
}

/* --- signals --- */

static const int signals[] = { SIGTERM, SIGQUIT, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };

/* Whoever signals a whole group of processes tells us twice, once through the supervisor: that is no second signal. */
static void on_stop_signal(struct process *p, bool now, bool passed_on)
{
    bool again = p->told[passed_on];
    p->told[passed_on] = true;
    if (now || again || p->stage == STAGE_SERVING)
        stages_stop(p, now || again);
}

static void on_signals(struct process *p)
{
    struct signalfd_siginfo info;
    while (read(p->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int sig = (int)info.ssi_signo;
        bool passed_on = info.ssi_code == SI_QUEUE && (pid_t)info.ssi_pid == getppid();
        log_write(LOG_NOTICE, "signal %s from process %u", sigabbrev_np(sig),
                  passed_on ? (unsigned)info.ssi_int : info.ssi_pid);
        switch (sig) {
        case SIGHUP:
            server_reload(p);
            break;
        case SIGUSR1:
            log_writer_reopen(p->logs);
            break;
        case SIGUSR2:
            log_write(LOG_WARN, "send USR2 to the supervisor, process %ld, for an upgrade", (long)getppid());
            break;
        default:
            on_stop_signal(p, sig == SIGINT, passed_on);
        }
    }
}

static void fill_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        sigaddset(set, signals[i]);
}

void server_catch_signals(void)
{
    sigset_t set;
    fill_set(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

static void on_orphaned(struct process *p)
{
    p->orphaned = true;
    if (p->stage == STAGE_SERVING) {
        log_write(LOG_ERROR, "the supervisor has gone");
        stages_stop(p, false);
    }
}

static void on_upgrade_failed(struct process *p, struct str why)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s", STR_ARG(why));
    commands_answer_upgrade(p, text);
}

static void on_link(struct process *p)
{
    struct link_message m;
    enum io io;
    while ((io = link_receive(p->o->link, &m)) == IO_OK) {
        switch (m.kind) {
        case LINK_PING:
            server_say(p, LINK_PONG);
            break;
        case LINK_HAND_OVER:
            stages_hand_over(p);
            break;
        case LINK_UPGRADE_FAILED:
            on_upgrade_failed(p, m.text);
            break;
        default:
            break; /* of a newer version */
        }
        link_close_fds(&m);
    }
    if (io == IO_EOF)
        on_orphaned(p);
}

static bool open_fds(struct process *p)
{
    sigset_t set;
    fill_set(&set);
    p->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return p->signal_fd >= 0 && p->wake_fd >= 0;
}

static void wait_until_the_end(struct process *p)
{
    while (atomic_load(&p->running) > 0) {
        struct pollfd fds[3 + CONTROL_FDS] = { { .fd = p->signal_fd, .events = POLLIN },
                                               { .fd = p->wake_fd, .events = POLLIN },
                                               { .fd = p->orphaned ? -1 : p->o->link, .events = POLLIN } };
        unsigned n_control = p->control != NULL ? control_poll(p->control, fds + 3) : 0;
        int n_ready = poll(fds, 3 + n_control, until_deadline(p));
        if (n_ready < 0 && errno != EINTR)
            log_write(LOG_ERROR, "poll: %s", strerror(errno));
        uint64_t count;
        ssize_t ignored = read(p->wake_fd, &count, sizeof count);
        (void)ignored;
        on_signals(p);
        if (!p->orphaned)
            on_link(p);
        if (n_ready > 0 && p->control != NULL)
            control_serve(p->control, fds + 3, n_control);
        if (p->is_taking && atomic_load_explicit(&p->generations->behind, memory_order_acquire) == 0)
            on_taken(p);
        if (p->loader.runs && atomic_load(&p->loader.done))
            on_loader_done(p);
        sweep_generations(p);
        on_deadlines(p);
    }
}

/* --- start --- */

/* One line for all addresses; what does not fit is left out and said so. */
static void log_addresses(const struct process *p)
{
    char text[2048];
    size_t n = 0;
    const struct listeners *ls = p->o->listeners;
    for (unsigned i = 0; i < ls->n; i++) {
        struct str t = str_c(ls->all[i]->text);
        if (n + t.n + 2 > sizeof text) {
            log_write(LOG_NOTICE, "listening on %.*s and %u more", (int)n, text, ls->n - i);
            return;
        }
        if (i > 0) {
            memcpy(text + n, ", ", 2);
            n += 2;
        }
        memcpy(text + n, t.p, t.n);
        n += t.n;
    }
    log_write(LOG_NOTICE, "listening on %.*s", (int)n, text);
}

static void set_limits(struct process *p, const struct conf *c)
{
    p->descriptors = privileges_raise_descriptors();
    log_write(LOG_NOTICE, "%u loops, %llu descriptors, at most %llu clients", c->workers,
              (unsigned long long)p->descriptors, (unsigned long long)set_clients_max(p, c));
}

/* Everything up to running threads. False: logged. On the way the conf becomes the first generation's. */
static bool start(struct process *p)
{
    struct conf *c = p->o->conf;
    if (!log_writer_open(p->logs, c, p->o->generation)) {
        conf_free(c);
        return false;
    }
    log_write(LOG_NOTICE, "weir %s: configuration %s", WEIR_VERSION, p->o->name);
    set_limits(p, c);
    if (geteuid() == 0)
        log_write(LOG_WARN, "running as root: set `user` to give up what only binding needs");
    if (p->o->control_fd < 0 && p->o->control_error != 0)
        log_write(LOG_NOTICE, "there is no control socket: %s%s", strerror(p->o->control_error),
                  p->o->control_error == EADDRINUSE ? "; another weir has the default one: set `control`" : "");
    p->upstreams = upstream_table_new();
    p->checks = checks_new();
    p->threads = calloc(c->workers, sizeof p->threads[0]);
    p->workers = calloc(c->workers, sizeof p->workers[0]);
    if (p->upstreams == NULL || p->checks == NULL || p->threads == NULL || p->workers == NULL) {
        log_write(LOG_ERROR, "cannot start: out of memory");
        conf_free(c);
        return false;
    }
    p->n_threads = c->workers;
    upstream_table_names_later(p->upstreams, true);
    p->generations = generation_new(c, p->o->generation, p->n_threads, p->upstreams, p->wake_fd);
    if (p->generations == NULL)
        return false;
    upstream_table_names_later(p->upstreams, false);
    orders_restore(p->o->orders_fd, p->upstreams, c);
    if (!make_workers(p)) {
        log_write(LOG_ERROR, "cannot start: out of memory or descriptors: %s", strerror(errno));
        return false;
    }
    p->addresses = (struct addresses){ .ls = p->o->listeners, .calls = p->o->calls, .wake_fd = p->wake_fd };
    if (!addresses_open(&p->addresses, c, p->workers, p->n_threads))
        return false;
    p->loader = (struct loader){
        .path = p->o->path,
        .logs = p->logs,
        .upstreams = p->upstreams,
        .n_loops = p->n_threads,
        .handlers = p->o->handlers,
        .listeners = p->o->listeners,
        .calls = p->o->calls,
        .wake_fd = p->wake_fd,
    };
    bool has_log = log_writer_start(p->logs);
    if (has_log)
        look_up_names(p);
    if (!has_log || !start_threads(p)) {
        log_write(LOG_ERROR, "cannot start a thread: %s", strerror(errno));
        return false;
    }
    log_addresses(p);
    log_generation(p);
    check_servers(p);
    plan_resolving(p);
    log_writer_started(p->logs);
    return true;
}

/* A name server or a disk keeps the loader for as long as it likes, and what it uses with it. */
static void end_beside_loader(struct process *p)
{
    log_write(LOG_NOTICE, "stopped, in the middle of a load");
    log_writer_end(p->logs);
    _exit(EXIT_SUCCESS);
}

/* Whatever start got to: threads first, then what they used. */
static void tear_down(struct process *p)
{
    for (unsigned i = 0; i < p->n_threads; i++)
        if (p->threads[i].runs)
            pthread_join(p->threads[i].thread, NULL);
    if (p->loader.runs && !wait_for_loader(p, LOADER_END_MS))
        end_beside_loader(p);
    if (p->loader.runs) {
        struct generation *g = loader_collect(&p->loader);
        if (g != NULL)
            generation_free(g);
    }
    loader_free(&p->loader);
    listeners_close(&p->loader.opened);
    auth_free(p->shared.auth); /* it sends mail to loops */
    for (unsigned i = 0; i < p->n_threads; i++)
        worker_free(p->threads[i].worker);
    limiter_free(p->shared.limiter);
    addresses_free(&p->addresses);
    if (p->generations != NULL)
        log_write(LOG_NOTICE, "stopped");
    log_writer_free(p->logs);
    for (unsigned i = 0; i < p->n_threads; i++)
        log_ring_free(p->threads[i].ring);
    free(p->threads);
    free(p->workers);
    while (p->generations != NULL) {
        struct generation *g = p->generations;
        p->generations = g->next;
        generation_free(g);
    }
    checks_free(p->checks);
    if (p->upstreams != NULL)
        upstream_table_free(p->upstreams);
    if (p->signal_fd >= 0)
        (void)close(p->signal_fd);
    if (p->wake_fd >= 0)
        (void)close(p->wake_fd);
    control_free(p->control); /* last: `weir stop` waits for it */
    crash_thread_end();
}

int server_run(const struct server_options *o)
{
    server_catch_signals();
    struct process *p = calloc(1, sizeof *p);
    if (p == NULL || !open_fds(p) || (p->logs = log_writer_new()) == NULL) {
        log_write(LOG_ERROR, "cannot start: %s", strerror(errno));
        free(p);
        conf_free(o->conf);
        return 1;
    }
    p->o = o;
    p->started_ms = clock_monotonic_ms();
    p->watch_at = p->started_ms + WATCHDOG_TICK_MS;
    if (o->control_fd >= 0 && (p->control = control_new(o->control_fd, commands_run, p)) == NULL)
        (void)close(o->control_fd);
    crash_install();
    log_set_level(o->conf->log_level);
    bool ok = start(p);
    if (ok) {
        say_running(p, false);
        wait_until_the_end(p);
    } else {
        server_stop_workers(p, true);
    }
    tear_down(p);
    free(p);
    return ok ? 0 : 1;
}
