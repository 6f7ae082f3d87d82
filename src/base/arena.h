/* SPDX-License-Identifier: MIT */
/*
 * Arena: memory with one life. Many allocations, one reset. Used for a request, for a configuration.
 * Blocks come from a `struct block_pool` (a free list of equal blocks, one per loop) so that a request in steady
 * state calls no malloc; what does not fit into a block gets one of its own from malloc.
 * Sanitizer builds give each allocation its own malloc, so that an overrun or a use after reset is seen.
 * Not thread-safe: one arena and one pool belong to one thread.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>

#include "base/check.h"
#include "base/str.h"

/* A free list of equal blocks. Zero-initialise, then block_pool_init. */
struct block_pool {
    void *free;        /* chain through the first word of each block */
    size_t size;       /* bytes of each block */
    unsigned n_free;   /* blocks on the free list */
    unsigned max_free; /* more than this go back to malloc */
};

void block_pool_init(struct block_pool *pool, size_t block_size, unsigned max_free);
/* A block of pool->size bytes, uninitialised; NULL when memory is out. Owned by the caller until block_give. */
void *block_take(struct block_pool *pool) MUST_USE;
void block_give(struct block_pool *pool, void *block);
void block_pool_free(struct block_pool *pool);

struct arena_block;
struct arena {
    struct block_pool *pool;    /* where blocks come from; NULL: malloc of ARENA_BLOCK bytes */
    struct arena_block *blocks; /* newest first */
    char *at, *end;             /* the free part of the newest shared block */
};

enum { ARENA_BLOCK = 4096 };

/* Starts empty: an idle arena holds no memory. pool may be NULL. */
void arena_init(struct arena *a, struct block_pool *pool);
/* n bytes aligned to 16, uninitialised, valid until arena_reset; NULL when memory is out. */
void *arena_alloc(struct arena *a, size_t n) MUST_USE;
/* The same, zeroed. */
void *arena_zalloc(struct arena *a, size_t n) MUST_USE;
/* A copy with a NUL after it (not counted in n); p is NULL when memory is out. */
struct str arena_dup(struct arena *a, struct str s) MUST_USE;
/* Formatted copy; p is NULL when memory is out. */
struct str arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3) MUST_USE;
/* Gives every block back. Everything allocated from it is gone. */
void arena_reset(struct arena *a);

#define arena_new(a, type) ((type *)arena_zalloc((a), sizeof(type)))
#define arena_array(a, type, count) ((type *)arena_zalloc((a), sizeof(type) * (size_t)(count)))

#endif
