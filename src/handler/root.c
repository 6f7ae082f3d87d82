/* SPDX-License-Identifier: MIT */
/*
 * Roots. Owns the descriptors of configured folders; knows nothing of requests or of what is done with an opened
 * file.
 *
 * Life: made by the first root_get for a path, looked at again once a second, freed when idle and without users. A
 * held descriptor would serve a swapped or deleted release for ever, so the configured path is stat'ed anew; another
 * device or inode means another root, and `generation` tells those who remember what they opened through it. The
 * inode of the held folder cannot be given to another one meanwhile, because the descriptor pins it.
 *
 * No path below a root is checked as a string: RESOLVE_BENEATH makes the kernel refuse every step out of it (EXDEV),
 * absolute links included. A link into a `follow` folder is resolved by realpath(3), which opens nothing, and the
 * result is opened beneath that folder with RESOLVE_NO_SYMLINKS: whatever changes in between, the file opened lies
 * beneath a folder the operator named.
 */
#include "handler/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"

enum {
    OPEN_TRIES = 8,
    REFUSED_MAX = 64, /* refused links that are logged; whoever has more knows by then */
};

static int open_beneath(int dir, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
    };
    /* EAGAIN: a rename somewhere made the kernel unsure about a ".." of a link; it asks to be called again. */
    for (int i = 0; i < OPEN_TRIES; i++) {
        long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            return (int)fd;
    }
    return -1;
}

int root_probe(void)
{
    int fd = open_beneath(AT_FDCWD, ".", O_PATH, 0);
    if (fd >= 0)
        close(fd);
    return fd < 0 && (errno == ENOSYS || errno == EPERM) ? errno : 0;
}

static struct root *root_new(struct str path, uint64_t hash)
{
    struct root *root = calloc(1, sizeof(*root) + path.n + 1);
    if (!root)
        return NULL;
    char *copy = (char *)(root + 1);
    memcpy(copy, path.p, path.n);
    root->path = str_of(copy, path.n);
    root->hash = hash;
    root->fd = -1;
    return root;
}

static void root_fail(struct root *root, int error)
{
    if (error != root->error)
        log_write(LOG_ERROR, "root %.*s: %s", STR_ARG(root->path), strerror(error));
    root->error = error;
}

/* Makes fd what the configured path leads to now. */
static void root_look(struct root *root)
{
    struct stat st;
    int error = stat(root->path.p, &st) < 0 ? errno : 0;
    if (!error && root->fd >= 0 && st.st_dev == root->dev && st.st_ino == root->ino)
        return;
    if (root->fd >= 0) {
        close(root->fd);
        root->fd = -1;
        root->generation++;
    }
    if (!error)
        root->fd = open(root->path.p, O_PATH | O_CLOEXEC);
    if (!error && (root->fd < 0 || fstat(root->fd, &st) < 0))
        error = errno;
    if (error) {
        if (root->fd >= 0)
            close(root->fd);
        root->fd = -1;
        root_fail(root, error);
        return;
    }
    root->error = 0;
    root->dev = st.st_dev;
    root->ino = st.st_ino;
}

struct root *root_get(struct roots *roots, struct str path, uint64_t hash, uint64_t now_ms)
{
    struct root **bucket = &roots->buckets[hash % ROOT_BUCKETS];
    struct root *root = *bucket;
    while (root && !(root->hash == hash && str_eq(root->path, path)))
        root = root->next;
    if (!root) {
        root = root_new(path, hash);
        if (!root)
            return NULL;
        root->next = *bucket;
        *bucket = root;
    }
    root->used_ms = now_ms;
    if (UNLIKELY(root->fd < 0 || now_ms - root->checked_ms >= ROOT_RECHECK_MS)) {
        root->checked_ms = now_ms;
        root_look(root);
    }
    return root;
}

