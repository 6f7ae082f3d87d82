/* SPDX-License-Identifier: MIT */
/*
 * What all algorithms share: which servers may be chosen at all, and when the backups' turn has come. Keeps no state.
 */
#include "upstream/pick.h"

const struct pick *pick_of(enum balance_kind kind)
{
    switch (kind) {
    case BALANCE_ROUND_ROBIN:
    default:
        return &pick_round_robin;
    }
}

bool pick_is_usable(const struct set_entry *e, const struct pick_query *q, bool backup)
{
    if (e->is_backup != backup || e->is_draining || e->weight == 0)
        return false;
    if (atomic_load_explicit(&e->server->n_resolved, memory_order_relaxed) == 0)
        return false;
    for (unsigned i = 0; i < q->n_tried; i++)
        if (q->tried[i] == e->server)
            return false;
    return true;
}

struct server *pick_server(struct upstream *u, const struct pick_query *q, bool *is_full)
{
    const struct server_set *set = atomic_load_explicit(&u->set, memory_order_acquire);
    *is_full = false;
    for (int backup = 0; backup <= set->has_backup; backup++) {
        struct server *s = set->pick->choose(u, set, q, backup != 0);
        if (s != NULL)
            return s;
        for (unsigned i = 0; i < set->n; i++)
            *is_full |= pick_is_usable(&set->entries[i], q, backup != 0);
        if (*is_full)
            return NULL;
    }
    return NULL;
}
