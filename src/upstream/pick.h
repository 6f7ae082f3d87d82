/* SPDX-License-Identifier: MIT */
/*
 * Which server of an upstream takes the next request: one vtable for each algorithm, one algorithm in each file.
 * An algorithm sees the set in force and what this request may not have; it takes the slot of what it chooses.
 */
#ifndef UPSTREAM_PICK_H
#define UPSTREAM_PICK_H

#include "upstream/upstream.h"

struct pick_query {
    struct server *const *tried; /* servers this request has been sent to and may not have again */
    unsigned n_tried;
};

struct pick {
    const char *name;
    /* Builds what the algorithm needs into the set, on the table's thread. False: out of memory. NULL: nothing. */
    bool (*prepare)(struct server_set *set);
    /* A server that may be chosen, its slot taken; NULL: there is none with a free slot. Any loop's thread. */
    struct server *(*choose)(struct upstream *u, const struct server_set *set, const struct pick_query *q, bool backup);
};

extern const struct pick pick_round_robin;

const struct pick *pick_of(enum balance_kind kind);
/* The server for a request, with its slot taken (server_give returns it). Backups only while no primary can be
 * used at all: one that is merely full still counts. NULL: none. *is_full then tells whether one would do if it
 * had a free slot. */
struct server *pick_server(struct upstream *u, const struct pick_query *q, bool *is_full) MUST_USE;
/* May this request go there, a free slot provided? */
bool pick_is_usable(const struct set_entry *e, const struct pick_query *q, bool backup);

#endif