/* Once for each link, whichever loop meets it. */
static void log_refused(const struct root *root, struct str path)
{
    static _Atomic uint64_t known[REFUSED_MAX];
    uint64_t hash = hash_bytes(path) ^ root->hash;
    uint64_t seen = 0;
    for (unsigned i = 0; !atomic_compare_exchange_strong(&known[i], &seen, hash); seen = 0)
        if (seen == hash || ++i == REFUSED_MAX)
            return;
    char text[512];
    size_t n = log_escape(text, sizeof(text), path);
    log_write(LOG_WARN,
              "%.*s/%.*s: a link leads out of the root and is not served; name the folder it leads to in `follow`",
              root->path.n > 1 ? (int)root->path.n : 0, root->path.p, (int)n, text);
}

/* The part of `real` beneath the folder that `follow` leads to; p is NULL if it lies elsewhere. */
static struct str beneath(struct str folder, const char *real)
{
    char at[PATH_MAX];
    if (!realpath(folder.p, at))
        return STR_NONE;
    size_t n = strlen(at);
    if (n == 1)
        n = 0; /* "/": its slash is the one that follows */
    if (strncmp(real, at, n) != 0 || (real[n] != '/' && real[n] != '\0'))
        return STR_NONE;
    return str_c(real[n] == '/' && real[n + 1] != '\0' ? real + n + 1 : ".");
}

/* Opens what a link out of the root leads to, if that lies beneath a followed folder. -1: errno. */
static int open_followed(struct roots *roots, const struct root *root, struct str path, int flags,
                         struct root_follow follow, uint64_t now_ms, struct root **via)
{
    char text[PATH_MAX], real[PATH_MAX];
    if (root->path.n + 1 + path.n >= sizeof(text)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(text, root->path.p, root->path.n);
    text[root->path.n] = '/';
    memcpy(text + root->path.n + 1, path.p, path.n);
    text[root->path.n + 1 + path.n] = '\0';
    if (!realpath(text, real))
        return -1;
    for (unsigned i = 0; i < follow.n; i++) {
        struct root *folder = root_get(roots, follow.folders[i], hash_bytes(follow.folders[i]), now_ms);
        if (!folder || folder->fd < 0)
            continue;
        struct str rest = beneath(folder->path, real);
        if (!rest.p)
            continue;
        *via = folder;
        return open_beneath(folder->fd, rest.p, flags, RESOLVE_NO_SYMLINKS);
    }
    errno = EXDEV;
    return -1;
}

int root_open(struct roots *roots, struct root *root, struct str path, int flags, struct root_follow follow,
              uint64_t now_ms, struct root **via)
{
    *via = NULL;
    if (path.n == 0) /* the operator's own path: a folder, or the one file of an alias */
        return open(root->path.p, flags | O_CLOEXEC);
    int fd = open_beneath(root->fd, path.p, flags, 0);
    if (fd >= 0 || errno != EXDEV)
        return fd;
    if (follow.n > 0)
        fd = open_followed(roots, root, path, flags, follow, now_ms, via);
    if (fd < 0 && errno == EXDEV) {
        log_refused(root, path);
        errno = EXDEV;
    }
    return fd;
}

static void root_free(struct root *root)
{
    if (root->fd >= 0)
        close(root->fd);
    free(root);
}

void roots_sweep(struct roots *roots, uint64_t now_ms, uint64_t idle_ms)
{
    for (size_t i = 0; i < ROOT_BUCKETS; i++) {
        for (struct root **at = &roots->buckets[i]; *at;) {
            struct root *root = *at;
            if (root->users > 0 || now_ms - root->used_ms < idle_ms) {
                at = &root->next;
                continue;
            }
            *at = root->next;
            root_free(root);
        }
    }
}

void roots_close(struct roots *roots)
{
    for (size_t i = 0; i < ROOT_BUCKETS; i++) {
        for (struct root *root = roots->buckets[i], *next; root; root = next) {
            next = root->next;
            root_free(root);
        }
        roots->buckets[i] = NULL;
    }
}
