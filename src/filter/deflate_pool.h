/* SPDX-License-Identifier: MIT */
/*
 * Compressors of one loop, kept between answers: making one costs up to 256 KB of memory in five pieces, using one
 * again a reset. The memory of those in use is bounded; whoever comes then is told so and goes without.
 */
#ifndef FILTER_DEFLATE_POOL_H
#define FILTER_DEFLATE_POOL_H

#include <zlib.h>

#include "net/deadline.h"

/* By how much text they are for: a short one needs neither the window nor the tables of a long one. */
enum deflate_size { DEFLATE_4K, DEFLATE_16K, DEFLATE_ANY, DEFLATE_SIZES };

struct deflater {
    struct deflater *next; /* of the free list */
    z_stream z;
    enum deflate_size size;
    bool is_behind; /* it has taken bytes since it last flushed */
};

struct deflate_pool {
    struct loop *loop;
    struct {
        struct deflater *free;
        unsigned n, spare; /* on the free list, now and at least since the last look */
    } v[DEFLATE_SIZES];
    size_t used, used_max; /* bytes of those in use */
    struct deadline look;
};

enum { DEFLATE_USED_MAX = 16 * 1024 * 1024 };

void deflate_pool_init(struct deflate_pool *p, struct loop *l, size_t used_max);
/* Ready for a new gzip stream at this level (1..9). NULL: the bound is reached, or memory is out. */
struct deflater *deflate_take(struct deflate_pool *p, enum deflate_size size, int level) MUST_USE;
void deflate_give(struct deflate_pool *p, struct deflater *d);
/* None may be in use. */
void deflate_pool_free(struct deflate_pool *p);

#endif
