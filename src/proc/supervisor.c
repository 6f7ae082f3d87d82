/* SPDX-License-Identifier: MIT */
/*
 * The supervisor. It loads the configuration once, gives up what root may do except binding, opens every socket, and
 * forks a server; then it waits. It is the only one who binds, so that a crash or an upgrade never closes a socket, and
 * it is small, so that it has no reason to crash itself.
 *
 * A server gets by inheritance: the listening sockets, the control socket, two ends of sup_link.h, and the sealed text
 * of the configuration, which it loads. After a reload it hands over the new text; a server that takes its place after
 * a crash loads that, never a half-edited file. Restarts wait 0.1 s, then twice as long each time up to 5 s, until one
 * has lived for 10 s. The first server must come up, or its exit is the supervisor's.
 *
 * Signals go on to the server with the number of the process that sent them (sigqueue); the end of the server, when it
 * was told to end, is the end. If the supervisor itself is killed, its servers read the end of the link and drain.
 *
 * Nothing here waits for a server: every message is sent or dropped. One thread; poll over a signalfd, the links, and
 * an upgrade's check. No lists of its own: what it knows is struct sup_state, because an upgrade hands that on.
 */
#include "proc/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/activation.h"
#include "proc/loader.h"
#include "proc/notify.h"
#include "proc/orders.h"
#include "proc/privileges.h"
#include "proc/running_text.h"
#include "proc/server.h"
#include "proc/sup_files.h"
#include "proc/sup_log.h"
#include "proc/sup_private.h"

enum {
    ANY_SERVER = -1, /* no process has that number */
    DELAY_MIN_MS = 100,
    DELAY_MAX_MS = 5000,
    HEALTHY_MS = 10 * 1000,
    PING_MS = 5000,
    MISSED_MAX = 6, /* pings; 30 s */
    COME_UP_MS = 60 * 1000,
};

static const int signals[] = { SIGTERM, SIGQUIT, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD };

struct sup_server *sup_current(struct supervisor *s)
{
    for (unsigned i = s->state.n_servers; i-- > 0;)
        if (s->state.servers[i].ready && !s->state.servers[i].leaving)
            return &s->state.servers[i];
    return NULL;
}

/* Is there one that serves, or will? */
static bool has_server(const struct supervisor *s)
{
    for (unsigned i = 0; i < s->state.n_servers; i++)
        if (!s->state.servers[i].leaving)
            return true;
    return false;
}

/* --- a server's beginning --- */

/* All sockets, or those of one server. */
static void hand_on_sockets(struct sup_state *t, pid_t from, pid_t to)
{
    for (unsigned i = 0; i < t->listeners.n; i++)
        if (from == ANY_SERVER || t->listeners.all[i]->user == from)
            t->listeners.all[i]->user = to;
}

/* In the new process. What only the supervisor needs is closed: another server's link would hide its end. */
static int serve(struct supervisor *s, int link, int calls)
{
    struct sup_state *t = &s->state;
    s->is_server = true;
    (void)close(s->signal_fd);
    s->signal_fd = -1;
    for (unsigned i = 0; i < t->n_servers; i++)
        sup_server_close(&t->servers[i]);
    t->n_servers = 0;
    if (t->pid_file.fd >= 0)
        (void)close(t->pid_file.fd);
    t->pid_file.fd = -1;
    if (s->check.pid > 0)
        (void)close(s->check.out);
    s->check.pid = 0;
    privileges_drop_binding();
    struct conf_result r;
    running_text_load(t->text_fd, &r);
    struct conf *conf = r.conf;
    if (conf == NULL)
        loader_log_findings(&r);
    conf_result_free(&r);
    if (conf == NULL)
        return EXIT_FAILURE;
    (void)close(t->text_fd);
    t->text_fd = -1;
    const struct server_options options = {
        .conf = conf,
        .listeners = &t->listeners,
        .name = t->name,
        .path = t->path,
        .handlers = s->handlers,
        .filters = s->filters,
        .orders_fd = t->orders_fd,
        .control_fd = t->control.fd,
        .control_error = s->control_error,
        .link = link,
        .calls = calls,
        .generation = t->generation > 0 ? t->generation : 1,
        .restarts = s->restarts,
    };
    t->control.fd = -1;
    return server_run(&options);
}

