/* SPDX-License-Identifier: MIT */
/*
 * Opened files of one loop: descriptor or bytes, validators and the ready-made header lines, so that a file asked for
 * again costs no system call. The cache is the only owner of an entry; whoever sends from its descriptor holds a
 * lease.
 */
#ifndef HANDLER_FILE_CACHE_H
#define HANDLER_FILE_CACHE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/list.h"
#include "handler/root.h"
#include "http/cond.h"
#include "serve/stored.h"

/* What tells one state of one file from another. */
struct file_id {
    dev_t dev;
    ino_t ino;
    int64_t size;
    int64_t mtime_ns, ctime_ns;
};

enum file_kind {
    FILE_BODY,   /* the bytes are in memory, no descriptor is held */
    FILE_OPEN,   /* a descriptor is held */
    FILE_ABSENT, /* nothing there; only remembered on request */
    FILE_KINDS,
};

struct file {
    uint32_t magic;
    enum file_kind kind;
    struct file *next; /* of the bucket */
    struct list lru;
    uint64_t hash;
    struct root *root;
    struct root *via;    /* the followed folder it lies in, NULL: beneath root */
    unsigned generation; /* root's when it was opened */
    unsigned leases;
    bool dropped;   /* no longer in the cache; freed with the last lease */
    bool unsettled; /* it was being written: look again before the next use */
    bool is_young;  /* its validators are weak */
    bool hash_in_name;
    bool says_expiry; /* the block has a Cache-Control: `expires` does not apply */
    bool has_sha1;    /* sha1 is that of the content; made by who needs it */
    unsigned char sha1[20];
    bool is_dense;        /* its type is compressed by nature */
    bool knows_siblings;  /* siblings has been looked up */
    uint8_t siblings;     /* file_sibling.c: a bit for each that is there */
    uint64_t siblings_ms; /* when that was looked up */
    uint64_t checked_ms; /* by its path */
    uint64_t looked_ms;  /* by its descriptor */
    uint64_t used_ms;
    uint64_t rebuild_ms; /* wall time from which it must be read again, though it looks the same; 0: none */
    struct file_id id;
    int fd;           /* FILE_OPEN */
    const char *body; /* FILE_BODY: id.size bytes; own allocation */
    struct stored stored; /* the same bytes, for the filters */
    struct validators validators;
    struct str block; /* "Content-Type: ...\r\n" and the other lines; see struct response */
    struct str type;  /* the value of Content-Type, within block */
    uint64_t mime_hash; /* of the table it is from */
    size_t type_line;   /* bytes of the first line: a 304 leaves it out */
    size_t coding_line; /* bytes of the second if that is Content-Encoding, as in the head of a sibling: likewise */
    struct str path;  /* below root; NUL-terminated */
};
#define FILE_MAGIC 0x46494c45u

/* What is looked for, when, under which settings. */
struct file_want {
    struct str root; /* NUL-terminated, as in struct action */
    uint64_t root_hash;
    struct str path; /* below the root, no leading slash; empty: the root itself */
    struct root_follow follow;
    bool may_be_absent; /* "not there" may be answered from memory for valid_ms */
    uint64_t now_ms, wall_ms;
    uint64_t entries, small, valid_ms; /* conf's file_cache */
    const struct map *mime;            /* conf's; NULL: the built-in types alone */
    uint64_t mime_hash;                /* another one makes entries anew */
};

struct file_cache;

/* max_open: descriptors it may hold at rest. NULL: out of memory. */
struct file_cache *file_cache_new(unsigned max_open) MUST_USE;
/* Entries under lease live on until they are released. */
void file_cache_free(struct file_cache *c);

/* Finds, checks, opens. 0: *out is valid until the next call on this cache, or as long as a lease is held. Otherwise
 * an errno: EISDIR a folder, ENODEV neither file nor folder, EXDEV a refused link, ENOENT and the rest as open(2). */
int file_cache_get(struct file_cache *c, const struct file_want *want, struct file **out) MUST_USE;
/* Is this path (may be empty) a folder? 0 or an errno. Nothing is remembered. */
int file_cache_folder(struct file_cache *c, const struct file_want *want) MUST_USE;

/* Opens what the path leads to; nothing is remembered. -1: errno. The descriptor is the caller's. */
int file_cache_open(struct file_cache *c, const struct file_want *want, int flags) MUST_USE;
/* What the path leads to now, if that is a regular file. 0 or an errno. Nothing is remembered. */
int file_cache_look(struct file_cache *c, const struct file_want *want, struct file_id *id) MUST_USE;

/* Keeps f and its descriptor until the lease is released. */
struct lease file_lease(struct file *f);

/* Lets go of what was not asked for in the last idle_ms: files somebody has deleted give their space back. */
void file_cache_sweep(struct file_cache *c, uint64_t now_ms, uint64_t idle_ms);
unsigned file_cache_count(const struct file_cache *c, enum file_kind kind);

#endif
