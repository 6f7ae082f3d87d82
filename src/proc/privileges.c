/* SPDX-License-Identifier: MIT */
/*
 * Gives up root for good, once, between binding and everything else: logs and files are opened with the rights that a
 * reload will have. Order matters: supplementary groups, group, user; each needs the rights that the next one gives up.
 * (setuid(2), setgroups(2); glibc applies them to all threads, but there are none yet.)
 *
 * Owns nothing. What it changes is the process, so there is no way back and nothing to undo; that root is really gone
 * is tried afterwards, because a server that believes so wrongly is worse than one that does not start.
 */
#include "proc/privileges.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"

enum { NAME = 256 };

static bool become(const char *name, uid_t uid, gid_t gid)
{
    if (initgroups(name, gid) != 0 || setgid(gid) != 0 || setuid(uid) != 0) {
        log_write(LOG_ERROR, "cannot become user \"%s\": %s", name, strerror(errno));
        return false;
    }
    /* Whatever the libraries say: root must not come back. */
    if (uid != 0)
        CHECK(setuid(0) != 0 && geteuid() == uid && getegid() == gid);
    return true;
}

/* The ids of "user" or "user:group"; `name` becomes the user's. */
static bool look_up(struct str user, char name[NAME], uid_t *uid, gid_t *gid)
{
    ptrdiff_t colon = str_chr(user, ':', 0);
    struct str who = colon < 0 ? user : str_take(user, (size_t)colon);
    struct str group = colon < 0 ? STR_NONE : str_skip(user, (size_t)colon + 1);
    char group_name[NAME];
    if (who.n >= NAME || group.n >= NAME) {
        log_write(LOG_ERROR, "user: the name is too long");
        return false;
    }
    memcpy(name, who.p, who.n);
    name[who.n] = '\0';
    const struct passwd *pw = getpwnam(name);
    if (pw == NULL) {
        log_write(LOG_ERROR, "user: there is no user \"%s\"", name);
        return false;
    }
    *uid = pw->pw_uid;
    *gid = pw->pw_gid;
    if (colon < 0)
        return true;
    memcpy(group_name, group.p, group.n);
    group_name[group.n] = '\0';
    const struct group *gr = getgrnam(group_name);
    if (gr == NULL) {
        log_write(LOG_ERROR, "user: there is no group \"%s\"", group_name);
        return false;
    }
    *gid = gr->gr_gid;
    return true;
}

bool privileges_drop(struct str user)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        log_write(LOG_WARN, "PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
    if (user.n == 0) {
        if (geteuid() == 0)
            log_write(LOG_WARN, "running as root: set `user` to give up what only binding needs");
        return true;
    }
    char name[NAME];
    uid_t uid;
    gid_t gid;
    if (!look_up(user, name, &uid, &gid))
        return false;
    if (geteuid() == 0)
        return become(name, uid, gid);
    if (geteuid() != uid)
        log_write(LOG_WARN, "user = \"%s\" has no effect: not started as root", name);
    return true;
}

uint64_t privileges_raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    struct rlimit raised = { .rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max };
    if (limit.rlim_cur < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0)
        limit = raised;
    return limit.rlim_cur;
}