/* Forks one. In the new process: serves, and returns with is_server. */
static bool start_server(struct supervisor *s)
{
    struct sup_state *t = &s->state;
    int link[2], calls[2] = { -1, -1 };
    s->restart_at = 0;
    if (t->n_servers == SUP_SERVERS || !link_open(link))
        return false;
    pid_t pid = link_open(calls) ? fork() : -1;
    if (pid == 0) {
        (void)close(link[0]);
        (void)close(calls[0]);
        s->outcome = serve(s, link[1], calls[1]);
        (void)close(link[1]);
        (void)close(calls[1]);
        return true;
    }
    int error = errno;
    (void)close(link[1]);
    if (calls[1] >= 0)
        (void)close(calls[1]);
    if (pid > 0) {
        t->servers[t->n_servers++] = (struct sup_server){
            .pid = pid,
            .link = link[0],
            .calls = calls[0],
            .started_ms = clock_monotonic_ms(),
            .generation = t->generation,
        };
        hand_on_sockets(t, ANY_SERVER, pid);
        return true;
    }
    (void)close(link[0]);
    if (calls[0] >= 0)
        (void)close(calls[0]);
    errno = error;
    return false;
}

static void plan_restart(struct supervisor *s, const char *after)
{
    s->restart_at = clock_monotonic_ms() + s->delay_ms;
    log_write(LOG_ERROR, "%s; a new one starts in %u.%u s with generation %llu", after, s->delay_ms / 1000,
              s->delay_ms % 1000 / 100, (unsigned long long)s->state.generation);
    s->restarts++;
    s->delay_ms = s->delay_ms * 2 < DELAY_MAX_MS ? s->delay_ms * 2 : DELAY_MAX_MS;
}

static void try_to_start(struct supervisor *s)
{
    char why[128];
    if (start_server(s))
        return;
    (void)snprintf(why, sizeof why, "cannot start a server: %s", strerror(errno));
    if (s->state.generation == 0) {
        log_write(LOG_ERROR, "%s", why);
        s->stopping = true;
        s->outcome = EXIT_FAILURE;
    } else {
        plan_restart(s, why);
    }
}

/* --- what servers say --- */

static void tell_ready(void)
{
    char text[64];
    (void)snprintf(text, sizeof text, "READY=1\nMAINPID=%ld", (long)getpid());
    notify(text);
}

/* What there is of sockets is what the serving server has. */
static void serve_all(struct sup_state *t)
{
    for (unsigned i = 0; i < t->listeners.n; i++)
        t->listeners.all[i]->served = t->listeners.all[i]->n;
}

/* A server has taken over: those before it drain. */
static void on_first_running(struct supervisor *s, struct sup_server *v)
{
    struct sup_state *t = &s->state;
    v->ready = true;
    serve_all(t);
    for (struct sup_server *old = t->servers; old != v; old++) {
        if (old->leaving)
            continue;
        old->leaving = true;
        log_write(LOG_NOTICE, "server %ld has taken over from %ld, which drains", (long)v->pid, (long)old->pid);
        (void)link_say(old->link, LINK_HAND_OVER, 0);
    }
    if (t->generation == 0) {
        pid_file_write(&t->pid_file);
        s->delay_ms = DELAY_MIN_MS;
    }
    t->upgrade_asked = false;
    /* Its predecessor may have taken a newer configuration while it started. */
    if (s->reload_waits || v->generation != t->generation)
        (void)kill(v->pid, SIGHUP);
    s->reload_waits = false;
}

static void on_running(struct supervisor *s, struct sup_server *v, struct link_message *m)
{
    struct sup_state *t = &s->state;
    if (!v->ready)
        on_first_running(s, v);
    if (v != sup_current(s))
        return;
    if (m->n > t->generation)
        t->generation = m->n;
    log_set_level((enum log_level)(m->have & ((1U << LINK_STYLE_SHIFT) - 1)));
    t->error_style = m->have >> LINK_STYLE_SHIFT == LOG_STYLE_JSON ? LOG_STYLE_JSON : LOG_STYLE_TEXT;
    if (m->n_fds > 0) {
        (void)close(t->text_fd);
        t->text_fd = m->fds[0];
        m->fds[0] = m->fds[--m->n_fds];
    }
    char *error_log = strndup(m->text.p, m->text.n);
    if (error_log != NULL) {
        sup_log_use(error_log, t->error_style);
        free(t->error_log);
        t->error_log = error_log;
    }
    tell_ready();
}

