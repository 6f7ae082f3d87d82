/* SPDX-License-Identifier: MIT */
/*
 * The pool of compressors. Owns the idle ones; a busy one belongs to whoever took it, until deflate_give, which resets
 * it: what it was cut short with leaves no trace. Three sizes, by the length of what is to be compressed.
 *
 * Every LOOK_MS those that nobody needed since the last look are freed, so that memory follows the load down as well
 * as up. Sanitizer builds keep none, so that a use after deflate_give is seen.
 */
#include "filter/deflate_pool.h"

#include <stdlib.h>

enum { LOOK_MS = 10 * 1000, GZIP_FORMAT = 16 /* added to the window bits: a gzip head and trailer, not zlib's */ };

static const struct {
    int window_bits, mem_level;
    size_t bytes; /* (1 << (window_bits + 2)) + (1 << (mem_level + 9)), zlib.h says, and its own struct */
} sizes[DEFLATE_SIZES] = {
    [DEFLATE_4K] = { 12, 5, (1u << 14) + (1u << 14) + 6144 },
    [DEFLATE_16K] = { 14, 7, (1u << 16) + (1u << 16) + 6144 },
    [DEFLATE_ANY] = { 15, 8, (1u << 17) + (1u << 17) + 6144 },
};

void deflate_pool_init(struct deflate_pool *p, struct loop *l, size_t used_max)
{
    *p = (struct deflate_pool){ .loop = l, .used_max = used_max };
}

static void destroy(struct deflater *d)
{
    (void)deflateEnd(&d->z); /* Z_DATA_ERROR: with output pending, which is what it was cut for */
    free(d);
}

static void free_spare(struct deflate_pool *p, enum deflate_size size, unsigned n)
{
    for (; n > 0; n--) {
        struct deflater *d = p->v[size].free;
        p->v[size].free = d->next;
        p->v[size].n--;
        destroy(d);
    }
    p->v[size].spare = p->v[size].n;
}

static void on_look(struct deadline *look)
{
    struct deflate_pool *p = container_of(look, struct deflate_pool, look);
    unsigned left = 0;
    for (enum deflate_size size = 0; size < DEFLATE_SIZES; size++) {
        free_spare(p, size, p->v[size].spare);
        left += p->v[size].n;
    }
    if (left > 0)
        deadline_set(p->loop, look, DEADLINE_IDLE, LOOK_MS, on_look);
}

static struct deflater *make(enum deflate_size size, int level)
{
    struct deflater *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return NULL;
    d->size = size;
    if (deflateInit2(&d->z, level, Z_DEFLATED, sizes[size].window_bits + GZIP_FORMAT, sizes[size].mem_level,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(d);
        return NULL;
    }
    return d;
}

struct deflater *deflate_take(struct deflate_pool *p, enum deflate_size size, int level)
{
    if (p->used + sizes[size].bytes > p->used_max)
        return NULL;
    struct deflater *d = p->v[size].free;
    if (d != NULL) {
        p->v[size].free = d->next;
        if (--p->v[size].n < p->v[size].spare)
            p->v[size].spare = p->v[size].n;
        deflateParams(&d->z, level, Z_DEFAULT_STRATEGY); /* freshly reset it has nothing to flush, so it cannot fail */
    } else {
        d = make(size, level);
    }
    if (d != NULL)
        p->used += sizes[size].bytes;
    return d;
}

void deflate_give(struct deflate_pool *p, struct deflater *d)
{
    p->used -= sizes[d->size].bytes;
    if (WEIR_SANITIZER || deflateReset(&d->z) != Z_OK) {
        destroy(d);
        return;
    }
    d->is_behind = false;
    d->next = p->v[d->size].free;
    p->v[d->size].free = d;
    p->v[d->size].n++;
    if (p->look.list == NULL)
        deadline_set(p->loop, &p->look, DEADLINE_IDLE, LOOK_MS, on_look);
}

void deflate_pool_free(struct deflate_pool *p)
{
    deadline_clear(&p->look);
    for (enum deflate_size size = 0; size < DEFLATE_SIZES; size++)
        free_spare(p, size, p->v[size].n);
}
