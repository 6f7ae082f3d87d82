/* SPDX-License-Identifier: MIT */
/*
 * The ring between a loop and the log writer. Owns its memory; the thread that fills it and the one that empties it are
 * the caller's. head and tail count bytes ever put and taken; the place in memory is the count modulo the size.
 *
 * A record is a header and the line, rounded up to 8 bytes and never split by the end of memory: where it would be, a
 * SKIP word sends the reader to the start. The producer publishes `head` after the bytes (release), the consumer
 * `tail` after it has used them, so neither ever sees half a record.
 *
 * The consumer gives `tail` back in steps of STEP, and the pages of a step to the kernel just before: a step that has
 * not been given back cannot be written to. So a ring costs the memory of what is unread, not all it ever went
 * through. Rings too small for that give back exactly what was read.
 */
#include "serve/log_ring.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGN = 8, STEP = 64 * 1024, STEP_MIN_SIZE = 16 * STEP };
#define SKIP UINT32_MAX

struct record {
    uint32_t n; /* bytes of the line, or SKIP */
    int32_t target;
    uint64_t generation;
};

_Static_assert(sizeof(struct record) % ALIGN == 0, "records stay aligned");

static uint64_t place(const struct log_ring *r, uint64_t at)
{
    return at & (r->size - 1);
}

static uint64_t record_size(size_t n)
{
    return (sizeof(struct record) + n + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

struct log_ring *log_ring_new(uint32_t size)
{
    CHECK(size >= 256 && (size & (size - 1)) == 0);
    struct log_ring *r = aligned_alloc(_Alignof(struct log_ring), sizeof *r);
    if (r == NULL)
        return NULL;
    memset(r, 0, sizeof *r);
    r->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->bytes == MAP_FAILED) {
        free(r);
        return NULL;
    }
    /* Huge pages would make the first line cost two megabytes. */
    (void)madvise(r->bytes, size, MADV_NOHUGEPAGE);
    r->size = size;
    return r;
}

void log_ring_free(struct log_ring *r)
{
    if (r == NULL)
        return;
    (void)munmap(r->bytes, r->size);
    free(r);
}

/* Is there room for n more bytes? Looks at the consumer's cache line only when what it last saw there is not enough. */
static bool has_room(struct log_ring *r, uint64_t head, uint64_t n)
{
    if (head + n - r->tail_seen <= r->size)
        return true;
    r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
    return head + n - r->tail_seen <= r->size;
}

static void wake_at_quarter(struct log_ring *r, uint64_t before, uint64_t after)
{
    uint64_t quarter = r->size / 4;
    if (r->wake == NULL || after - r->tail_seen < quarter)
        return;
    r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
    if (before - r->tail_seen < quarter && after - r->tail_seen >= quarter)
        r->wake(r->wake_arg);
}

bool log_ring_put(struct log_ring *r, int target, uint64_t generation, struct str line)
{
    size_t longest = LOG_RECORD_MAX < r->size / 4 ? LOG_RECORD_MAX : r->size / 4;
    bool cut = line.n > longest;
    if (cut)
        line.n = longest;
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t need = record_size(line.n);
    uint64_t rest = r->size - place(r, head);
    uint64_t skip = need > rest ? rest : 0;
    if (!has_room(r, head, skip + need)) {
        atomic_fetch_add_explicit(&r->dropped, 1, memory_order_relaxed);
        return false;
    }
    if (skip > 0) {
        uint32_t word = SKIP;
        memcpy(r->bytes + place(r, head), &word, sizeof word);
    }
    char *p = r->bytes + place(r, head + skip);
    struct record rec = { .n = (uint32_t)line.n, .target = target, .generation = generation };
    memcpy(p, &rec, sizeof rec);
    if (line.n > 0)
        memcpy(p + sizeof rec, line.p, line.n);
    if (cut)
        p[sizeof rec + line.n - 1] = '\n';
    atomic_store_explicit(&r->head, head + skip + need, memory_order_release);
    wake_at_quarter(r, head, head + skip + need);
    return true;
}

/* Everything before `at` has been used: hands it back to the producer. */
static void give_back(struct log_ring *r, uint64_t at)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (r->size >= STEP_MIN_SIZE) {
        at -= at % STEP;
        if (at == tail)
            return;
        uint64_t from = place(r, tail), n = at - tail;
        uint64_t first = n < r->size - from ? n : r->size - from;
        (void)madvise(r->bytes + from, first, MADV_DONTNEED);
        if (n > first)
            (void)madvise(r->bytes, n - first, MADV_DONTNEED);
    }
    atomic_store_explicit(&r->tail, at, memory_order_release);
}

unsigned log_ring_take(struct log_ring *r, unsigned max_records, log_ring_fn *fn, void *arg)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    unsigned taken = 0;
    while (r->read != head && taken < max_records) {
        const char *p = r->bytes + place(r, r->read);
        struct record rec;
        memcpy(&rec.n, p, sizeof rec.n);
        if (rec.n == SKIP) {
            r->read += r->size - place(r, r->read);
            continue;
        }
        memcpy(&rec, p, sizeof rec);
        fn(arg, rec.target, rec.generation, str_of(p + sizeof rec, rec.n));
        r->read += record_size(rec.n);
        taken++;
    }
    give_back(r, r->read);
    return taken;
}