static void answer_open(struct supervisor *s, const struct sup_server *v, struct link_message *m)
{
    const char *step = "memory";
    struct sockets *k = listeners_find(&s->state.listeners, m->text);
    unsigned n = m->n < UINT16_MAX ? (unsigned)m->n : UINT16_MAX;
    bool ok = m->listen.addr.len > 0 && !v->leaving;
    errno = EINVAL;
    if (ok && k == NULL)
        ok = (k = listeners_add(&s->state.listeners, m->text)) != NULL;
    if (ok)
        k->user = v->pid;
    ok = ok && sockets_grow(&s->state.listeners, k, &m->listen, n, &step);
    if (ok && v->ready)
        k->served = k->n;
    if (!ok) {
        int error = errno;
        if (k != NULL && k->n == 0)
            listeners_remove(&s->state.listeners, k);
        link_begin(m, LINK_OPEN_FAILED, (uint64_t)error, str_c(step));
        (void)link_send(v->calls, m);
        return;
    }
    unsigned at = m->have < k->n ? m->have : k->n;
    uint64_t total = k->n - at;
    do {
        link_begin(m, LINK_OPENED, total, STR_NONE);
        while (m->n_fds < LINK_FDS && at < k->n)
            m->fds[m->n_fds++] = k->fds[at++];
    } while (link_send(v->calls, m) == IO_OK && at < k->n);
    m->n_fds = 0; /* they stay here */
}

static void give_up(struct supervisor *s, struct sockets *k)
{
    struct listeners one = { .all = &k, .n = 1 };
    listeners_unlink(&one);
    /* A server that drains may still hold them, and a socket that only it holds would complete handshakes that nobody
     * answers. */
    for (unsigned i = 0; i < k->n && !k->given; i++)
        (void)shutdown(k->fds[i], SHUT_RDWR);
    listeners_remove(&s->state.listeners, k);
}

static void answer_close(struct supervisor *s, const struct sup_server *v, struct link_message *m)
{
    struct sockets *k = listeners_find(&s->state.listeners, m->text);
    /* One that drains has nothing to say about what its successor listens on. */
    if (k != NULL && (k->user == 0 || k->user == v->pid))
        give_up(s, k);
    else if (k != NULL && v == sup_current(s))
        k->served = 0; /* its successor starts, and decides */
    (void)link_say(v->calls, LINK_CLOSED, 0);
}

/* A server has not come up: what nobody else accepts on goes, for the kernel would complete handshakes there. */
static void give_up_unserved(struct supervisor *s)
{
    struct listeners *ls = &s->state.listeners;
    for (unsigned i = ls->n; i-- > 0;) {
        if (ls->all[i]->served == 0)
            give_up(s, ls->all[i]);
        else
            sockets_shrink(ls->all[i], ls->all[i]->served);
    }
}

static void on_message(struct supervisor *s, struct sup_server *v, struct link_message *m)
{
    bool is_current = v == sup_current(s);
    switch (m->kind) {
    case LINK_RUNNING:
        on_running(s, v, m);
        break;
    case LINK_RELOADING:
        if (is_current)
            notify_reloading();
        break;
    case LINK_REFUSED:
        if (is_current)
            tell_ready();
        break;
    case LINK_STOPPING:
        if (!v->leaving)
            notify("STOPPING=1");
        break;
    case LINK_OPEN:
        answer_open(s, v, m);
        break;
    case LINK_CLOSE:
        answer_close(s, v, m);
        break;
    case LINK_UPGRADE:
        upgrade_begin(s, v->link);
        break;
    case LINK_PONG:
        v->missed = 0;
        if (is_current && s->has_watchdog)
            notify("WATCHDOG=1");
        break;
    default:
        break; /* of a newer version */
    }
    link_close_fds(m);
}

/* False: the other process has closed it. */
static bool read_link(struct supervisor *s, struct sup_server *v, int fd)
{
    struct link_message m;
    for (;;) {
        enum io io = link_receive(fd, &m);
        if (io == IO_OK)
            on_message(s, v, &m);
        else
            return io != IO_EOF;
    }
}

