/* SPDX-License-Identifier: MIT */
/* What a server asks its supervisor for, and waits: one thread at a time. */
#ifndef PROC_SUP_CALL_H
#define PROC_SUP_CALL_H

#include "proc/listeners.h"

/* Sees to it that ls has `want` sockets of an address (or the one there can be); what is missing comes from the
 * supervisor. False: errno and *step; an address that was not there before is not there now. */
bool sup_call_listen(int calls, struct listeners *ls, const struct listen_conf *l, unsigned want,
                     const char **step) MUST_USE;
/* The address is given up: closed by the supervisor first, then here. A socket that only the supervisor still held would
 * complete handshakes that nobody answers. */
void sup_call_unlisten(int calls, struct listeners *ls, struct sockets *s);

#endif
