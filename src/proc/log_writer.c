/* SPDX-License-Identifier: MIT */
/*
 * The log writer: one thread between the rings that loops fill and the files. Owns the outputs, the tables that say
 * which output a record's target means, and a small ring for threads that have none. Does not own the loops' rings.
 *
 * A table belongs to one generation of the configuration. Whoever loads one opens its files on its own thread
 * (log_writer_open), where a slow file system delays nobody else; the mutex guards the lists, never a system call.
 * Others only prepend to the lists and mark; entries are removed by the log thread alone, so it walks what it has
 * once seen (`seen_tables`, `seen_outputs`) without the lock.
 *
 * A round empties all rings into the outputs' batches and flushes them: every TICK_MS, when a ring is a quarter full,
 * when a pipe that was behind takes bytes again. At rest it costs ten wake-ups a second.
 */
#include "proc/log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/log_output.h"

enum {
    TICK_MS = 100,
    FAREWELL_MS = 1000, /* for pipes that are behind when the server ends */
    OWN_RING = 1024 * 1024, /* as large as a ring must be to give its pages back */
    TAKE = 2048, /* records from one ring before the next one's turn */
    ROUNDS = 64, /* before a flush, whatever is still coming */
    POLLED = 32, /* pipes that are behind and polled; more are tried every tick */
    LINE = 4096 + 128,
};

struct table {
    struct table *next; /* newest first */
    uint64_t generation;
    bool closing; /* forgotten: goes when a round has emptied the rings */
    struct log_output *error;
    unsigned n;
    struct log_output *access[];
};

struct source {
    struct log_ring *ring;
    int index;        /* of the loop; -1: all other threads */
    uint64_t dropped; /* as last reported */
};

struct log_writer {
    pthread_mutex_t mutex; /* tables, outputs, their `closing` and `users` */
    struct table *tables;
    struct log_output *outputs;
    struct table *seen_tables; /* the thread's own */
    struct log_output *seen_outputs;
    struct source *sources;
    unsigned n_sources;
    struct log_ring *own; /* of every thread without one; its mutex */
    pthread_mutex_t own_mutex;
    int wake_fd;
    pthread_t thread;
    bool runs;
    atomic_bool reopen, stop, starting;
    uint64_t drops_reported_ms; /* the thread's own */
};

static atomic_int error_fd = STDERR_FILENO, error_style = LOG_STYLE_TEXT;
static _Thread_local struct log_ring *thread_ring;
static _Thread_local FILE *thread_tee;
static _Thread_local char thread_mark[12] = "main";

/* --- the error log's records --- */

static void sink(void *arg, enum log_level level, struct str text)
{
    struct log_writer *w = arg;
    char line[LINE];
    size_t n = log_line_print(line, sizeof line, log_writer_error_style(), clock_wall_ms(), level, thread_mark, text);
    if (thread_tee != NULL && level <= LOG_WARN)
        fprintf(thread_tee, "%.*s\n", STR_ARG(text));
    if (thread_ring != NULL) {
        (void)log_ring_put(thread_ring, LOG_TARGET_ERROR, 0, str_of(line, n));
        return;
    }
    pthread_mutex_lock(&w->own_mutex);
    (void)log_ring_put(w->own, LOG_TARGET_ERROR, 0, str_of(line, n));
    pthread_mutex_unlock(&w->own_mutex);
    /* Whoever starts the server looks at the terminal, not into a file. */
    if (level <= LOG_ERROR && atomic_load(&w->starting) && log_writer_error_fd() != STDERR_FILENO)
        dprintf(STDERR_FILENO, "weir: %.*s\n", STR_ARG(text));
}

void log_writer_tee(FILE *f)
{
    thread_tee = f;
}

void log_writer_bind_thread(struct log_ring *ring, unsigned index)
{
    thread_ring = ring;
    (void)snprintf(thread_mark, sizeof thread_mark, "%u", index);
}

