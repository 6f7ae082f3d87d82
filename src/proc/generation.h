/* SPDX-License-Identifier: MIT */
/* A snapshot as the server owns it: made when a configuration was loaded, freed when no loop uses it any more. */
#ifndef PROC_GENERATION_H
#define PROC_GENERATION_H

#include "serve/snapshot.h"
#include "upstream/upstream.h"

struct generation {
    struct snapshot snapshot;
    struct generation *next; /* older */
    atomic_uint behind;      /* loops whose new requests begin under an older one */
    atomic_bool released;    /* the last loop has let go of it */
    int wake_fd;             /* written to when behind is 0, and when it is released */
};

/* Brings the upstream table in line with conf and makes its snapshot, used by n_loops loops. Takes conf over in any
 * case. NULL: out of memory, logged. */
struct generation *generation_new(struct conf *conf, uint64_t number, unsigned n_loops,
                                  struct upstream_table *upstreams, int wake_fd) MUST_USE;
void generation_free(struct generation *g);

#endif