static void read_links(struct supervisor *s, struct sup_server *v)
{
    if (v->link >= 0 && !read_link(s, v, v->link)) {
        (void)close(v->link);
        v->link = -1;
    }
    if (v->calls >= 0 && !read_link(s, v, v->calls)) {
        (void)close(v->calls);
        v->calls = -1;
    }
}

/* --- a server's end --- */

static void print_end(char *out, size_t cap, const struct sup_server *v, int status)
{
    if (WIFSIGNALED(status))
        (void)snprintf(out, cap, "server %ld was killed by SIG%s%s", (long)v->pid, sigabbrev_np(WTERMSIG(status)),
                       WCOREDUMP(status) ? " (core dumped)" : "");
    else
        (void)snprintf(out, cap, "server %ld ended with exit code %d", (long)v->pid, WEXITSTATUS(status));
}

/* The last server that should serve has ended. */
static void on_none_left(struct supervisor *s, const struct sup_server *v, int status, const char *end)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    bool is_told = s->stopping || code == 0;
    if (is_told || s->state.generation == 0) { /* it was told to; or the first one has not come up, and has said why */
        if (code != 0 && !WIFEXITED(status))
            log_write(LOG_ERROR, "%s", end);
        s->stopping = true;
        s->outcome = is_told || WIFEXITED(status) ? code : EXIT_FAILURE;
        return;
    }
    if (clock_monotonic_ms() - v->started_ms >= HEALTHY_MS)
        s->delay_ms = DELAY_MIN_MS;
    plan_restart(s, end);
}

static void on_server_end(struct supervisor *s, unsigned i, int status)
{
    struct sup_state *t = &s->state;
    char end[128];
    read_links(s, &t->servers[i]); /* what it had still to say */
    struct sup_server v = t->servers[i];
    sup_server_close(&v);
    hand_on_sockets(t, v.pid, 0);
    t->n_servers--;
    memmove(&t->servers[i], &t->servers[i + 1], (t->n_servers - i) * sizeof v);
    print_end(end, sizeof end, &v, status);
    if (v.leaving) {
        if (status != 0)
            log_write(LOG_ERROR, "%s while it drained", end);
        return;
    }
    struct sup_server *current = sup_current(s);
    if (!v.ready && current != NULL) {
        log_write(LOG_ERROR, "upgrade failed: %s before it served; %ld serves on", end, (long)current->pid);
        give_up_unserved(s);
        if (t->upgrade_asked) {
            struct link_message m;
            link_begin(&m, LINK_UPGRADE_FAILED, 0, STR("the new server did not come up; the error log says why"));
            (void)link_send(current->link, &m);
        }
        t->upgrade_asked = false;
        tell_ready();
    } else if (!has_server(s)) {
        on_none_left(s, &v, status, end);
    } else {
        log_write(LOG_ERROR, "%s", end);
    }
}

static void reap(struct supervisor *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == s->check.pid) {
            upgrade_checked(s, status);
            continue;
        }
        for (unsigned i = 0; i < s->state.n_servers; i++) {
            if (s->state.servers[i].pid != pid)
                continue;
            on_server_end(s, i, status);
            break;
        }
    }
}

/* --- signals --- */

static void forward(const struct supervisor *s, const struct signalfd_siginfo *info, bool to_all)
{
    union sigval sender = { .sival_int = (int)info->ssi_pid };
    const struct sup_state *t = &s->state;
    for (unsigned i = 0; i < t->n_servers; i++)
        if (to_all || !t->servers[i].leaving)
            (void)sigqueue(t->servers[i].pid, (int)info->ssi_signo, sender);
}

static void on_signal(struct supervisor *s, const struct signalfd_siginfo *info)
{
    switch ((int)info->ssi_signo) {
    case SIGCHLD:
        break; /* reap looks anyway */
    case SIGHUP:
        s->reload_waits = sup_current(s) == NULL;
        if (!s->reload_waits)
            forward(s, info, false);
        break;
    case SIGUSR1:
        forward(s, info, true);
        break;
    case SIGUSR2:
        log_write(LOG_NOTICE, "upgrade: asked for by process %u", info->ssi_pid);
        upgrade_begin(s, -1);
        break;
    default:
        s->stopping = true;
        s->restart_at = 0;
        upgrade_give_up(s);
        forward(s, info, true);
    }
}

static void on_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        on_signal(s, &info);
    reap(s);
}

/* --- time --- */

