/* SPDX-License-Identifier: MIT */
/*
 * Calls over the link to the supervisor, the only one who binds. The loader thread calls during a load, the main thread
 * otherwise, never both. An answer that came too late for an earlier call is thrown away before the next one.
 */
#include "proc/sup_call.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

enum { STEP = 32 };

static void forget_late_answers(int calls, struct link_message *m)
{
    while (link_receive(calls, m) == IO_OK)
        link_close_fds(m);
}

static bool take_all(int calls, struct sockets *s, struct link_message *m)
{
    uint64_t left = m->n;
    for (;;) {
        if (m->n_fds > left || (left > 0 && m->n_fds == 0)) {
            errno = EPROTO;
            break;
        }
        left -= m->n_fds;
        if (m->n_fds > 0 && !sockets_take(s, m->fds, m->n_fds)) {
            errno = ENOMEM;
            break;
        }
        m->n_fds = 0; /* they are in the list */
        if (left == 0)
            return true;
        if (!link_wait(calls, m) || m->kind != LINK_OPENED)
            break;
    }
    link_close_fds(m);
    return false;
}

/* Asks for what s lacks. */
static bool ask(int calls, struct sockets *s, const struct listen_conf *l, unsigned want, const char **step)
{
    static _Thread_local char failed[STEP];
    struct link_message *m = malloc(sizeof *m);
    bool ok = false;
    *step = "memory";
    if (m == NULL)
        return false;
    forget_late_answers(calls, m);
    link_begin(m, LINK_OPEN, want, l->text);
    m->have = s->n;
    m->listen = listen_of(l);
    *step = "supervisor";
    if (link_call(calls, m)) {
        if (m->kind == LINK_OPEN_FAILED) {
            struct str text = str_take(m->text, STEP - 1);
            memcpy(failed, text.p, text.n);
            failed[text.n] = '\0';
            *step = failed;
            errno = (int)m->n;
        } else if (m->kind == LINK_OPENED) {
            ok = take_all(calls, s, m);
        }
        link_close_fds(m);
    }
    int error = errno;
    free(m);
    errno = error;
    return ok;
}

bool sup_call_listen(int calls, struct listeners *ls, const struct listen_conf *l, unsigned want, const char **step)
{
    struct sockets *s = listeners_find(ls, l->text);
    bool is_new = s == NULL;
    if (!is_new && (s->n >= want || s->given))
        return true;
    *step = "memory";
    if (is_new && (s = listeners_add(ls, l->text)) == NULL)
        return false;
    if (ask(calls, s, l, want, step))
        return true;
    int error = errno;
    if (is_new) {
        sup_call_unlisten(calls, s); /* whatever it may have opened */
        listeners_remove(ls, s);
    }
    errno = error;
    return false;
}

void sup_call_unlisten(int calls, const struct sockets *s)
{
    struct link_message *m = malloc(sizeof *m);
    if (m != NULL) {
        forget_late_answers(calls, m);
        link_begin(m, LINK_CLOSE, 0, str_c(s->text));
        if (!link_call(calls, m))
            log_write(LOG_WARN, "the supervisor does not confirm that %s is closed: %s", s->text, strerror(errno));
        link_close_fds(m);
    }
    free(m);
}
