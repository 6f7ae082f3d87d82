/* SPDX-License-Identifier: MIT */
/*
 * Bundles. Owns one object for each path that a configuration names, their manifests, and the thread that watches them.
 *
 * Life of a bundle: made by prepare (or by the first view), looked at every LOOK_MS by the thread, freed when it is
 * neither pinned by the latest configuration nor viewed. Life of a manifest: parsed whole on the thread, then put in
 * force under the lock; a loop that sees the generation move takes the new one and lets go of the old one; the
 * thread frees what nobody holds. So loops never wait for a disk or a parser, and no request counts anything.
 *
 * A change is told by the identity of the program.json files as their paths lead to them now: a rewritten one, a
 * renamed folder and a swapped release link all show. A set is taken only if every program of it could be read; else
 * the reason is logged, once for that state, and the last good set stays. A file written within the last two seconds
 * may change again without showing it, so it is read once more after that.
 *
 * The folder of a program is resolved once per set and gets a root of its own in the file cache (root_hash differs from
 * set to set): no file opened for an older set is ever sent with the head of a newer one.
 *
 * Locking: `bundles.reading` is held by whoever looks and reads: one at a time, and no bundle goes meanwhile.
 * `bundles.lock`, taken after it and never over a disk, guards the list, the users, and who holds which manifest.
 */
#include "handler/meteor_bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum {
    LOOK_MS = 250,
    SETTLE_MS = 2000,
    JSON_MAX = 16 * 1024 * 1024, /* a large app has 1 MB */
    NAME_LEN = 64,
};

/* One program.json as it was found. */
struct seen {
    char name[NAME_LEN];
    dev_t dev;
    ino_t ino;
    int64_t size, mtime_ns, ctime_ns;
};

struct sight {
    struct seen v[METEOR_PROGRAMS_MAX];
    unsigned n;
    int error; /* why there is none */
};

struct meteor_bundle {
    struct meteor_bundle *next;
    atomic_uint generation; /* moves with every new manifest */
    struct meteor_manifest *manifest;
    unsigned views;
    bool pinned; /* the latest configuration names it */
    bool was_seen;
    struct sight sight;    /* the state that was read last, taken or refused */
    uint64_t again_ms;     /* wall time from which that state is read once more; 0: it is settled */
    uint64_t text_hash;    /* of what was read */
    uint64_t hash;         /* of path */
    struct str path;       /* NUL-terminated, part of this allocation */
};

static struct {
    pthread_mutex_t lock;
    pthread_mutex_t reading;
    pthread_cond_t wake;
    struct meteor_bundle *first;
    unsigned users;
    bool is_watching, stop;
    pthread_t thread;
    uint64_t serial; /* of manifests */
    struct meteor_manifest *retired;
} bundles = { .lock = PTHREAD_MUTEX_INITIALIZER, .reading = PTHREAD_MUTEX_INITIALIZER };

/* ---- looking ---- */

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct seen seen_of(const struct stat *st)
{
    return (struct seen){ .dev = st->st_dev,
                          .ino = st->st_ino,
                          .size = st->st_size,
                          .mtime_ns = nanoseconds(st->st_mtim),
                          .ctime_ns = nanoseconds(st->st_ctim) };
}

static bool is_same_file(const struct seen *a, const struct seen *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

static bool is_same_sight(const struct sight *a, const struct sight *b)
{
    if (a->n != b->n || a->error != b->error)
        return false;
    for (unsigned i = 0; i < a->n; i++)
        if (strcmp(a->v[i].name, b->v[i].name) != 0 || !is_same_file(&a->v[i], &b->v[i]))
            return false;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct seen *)a)->name, ((const struct seen *)b)->name);
}

/* "PATH/programs", or with a name "PATH/programs/NAME/program.json". False: too long. */
static bool print_path(char out[PATH_MAX], struct str path, const char *name, const char *file)
{
    int n = snprintf(out, PATH_MAX, "%.*s/programs%s%s%s", path.n > 1 ? (int)path.n : 0, path.p, *name ? "/" : "",
                     name, file);
    return n > 0 && n < PATH_MAX;
}

