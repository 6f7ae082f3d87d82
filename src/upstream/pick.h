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
    struct server *bound; /* the only one it may have; NULL: any */
    bool is_retry;        /* a further attempt: it takes nothing of what the others' turns are counted by */
    bool is_tunnel;       /* it will become one: max_tunnels counts */
    bool takes_ejected;   /* pick_server's own: nothing better is left */
    bool has_hash;
    uint64_t hash;        /* of the key that balances by one go by (pick_hash_of) */
};

struct pick {
    const char *name;
    /* Builds what the algorithm needs into the set, on the table's thread. False: out of memory. NULL: nothing. */
    bool (*prepare)(struct server_set *set);
    /* A server that may be chosen, its slot taken; NULL: there is none with a free slot. Any loop's thread. */
    struct server *(*choose)(struct upstream *u, const struct server_set *set, const struct pick_query *q, bool backup);
    /* The server that the request belongs to by its key, with a free slot or without; NULL: none. May be NULL: any
     * server is as good as another. */
    struct server *(*owner)(const struct server_set *set, const struct pick_query *q, bool backup);
};

extern const struct pick pick_hash, pick_least_conn, pick_random, pick_round_robin;

const struct pick *pick_of(enum balance_kind kind);
/* The server for a request, with its slot taken (server_give returns it). Backups only while no primary can be
 * used at all: one that is merely full still counts. NULL: none. *is_full then tells whether one would do if it
 * had a free slot. */
struct server *pick_server(struct upstream *u, const struct pick_query *q, bool *is_full) MUST_USE;
/* Is there a server that this request could have, a free slot provided? */
bool pick_is_possible(struct upstream *u, const struct pick_query *q);
/* The one server whose free slot this request has to wait for, by its key; NULL: that of any will do. */
struct server *pick_owner(struct upstream *u, const struct pick_query *q);
/* May this request have this server, a free slot provided, or are there better ones that are merely full? */
bool pick_may_have(struct upstream *u, const struct pick_query *q, const struct server *s);
/* Is the server of no use at present to those who are bound to it? */
bool pick_is_out(struct upstream *u, struct server *s);
/* Asks for nothing that another request would not take. */
static inline bool pick_is_plain(const struct pick_query *q)
{
    return q->n_tried == 0 && q->bound == NULL && !q->is_tunnel;
}
/* May this request go there, a free slot provided? */
bool pick_is_usable(const struct set_entry *e, const struct pick_query *q, bool backup);
/* The same, with a free slot when it was looked at. */
bool pick_is_ready(const struct set_entry *e, const struct pick_query *q, bool backup);
/* Which of two has less to do for its weight: below 0: a; above 0: b. */
int pick_compare_load(const struct set_entry *a, const struct set_entry *b);
uint64_t pick_hash_of(const void *key, size_t n);

#endif
