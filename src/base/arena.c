/* SPDX-License-Identifier: MIT */
/*
 * Arenas and the pools their blocks come from.
 * An arena owns its blocks from the first allocation to arena_reset; a pool owns only the blocks on its free list.
 * Blocks have a 16-byte head, so what follows is as aligned as malloc's own result.
 * In sanitizer builds each piece is a block of its own and pools are malloc: a free list would hide every overrun and
 * every use after reset from the sanitizer.
 */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

struct arena_block {
    struct arena_block *next;
    bool is_pooled;
    _Alignas(16) char data[];
};
_Static_assert(sizeof(struct arena_block) == 16, "data starts at the alignment promised");

void block_pool_init(struct block_pool *pool, size_t block_size, unsigned max_free)
{
    CHECK(block_size >= sizeof(void *));
    *pool = (struct block_pool){ .size = block_size, .max_free = max_free };
}

void *block_take(struct block_pool *pool)
{
    void *block = pool->free;
    if (block == NULL)
        return malloc(pool->size);
    memcpy(&pool->free, block, sizeof pool->free);
    pool->n_free--;
    return block;
}

void block_give(struct block_pool *pool, void *block)
{
    if (block == NULL)
        return;
    if (WEIR_SANITIZER || pool->n_free >= pool->max_free) {
        free(block);
        return;
    }
    memcpy(block, &pool->free, sizeof pool->free);
    pool->free = block;
    pool->n_free++;
}

void block_pool_free(struct block_pool *pool)
{
    while (pool->free != NULL) {
        void *block = pool->free;
        memcpy(&pool->free, block, sizeof pool->free);
        free(block);
    }
    pool->n_free = 0;
}

void arena_init(struct arena *a, struct block_pool *pool)
{
    CHECK(pool == NULL || pool->size > sizeof(struct arena_block));
    *a = (struct arena){ .pool = pool };
}

/* A piece with a block of its own; the free part of the last shared one stays in use. */
static void *alloc_alone(struct arena *a, size_t n)
{
    if (n > SIZE_MAX - sizeof(struct arena_block))
        return NULL;
    struct arena_block *block = malloc(sizeof *block + n);
    if (block == NULL)
        return NULL;
    block->is_pooled = false;
    block->next = a->blocks;
    a->blocks = block;
    return block->data;
}

void *arena_alloc(struct arena *a, size_t n)
{
    size_t size = a->pool != NULL ? a->pool->size : ARENA_BLOCK;
    size_t room = (size - sizeof(struct arena_block)) & ~(size_t)15;
    if (WEIR_SANITIZER || n > room)
        return alloc_alone(a, n);
    size_t rounded = (n + 15) & ~(size_t)15;
    if (a->at == NULL || rounded > (size_t)(a->end - a->at)) {
        struct arena_block *block = a->pool != NULL ? block_take(a->pool) : malloc(ARENA_BLOCK);
        if (block == NULL)
            return NULL;
        block->is_pooled = a->pool != NULL;
        block->next = a->blocks;
        a->blocks = block;
        a->at = block->data;
        a->end = block->data + room;
    }
    char *p = a->at;
    a->at += rounded;
    return p;
}

void *arena_zalloc(struct arena *a, size_t n)
{
    void *p = arena_alloc(a, n);
    return p != NULL ? memset(p, 0, n) : NULL;
}

struct str arena_dup(struct arena *a, struct str s)
{
    char *p = s.n < SIZE_MAX ? arena_alloc(a, s.n + 1) : NULL;
    if (p == NULL)
        return STR_NONE;
    if (s.n > 0)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return str_of(p, s.n);
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int made = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (made < 0)
        return STR_NONE;
    size_t n = (size_t)made;
    if (n < sizeof small)
        return arena_dup(a, str_of(small, n));
    char *p = arena_alloc(a, n + 1);
    if (p == NULL)
        return STR_NONE;
    va_start(ap, fmt);
    vsnprintf(p, n + 1, fmt, ap);
    va_end(ap);
    return str_of(p, n);
}

void arena_reset(struct arena *a)
{
    struct arena_block *next;
    for (struct arena_block *block = a->blocks; block != NULL; block = next) {
        next = block->next;
        if (block->is_pooled)
            block_give(a->pool, block);
        else
            free(block);
    }
    a->blocks = NULL;
    a->at = a->end = NULL;
}
