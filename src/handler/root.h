/* SPDX-License-Identifier: MIT */
/*
 * The folders files are served from, as one loop holds them open. What stands in the configuration is opened by its
 * path, links followed; everything below it is opened by the kernel's own rule (openat2, RESOLVE_BENEATH).
 */
#ifndef HANDLER_ROOT_H
#define HANDLER_ROOT_H

#include <sys/types.h>

#include "base/check.h"
#include "base/str.h"

enum {
    ROOT_BUCKETS = 64,
    ROOT_RECHECK_MS = 1000, /* the configured path is looked at again after this */
};

struct root {
    struct root *next; /* of the bucket */
    struct str path;   /* as configured; NUL-terminated, part of this allocation */
    uint64_t hash;     /* hash_bytes(path) */
    int fd;            /* O_PATH, a folder (or the file an alias names); -1: see error */
    int error;         /* why it could not be opened */
    dev_t dev;
    ino_t ino;
    uint64_t checked_ms, used_ms;
    unsigned
        generation; /* changes whenever the path leads to something else: what was opened through it before is void */
    unsigned users; /* who points here; it is freed by roots_sweep only at 0 */
};

struct roots {
    struct root *buckets[ROOT_BUCKETS];
};

/* Does this kernel offer openat2 to us? 0, or the errno (ENOSYS: older than Linux 5.6; EPERM: a sandbox forbids it).
 */
int root_probe(void);

/* The root of this configured path, up to date to ROOT_RECHECK_MS. Its fd may be -1. NULL: out of memory. Owned by
 * `roots`; stays valid until a roots_sweep unless users is counted up. */
struct root *root_get(struct roots *roots, struct str path, uint64_t hash, uint64_t now_ms) MUST_USE;

/* Links that lead out of a root may lead into these folders, each opened as a root of its own. */
struct root_follow {
    const struct str *folders;
    unsigned n;
};

/* Opens `path` (relative, NUL-terminated; empty: the root itself) beneath the root with these open flags; O_CLOEXEC
 * is added. *via: the followed folder it lies in, NULL if beneath the root itself. -1: errno; EXDEV is a refused
 * link, logged once. */
int root_open(struct roots *roots, struct root *root, struct str path, int flags, struct root_follow follow,
              uint64_t now_ms, struct root **via) MUST_USE;

/* Closes and frees roots without users that were not asked for in the last idle_ms. */
void roots_sweep(struct roots *roots, uint64_t now_ms, uint64_t idle_ms);
void roots_close(struct roots *roots);

#endif
