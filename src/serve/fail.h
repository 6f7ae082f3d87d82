/* SPDX-License-Identifier: MIT */
/* The table of failures: fail.def's rows, then the reader's reasons (http/h1_read.h). */
#ifndef SERVE_FAIL_H
#define SERVE_FAIL_H

#include "http/h1_read.h"

enum fail {
    FAIL_NONE,
#define FAIL(symbol, status, side, retry, text) FAIL_##symbol,
#include "serve/fail.def"
#undef FAIL
#define X(symbol, status, text) FAIL_BAD_##symbol,
    H1_BAD_REASONS(X)
#undef X
        FAIL_COUNT
};

enum fail_side { SIDE_CLIENT, SIDE_UPSTREAM, SIDE_SELF };
enum fail_retry { RETRY_NEVER, RETRY_UNSENT, RETRY_REUSED, RETRY_IDEMPOTENT };

struct fail_row {
    const char *symbol; /* "CONNECT_FAILED" */
    uint16_t status;
    enum fail_side side;
    enum fail_retry retry;
    const char *text;
};

const struct fail_row *fail_row(enum fail f);
enum fail fail_of_bad(enum h1_bad bad);

#endif
