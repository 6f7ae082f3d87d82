/* SPDX-License-Identifier: MIT */
/*
 * The file cache of a loop. Owns entries, their descriptors and bytes; knows no request.
 *
 * Life of an entry: load() opens and reads it and puts it into the table; file_cache_get finds it, at most once per
 * valid_ms opens the path anew (O_PATH) to see that it still leads to the same state of the same file, and drops it
 * if not; drop() takes it out of the table and frees it, or leaves that to the last lease.
 *
 * Invariants. Head and bytes of an entry come from one descriptor between two equal fstats, so an old head never
 * meets a new body; a file of which only the descriptor is kept is fstat'ed before use for the same reason, as often
 * as timestamps can tell. Size, device, inode, mtime and ctime identify a state, but timestamps advance in steps of
 * milliseconds: an entry read within 2 s of a change is read again after that, once. Only small files are kept as
 * bytes, without descriptor. "Absent" is remembered only for those who can do without the file, and has a share of its
 * own, so that paths meant for a backend cannot push files out.
 *
 * ETag (RFC 9110 §8.8.3): XXH3 of the content up to 1 MB, else size and mtime in ns; weak while the mtime is younger
 * than 2 s. An mtime before 1990 is a packer's constant: no Last-Modified, and no ETag that is made of it. One in the
 * future makes no Last-Modified either (§8.8.2.1).
 *
 * An .svgz is an image that is stored gzipped: its head says so, to every client.
 */
#include "handler/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "handler/file_path.h"
#include "http/date.h"
#include "http/mime.h"

enum {
    HASHED_MAX = 1024 * 1024, /* larger files get an ETag from size and mtime */
    PIECE = 64 * 1024,
    READ_TRIES = 3,
    SETTLE_MS = 2000,
    TOUCH_MS = 1000, /* the order of use is kept to this */
    LOOK_MS = 5,     /* an open file's fstat; its timestamps are no finer */
    ABSENT_PATH = 512,
    MIN_BUCKETS = 64,
};
static const int64_t BORN_1990 = 631152000, LAST_SECOND = INT64_MAX / 1000000000;

struct file_cache {
    struct roots roots;
    struct file **buckets;
    size_t n_buckets;            /* a power of two */
    struct list lru[FILE_KINDS]; /* oldest first */
    unsigned n[FILE_KINDS];
    unsigned max_open;
};

struct file_cache *file_cache_new(unsigned max_open)
{
    struct file_cache *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->buckets = calloc(MIN_BUCKETS, sizeof(struct file *));
    if (!c->buckets) {
        free(c);
        return NULL;
    }
    c->n_buckets = MIN_BUCKETS;
    for (int i = 0; i < FILE_KINDS; i++)
        list_init(&c->lru[i]);
    c->max_open = max_open;
    return c;
}

static void file_free(struct file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free((void *)(uintptr_t)f->body);
    stored_free(&f->stored);
    f->magic = 0;
    free(f);
}

static void drop(struct file_cache *c, struct file *f)
{
    struct file **at = &c->buckets[f->hash & (c->n_buckets - 1)];
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    list_remove(&f->lru);
    c->n[f->kind]--;
    f->root->users--;
    if (f->via)
        f->via->users--;
    f->root = f->via = NULL;
    f->dropped = true;
    if (f->leases == 0)
        file_free(f);
}

static struct file *oldest(const struct file_cache *c, enum file_kind kind)
{
    return list_is_empty(&c->lru[kind]) ? NULL : list_entry(c->lru[kind].next, struct file, lru);
}

void file_cache_free(struct file_cache *c)
{
    if (!c)
        return;
    for (int i = 0; i < FILE_KINDS; i++)
        while (!list_is_empty(&c->lru[i]))
            drop(c, oldest(c, (enum file_kind)i));
    roots_close(&c->roots);
    free(c->buckets);
    free(c);
}

unsigned file_cache_count(const struct file_cache *c, enum file_kind kind)
{
    return c->n[kind];
}

static void release(void *arg)
{
    struct file *f = arg;
    MAGIC_CHECK(f, FILE_MAGIC);
    if (--f->leases == 0 && f->dropped)
        file_free(f);
}

