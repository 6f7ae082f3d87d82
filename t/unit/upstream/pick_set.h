/* SPDX-License-Identifier: MIT */
/* A set of servers for the tests of the algorithms: s0, s1, ... in one upstream, without a table. */
#ifndef PICK_SET_H
#define PICK_SET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "upstream/pick.h"

struct rig {
    struct upstream u;
    struct server_set set;
    struct server *servers;
    unsigned n;
};

/* n servers of these weights (NULL: 1 each); the first one is called s<first>. */
static inline void rig_open_from(struct rig *g, const struct pick *pick, unsigned first, unsigned n,
                                 const unsigned *weights)
{
    *g = (struct rig){ .n = n, .set = { .pick = pick, .n = n } };
    g->servers = calloc(n, sizeof *g->servers);
    g->set.entries = calloc(n, sizeof *g->set.entries);
    assert_non_null(g->servers);
    assert_non_null(g->set.entries);
    for (unsigned i = 0; i < n; i++) {
        char *name = malloc(16);
        assert_non_null(name);
        g->servers[i].name = str_of(name, (size_t)snprintf(name, 16, "s%u:3000", first + i));
        atomic_store(&g->servers[i].n_resolved, 1);
        g->set.entries[i] = (struct set_entry){ .server = &g->servers[i], .weight = weights ? weights[i] : 1 };
    }
    atomic_store(&g->u.set, &g->set);
}

static inline void rig_prepare(struct rig *g)
{
    for (unsigned i = 0; i < g->n; i++)
        g->set.has_backup |= g->set.entries[i].is_backup;
    if (g->set.pick->prepare != NULL)
        assert_true(g->set.pick->prepare(&g->set));
    g->set.seed = 1; /* the same test every time */
}

static inline void rig_open(struct rig *g, const struct pick *pick, unsigned n, const unsigned *weights)
{
    rig_open_from(g, pick, 0, n, weights);
    rig_prepare(g);
}

static inline void rig_close(struct rig *g)
{
    for (unsigned i = 0; i < g->n; i++)
        free((void *)(uintptr_t)g->servers[i].name.p);
    for (unsigned i = 0; i < 2; i++) {
        free(g->set.order[i]);
        free(g->set.table[i]);
    }
    free(g->set.entries);
    free(g->servers);
}

/* Index of the server chosen, whose slot stays taken; -1: none. */
static inline int rig_take(struct rig *g, const struct pick_query *q)
{
    bool is_full;
    struct server *s = pick_server(&g->u, q, &is_full);
    return s != NULL ? (int)(s - g->servers) : -1;
}

/* The same, the slot given back. */
static inline int rig_choose(struct rig *g, const struct pick_query *q)
{
    int at = rig_take(g, q);
    if (at >= 0)
        server_give(&g->servers[at]);
    return at;
}

/* What must hold of every algorithm: who may not be chosen is not, whoever is left is. */
static inline void rig_check_rules(const struct pick *pick, struct pick_query q)
{
    struct rig g;
    bool is_full;
    rig_open(&g, pick, 4, (unsigned[4]){ 0, 1, 1, 1 });
    g.set.entries[1].is_draining = true;
    atomic_store(&g.servers[2].n_resolved, 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(rig_choose(&g, &q), 3);
    assert_ptr_equal(pick_server(&g.u, &(struct pick_query){ .bound = &g.servers[0] }, &is_full), &g.servers[0]);
    q.tried = (struct server *[]){ &g.servers[3] };
    q.n_tried = 1;
    assert_null(pick_server(&g.u, &q, &is_full));
    assert_false(is_full);
    q.n_tried = 0;
    atomic_store(&g.servers[3].maxconn, 1);
    assert_int_equal(rig_take(&g, &q), 3);
    assert_null(pick_server(&g.u, &q, &is_full));
    assert_true(is_full);
    rig_close(&g);

    rig_open_from(&g, pick, 0, 3, NULL);
    g.set.entries[1].is_backup = true;
    rig_prepare(&g);
    for (unsigned i = 0; i < 20; i++)
        assert_int_not_equal(rig_choose(&g, &q), 1);
    q.tried = (struct server *[]){ &g.servers[0], &g.servers[2] };
    q.n_tried = 2;
    assert_int_equal(rig_choose(&g, &q), 1);
    q.n_tried = 1;
    atomic_store(&g.servers[2].maxconn, 1);
    assert_int_equal(rig_take(&g, &q), 2);
    assert_int_equal(rig_choose(&g, &q), -1); /* full is not down */
    rig_close(&g);
}

#endif
