/* SPDX-License-Identifier: MIT */
/*
 * A configuration in force. Immutable and shared by all loops; each loop counts the requests that began under it, and the
 * last loop to have adopted a newer one with none left frees it.
 */
#ifndef SERVE_SNAPSHOT_H
#define SERVE_SNAPSHOT_H

#include <stdatomic.h>

#include "conf/conf.h"

struct upstream;

struct snapshot {
    struct conf *conf;
    uint64_t generation;
    struct upstream **upstreams; /* by upstream_conf.index; long-lived, owned by the upstream table, matched by name */
    atomic_uint loops;           /* loops that may still use it */
    void (*free_fn)(struct snapshot *); /* called by the last loop */
    /* Called by each loop that is handed it while it runs, once no new request of that loop begins under an older one. */
    void (*adopted_fn)(struct snapshot *);
};

/* One loop's hold on a snapshot. */
struct hold {
    struct snapshot *snapshot;
    unsigned requests; /* of this loop, begun under it and not finished */
    struct hold *older;
};

#endif