/* Held by a debugger, or stopped: that is no fault of its own. */
static bool is_held(pid_t pid)
{
    char path[32], text[512];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && (end[2] == 'T' || end[2] == 't');
}

/* From fork to the first configuration in force nobody pings it; the first server of all is its starter's concern. */
static void end_late_ones(struct supervisor *s)
{
    uint64_t now = clock_monotonic_ms();
    for (unsigned i = 0; i < s->state.n_servers && s->state.generation > 0; i++) {
        struct sup_server *v = &s->state.servers[i];
        if (v->ready || now - v->started_ms < COME_UP_MS || is_held(v->pid))
            continue;
        log_write(LOG_EMERG, "server %ld does not come up", (long)v->pid);
        v->started_ms = now;
        (void)kill(v->pid, SIGABRT);
    }
}

/* Each ping that finds the last one unanswered counts: a time in which the supervisor itself stood still does not. */
static void ping(struct supervisor *s)
{
    for (unsigned i = 0; i < s->state.n_servers; i++) {
        struct sup_server *v = &s->state.servers[i];
        if (!v->ready || v->link < 0 || link_say(v->link, LINK_PING, 0) == IO_ERROR)
            continue;
        if (is_held(v->pid))
            v->missed = 0;
        if (v->missed++ * s->ping_every_ms < MISSED_MAX * PING_MS)
            continue;
        log_write(LOG_EMERG, "server %ld does not answer: its main thread hangs", (long)v->pid);
        v->missed = 0;
        (void)kill(v->pid, SIGABRT);
    }
    s->ping_at = clock_monotonic_ms() + s->ping_every_ms;
}

static void on_deadlines(struct supervisor *s)
{
    uint64_t now = clock_monotonic_ms();
    if (s->check.pid > 0 && now >= s->check.until)
        upgrade_give_up(s);
    if (now >= s->ping_at) {
        end_late_ones(s);
        ping(s);
    }
    if (s->restart_at != 0 && now >= s->restart_at && !s->stopping)
        try_to_start(s);
}

static int until_deadline(const struct supervisor *s)
{
    uint64_t next = s->ping_at, now = clock_monotonic_ms();
    if (s->restart_at != 0 && s->restart_at < next)
        next = s->restart_at;
    if (s->check.pid > 0 && s->check.until < next)
        next = s->check.until;
    return next <= now ? 0 : (int)(next - now);
}

static void read_watchdog(struct supervisor *s)
{
    uint64_t us;
    const char *pid = getenv("WATCHDOG_PID");
    s->ping_every_ms = PING_MS;
    s->has_watchdog = str_to_u64(str_c(getenv("WATCHDOG_USEC")), &us) && us > 0 &&
                      (pid == NULL || strtol(pid, NULL, 10) == (long)getpid());
    if (s->has_watchdog && us / 1000 / 3 < PING_MS)
        s->ping_every_ms = us / 1000 / 3 > 0 ? (unsigned)(us / 1000 / 3) : 1;
}

/* --- life --- */

static bool open_signals(struct supervisor *s)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        sigaddset(&set, signals[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL); /* whoever starts this may ignore it, and then nothing would be told of a child's end */
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signal_fd >= 0;
}

static void wait_once(struct supervisor *s)
{
    struct sup_state *t = &s->state;
    struct pollfd fds[2 + 2 * SUP_SERVERS] = {
        { .fd = s->signal_fd, .events = POLLIN },
        { .fd = s->check.pid > 0 ? s->check.out : -1, .events = POLLIN },
    };
    nfds_t n = 2;
    for (unsigned i = 0; i < t->n_servers; i++) {
        fds[n++] = (struct pollfd){ .fd = t->servers[i].link, .events = POLLIN };
        fds[n++] = (struct pollfd){ .fd = t->servers[i].calls, .events = POLLIN };
    }
    if (poll(fds, n, until_deadline(s)) < 0 && errno != EINTR)
        log_write(LOG_ERROR, "poll: %s", strerror(errno));
    if (fds[1].revents != 0)
        upgrade_read(s);
    for (unsigned i = 0; i < t->n_servers; i++)
        read_links(s, &t->servers[i]);
    on_signals(s);
    on_deadlines(s);
}

