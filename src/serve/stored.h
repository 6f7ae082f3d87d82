/* SPDX-License-Identifier: MIT */
/*
 * The body of a file as its handler has it in store, and the form that a filter has given it, once for all answers. The
 * handler owns the struct, sets the first part and calls stored_free; the filter fills the rest when it first has a use
 * for it.
 */
#ifndef SERVE_STORED_H
#define SERVE_STORED_H

#include <stdlib.h>

#include "base/str.h"

struct stored {
    uint64_t length;
    struct str body;  /* all bytes; p NULL: not in memory */
    struct str coded; /* p NULL: not made, or not worth it; own allocation */
    bool is_coded;    /* `coded` has been made, or found not to be worth it */
    size_t *account;  /* where the filter counts the bytes of `coded`; outlives the struct */
};

static inline void stored_free(struct stored *s)
{
    if (s->account)
        *s->account -= s->coded.n;
    free((void *)(uintptr_t)s->coded.p);
}

#endif
