/* SPDX-License-Identifier: MIT */
/*
 * Replacing the program under a running supervisor. The new program (the file this one was started from, whatever it
 * is by now) first checks the configuration in force, in a process of its own; only if it likes it, and understands
 * what this version would hand over, does it take this very process over by execve: the process number, and with it
 * what a service manager knows, stays. The state goes along as a text in a memory file that $WEIR_UPGRADE names, the
 * descriptors it mentions as they are. The new version starts a second server, which shares the sockets with the first
 * one, and has the first one drain when the second serves.
 *
 * Until execve succeeds nothing has changed, and every way it can fail leads back here. Signals stay blocked over it,
 * so none is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proc/notify.h"
#include "proc/sup_private.h"

enum { CHECK_MS = 30 * 1000 };

#define STATE_ENV "WEIR_UPGRADE"
#define UNDERSTOOD "1" /* of the state and the link, as `weir check --upgrade` is asked */

bool supervisor_understands(const char *version)
{
    return strcmp(version, UNDERSTOOD) == 0;
}

/* The file this program was started from; a new one may have taken its place, which the kernel calls deleted. */
static bool find_program(char *out, size_t cap)
{
    static const struct str gone = { " (deleted)", 10 };
    ssize_t n = readlink("/proc/self/exe", out, cap - 1);
    if (n <= 0)
        return false;
    struct str path = str_of(out, (size_t)n);
    out[str_ends(path, gone) ? path.n - gone.n : path.n] = '\0';
    return true;
}

static void refuse(struct supervisor *s, int asker, const char *why)
{
    struct link_message m;
    log_write(LOG_ERROR, "upgrade refused: %s", why);
    if (asker < 0)
        return;
    link_begin(&m, LINK_UPGRADE_FAILED, 0, str_c(why));
    for (unsigned i = 0; i < s->state.n_servers; i++)
        if (s->state.servers[i].link == asker)
            (void)link_send(asker, &m);
}

static const char *obstacle(struct supervisor *s)
{
    const struct sup_server *current = sup_current(s);
    if (s->stopping)
        return "the server is stopping";
    if (current == NULL)
        return "no server is running just now";
    if (s->check.pid > 0 || current != &s->state.servers[s->state.n_servers - 1])
        return "another upgrade is under way";
    return s->state.n_servers == SUP_SERVERS ? "too many servers are draining still" : NULL;
}

/* --- the check --- */

static void run_check(const char *program, int text_fd, int out)
{
    char number[16];
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)snprintf(number, sizeof number, "%d", text_fd);
    (void)fcntl(text_fd, F_SETFD, 0);
    if (dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0)
        (void)execl(program, program, "check", "--upgrade", UNDERSTOOD, number, (char *)NULL);
    dprintf(out, "cannot run %s: %s\n", program, strerror(errno));
    _exit(127);
}

