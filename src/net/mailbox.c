/* SPDX-License-Identifier: MIT */
/*
 * A loop's mailbox. Owns the eventfd and the order of the mails, not the mails: each belongs to its poster until it is
 * posted and to its run() afterwards.
 * The wake-up is written under the mutex, so that mailbox_close, which takes it too, is never overtaken by a poster
 * that still holds the descriptor. An eventfd write cannot block here: the counter would need 2^64 - 2 posts unread.
 * Only the first mail of an empty box wakes the loop; the loop takes the whole list at once.
 */
#include "net/mailbox.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "net/loop.h"

/* Runs what is there now; false when there was nothing. */
static bool run_all(struct mailbox *m, struct loop *l)
{
    pthread_mutex_lock(&m->mutex);
    struct mail *mail = m->first;
    m->first = m->last = NULL;
    pthread_mutex_unlock(&m->mutex);
    bool had_mail = mail != NULL;
    while (mail != NULL) {
        struct mail *next = mail->next; /* run may free it */
        mail->run(l, mail);
        loop_scratch_done(l);
        mail = next;
    }
    return had_mail;
}

static void on_look(struct ev_loop *ev, ev_io *w, int revents)
{
    struct loop *l = container_of(w, struct loop, mailbox.look);
    struct mailbox *m = &l->mailbox;
    if (revents & EV_ERROR) {
        log_write(LOG_ERROR, "loop %u: its mailbox cannot be watched; trying again", l->index);
        ev_timer_set(&m->rearm, 0.1, 0.);
        ev_timer_start(ev, &m->rearm);
    } else {
        uint64_t count;
        ssize_t ignored = read(m->fd, &count, sizeof count);
        (void)ignored; /* only the list says what there is */
    }
    run_all(m, l);
}

static void on_rearm(struct ev_loop *ev, ev_timer *w, int revents)
{
    struct loop *l = container_of(w, struct loop, mailbox.rearm);
    if (revents & EV_ERROR)
        return;
    ev_io_start(ev, &l->mailbox.look);
    run_all(&l->mailbox, l);
}

bool mailbox_open(struct mailbox *m, struct loop *l)
{
    m->first = m->last = NULL;
    m->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (m->fd < 0)
        return false;
    int error = pthread_mutex_init(&m->mutex, NULL);
    if (error != 0) {
        close(m->fd);
        errno = error;
        return false;
    }
    ev_init(&m->rearm, on_rearm);
    ev_io_init(&m->look, on_look, m->fd, EV_READ);
    ev_io_start(l->ev, &m->look);
    return true;
}

void mailbox_wake(struct mailbox *m)
{
    ssize_t done;
    do
        done = write(m->fd, &(uint64_t){ 1 }, sizeof(uint64_t));
    while (done < 0 && errno == EINTR);
}

void mailbox_post(struct loop *l, struct mail *mail)
{
    struct mailbox *m = &l->mailbox;
    mail->next = NULL;
    pthread_mutex_lock(&m->mutex);
    bool was_empty = m->last == NULL;
    if (was_empty)
        m->first = mail;
    else
        m->last->next = mail;
    m->last = mail;
    if (was_empty)
        mailbox_wake(m);
    pthread_mutex_unlock(&m->mutex);
}

void mailbox_close(struct mailbox *m, struct loop *l)
{
    while (run_all(m, l))
        ; /* a mail may post another */
    pthread_mutex_lock(&m->mutex);
    ev_io_stop(l->ev, &m->look);
    ev_timer_stop(l->ev, &m->rearm);
    close(m->fd);
    m->fd = -1;
    pthread_mutex_unlock(&m->mutex);
    pthread_mutex_destroy(&m->mutex);
}