int log_writer_error_fd(void)
{
    return atomic_load_explicit(&error_fd, memory_order_relaxed);
}

enum log_style log_writer_error_style(void)
{
    return (enum log_style)atomic_load_explicit(&error_style, memory_order_relaxed);
}

/* --- outputs and tables --- */

static struct log_output *find_output(struct log_output *o, struct str path)
{
    while (o != NULL && !str_eq(o->path, path))
        o = o->next;
    return o;
}

/* The output of that path: one in use, one of `fresh`, or a new one, which joins `fresh`. NULL: it could not be opened,
 * and that was logged. */
static struct log_output *output_for(struct log_writer *w, struct str path, struct log_output **fresh)
{
    pthread_mutex_lock(&w->mutex);
    struct log_output *o = find_output(w->outputs, path);
    if (o != NULL)
        o->users++;
    pthread_mutex_unlock(&w->mutex);
    if (o != NULL)
        return o;
    o = find_output(*fresh, path);
    if (o == NULL) {
        o = log_output_open(path);
        if (o == NULL) {
            log_write(LOG_ERROR, "cannot open the log %.*s: %s", STR_ARG(path), strerror(errno));
            return NULL;
        }
        o->next = *fresh;
        *fresh = o;
    }
    o->users++;
    return o;
}

static void free_outputs(struct log_output *o)
{
    while (o != NULL) {
        struct log_output *next = o->next;
        log_output_free(o);
        o = next;
    }
}

/* The mutex is held. */
static void table_free(struct table *t)
{
    if (t->error != NULL)
        t->error->users--;
    for (unsigned i = 0; i < t->n; i++)
        if (t->access[i] != NULL)
            t->access[i]->users--;
    free(t);
}

bool log_writer_open(struct log_writer *w, const struct conf *conf, uint64_t generation)
{
    struct table *t = calloc(1, sizeof *t + conf->n_logs * sizeof t->access[0]);
    if (t == NULL) {
        log_write(LOG_ERROR, "cannot open the logs: out of memory");
        return false;
    }
    struct log_output *fresh = NULL;
    t->generation = generation;
    t->n = conf->n_logs;
    t->error = output_for(w, conf->error_log, &fresh);
    bool ok = t->error != NULL;
    for (unsigned i = 0; i < t->n; i++) {
        t->access[i] = output_for(w, conf->logs[i]->path, &fresh);
        ok &= t->access[i] != NULL;
    }
    pthread_mutex_lock(&w->mutex);
    if (ok) {
        while (fresh != NULL) {
            struct log_output *o = fresh;
            fresh = o->next;
            o->next = w->outputs;
            w->outputs = o;
        }
        t->next = w->tables;
        w->tables = t;
        atomic_store(&error_fd, t->error->fd);
        atomic_store(&error_style, (int)conf->error_log_style);
    } else {
        table_free(t);
    }
    pthread_mutex_unlock(&w->mutex);
    free_outputs(fresh);
    return ok;
}

void log_writer_forget(struct log_writer *w, uint64_t generation)
{
    pthread_mutex_lock(&w->mutex);
    for (struct table *t = w->tables; t != NULL; t = t->next)
        if (t->generation == generation)
            t->closing = true;
    pthread_mutex_unlock(&w->mutex);
}

/* --- the thread --- */

/* Whether a table waits to be closed. */
static bool look(struct log_writer *w)
{
    bool closing = false;
    pthread_mutex_lock(&w->mutex);
    w->seen_tables = w->tables;
    w->seen_outputs = w->outputs;
    for (const struct table *t = w->tables; t != NULL; t = t->next)
        closing |= t->closing;
    pthread_mutex_unlock(&w->mutex);
    return closing;
}

static struct table *table_of(const struct log_writer *w, int target, uint64_t generation)
{
    struct table *t = w->seen_tables;
    if (target != LOG_TARGET_ERROR)
        while (t != NULL && t->generation != generation)
            t = t->next;
    return t;
}