/* Until the last server has ended and none is to come; also the life of a server, after its fork. */
static int supervise(struct supervisor *s)
{
    while (!s->is_server && !(s->stopping && s->state.n_servers == 0))
        wait_once(s);
    upgrade_give_up(s);
    if (!s->is_server) {
        sup_file_remove(&s->state.control);
        sup_file_remove(&s->state.pid_file);
        listeners_unlink(&s->state.listeners);
    }
    sup_log_use(NULL, LOG_STYLE_TEXT);
    if (s->signal_fd >= 0)
        (void)close(s->signal_fd);
    sup_state_free(&s->state);
    return s->outcome;
}

static void init(struct supervisor *s, const struct handler *const *handlers, const struct filter *const *filters)
{
    *s = (struct supervisor){
        .handlers = handlers, .filters = filters, .signal_fd = -1, .delay_ms = DELAY_MIN_MS, .check.out = -1
    };
    sup_state_init(&s->state);
    read_watchdog(s);
    s->ping_at = clock_monotonic_ms() + s->ping_every_ms;
}

/* What was read as root has to be there for a reload too. */
static bool can_read_again(const struct supervisor_options *o)
{
    bool ok = true;
    for (unsigned i = 0; o->path != NULL && i < o->conf->n_files; i++) {
        struct str file = o->conf->files[i];
        char *path = strndup(file.p, file.n);
        if (path != NULL && eaccess(path, R_OK) != 0 && errno == EACCES) {
            log_write(LOG_ERROR, "user \"%.*s\" cannot read %s: a reload could not either", STR_ARG(o->conf->user),
                      path);
            ok = false;
        }
        free(path);
    }
    return ok;
}

/* Everything before the first server. False: logged. */
static bool prepare(struct supervisor *s, const struct supervisor_options *o)
{
    struct sup_state *t = &s->state;
    const struct conf *c = o->conf;
    activation_take(&t->listeners, c); /* first: a number that nobody has handed over must not be one of ours */
    t->name = strdup(o->name);
    t->path = o->path != NULL ? strdup(o->path) : NULL;
    t->error_log = strndup(c->error_log.p, c->error_log.n);
    t->error_style = c->error_log_style;
    if (t->name == NULL || t->error_log == NULL || (o->path != NULL && t->path == NULL) || !open_signals(s)) {
        log_write(LOG_ERROR, "cannot start: %s", strerror(errno));
        return false;
    }
    (void)privileges_raise_descriptors();
    if (!pid_file_open(&t->pid_file, c))
        return false;
    bool ok = control_file_open(&t->control, c);
    s->control_error = t->control.fd < 0 ? errno : 0;
    if (!privileges_drop(c->user) || !can_read_again(o))
        return false;
    if (!listeners_open(&t->listeners, c) || !ok)
        return false;
    t->orders_fd = orders_open();
    t->text_fd = running_text_seal(c->text);
    if (t->text_fd < 0)
        log_write(LOG_ERROR, "cannot keep the configuration in memory: %s", strerror(errno));
    return t->text_fd >= 0;
}

int supervisor_run(const struct supervisor_options *o)
{
    struct supervisor s;
    init(&s, o->handlers, o->filters);
    bool ok = prepare(&s, o);
    conf_free(o->conf);
    (void)malloc_trim(0);
    if (ok) {
        try_to_start(&s);
    } else {
        s.stopping = true;
        s.outcome = EXIT_FAILURE;
    }
    return supervise(&s);
}

int supervisor_resume(const struct handler *const *handlers, const struct filter *const *filters)
{
    struct supervisor s;
    init(&s, handlers, filters);
    bool ok = upgrade_take_state(&s.state);
    if (!ok || !open_signals(&s)) {
        /* The servers drain when the link closes; whoever started this one starts it anew. */
        sup_state_free(&s.state);
        return EXIT_FAILURE;
    }
    sup_log_use(s.state.error_log, s.state.error_style);
    uint64_t now = clock_monotonic_ms();
    for (unsigned i = 0; i < s.state.n_servers; i++)
        s.state.servers[i].started_ms = now;
    log_write(LOG_NOTICE, "upgrade: weir %s has taken over", WEIR_VERSION);
    if (s.state.orders_fd < 0) /* the old version had none */
        s.state.orders_fd = orders_open();
    serve_all(&s.state); /* by the old server; nothing but this starts another one beside it */
    try_to_start(&s);
    return supervise(&s);
}