struct lease file_lease(struct file *f)
{
    f->leases++;
    return (struct lease){ .release = release, .arg = f };
}

void file_cache_sweep(struct file_cache *c, uint64_t now_ms, uint64_t idle_ms)
{
    for (int i = 0; i < FILE_KINDS; i++) {
        struct file *f;
        while ((f = oldest(c, (enum file_kind)i)) != NULL && now_ms - f->used_ms >= idle_ms)
            drop(c, f);
    }
    roots_sweep(&c->roots, now_ms, idle_ms);
}

/* ---- the table ---- */

static struct file *find(const struct file_cache *c, const struct root *root, uint64_t hash, struct str path)
{
    struct file *f = c->buckets[hash & (c->n_buckets - 1)];
    while (f && !(f->hash == hash && f->root == root && str_eq(f->path, path)))
        f = f->next;
    return f;
}

/* Doubles the table; when memory is out it stays as it is, only slower. */
static void grow(struct file_cache *c)
{
    size_t n = c->n_buckets * 2;
    struct file **wider = calloc(n, sizeof(struct file *));
    if (!wider)
        return;
    for (size_t i = 0; i < c->n_buckets; i++) {
        for (struct file *f = c->buckets[i], *next; f; f = next) {
            next = f->next;
            f->next = wider[f->hash & (n - 1)];
            wider[f->hash & (n - 1)] = f;
        }
    }
    free(c->buckets);
    c->buckets = wider;
    c->n_buckets = n;
}

static void make_room(struct file_cache *c, enum file_kind kind, uint64_t entries)
{
    if (kind == FILE_ABSENT) {
        while (c->n[FILE_ABSENT] > 0 && c->n[FILE_ABSENT] >= entries / 8 + 1)
            drop(c, oldest(c, FILE_ABSENT));
        return;
    }
    while (kind == FILE_OPEN && c->n[FILE_OPEN] > 0 && c->n[FILE_OPEN] >= c->max_open)
        drop(c, oldest(c, FILE_OPEN));
    while (c->n[FILE_BODY] + c->n[FILE_OPEN] > 0 && c->n[FILE_BODY] + c->n[FILE_OPEN] >= entries) {
        struct file *body = oldest(c, FILE_BODY), *open = oldest(c, FILE_OPEN);
        drop(c, body && (!open || body->used_ms <= open->used_ms) ? body : open);
    }
}

static void insert(struct file_cache *c, struct file *f, uint64_t entries)
{
    make_room(c, f->kind, entries);
    if ((size_t)c->n[FILE_BODY] + c->n[FILE_OPEN] + c->n[FILE_ABSENT] >= c->n_buckets)
        grow(c);
    struct file **bucket = &c->buckets[f->hash & (c->n_buckets - 1)];
    f->next = *bucket;
    *bucket = f;
    list_append(&c->lru[f->kind], &f->lru);
    c->n[f->kind]++;
    f->root->users++;
    if (f->via)
        f->via->users++;
}

/* ---- reading a file ---- */

/* What was learnt of an opened file, before it is an entry. */
struct draft {
    struct file_id id;
    char *body; /* owned; NULL if it is not kept */
    bool has_sum, unsettled;
    XXH64_hash_t sum;
};