/* Which programs are there now? Those for clients are called web.SOMETHING. */
static void look(struct str path, struct sight *s)
{
    char at[PATH_MAX];
    s->n = 0;
    s->error = 0;
    DIR *dir = print_path(at, path, "", "") ? opendir(at) : NULL;
    if (dir == NULL) {
        s->error = errno;
        return;
    }
    struct dirent *d;
    while ((d = readdir(dir)) != NULL && s->n < METEOR_PROGRAMS_MAX) {
        struct stat st;
        struct str name = str_c(d->d_name);
        if (!str_starts(name, STR("web.")) || name.n >= NAME_LEN ||
            !print_path(at, path, d->d_name, "/program.json") || stat(at, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        s->v[s->n] = seen_of(&st);
        memcpy(s->v[s->n++].name, name.p, name.n + 1);
    }
    closedir(dir);
    qsort(s->v, s->n, sizeof *s->v, by_name);
    if (s->n == 0)
        s->error = ENOENT;
}

/* ---- reading ---- */

/* The whole file, as it was seen. 0 and *text is the caller's to free, or an errno; ESTALE: it is another one now. */
static int read_file(const char *path, const struct seen *expected, struct str *text)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = fstat(fd, &st) < 0 ? errno : 0;
    struct seen now = seen_of(&st);
    if (!error && !is_same_file(&now, expected))
        error = ESTALE;
    if (!error && st.st_size > JSON_MAX)
        error = EFBIG;
    char *p = error ? NULL : malloc((size_t)st.st_size + 1);
    size_t n = 0;
    if (!error && p == NULL)
        error = ENOMEM;
    while (!error && n < (size_t)st.st_size) {
        ssize_t got = read(fd, p + n, (size_t)st.st_size - n);
        if (got > 0)
            n += (size_t)got;
        else if (got == 0)
            error = ESTALE;
        else if (errno != EINTR)
            error = errno;
    }
    close(fd);
    if (error) {
        free(p);
        return error;
    }
    *text = str_of(p, n);
    return 0;
}

/* What is wrong, for the log; empty: the state changed under way and will be looked at again. */
static struct str describe(struct meteor_manifest *m, const char *file, int error)
{
    if (error == ESTALE)
        return STR_NONE;
    struct str text = arena_printf(&m->arena, "%s: %s", file,
                                   error == EFBIG ? "larger than 16 MB, which no manifest is" : strerror(error));
    return text.p != NULL ? text : STR("out of memory");
}

static bool read_program(struct meteor_manifest *m, struct str path, const struct seen *s, uint64_t serial,
                         uint64_t *text_hash, struct str *reason)
{
    char file[PATH_MAX], folder[PATH_MAX], real[PATH_MAX];
    struct str json, why;
    if (!print_path(file, path, s->name, "/program.json") || !print_path(folder, path, s->name, "")) {
        *reason = describe(m, "the path of the bundle", ENAMETOOLONG);
        return false;
    }
    int error = realpath(folder, real) == NULL ? errno : read_file(file, s, &json);
    if (error) {
        *reason = describe(m, file, error);
        return false;
    }
    *text_hash = *text_hash * 31 + hash_bytes(json) + hash_bytes(str_c(real));
    uint64_t root_hash = hash_bytes(str_c(real)) ^ (serial * 0x9e3779b97f4a7c15u);
    bool is_read = meteor_manifest_add(m, str_c(s->name), str_c(real), root_hash, json, &why);
    free((void *)(uintptr_t)json.p);
    if (!is_read)
        *reason = arena_printf(&m->arena, "%s: %.*s", file, STR_ARG(why));
    return is_read;
}

static void log_left_out(struct str path, const struct meteor_manifest *m)
{
    for (unsigned i = 0; i < m->n_programs; i++) {
        const struct meteor_program *p = &m->programs[i];
        char text[600];
        size_t n = log_escape(text, sizeof text, p->left_out);
        if (p->n_left_out > 0)
            log_write(LOG_WARN, "%.*s/programs/%.*s/program.json: %u entries are no files below its folder, the first "
                                "is %.*s",
                      STR_ARG(path), STR_ARG(p->name), p->n_left_out, (int)n, text);
    }
}

/* A manifest of this state; NULL: it cannot be had, *retry says whether that is worth another look. */
static struct meteor_manifest *read_all(struct str path, const struct sight *s, uint64_t serial, uint64_t *text_hash,
                                        bool *retry)
{
    struct meteor_manifest *m = meteor_manifest_new();
    struct str reason = STR_NONE;
    *text_hash = 1;
    *retry = m == NULL;
    if (m == NULL)
        return NULL;
    for (unsigned i = 0; i < s->n; i++) {
        if (read_program(m, path, &s->v[i], serial, text_hash, &reason))
            continue;
        *retry = reason.n == 0;
        char text[600];
        size_t n = log_escape(text, sizeof text, reason);
        if (reason.n > 0)
            log_write(LOG_ERROR, "meteor_bundle %.*s is not taken: %.*s", STR_ARG(path), (int)n, text);
        meteor_manifest_free(m);
        return NULL;
    }
    return m;
}

/* ---- putting in force ---- */

/* Taking a manifest apart is no work for a loop: it is only put aside. Under `lock`. */
static void release(struct meteor_manifest *m)
{
    if (m == NULL || --m->holders > 0)
        return;
    m->next = bundles.retired;
    bundles.retired = m;
}

static void free_retired(void)
{
    pthread_mutex_lock(&bundles.lock);
    struct meteor_manifest *m = bundles.retired;
    bundles.retired = NULL;
    pthread_mutex_unlock(&bundles.lock);
    while (m != NULL) {
        struct meteor_manifest *next = m->next;
        meteor_manifest_free(m);
        m = next;
    }
}

static uint64_t settles_at(const struct sight *s, uint64_t wall_ms)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->v[i].ctime_ns / 1000000 + SETTLE_MS > (int64_t)wall_ms)
            return wall_ms + SETTLE_MS;
    return 0;
}

