/* SPDX-License-Identifier: MIT */
/*
 * The control socket: a unix socket on which `weir status`, `reload`, `stop`, `reopen` and `upgrade` talk to the running
 * server. One command a line, answered by one line of JSON with a member "ok" (docs/operations.md). Belongs to the
 * server's main thread, which polls it beside its signals.
 */
#ifndef PROC_CONTROL_H
#define PROC_CONTROL_H

#include <poll.h>
#include <stdio.h>

#include "base/check.h"
#include "base/str.h"

enum control_verb {
    CONTROL_STATUS,
    CONTROL_RELOAD,
    CONTROL_STOP,
    CONTROL_STOP_NOW,
    CONTROL_REOPEN,
    CONTROL_UPGRADE,
    CONTROL_SERVER, /* with words behind it */
    CONTROL_VERBS
};

enum {
    CONTROL_CLIENTS = 8,
    CONTROL_FDS = CONTROL_CLIENTS + 1,
};

struct control;

const char *control_verb_name(enum control_verb verb);

/* What the server does on a command: answers with control_answer, at once or later. `words` stand behind the verb, for
 * the call only; `who` names the asker until the answer. */
typedef void control_fn(void *arg, enum control_verb verb, struct str words, unsigned who);

/* Where the socket is if the configuration does not say: /run/weir/control.sock for root, else
 * $XDG_RUNTIME_DIR/weir.sock. In `out` (cap bytes, NUL-terminated); false: there is no such place. */
bool control_default_path(char *out, size_t cap);
/* Binds and listens, mode 0600; makes the last folder of the default path. A file nobody listens on is replaced. -1: errno (EADDRINUSE:
 * another server listens there). */
int control_listen(const char *path, bool make_folder) MUST_USE;
/* Takes the listening descriptor over. NULL: out of memory. */
struct control *control_new(int fd, control_fn *run, void *arg) MUST_USE;
/* Asks that are not answered yet are cut. The file is whoever's who made it. */
void control_free(struct control *c);
/* Fills up to CONTROL_FDS entries for poll; returns how many. */
unsigned control_poll(struct control *c, struct pollfd *fds);
/* After control_poll: when it wants to be asked again (clock_monotonic_ms), whatever poll says; UINT64_MAX: need not be. */
uint64_t control_due(const struct control *c);
/* After poll, with the same entries. */
void control_serve(struct control *c, const struct pollfd *fds, unsigned n);
/* One line of JSON without its newline; `who` may have gone. */
void control_answer(struct control *c, unsigned who, struct str json);
/* {"ok":false,"error":"..."} */
void control_refuse(struct control *c, unsigned who, const char *error);
/* A JSON string with its quotes. */
void control_print_string(FILE *f, struct str s);

#endif
