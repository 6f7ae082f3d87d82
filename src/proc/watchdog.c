/* SPDX-License-Identifier: MIT */
/*
 * A question to each loop every few seconds: a mail that only notes that it was read. One that is not read in time
 * means that a callback does not return: an endless loop, a lock, a disk that does not answer. What to do about it is
 * the caller's; this only counts.
 *
 * It counts questions, not time: a process that was stopped, or a machine that slept, has missed none of them.
 */
#include "proc/watchdog.h"

static void on_question(struct loop *l, struct mail *mail)
{
    (void)l;
    atomic_store_explicit(&container_of(mail, struct watched, mail)->answered, true, memory_order_release);
}

enum watch watchdog_tick(struct watched *w, struct loop *l, bool counts)
{
    if (w->is_asked && !atomic_load_explicit(&w->answered, memory_order_acquire)) {
        w->missed += counts;
        if (counts && w->missed == WATCHDOG_SILENT_MS / WATCHDOG_TICK_MS)
            return WATCH_SILENT;
        return counts && w->missed == WATCHDOG_DEAD_MS / WATCHDOG_TICK_MS ? WATCH_DEAD : WATCH_FINE;
    }
    w->missed = 0;
    w->is_asked = true;
    atomic_store_explicit(&w->answered, false, memory_order_relaxed);
    w->mail.run = on_question;
    mailbox_post(l, &w->mail);
    return WATCH_FINE;
}
