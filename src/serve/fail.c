/* SPDX-License-Identifier: MIT */
/*
 * The failure table as an array. fail.def and the reader's reasons are the only places where a failure is described; this
 * file gives them an index.
 */
#include "serve/fail.h"

static const struct fail_row rows[FAIL_COUNT] = {
    [FAIL_NONE] = { "NONE", 0, SIDE_SELF, RETRY_NEVER, "no failure" },
#define FAIL(symbol_, status_, side_, retry_, text_) \
    [FAIL_##symbol_] = { #symbol_, status_, SIDE_##side_, RETRY_##retry_, text_ },
#include "serve/fail.def"
#undef FAIL
#define X(symbol_, status_, text_) [FAIL_BAD_##symbol_] = { "BAD_" #symbol_, status_, SIDE_CLIENT, RETRY_NEVER, text_ },
    H1_BAD_REASONS(X)
#undef X
};

const struct fail_row *fail_row(enum fail f)
{
    return &rows[(unsigned)f < FAIL_COUNT ? f : FAIL_BUG];
}

enum fail fail_of_bad(enum h1_bad bad)
{
    static const enum fail of[] = {
        [H1_BAD_NONE] = FAIL_BUG,
#define X(symbol, status, text) [H1_BAD_##symbol] = FAIL_BAD_##symbol,
        H1_BAD_REASONS(X)
#undef X
    };
    return (unsigned)bad < ARRAY_LEN(of) ? of[bad] : FAIL_BUG;
}