/* Looks at a bundle and reads it if it changed. Under `reading`, not under `lock`: the bundle cannot go meanwhile. */
static void refresh(struct meteor_bundle *b)
{
    struct sight now;
    uint64_t wall_ms = clock_wall_ms(), text_hash;
    bool retry;
    look(b->path, &now);
    bool is_changed = !b->was_seen || !is_same_sight(&now, &b->sight);
    bool is_due = b->again_ms != 0 && wall_ms >= b->again_ms;
    if (!is_changed && !is_due)
        return;
    if (now.n == 0) {
        if (is_changed)
            log_write(LOG_ERROR, "meteor_bundle %.*s: no programs/web.*/program.json in it: %s%s", STR_ARG(b->path),
                      strerror(now.error), b->manifest != NULL ? "; what was read before stays in force" : "");
        b->sight = now;
        b->was_seen = true;
        b->again_ms = 0;
        return;
    }
    struct meteor_manifest *m = read_all(b->path, &now, ++bundles.serial, &text_hash, &retry);
    if (m == NULL && retry)
        return;
    b->sight = now;
    b->was_seen = true;
    b->again_ms = is_changed ? settles_at(&now, wall_ms) : 0;
    if (m == NULL)
        return;
    if (b->manifest != NULL && text_hash == b->text_hash && is_due && !is_changed) {
        meteor_manifest_free(m);
        return;
    }
    unsigned n = 0;
    for (unsigned i = 0; i < m->n_programs; i++)
        n += m->programs[i].n_entries;
    log_left_out(b->path, m);
    log_write(LOG_NOTICE, "meteor_bundle %.*s: %u files of %u programs", STR_ARG(b->path), n, m->n_programs);
    m->holders = 1;
    pthread_mutex_lock(&bundles.lock);
    release(b->manifest);
    b->manifest = m;
    b->text_hash = text_hash;
    atomic_fetch_add_explicit(&b->generation, 1, memory_order_release);
    pthread_mutex_unlock(&bundles.lock);
}

static void bundle_free(struct meteor_bundle *b)
{
    release(b->manifest);
    free(b);
}

/* Takes out what nobody names or uses. Under both locks. */
static void forget_unused(void)
{
    for (struct meteor_bundle **at = &bundles.first; *at != NULL;) {
        struct meteor_bundle *b = *at;
        if (b->pinned || b->views > 0) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        bundle_free(b);
    }
}

/* ---- watching ---- */

static void *watch(void *arg)
{
    (void)arg;
    (void)pthread_setname_np(pthread_self(), "weir-meteor");
    pthread_mutex_lock(&bundles.lock);
    while (!bundles.stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_MS * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&bundles.wake, &bundles.lock, &until);
        if (bundles.stop)
            break;
        pthread_mutex_unlock(&bundles.lock);
        pthread_mutex_lock(&bundles.reading);
        /* New ones are put in front, and none is freed without `reading`. */
        pthread_mutex_lock(&bundles.lock);
        struct meteor_bundle *b = bundles.first;
        pthread_mutex_unlock(&bundles.lock);
        for (; b != NULL; b = b->next)
            refresh(b);
        pthread_mutex_unlock(&bundles.reading);
        free_retired();
        pthread_mutex_lock(&bundles.lock);
    }
    pthread_mutex_unlock(&bundles.lock);
    return NULL;
}

/* Under `lock`. Without a thread the bundles stay as they are, which is said. */
static void start_watching(void)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    if (bundles.is_watching)
        return;
    bundles.stop = false;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&bundles.wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&bundles.thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    bundles.is_watching = error == 0;
    if (error)
        log_write(LOG_ERROR, "meteor bundles are not watched, a deployment needs a restart: %s", strerror(error));
}

