/* SPDX-License-Identifier: MIT */
/*
 * Generations of the configuration. Each owns its conf and the array of its upstreams (not the upstreams: they are the
 * table's and live longer). The loops share it by counting (serve/snapshot.h); the last one to let go only marks it and
 * wakes the main thread, which frees it: taking a large configuration apart is no work for a loop.
 *
 * Invariant: whoever has not counted itself out (a loop that has not adopted a newer one, or still has requests of this
 * one) keeps it alive; the one in force is never released before the loops have ended.
 */
#include "proc/generation.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

static void wake(int fd)
{
    uint64_t one = 1;
    ssize_t ignored = write(fd, &one, sizeof one);
    (void)ignored;
}

static void on_release(struct snapshot *s)
{
    struct generation *g = container_of(s, struct generation, snapshot);
    int fd = g->wake_fd;
    /* From here on the main thread may free it. */
    atomic_store_explicit(&g->released, true, memory_order_release);
    wake(fd);
}

static void on_adopted(struct snapshot *s)
{
    struct generation *g = container_of(s, struct generation, snapshot);
    int fd = g->wake_fd;
    if (atomic_fetch_sub_explicit(&g->behind, 1, memory_order_acq_rel) == 1)
        wake(fd);
}

struct generation *generation_new(struct conf *conf, uint64_t number, unsigned n_loops,
                                  struct upstream_table *upstreams, int wake_fd)
{
    struct generation *g = calloc(1, sizeof *g);
    struct upstream **by_index = calloc(conf->n_upstreams + 1, sizeof *by_index);
    if (g == NULL || by_index == NULL || !upstream_table_apply(upstreams, conf, by_index)) {
        log_write(LOG_ERROR, "generation %llu: out of memory", (unsigned long long)number);
        free(by_index);
        free(g);
        conf_free(conf);
        return NULL;
    }
    g->snapshot.conf = conf;
    g->snapshot.generation = number;
    g->snapshot.upstreams = by_index;
    g->snapshot.free_fn = on_release;
    g->snapshot.adopted_fn = on_adopted;
    g->wake_fd = wake_fd;
    atomic_init(&g->snapshot.loops, n_loops);
    atomic_init(&g->behind, n_loops);
    return g;
}

void generation_free(struct generation *g)
{
    conf_free(g->snapshot.conf);
    free(g->snapshot.upstreams);
    free(g);
}
