/* SPDX-License-Identifier: MIT */
/* Notices loops that do not turn any more. */
#ifndef PROC_WATCHDOG_H
#define PROC_WATCHDOG_H

#include <stdatomic.h>

#include "net/loop.h"

enum {
    WATCHDOG_TICK_MS = 2500,
    WATCHDOG_SILENT_MS = 10 * 1000, /* then it is worth a look */
    WATCHDOG_DEAD_MS = 30 * 1000,   /* then a new server is better */
};

/* One loop. Zeroed at first; the mail is the loop's while it is on its way. */
struct watched {
    struct mail mail;
    atomic_bool answered;
    bool is_asked;
    unsigned missed; /* ticks in a row without an answer */
};

enum watch { WATCH_FINE, WATCH_SILENT, WATCH_DEAD };

/* Asks the loop whether it turns, and says what has become of the last question: SILENT and DEAD once each. Call it
 * every WATCHDOG_TICK_MS; `counts` false: so much time has passed since the last call that this process itself must
 * have stood still, and nothing follows from a missing answer. */
enum watch watchdog_tick(struct watched *w, struct loop *l, bool counts);

#endif
