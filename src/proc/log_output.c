/* SPDX-License-Identifier: MIT */
/*
 * One destination of log lines. Owns the descriptor (but not 1 and 2) and a batch of lines that wait for it. Knows
 * neither rings nor generations, and is used by the log writer's thread alone.
 *
 * A destination that fails (full disk, dead reader) or stalls (a pipe nobody reads) costs lines, never time: they are
 * dropped and counted, and the count is logged when it takes lines again. A line is written whole or, if its second
 * half was lost, ended by a newline before the next one, so two lines never become one.
 *
 * Files are opened O_APPEND: truncating one in place (copytruncate) leaves no hole, and two servers may share one.
 * stdout and stderr are often shared with other processes, where O_NONBLOCK would surprise the others; there poll asks
 * first, and one page is what a pipe that polls writable always takes (pipe(7)).
 */
#include "proc/log_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { REPORT_EVERY_MS = 60 * 1000 };

static int open_path(const char *path)
{
    struct stat st;
    /* A fifo is opened for both ways: it can be opened before its reader comes and outlives one that leaves. */
    bool fifo = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    return open(path, (fifo ? O_RDWR : O_WRONLY | O_CREAT) | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
}

static enum output_kind kind_of(int fd, bool inherited)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return OUTPUT_FILE;
    return inherited ? OUTPUT_SHARED : OUTPUT_PIPE;
}

struct log_output *log_output_open(struct str path)
{
    struct log_output *o = calloc(1, sizeof *o);
    char *copy = malloc(path.n + 1);
    char *batch = malloc(LOG_BATCH);
    if (o == NULL || copy == NULL || batch == NULL)
        goto failed;
    memcpy(copy, path.p, path.n);
    copy[path.n] = '\0';
    o->path = str_of(copy, path.n);
    o->batch = batch;
    if (str_eq(path, STR("stdout")) || str_eq(path, STR("stderr"))) {
        o->inherited = true;
        o->fd = str_eq(path, STR("stdout")) ? STDOUT_FILENO : STDERR_FILENO;
    } else {
        o->fd = open_path(copy);
        if (o->fd < 0)
            goto failed;
    }
    o->kind = kind_of(o->fd, o->inherited);
    return o;
failed:;
    int error = errno;
    free(batch);
    free(copy);
    free(o);
    errno = error;
    return NULL;
}

void log_output_free(struct log_output *o)
{
    if (!o->inherited)
        (void)close(o->fd);
    free(o->batch);
    free((void *)(uintptr_t)o->path.p);
    free(o);
}

static const char *reason(int error)
{
    return error == EAGAIN ? "nobody reads it" : strerror(error);
}

static void lose(struct log_output *o, int error, uint64_t lines)
{
    uint64_t now = clock_monotonic_ms();
    if (o->error == 0) {
        o->reported_ms = now;
        log_write(LOG_ERROR, "cannot write to the log %.*s: %s; lines are dropped and counted", STR_ARG(o->path),
                  reason(error));
    }
    o->error = error;
    o->lost += lines;
    if (now - o->reported_ms >= REPORT_EVERY_MS) {
        o->reported_ms = now;
        log_write(LOG_WARN, "the log %.*s has lost %llu lines so far: %s", STR_ARG(o->path),
                  (unsigned long long)o->lost, reason(error));
    }
}

static void recover(struct log_output *o)
{
    if (o->error == 0)
        return;
    log_write(LOG_NOTICE, "the log %.*s takes lines again; %llu were lost", STR_ARG(o->path),
              (unsigned long long)o->lost);
    o->error = 0;
    o->lost = 0;
}

void log_output_add(struct log_output *o, struct str line)
{
    if (line.n > LOG_BATCH - o->n)
        log_output_flush(o);
    if (line.n > LOG_BATCH - o->n) {
        lose(o, EAGAIN, 1);
        return;
    }
    memcpy(o->batch + o->n, line.p, line.n);
    o->n += line.n;
}

/* Drops the batch from `done` on. */
static void drop(struct log_output *o, size_t done, int error)
{
    uint64_t lines = 0;
    struct str rest = str_of(o->batch + done, o->n - done);
    for (ptrdiff_t at = 0; (at = str_chr(rest, '\n', (size_t)at)) >= 0; at++)
        lines++;
    o->owes_newline = o->mid_line;
    o->n = 0;
    lose(o, error, lines);
}

/* One write of at most `max` bytes from `done` on, the owed newline first. Bytes of the batch taken, or -1: errno. */
static ssize_t write_some(struct log_output *o, size_t done, size_t max)
{
    char newline = '\n';
    struct iovec iov[2] = {
        { .iov_base = &newline, .iov_len = o->owes_newline ? 1 : 0 },
        { .iov_base = o->batch + done, .iov_len = max },
    };
    ssize_t taken = writev(o->fd, iov, 2);
    if (taken <= 0) {
        if (taken == 0)
            errno = EIO;
        return -1;
    }
    if (o->owes_newline) {
        o->owes_newline = false;
        o->mid_line = false;
        taken--;
    }
    if (taken > 0)
        o->mid_line = o->batch[done + (size_t)taken - 1] != '\n';
    return taken;
}

/* Whole lines where possible: whoever else writes to the same pipe then comes between lines. */
static size_t one_page(const struct log_output *o, size_t done)
{
    size_t max = o->n - done;
    if (o->kind != OUTPUT_SHARED || max < PIPE_BUF)
        return max;
    const char *end = memrchr(o->batch + done, '\n', PIPE_BUF - 1);
    return end != NULL ? (size_t)(end + 1 - (o->batch + done)) : PIPE_BUF - 1;
}

static bool takes_now(const struct log_output *o)
{
    if (o->kind != OUTPUT_SHARED)
        return true;
    struct pollfd p = { .fd = o->fd, .events = POLLOUT };
    return poll(&p, 1, 0) > 0;
}

void log_output_flush(struct log_output *o)
{
    size_t done = 0;
    while (done < o->n) {
        if (!takes_now(o))
            break;
        ssize_t taken = write_some(o, done, one_page(o, done));
        if (taken >= 0) {
            done += (size_t)taken;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            drop(o, done, errno);
            return;
        }
    }
    if (done == 0)
        return;
    o->n -= done;
    memmove(o->batch, o->batch + done, o->n);
    if (o->n == 0)
        recover(o);
}

void log_output_reopen(struct log_output *o)
{
    if (o->inherited)
        return;
    log_output_flush(o);
    int fd = open_path(o->path.p);
    /* The number stays the same, so the crash handler and a poll under way never meet a closed one. */
    if (fd < 0 || dup3(fd, o->fd, O_CLOEXEC) < 0) {
        log_write(LOG_ERROR, "cannot reopen the log %.*s: %s; the old file stays in use", STR_ARG(o->path),
                  strerror(errno));
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    (void)close(fd);
    o->kind = kind_of(o->fd, false);
    if (o->kind == OUTPUT_FILE)
        o->mid_line = o->owes_newline = false;
}
