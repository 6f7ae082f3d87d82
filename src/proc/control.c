/* SPDX-License-Identifier: MIT */
/*
 * The control socket's connections: a handful, each with one command at a time. Reading and writing never block the main
 * thread: a command is short and waited for by poll; an answer that the socket does not take whole at once ends the
 * connection, for an answer fits into its buffer.
 *
 * Who may: the file's mode (0600) and, beyond that, the peer's credentials: root or the server's own user (unix(7), SO_PEERCRED).
 * `who` is the slot with a serial number, so that a late answer never reaches a later asker in the same slot.
 */
#include "proc/control.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/listen.h"

enum {
    LINE = 512,
    SEND_BUFFER = 1024 * 1024, /* more than any answer */
    PAUSE_MS = 100, /* without a descriptor for who asks */
};

struct asker {
    int fd; /* -1: free */
    unsigned serial;
    bool waits; /* a command runs; nothing is read */
    size_t n;
    char line[LINE];
};

struct control {
    int fd;
    control_fn *run;
    void *arg;
    unsigned serials;
    uint64_t deaf_until; /* accept has failed; 0: it has not */
    struct asker askers[CONTROL_CLIENTS];
};

static const char *const verbs[CONTROL_VERBS] = {
    [CONTROL_SERVER] = "server",
    [CONTROL_STATUS] = "status",     [CONTROL_RELOAD] = "reload", [CONTROL_STOP] = "stop",
    [CONTROL_STOP_NOW] = "stop now", [CONTROL_REOPEN] = "reopen", [CONTROL_UPGRADE] = "upgrade",
};

const char *control_verb_name(enum control_verb verb)
{
    return verbs[verb];
}

bool control_default_path(char *out, size_t cap)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n;
    if (geteuid() == 0)
        n = snprintf(out, cap, "/run/weir/control.sock");
    else if (runtime != NULL && runtime[0] == '/')
        n = snprintf(out, cap, "%s/weir.sock", runtime);
    else
        return false;
    return n > 0 && (size_t)n < cap;
}

int control_listen(const char *path, bool make_folder)
{
    struct addr a = { .len = sizeof(a.u.un) };
    const char *step;
    int fd;
    const char *slash = strrchr(path, '/');
    if (strlen(path) >= sizeof(a.u.un.sun_path) || slash == NULL) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (make_folder && slash != path) {
        char folder[sizeof(a.u.un.sun_path)];
        memcpy(folder, path, (size_t)(slash - path));
        folder[slash - path] = '\0';
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            return -1;
    }
    a.u.un.sun_family = AF_UNIX;
    memcpy(a.u.un.sun_path, path, strlen(path) + 1);
    const struct listen_options options = { .backlog = 16 };
    mode_t old = umask(0177);
    bool ok = listen_open(&a, &options, &fd, 1, &step);
    umask(old);
    return ok ? fd : -1;
}

struct control *control_new(int fd, control_fn *run, void *arg)
{
    struct control *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    *c = (struct control){ .fd = fd, .run = run, .arg = arg };
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++)
        c->askers[i].fd = -1;
    return c;
}

static void hang_up(struct asker *a)
{
    close(a->fd);
    a->fd = -1;
    a->waits = false;
}

void control_free(struct control *c)
{
    if (c == NULL)
        return;
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++)
        if (c->askers[i].fd >= 0)
            hang_up(&c->askers[i]);
    close(c->fd);
    free(c);
}

static unsigned name_of(const struct control *c, const struct asker *a)
{
    return a->serial * CONTROL_CLIENTS + (unsigned)(a - c->askers);
}

static struct asker *find(struct control *c, unsigned who)
{
    struct asker *a = &c->askers[who % CONTROL_CLIENTS];
    return a->fd >= 0 && name_of(c, a) == who ? a : NULL;
}

/* A free place, or else that of the longest there who has not asked anything: who says nothing keeps nobody out. NULL: all
 * of them wait for answers. */