void meteor_bundles_enter(void)
{
    pthread_mutex_lock(&bundles.lock);
    bundles.users++;
    pthread_mutex_unlock(&bundles.lock);
}

void meteor_bundles_leave(void)
{
    pthread_mutex_lock(&bundles.lock);
    bool is_last = --bundles.users == 0;
    bool is_watching = is_last && bundles.is_watching;
    if (is_watching) {
        bundles.stop = true;
        pthread_cond_signal(&bundles.wake);
    }
    pthread_mutex_unlock(&bundles.lock);
    if (is_watching) {
        pthread_join(bundles.thread, NULL);
        pthread_cond_destroy(&bundles.wake);
        bundles.is_watching = false;
    }
    if (!is_last)
        return;
    pthread_mutex_lock(&bundles.lock);
    for (struct meteor_bundle *b = bundles.first; b != NULL; b = b->next)
        b->pinned = false;
    forget_unused();
    pthread_mutex_unlock(&bundles.lock);
    free_retired();
}

/* Finds or makes it. Under `lock`. */
static struct meteor_bundle *bundle_of(struct str path, uint64_t hash)
{
    struct meteor_bundle *b = bundles.first;
    while (b != NULL && !(b->hash == hash && str_eq(b->path, path)))
        b = b->next;
    if (b != NULL)
        return b;
    b = calloc(1, sizeof *b + path.n + 1);
    if (b == NULL)
        return NULL;
    char *copy = (char *)(b + 1);
    memcpy(copy, path.p, path.n);
    b->path = str_of(copy, path.n);
    b->hash = hash;
    b->next = bundles.first;
    bundles.first = b;
    start_watching();
    return b;
}

void meteor_bundles_prepare(const struct conf *c)
{
    pthread_mutex_lock(&bundles.reading);
    pthread_mutex_lock(&bundles.lock);
    for (struct meteor_bundle *b = bundles.first; b != NULL; b = b->next)
        b->pinned = false;
    for (unsigned i = 0; i < c->n_sites; i++)
        for (unsigned j = 0; j < c->sites[i]->n_all; j++)
            for (unsigned k = 0; k < c->sites[i]->all[j]->n_actions; k++) {
                const struct action *a = c->sites[i]->all[j]->actions[k];
                struct meteor_bundle *b =
                    a->kind == ACTION_METEOR ? bundle_of(a->u.meteor.bundle, a->u.meteor.hash) : NULL;
                if (b != NULL)
                    b->pinned = true;
            }
    forget_unused();
    struct meteor_bundle *b = bundles.first;
    pthread_mutex_unlock(&bundles.lock);
    for (; b != NULL; b = b->next)
        if (!b->was_seen)
            refresh(b);
    pthread_mutex_unlock(&bundles.reading);
}

/* ---- views ---- */

struct meteor_view *meteor_view_open(struct str path, uint64_t hash)
{
    struct meteor_view *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    pthread_mutex_lock(&bundles.lock);
    v->bundle = bundle_of(path, hash);
    v->hash = hash;
    if (v->bundle != NULL) {
        v->bundle->views++;
        v->seen = atomic_load_explicit(&v->bundle->generation, memory_order_relaxed) - 1; /* not the one in force */
    }
    pthread_mutex_unlock(&bundles.lock);
    if (v->bundle == NULL) {
        free(v);
        return NULL;
    }
    pthread_mutex_lock(&bundles.reading);
    if (!v->bundle->was_seen) /* nobody prepared it */
        refresh(v->bundle);
    pthread_mutex_unlock(&bundles.reading);
    return v;
}

void meteor_view_close(struct meteor_view *v)
{
    pthread_mutex_lock(&bundles.lock);
    release(v->manifest);
    v->bundle->views--; /* the next prepare forgets the bundle, or the last loop that leaves */
    pthread_mutex_unlock(&bundles.lock);
    free(v);
}

struct str meteor_view_path(const struct meteor_view *v)
{
    return v->bundle->path;
}

const struct meteor_manifest *meteor_view_get(struct meteor_view *v)
{
    unsigned now = atomic_load_explicit(&v->bundle->generation, memory_order_acquire);
    if (LIKELY(now == v->seen))
        return v->manifest;
    pthread_mutex_lock(&bundles.lock);
    release(v->manifest);
    v->manifest = v->bundle->manifest;
    if (v->manifest != NULL)
        v->manifest->holders++;
    v->seen = atomic_load_explicit(&v->bundle->generation, memory_order_relaxed);
    pthread_mutex_unlock(&bundles.lock);
    return v->manifest;
}
