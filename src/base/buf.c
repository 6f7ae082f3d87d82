/* SPDX-License-Identifier: MIT */
/*
 * The queue of bytes a connection could not write yet: a chain of nodes, each a block of memory or a file range.
 * A buf owns its nodes, and with each file range its lease, whose release is called exactly once: when the range is
 * used up, dropped, or could not be queued. The file descriptor itself is the lease's business.
 * A memory node lives inside the pool's block it describes. A file node is a small malloc: a whole block for 60 bytes
 * would cost 16 KB for every slow download.
 * Invariant: no node is empty, and n is the sum over the nodes.
 */
#include "base/buf.h"

#include <stdlib.h>
#include <sys/uio.h>

struct buf_node {
    struct buf_node *next;
    enum chunk_kind kind;
    union {
        struct {
            uint32_t from, to, cap; /* the used part of data */
        } memory;
        struct {
            int fd;
            uint64_t off, n;
            struct lease lease;
        } file;
    } u;
    char data[]; /* memory only */
};

static void lease_end(const struct lease *lease)
{
    if (lease->release != NULL)
        lease->release(lease->arg);
}

static void node_free(struct buf_node *node, struct block_pool *pool)
{
    if (node->kind == CHUNK_FILE) {
        lease_end(&node->u.file.lease);
        free(node);
    } else {
        block_give(pool, node);
    }
}

static size_t tail_room(const struct buf *b)
{
    if (b->last == NULL || b->last->kind != CHUNK_MEMORY)
        return 0;
    return b->last->u.memory.cap - b->last->u.memory.to;
}

/* A chain of empty memory nodes for n bytes; false and nothing kept when memory is out. */
static bool chain_take(struct block_pool *pool, size_t n, struct buf_node **first)
{
    size_t room = pool->size - sizeof(struct buf_node);
    *first = NULL;
    for (size_t have = 0; have < n; have += room) {
        struct buf_node *node = block_take(pool);
        if (node == NULL) {
            while (*first != NULL) {
                node = *first;
                *first = node->next;
                block_give(pool, node);
            }
            return false;
        }
        node->next = *first;
        node->kind = CHUNK_MEMORY;
        node->u.memory.from = node->u.memory.to = 0;
        node->u.memory.cap = (uint32_t)room;
        *first = node;
    }
    return true;
}

static void node_append(struct buf *b, struct buf_node *node)
{
    node->next = NULL;
    if (b->last != NULL)
        b->last->next = node;
    else
        b->first = node;
    b->last = node;
}

static void tail_fill(struct buf *b, struct str *s)
{
    size_t room = tail_room(b);
    size_t n = s->n < room ? s->n : room;
    if (n == 0)
        return;
    struct buf_node *node = b->last;
    memcpy(node->data + node->u.memory.to, s->p, n);
    node->u.memory.to += (uint32_t)n;
    b->n += n;
    *s = str_skip(*s, n);
}

bool buf_add(struct buf *b, struct block_pool *pool, struct str s)
{
    CHECK(pool->size > sizeof(struct buf_node) && pool->size <= UINT32_MAX);
    size_t room = tail_room(b);
    struct buf_node *chain;
    if (!chain_take(pool, s.n > room ? s.n - room : 0, &chain))
        return false;
    tail_fill(b, &s);
    while (chain != NULL) {
        struct buf_node *node = chain;
        chain = node->next;
        node_append(b, node);
        tail_fill(b, &s);
    }
    return true;
}

bool buf_add_file(struct buf *b, struct block_pool *pool, struct chunk file)
{
    (void)pool; /* see the head of this file */
    if (file.n == 0) {
        lease_end(&file.lease);
        return true;
    }
    struct buf_node *node = malloc(sizeof *node);
    if (node == NULL) {
        lease_end(&file.lease);
        return false;
    }
    node->kind = CHUNK_FILE;
    node->u.file.fd = file.fd;
    node->u.file.off = file.off;
    node->u.file.n = file.n;
    node->u.file.lease = file.lease;
    node_append(b, node);
    b->n += file.n;
    return true;
}

struct chunk buf_peek(const struct buf *b)
{
    const struct buf_node *node = b->first;
    if (node == NULL)
        return chunk_memory(STR_NONE);
    if (node->kind == CHUNK_FILE)
        return (struct chunk){
            .kind = CHUNK_FILE, .fd = node->u.file.fd, .off = node->u.file.off, .n = node->u.file.n
        };
    return chunk_memory(str_of(node->data + node->u.memory.from, node->u.memory.to - node->u.memory.from));
}

int buf_iov(const struct buf *b, struct iovec *iov, int max)
{
    int n = 0;
    for (struct buf_node *node = b->first; node != NULL && node->kind == CHUNK_MEMORY && n < max; node = node->next) {
        iov[n].iov_base = node->data + node->u.memory.from;
        iov[n].iov_len = node->u.memory.to - node->u.memory.from;
        n++;
    }
    return n;
}

int buf_iov_from(const struct buf *b, struct buf_at *at, struct iovec *iov, int max)
{
    int n = 0;
    if (at->node == NULL)
        *at = (struct buf_at){ .node = b->first };
    while (at->node != NULL && at->node->kind == CHUNK_MEMORY && n < max) {
        const struct buf_node *node = at->node;
        size_t len = node->u.memory.to - node->u.memory.from - (size_t)at->taken;
        if (len > 0) {
            iov[n].iov_base = (char *)(uintptr_t)node->data + node->u.memory.from + at->taken;
            iov[n].iov_len = len;
            n++;
        }
        at->taken += len;
        if (node->next == NULL)
            break;
        *at = (struct buf_at){ .node = node->next };
    }
    return n;
}

/* Takes up to n bytes off the front of a node; true when nothing is left of it. */
static bool node_skip(struct buf_node *node, uint64_t *n)
{
    bool is_file = node->kind == CHUNK_FILE;
    uint64_t have = is_file ? node->u.file.n : node->u.memory.to - node->u.memory.from;
    uint64_t take = *n < have ? *n : have;
    *n -= take;
    if (is_file) {
        node->u.file.off += take;
        node->u.file.n -= take;
    } else {
        node->u.memory.from += (uint32_t)take;
    }
    return take == have;
}

void buf_skip(struct buf *b, struct block_pool *pool, uint64_t n)
{
    if (BUG_IF(n > b->n))
        n = b->n;
    b->n -= n;
    while (n > 0 && b->first != NULL && node_skip(b->first, &n)) {
        struct buf_node *node = b->first;
        b->first = node->next;
        if (b->first == NULL)
            b->last = NULL;
        node_free(node, pool);
    }
}

void buf_clear(struct buf *b, struct block_pool *pool)
{
    buf_skip(b, pool, b->n);
}
