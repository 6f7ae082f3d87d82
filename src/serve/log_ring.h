/* SPDX-License-Identifier: MIT */
/*
 * Single-producer single-consumer ring of log records: a loop writes, the log writer's thread reads. Full means dropped and
 * counted, never a wait. A record is whole or not there.
 */
#ifndef SERVE_LOG_RING_H
#define SERVE_LOG_RING_H

#include <stdatomic.h>

#include "base/check.h"
#include "base/str.h"

enum {
    LOG_RING_SIZE = 8 * 1024 * 1024,
    LOG_RECORD_MAX = 64 * 1024, /* longer records are cut */
    LOG_TARGET_ERROR = -1,      /* the error log; access logs count from 0 (access_log_conf.index) */
};

struct log_ring {
    char *bytes;
    uint32_t size;                 /* power of two */
    _Alignas(64) atomic_ullong head; /* written by the producer: bytes ever put */
    uint64_t tail_seen;              /* the producer's own: `tail` when it last looked */
    _Alignas(64) atomic_ullong tail; /* written by the consumer: bytes given back to the producer */
    uint64_t read;                   /* the consumer's own: bytes ever taken */
    _Alignas(64) atomic_ullong dropped;
    /* Producer's: called when the ring becomes a quarter full (wakes the writer); may be NULL. */
    void (*wake)(void *arg);
    void *wake_arg;
};

struct log_ring *log_ring_new(uint32_t size) MUST_USE; /* memory is touched only as it is used */
void log_ring_free(struct log_ring *r);
/* Producer. A line with its newline. `generation` names the snapshot whose log table `target` indexes. */
bool log_ring_put(struct log_ring *r, int target, uint64_t generation, struct str line);
/* Consumer: up to `max` bytes of the next records; calls fn for each. Returns how many records. */
typedef void log_ring_fn(void *arg, int target, uint64_t generation, struct str line);
unsigned log_ring_take(struct log_ring *r, unsigned max_records, log_ring_fn *fn, void *arg);

#endif