static void on_record(void *arg, int target, uint64_t generation, struct str line)
{
    struct log_writer *w = arg;
    struct table *t = table_of(w, target, generation);
    if (t == NULL) { /* loaded since this round began */
        (void)look(w);
        t = table_of(w, target, generation);
    }
    if (t == NULL && target == LOG_TARGET_ERROR) { /* the start failed before there was any */
        ssize_t ignored = write(STDERR_FILENO, line.p, line.n);
        (void)ignored;
        return;
    }
    if (BUG_IF(t == NULL || target >= (int)t->n))
        return;
    log_output_add(target == LOG_TARGET_ERROR ? t->error : t->access[target], line);
}

/* True when every ring has been seen empty (or nearly so) after the round began. */
static bool empty_rings(struct log_writer *w)
{
    bool more = true;
    for (unsigned round = 0; more && round < ROUNDS; round++) {
        more = false;
        for (unsigned i = 0; i < w->n_sources; i++)
            more |= log_ring_take(w->sources[i].ring, TAKE, on_record, w) == TAKE;
    }
    return !more;
}

static void report_drops(struct log_writer *w)
{
    uint64_t now = clock_monotonic_ms();
    if (now - w->drops_reported_ms < 1000)
        return;
    for (unsigned i = 0; i < w->n_sources; i++) {
        struct source *s = &w->sources[i];
        uint64_t dropped = atomic_load_explicit(&s->ring->dropped, memory_order_relaxed);
        if (dropped == s->dropped)
            continue;
        char who[32] = "other threads";
        if (s->index >= 0)
            (void)snprintf(who, sizeof who, "loop %d", s->index);
        log_write(LOG_WARN, "the log writer fell behind: %llu lines of %s were dropped",
                  (unsigned long long)(dropped - s->dropped), who);
        s->dropped = dropped;
        w->drops_reported_ms = now;
    }
}

static void flush_all(struct log_writer *w)
{
    for (struct log_output *o = w->seen_outputs; o != NULL; o = o->next)
        log_output_flush(o);
}

/* Frees the tables that are closing and the outputs that nobody names any more. */
static void close_tables(struct log_writer *w)
{
    struct log_output *unused = NULL;
    pthread_mutex_lock(&w->mutex);
    for (struct table **at = &w->tables; *at != NULL;) {
        struct table *t = *at;
        if (!t->closing) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        table_free(t);
    }
    for (struct log_output **at = &w->outputs; *at != NULL;) {
        struct log_output *o = *at;
        if (o->users > 0) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        o->next = unused;
        unused = o;
    }
    w->seen_tables = w->tables;
    w->seen_outputs = w->outputs;
    pthread_mutex_unlock(&w->mutex);
    free_outputs(unused);
}

static void round_once(struct log_writer *w)
{
    bool closing = look(w);
    bool emptied = empty_rings(w);
    flush_all(w);
    report_drops(w);
    if (closing && emptied)
        close_tables(w);
}

/* Until the next tick, a call, or a pipe that takes bytes again. */
static void wait_for_work(struct log_writer *w, int ms)
{
    struct pollfd p[1 + POLLED] = { { .fd = w->wake_fd, .events = POLLIN } };
    nfds_t n = 1;
    for (struct log_output *o = w->seen_outputs; o != NULL && n < ARRAY_LEN(p); o = o->next)
        if (o->n > 0)
            p[n++] = (struct pollfd){ .fd = o->fd, .events = POLLOUT };
    uint64_t calls;
    if (poll(p, n, ms) > 0 && p[0].revents != 0 && read(w->wake_fd, &calls, sizeof calls) < 0 && errno != EAGAIN)
        CHECK(errno == EINTR);
}