void upgrade_begin(struct supervisor *s, int asker)
{
    char program[PATH_MAX];
    int ends[2];
    const char *why = obstacle(s);
    if (why == NULL && !find_program(program, sizeof program))
        why = "the program's own path cannot be found (/proc/self/exe)";
    if (why == NULL && pipe2(ends, O_CLOEXEC) != 0)
        why = strerror(errno);
    if (why != NULL) {
        refuse(s, asker, why);
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        run_check(program, s->state.text_fd, ends[1]);
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        refuse(s, asker, strerror(errno));
        return;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    s->check.pid = pid;
    s->check.out = ends[0];
    s->check.asker = asker;
    s->check.until = clock_monotonic_ms() + CHECK_MS;
    s->check.n = 0;
}

void upgrade_read(struct supervisor *s)
{
    struct sup_check *c = &s->check;
    char rest[512];
    for (;;) {
        bool fits = c->n < sizeof c->said - 1;
        ssize_t n = fits ? read(c->out, c->said + c->n, sizeof c->said - 1 - c->n) : read(c->out, rest, sizeof rest);
        if (n == 0) { /* its end comes by SIGCHLD */
            (void)close(c->out);
            c->out = -1;
        }
        if (n <= 0)
            return;
        c->n += fits ? (size_t)n : 0;
    }
}

void upgrade_give_up(struct supervisor *s)
{
    struct sup_check *c = &s->check;
    if (c->pid <= 0)
        return;
    (void)kill(c->pid, SIGKILL);
    c->pid = 0;
    if (c->out >= 0)
        (void)close(c->out);
    c->out = -1;
    refuse(s, c->asker, "the new program's check did not end");
}

/* --- the exec --- */

static void keep_over_exec(int fd)
{
    (void)fcntl(fd, F_SETFD, 0);
}

static void close_on_exec(int fd)
{
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* The state in a memory file; -1: errno. */
static int write_state(const struct sup_state *state)
{
    int fd = memfd_create("weir-state", MFD_CLOEXEC);
    int copy = fd >= 0 ? dup(fd) : -1;
    FILE *f = copy >= 0 ? fdopen(copy, "w") : NULL;
    bool ok = f != NULL && sup_state_print(f, state);
    int error = errno;
    if (f != NULL)
        ok &= fclose(f) == 0;
    else if (copy >= 0)
        (void)close(copy);
    if (!ok && fd >= 0) {
        (void)close(fd);
        fd = -1;
        errno = error;
    }
    return fd;
}

/* Returns only if it fails: errno. */
static void become(struct supervisor *s, const char *program)
{
    char number[16];
    struct sup_state *t = &s->state;
    const char *with_file[] = { "weir", "run", "-c", t->path, NULL }, *without[] = { "weir", "run", NULL };
    int fd = write_state(t);
    if (fd < 0)
        return;
    (void)snprintf(number, sizeof number, "%d", fd);
    if (setenv(STATE_ENV, number, 1) == 0) {
        sup_state_each_fd(t, keep_over_exec);
        keep_over_exec(fd);
        notify_reloading();
        (void)execv(program, (char *const *)(uintptr_t)(t->path != NULL ? with_file : without));
        int error = errno;
        notify("READY=1");
        sup_state_each_fd(t, close_on_exec);
        (void)unsetenv(STATE_ENV);
        errno = error;
    }
    int error = errno;
    (void)close(fd);
    errno = error;
}

static void log_lines(struct str text)
{
    while (text.n > 0) {
        ptrdiff_t end = str_chr(text, '\n', 0);
        struct str line = end < 0 ? text : str_take(text, (size_t)end);
        log_write(LOG_ERROR, "upgrade: %.*s", STR_ARG(line));
        text = str_skip(text, line.n + 1);
    }
}

void upgrade_checked(struct supervisor *s, int status)
{
    struct sup_check *c = &s->check;
    char program[PATH_MAX], why[PATH_MAX + 64];
    upgrade_read(s);
    c->pid = 0;
    if (c->out >= 0)
        (void)close(c->out);
    c->out = -1;
    if (status != 0) {
        log_lines(str_of(c->said, c->n));
        refuse(s, c->asker, "the new program refuses the running configuration; the error log says why");
        return;
    }
    if (obstacle(s) == NULL && find_program(program, sizeof program)) {
        s->state.upgrade_asked = c->asker >= 0;
        log_write(LOG_NOTICE, "upgrade: %s", program);
        become(s, program);
        s->state.upgrade_asked = false;
    } else {
        errno = EAGAIN;
        program[0] = '\0';
    }
    (void)snprintf(why, sizeof why, "cannot execute %s: %s", program, strerror(errno));
    refuse(s, c->asker, why);
}

/* --- on the other side --- */

bool supervisor_is_upgrade(void)
{
    return getenv(STATE_ENV) != NULL;
}

bool upgrade_take_state(struct sup_state *state)
{
    const char *why = "there is none";
    uint64_t fd;
    bool ok = str_to_u64(str_c(getenv(STATE_ENV)), &fd) && fd <= INT_MAX;
    (void)unsetenv(STATE_ENV);
    struct stat st;
    void *p = MAP_FAILED;
    if (ok && fstat((int)fd, &st) == 0 && st.st_size > 0)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, (int)fd, 0);
    ok = p != MAP_FAILED && sup_state_parse(state, str_of(p, (size_t)st.st_size), &why);
    if (p != MAP_FAILED)
        (void)munmap(p, (size_t)st.st_size);
    if (ok) {
        (void)close((int)fd);
        sup_state_each_fd(state, close_on_exec);
    } else {
        log_write(LOG_ERROR, "upgrade failed: the state of the old version cannot be read: %s", why);
    }
    return ok;
}