/* Beyond the years 1677 to 2262, which file systems can store, time stands still. */
static int64_t nanoseconds(struct timespec t)
{
    if (t.tv_sec >= LAST_SECOND)
        return (int64_t)LAST_SECOND * 1000000000;
    if (t.tv_sec <= -LAST_SECOND)
        return -(int64_t)LAST_SECOND * 1000000000;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct file_id id_of(const struct stat *st)
{
    return (struct file_id){ .dev = st->st_dev,
                             .ino = st->st_ino,
                             .size = st->st_size,
                             .mtime_ns = nanoseconds(st->st_mtim),
                             .ctime_ns = nanoseconds(st->st_ctim) };
}

static bool id_eq(const struct file_id *a, const struct file_id *b)
{
    return a->ino == b->ino && a->dev == b->dev && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

static int stat_regular(int fd, struct file_id *id)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return errno;
    *id = id_of(&st);
    return S_ISDIR(st.st_mode) ? EISDIR : S_ISREG(st.st_mode) ? 0 : ENODEV;
}

/* Reads `size` bytes, hashing them; to `whole` if it is given, else through a piece. 0, ENODATA (the file ends
 * before), or errno. */
static int read_all(int fd, int64_t size, char *whole, XXH64_hash_t *sum)
{
    XXH3_state_t *hash = XXH3_createState();
    char *piece = whole ? NULL : malloc(PIECE);
    int error = hash && (whole || piece) ? 0 : ENOMEM;
    if (hash)
        XXH3_64bits_reset(hash);
    for (int64_t at = 0; !error && at < size;) {
        int64_t left = size - at;
        ssize_t got = pread(fd, whole ? whole + at : piece, (size_t)(left < PIECE ? left : PIECE), (off_t)at);
        if (got > 0) {
            XXH3_64bits_update(hash, whole ? whole + at : piece, (size_t)got);
            at += got;
        } else if (got == 0) {
            error = ENODATA;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    if (!error)
        *sum = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    free(piece);
    return error;
}

static void forget_body(struct draft *d)
{
    free(d->body);
    d->body = NULL;
}

/* Reads what is to be kept of the file, again if it changed meanwhile. 0 or an errno. */
static int read_draft(int fd, uint64_t small, struct draft *d)
{
    for (int i = 0; i < READ_TRIES; i++) {
        int error = stat_regular(fd, &d->id);
        if (error)
            return error;
        bool keep = (uint64_t)d->id.size <= small;
        if (!keep && d->id.size > HASHED_MAX)
            return 0;
        if (keep && !(d->body = malloc((size_t)d->id.size + 1)))
            return ENOMEM;
        error = read_all(fd, d->id.size, d->body, &d->sum);
        struct file_id after;
        if (!error || error == ENODATA) {
            int again = stat_regular(fd, &after);
            if (again)
                error = again;
        }
        if (!error && id_eq(&d->id, &after)) {
            d->has_sum = d->id.size <= HASHED_MAX;
            return 0;
        }
        forget_body(d);
        if (error == ENODATA && id_eq(&d->id, &after))
            return ENODEV; /* it claims a size it does not have: a kernel's file, not a stored one */
        if (error && error != ENODATA)
            return error;
    }
    d->unsettled = true; /* somebody keeps writing to it: sent from the descriptor, as it is at that moment */
    return stat_regular(fd, &d->id);
}

/* ---- making an entry ---- */

/* The ETag's text into out; its length, 0 for none. */
static size_t print_etag(char *out, size_t cap, const struct draft *d, bool weak)
{
    const char *w = weak ? "W/" : "";
    int64_t modified = d->id.mtime_ns / 1000000000;
    int n = 0;
    if (d->has_sum)
        n = snprintf(out, cap, "%s\"%016" PRIx64 "\"", w, (uint64_t)d->sum);
    else if (modified >= BORN_1990 && modified < LAST_SECOND)
        n = snprintf(out, cap, "%s\"%" PRIx64 "-%" PRIx64 "\"", w, (uint64_t)d->id.size, (uint64_t)d->id.mtime_ns);
    return (size_t)n;
}

static bool is_recent(int64_t ns, uint64_t wall_ms)
{
    int64_t age = (int64_t)wall_ms - ns / 1000000;
    return age < SETTLE_MS && age > -SETTLE_MS;
}

static uint64_t settled_at(const struct file_id *id, uint64_t wall_ms)
{
    int64_t at = 0;
    if (is_recent(id->mtime_ns, wall_ms))
        at = id->mtime_ns / 1000000 + SETTLE_MS;
    if (is_recent(id->ctime_ns, wall_ms) && id->ctime_ns / 1000000 + SETTLE_MS > at)
        at = id->ctime_ns / 1000000 + SETTLE_MS;
    return (uint64_t)at;
}

/* Fills the entry's block, validators and type; `text` is where the block begins and has room for it. */
static void print_block(struct file *f, const struct draft *d, char *text, size_t cap, const struct file_want *want)
{
    struct str name = file_path_name(f->path.n ? f->path : f->root->path);
    struct str type = mime_find(want->mime, name);
    int64_t modified = d->id.mtime_ns / 1000000000;
    bool has_date = modified >= BORN_1990 && modified <= (int64_t)(want->wall_ms / 1000);
    char date[HTTP_DATE], etag[80];
    if (has_date)
        date_print(date, modified);
    size_t etag_n = print_etag(etag, sizeof(etag), d, f->is_young || d->unsettled);
    int head = snprintf(text, cap, "Content-Type: %.*s\r\n", STR_ARG(type));
    size_t n = (size_t)head;
    if (mime_is_stored_coded(name, type)) {
        f->coding_line = (size_t)snprintf(text + n, cap - n, "Content-Encoding: gzip\r\n");
        n += f->coding_line;
    }
    if (has_date)
        n += (size_t)snprintf(text + n, cap - n, "Last-Modified: %.*s\r\n", HTTP_DATE, date);
    size_t tag = n + sizeof("ETag: ") - 1;
    if (etag_n > 0)
        n += (size_t)snprintf(text + n, cap - n, "ETag: %.*s\r\n", (int)etag_n, etag);
    n += (size_t)snprintf(text + n, cap - n, "Accept-Ranges: bytes\r\n");
    f->block = str_of(text, n);
    f->type = str_of(text + sizeof("Content-Type: ") - 1, type.n);
    f->type_line = (size_t)head;
    f->is_dense = f->coding_line > 0 || mime_is_dense(type);
    f->validators = (struct validators){ .etag = etag_n ? str_of(text + tag, etag_n) : STR_NONE,
                                         .last_modified = has_date ? modified : -1 };
}

enum { BLOCK_MAX = 384 };

static struct file *new_entry(const struct file_want *want, struct root *root, uint64_t hash, size_t block)
{
    struct file *f = calloc(1, sizeof(*f) + want->path.n + 1 + block);
    if (!f)
        return NULL;
    MAGIC_SET(f, FILE_MAGIC);
    char *path = (char *)(f + 1);
    if (want->path.n > 0)
        memcpy(path, want->path.p, want->path.n);
    f->path = str_of(path, want->path.n);
    f->hash = hash;
    f->root = root;
    f->generation = root->generation;
    f->fd = -1;
    f->mime_hash = want->mime_hash;
    f->checked_ms = f->looked_ms = f->used_ms = want->now_ms;
    return f;
}

static int open_wanted(struct file_cache *c, const struct file_want *want, struct root *root, int flags,
                       struct root **via)
{
    char path[PATH_MAX];
    if (want->path.n >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (want->path.n > 0)
        memcpy(path, want->path.p, want->path.n);
    path[want->path.n] = '\0';
    return root_open(&c->roots, root, str_of(path, want->path.n), flags, want->follow, want->now_ms, via);
}

static void remember_absent(struct file_cache *c, const struct file_want *want, struct root *root, uint64_t hash)
{
    if (want->path.n > ABSENT_PATH)
        return;
    struct file *f = new_entry(want, root, hash, 0);
    if (!f)
        return;
    f->kind = FILE_ABSENT;
    insert(c, f, want->entries);
}

static int load(struct file_cache *c, const struct file_want *want, struct root *root, uint64_t hash,
                struct file **out)
{
    struct root *via;
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
    int fd = open_wanted(c, want, root, flags, &via);
    if (fd < 0 && errno == EMFILE && c->n[FILE_OPEN] > 0) {
        /* Rather lose what is kept for later than refuse what is asked for now. */
        drop(c, oldest(c, FILE_OPEN));
        fd = open_wanted(c, want, root, flags, &via);
    }
    if (fd < 0) {
        int error = errno;
        /* A folder that may be searched, not read, has files all the same. */
        if (error == EACCES && file_cache_folder(c, want) == 0)
            return EISDIR;
        if (want->may_be_absent && want->entries > 0 && (error == ENOENT || error == ENOTDIR))
            remember_absent(c, want, root, hash);
        return error;
    }
    struct draft d = { .body = NULL };
    int error = read_draft(fd, want->small, &d);
    struct file *f = error ? NULL : new_entry(want, root, hash, BLOCK_MAX);
    if (!f) {
        forget_body(&d);
        close(fd);
        return error ? error : ENOMEM;
    }
    f->kind = d.body ? FILE_BODY : FILE_OPEN;
    f->via = via;
    f->id = d.id;
    f->unsettled = d.unsettled;
    f->is_young = is_recent(d.id.mtime_ns, want->wall_ms);
    f->rebuild_ms = settled_at(&d.id, want->wall_ms);
    f->hash_in_name = file_path_has_hash(file_path_name(f->path));
    f->body = d.body;
    f->stored.length = (uint64_t)d.id.size;
    f->stored.body = str_of(d.body, d.body ? (size_t)d.id.size : 0);
    if (d.body)
        close(fd);
    else
        f->fd = fd;
    print_block(f, &d, (char *)(f + 1) + f->path.n + 1, BLOCK_MAX, want);
    insert(c, f, want->entries ? want->entries : 1);
    *out = f;
    return 0;
}

/* ---- finding ---- */

static bool is_followed(const struct file_want *want, const struct root *via)
{
    for (unsigned i = 0; i < want->follow.n; i++)
        if (str_eq(want->follow.folders[i], via->path))
            return true;
    return false;
}

/* Does the path still lead to the state that is remembered? */
static bool is_same(struct file_cache *c, const struct file_want *want, const struct file *f)
{
    struct root *via;
    int fd = open_wanted(c, want, f->root, O_PATH, &via);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE; /* not to be found out now; what is known is better than a 503 */
    struct file_id now;
    bool same = stat_regular(fd, &now) == 0 && via == f->via && id_eq(&now, &f->id);
    close(fd);
    return same;
}

/* May it be used for this? Looks at the file system when it is time to. */
static bool is_usable(struct file_cache *c, const struct file_want *want, struct file *f)
{
    if (f->generation != f->root->generation || f->unsettled || f->mime_hash != want->mime_hash)
        return false;
    bool fresh = want->now_ms - f->checked_ms < want->valid_ms && want->entries > 0;
    if (f->kind == FILE_ABSENT)
        return fresh && want->may_be_absent;
    if (UNLIKELY(f->via != NULL) && !is_followed(want, f->via))
        return false;
    if (UNLIKELY(f->rebuild_ms != 0) && want->wall_ms >= f->rebuild_ms)
        return false;
    if (UNLIKELY(!fresh)) {
        f->checked_ms = f->looked_ms = want->now_ms;
        return is_same(c, want, f);
    }
    if (f->kind == FILE_BODY || want->now_ms - f->looked_ms < LOOK_MS)
        return true;
    f->looked_ms = want->now_ms;
    struct file_id now;
    return stat_regular(f->fd, &now) == 0 && id_eq(&now, &f->id);
}

int file_cache_get(struct file_cache *c, const struct file_want *want, struct file **out)
{
    struct root *root = root_get(&c->roots, want->root, want->root_hash, want->now_ms);
    if (UNLIKELY(!root))
        return ENOMEM;
    if (UNLIKELY(root->fd < 0))
        return root->error;
    uint64_t hash = XXH3_64bits_withSeed(want->path.n ? want->path.p : "", want->path.n, want->root_hash);
    struct file *f = find(c, root, hash, want->path);
    if (f && LIKELY(is_usable(c, want, f))) {
        if (want->now_ms - f->used_ms >= TOUCH_MS) {
            f->used_ms = want->now_ms;
            list_remove(&f->lru);
            list_append(&c->lru[f->kind], &f->lru);
        }
        *out = f;
        return f->kind == FILE_ABSENT ? ENOENT : 0;
    }
    if (f)
        drop(c, f);
    return load(c, want, root, hash, out);
}

int file_cache_open(struct file_cache *c, const struct file_want *want, int flags)
{
    struct root *root = root_get(&c->roots, want->root, want->root_hash, want->now_ms), *via;
    if (!root || root->fd < 0) {
        errno = root ? root->error : ENOMEM;
        return -1;
    }
    return open_wanted(c, want, root, flags, &via);
}

int file_cache_folder(struct file_cache *c, const struct file_want *want)
{
    int fd = file_cache_open(c, want, O_PATH | O_DIRECTORY);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

int file_cache_look(struct file_cache *c, const struct file_want *want, struct file_id *id)
{
    int fd = file_cache_open(c, want, O_PATH);
    if (fd < 0)
        return errno;
    int error = stat_regular(fd, id);
    close(fd);
    return error;
}