static void farewell(struct log_writer *w)
{
    uint64_t deadline = clock_monotonic_ms() + FAREWELL_MS;
    for (;;) {
        bool waiting = false;
        for (struct log_output *o = w->seen_outputs; o != NULL; o = o->next)
            waiting |= o->n > 0;
        if (!waiting || clock_monotonic_ms() >= deadline)
            break;
        wait_for_work(w, TICK_MS);
        flush_all(w);
    }
    w->drops_reported_ms = 0;
    report_drops(w);
    for (struct log_output *o = w->seen_outputs; o != NULL; o = o->next)
        if (o->lost > 0)
            log_write(LOG_WARN, "the log %.*s has lost %llu lines", STR_ARG(o->path), (unsigned long long)o->lost);
    round_once(w);
}

static void *run(void *arg)
{
    struct log_writer *w = arg;
    (void)pthread_setname_np(pthread_self(), "weir-log");
    for (bool stop = false; !stop;) {
        wait_for_work(w, TICK_MS);
        /* Asked before the round: what was put before the call goes where it belongs. */
        stop = atomic_load(&w->stop);
        bool reopen = atomic_exchange(&w->reopen, false);
        round_once(w);
        if (reopen) {
            for (struct log_output *o = w->seen_outputs; o != NULL; o = o->next)
                log_output_reopen(o);
            log_write(LOG_NOTICE, "logs reopened");
        }
    }
    farewell(w);
    return NULL;
}

static void wake(void *arg)
{
    const struct log_writer *w = arg;
    uint64_t one = 1;
    ssize_t ignored = write(w->wake_fd, &one, sizeof one);
    (void)ignored; /* full means it is awake already */
}

/* --- life --- */

static bool add_source(struct log_writer *w, struct log_ring *ring, int index)
{
    struct source *more = realloc(w->sources, (w->n_sources + 1) * sizeof *more);
    if (more == NULL)
        return false;
    w->sources = more;
    more[w->n_sources++] = (struct source){ .ring = ring, .index = index };
    ring->wake = wake;
    ring->wake_arg = w;
    return true;
}

bool log_writer_add_ring(struct log_writer *w, struct log_ring *ring, unsigned index)
{
    return add_source(w, ring, (int)index);
}

struct log_writer *log_writer_new(void)
{
    struct log_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_mutex_init(&w->own_mutex, NULL);
    atomic_init(&w->starting, true);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->own = log_ring_new(OWN_RING);
    if (w->wake_fd < 0 || w->own == NULL || !add_source(w, w->own, -1)) {
        int error = errno;
        if (w->wake_fd >= 0)
            (void)close(w->wake_fd);
        log_ring_free(w->own);
        free(w->sources);
        free(w);
        errno = error;
        return NULL;
    }
    tzset();
    log_set_sink(sink, w);
    return w;
}

bool log_writer_start(struct log_writer *w)
{
    int error = pthread_create(&w->thread, NULL, run, w);
    if (error != 0) {
        errno = error;
        return false;
    }
    w->runs = true;
    return true;
}

void log_writer_started(struct log_writer *w)
{
    atomic_store(&w->starting, false);
}

void log_writer_reopen(struct log_writer *w)
{
    atomic_store(&w->reopen, true);
    wake(w);
}

void log_writer_end(struct log_writer *w)
{
    if (w->runs) {
        atomic_store(&w->stop, true);
        wake(w);
        pthread_join(w->thread, NULL);
        w->runs = false;
    } else {
        round_once(w);
        farewell(w);
    }
}

void log_writer_free(struct log_writer *w)
{
    if (w == NULL)
        return;
    log_writer_end(w);
    log_set_sink(NULL, NULL);
    atomic_store(&error_fd, STDERR_FILENO);
    atomic_store(&error_style, LOG_STYLE_TEXT);
    while (w->tables != NULL) {
        struct table *t = w->tables;
        w->tables = t->next;
        table_free(t);
    }
    free_outputs(w->outputs);
    log_ring_free(w->own);
    (void)close(w->wake_fd);
    free(w->sources);
    free(w);
}
