/* SPDX-License-Identifier: MIT */
/* What a server asks its supervisor for, and waits: one thread at a time. */
#ifndef PROC_SUP_CALL_H
#define PROC_SUP_CALL_H

#include "proc/listeners.h"

/* Sees to it that ls has `want` sockets of an address (or the one there can be); what is missing comes from the
 * supervisor. False: errno and *step; an address that was not there before is not there now. */
bool sup_call_listen(int calls, struct listeners *ls, const struct listen_conf *l, unsigned want,
                     const char **step) MUST_USE;
/* The address is given up: the supervisor ends the listening for everyone who shares the sockets, and closes its own.
 */
void sup_call_unlisten(int calls, const struct sockets *s);

#endif