static struct asker *place(struct control *c)
{
    struct asker *silent = NULL;
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        struct asker *a = &c->askers[i];
        if (a->fd < 0)
            return a;
        if (!a->waits && (silent == NULL || a->serial < silent->serial))
            silent = a;
    }
    return silent;
}

unsigned control_poll(struct control *c, struct pollfd *fds)
{
    bool has_room = false;
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        const struct asker *a = &c->askers[i];
        has_room |= !a->waits;
        fds[i + 1] = (struct pollfd){ .fd = a->fd, .events = a->waits ? 0 : POLLIN };
    }
    if (clock_monotonic_ms() >= c->deaf_until)
        c->deaf_until = 0;
    fds[0] = (struct pollfd){ .fd = has_room && c->deaf_until == 0 ? c->fd : -1, .events = POLLIN };
    return CONTROL_FDS;
}

uint64_t control_due(const struct control *c)
{
    return c->deaf_until > 0 ? c->deaf_until : UINT64_MAX;
}

static bool is_allowed(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

static void accept_asker(struct control *c)
{
    int fd = accept4(c->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
            c->deaf_until = clock_monotonic_ms() + PAUSE_MS; /* it stays readable: no reason to spin */
        return;
    }
    if (!is_allowed(fd)) {
        log_write(LOG_WARN, "control socket: a command of another user is refused");
        close(fd);
        return;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ SEND_BUFFER }, sizeof(int));
    struct asker *a = place(c);
    if (a == NULL) {
        close(fd);
        return;
    }
    if (a->fd >= 0)
        hang_up(a);
    *a = (struct asker){ .fd = fd, .serial = ++c->serials };
}

static void run_line(struct control *c, struct asker *a, struct str line)
{
    unsigned who = name_of(c, a);
    a->waits = true;
    for (unsigned i = 0; i < CONTROL_VERBS; i++) {
        struct str verb = str_c(verbs[i]);
        struct str words = str_skip(line, verb.n < line.n ? verb.n : line.n);
        bool has_words = i == CONTROL_SERVER && words.n > 0 && words.p[0] == ' ';
        if (str_starts(line, verb) && (words.n == 0 || has_words)) {
            c->run(c->arg, (enum control_verb)i, str_trim(words), who);
            return;
        }
    }
    control_refuse(c, who, "no such command; expected status, reload, stop, stop now, reopen, upgrade or server");
}

static void read_asker(struct control *c, struct asker *a)
{
    ssize_t got = recv(a->fd, a->line + a->n, LINE - a->n, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        hang_up(a);
        return;
    }
    a->n += (size_t)got;
    ptrdiff_t end = str_chr(str_of(a->line, a->n), '\n', 0);
    if (end >= 0) {
        a->n = 0; /* one command at a time: what follows it in the same piece is dropped */
        run_line(c, a, str_trim(str_of(a->line, (size_t)end)));
    } else if (a->n == LINE) {
        hang_up(a);
    }
}

void control_serve(struct control *c, const struct pollfd *fds, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        struct asker *a = &c->askers[i - 1];
        if (fds[i].revents == 0 || a->fd < 0 || a->fd != fds[i].fd)
            continue;
        if (a->waits)
            hang_up(a); /* it has left; its command goes on */
        else
            read_asker(c, a);
    }
    if (fds[0].revents != 0)
        accept_asker(c);
}

void control_answer(struct control *c, unsigned who, struct str json)
{
    struct asker *a = find(c, who);
    if (a == NULL)
        return;
    struct iovec iov[2] = {
        { .iov_base = (void *)(uintptr_t)json.p, .iov_len = json.n },
        { .iov_base = (void *)(uintptr_t)"\n", .iov_len = 1 },
    };
    const struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
    a->waits = false;
    if (sendmsg(a->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)(json.n + 1))
        hang_up(a);
}

void control_print_string(FILE *f, struct str s)
{
    fputc('"', f);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

void control_refuse(struct control *c, unsigned who, const char *error)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (f != NULL) {
        fputs("{\"ok\":false,\"error\":", f);
        control_print_string(f, str_c(error));
        fputc('}', f);
        fclose(f);
        control_answer(c, who, str_of(text, n));
    }
    free(text);
}
