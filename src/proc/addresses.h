/* SPDX-License-Identifier: MIT */
/* The addresses of a running server: which loops watch which sockets, and how a reload changes that. Main thread. */
#ifndef PROC_ADDRESSES_H
#define PROC_ADDRESSES_H

#include "proc/listeners.h"
#include "serve/worker.h"

struct address_ack;

struct addresses {
    struct listeners *ls;
    int calls;   /* to the supervisor */
    int wake_fd; /* written to when loops have done what was asked */
    struct worker *const *workers;
    unsigned n_workers;
    struct address_ack *acks; /* one for each worker */
    struct sockets *closing;  /* being given up just now; NULL: none */
    bool is_shut;             /* nobody can connect there any more */
    atomic_uint left;         /* loops that have not done what was asked */
};

/* Before the loops run: asks for what is missing (a server before this one had fewer loops), gives up what the
 * configuration does not have, hands sockets to the loops. False: logged. The workers must outlive it. */
bool addresses_open(struct addresses *a, const struct conf *conf, struct worker *const *workers,
                    unsigned n) MUST_USE;
void addresses_free(struct addresses *a);

/* The loops have been handed the snapshot of `now`, which has new addresses `opened` (emptied). Those that are gone are
 * given up after timeouts.lame_duck. */
void addresses_adopt(struct addresses *a, const struct conf *old, const struct conf *now, struct listeners *opened);
/* Gives up what is due, a step at a time. Not while a load runs. */
void addresses_tick(struct addresses *a, uint64_t now_ms);
/* When the next one is due; UINT64_MAX: never. */
uint64_t addresses_due(const struct addresses *a);
/* One is being given up: no load may begin. */
bool addresses_is_busy(const struct addresses *a);

#endif
