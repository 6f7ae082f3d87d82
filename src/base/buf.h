/* SPDX-License-Identifier: MIT */
/*
 * Body bytes on their way: a chunk is what is handed over, a buf is the queue of what could not be written yet.
 * A chunk borrows: memory is valid until the call it is passed to returns; a file range is kept by whoever holds the
 * `lease` (its release is called once, when the range was sent or dropped).
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/str.h"

/* How a file range is given back: release(arg) is called exactly once. */
struct lease {
    void (*release)(void *arg);
    void *arg;
};

enum chunk_kind { CHUNK_MEMORY, CHUNK_FILE };

struct chunk {
    enum chunk_kind kind;
    int fd;             /* CHUNK_FILE */
    const char *p;      /* CHUNK_MEMORY */
    uint64_t off;       /* CHUNK_FILE: first byte in the file */
    uint64_t n;         /* bytes */
    struct lease lease; /* CHUNK_FILE: given to whoever takes the chunk; release may be NULL */
};

static inline struct chunk chunk_memory(struct str s)
{
    return (struct chunk){ .kind = CHUNK_MEMORY, .fd = -1, .p = s.p, .n = s.n };
}

struct buf_node;
struct buf {
    struct buf_node *first, *last;
    uint64_t n; /* bytes queued, file ranges included */
};

/* Copies s to the end, into blocks of the pool (each holds as much as fits). False: out of memory, nothing added. */
bool buf_add(struct buf *b, struct block_pool *pool, struct str s) MUST_USE;
/* Appends a file range; the buf takes the lease over, also when it returns false (out of memory). */
bool buf_add_file(struct buf *b, struct block_pool *pool, struct chunk file) MUST_USE;
/* The first piece, without taking it; a chunk of 0 bytes when empty. */
struct chunk buf_peek(const struct buf *b);
/* Up to max leading memory pieces as iovecs (stops at a file range). Returns how many. */
struct iovec;
int buf_iov(const struct buf *b, struct iovec *iov, int max);
/* A place in a buf to which only is added; zeroed: its beginning. */
struct buf_at {
    const struct buf_node *node;
    uint64_t taken;
};
/* The same from `at` on, which moves behind them; what was taken stays in the buf. */
int buf_iov_from(const struct buf *b, struct buf_at *at, struct iovec *iov, int max);
/* Drops n bytes from the front; releases what is used up. */
void buf_skip(struct buf *b, struct block_pool *pool, uint64_t n);
/* Drops everything. */
void buf_clear(struct buf *b, struct block_pool *pool);

#endif
