/* SPDX-License-Identifier: MIT */
/*
 * What happens when an invariant of our own is broken.
 * Owns the process-wide count of BUG_IFs; owns no policy: the caller of BUG_IF closes its connection and goes on.
 * check_failed may run with the heap or the log broken, so it writes straight to stderr and allocates nothing.
 */
#include "base/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

static atomic_uint_fast64_t bugs;

_Noreturn void check_failed(const char *what, const char *file, int line)
{
    char text[512];
    int n = snprintf(text, sizeof text, "weir: check failed: %s at %s:%d\n", what, file, line);
    if (n > 0) {
        size_t len = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
        ssize_t ignored = write(STDERR_FILENO, text, len);
        (void)ignored; /* nobody is left to be told */
    }
    abort();
}

bool check_bug(const char *what, const char *file, int line)
{
    atomic_fetch_add_explicit(&bugs, 1, memory_order_relaxed);
    log_write(LOG_ERROR, "bug: %s at %s:%d; closing what it concerns", what, file, line);
    if (WEIR_SANITIZER)
        check_failed(what, file, line);
    return true;
}

uint64_t check_bug_count(void)
{
    return atomic_load_explicit(&bugs, memory_order_relaxed);
}
