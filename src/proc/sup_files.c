/* SPDX-License-Identifier: MIT */
/*
 * Files that say where the server is. Both are made by the supervisor, which outlives every server, and removed by it
 * at the end, if they are still the ones it made: a second server that was started by mistake, or one that has taken
 * their place meanwhile, keeps its own.
 *
 * Both are made with the rights of the start, because their folder often belongs to root. The pid file is locked
 * (flock(2)) and written later through the descriptor; without rights to remove it, it is emptied. A control socket
 * that cannot be removed is recognised as stale by the next server.
 */
#include "proc/sup_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "proc/control.h"
#include "proc/privileges.h"

static bool remember(struct sup_file *f)
{
    struct stat st;
    if (lstat(f->path, &st) != 0)
        return false;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    return true;
}

static void forget(struct sup_file *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    free(f->path);
    *f = (struct sup_file){ .fd = -1 };
}

void sup_file_remove(struct sup_file *f)
{
    struct stat st;
    if (f->path != NULL && f->ino != 0 && lstat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino &&
        unlink(f->path) != 0 && S_ISREG(st.st_mode) && ftruncate(f->fd, 0) != 0)
        log_write(LOG_WARN, "cannot remove %s: %s", f->path, strerror(errno));
    forget(f);
}

bool pid_file_open(struct sup_file *f, const struct conf *conf)
{
    if (conf->pid_file.n == 0)
        return true;
    f->path = strndup(conf->pid_file.p, conf->pid_file.n);
    if (f->path == NULL)
        return false;
    f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0644);
    if (f->fd < 0) {
        log_write(LOG_ERROR, "cannot open pid_file %s: %s", f->path, strerror(errno));
    } else if (flock(f->fd, LOCK_EX | LOCK_NB) != 0) {
        log_write(LOG_ERROR, "pid_file %s belongs to another server, which runs", f->path);
    } else if (!remember(f)) {
        log_write(LOG_ERROR, "pid_file %s: %s", f->path, strerror(errno));
    } else {
        return true;
    }
    forget(f);
    return false;
}

void pid_file_write(const struct sup_file *f)
{
    if (f->fd >= 0 && (ftruncate(f->fd, 0) != 0 || lseek(f->fd, 0, SEEK_SET) != 0 ||
                       dprintf(f->fd, "%ld\n", (long)getpid()) < 0))
        log_write(LOG_ERROR, "cannot write pid_file %s: %s", f->path, strerror(errno));
}

bool control_file_open(struct sup_file *f, const struct conf *conf)
{
    char path[sizeof(struct sockaddr_un)];
    bool is_default = conf->control.n == 0;
    errno = 0;
    if (is_default && !control_default_path(path, sizeof path))
        return true;
    f->path = is_default ? strdup(path) : strndup(conf->control.p, conf->control.n);
    if (f->path != NULL)
        f->fd = control_listen(f->path, is_default);
    if (f->fd >= 0 && remember(f)) {
        privileges_give(f->path, conf->user);
        return true;
    }
    int error = errno;
    if (!is_default)
        log_write(LOG_ERROR, "no control socket at %.*s: %s%s", STR_ARG(conf->control), strerror(error),
                  error == EADDRINUSE ? "; another server listens there" : "");
    forget(f);
    errno = error;
    return is_default;
}
