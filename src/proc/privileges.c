/* SPDX-License-Identifier: MIT */
/*
 * Gives up root for good, once, before anything is bound or opened: what works at the start then works at a reload.
 * Order matters: supplementary groups, group, user; each needs the rights that the next one gives up. (setuid(2),
 * setgroups(2); glibc applies them to all threads, but there are none yet.)
 *
 * The supervisor keeps one capability, CAP_NET_BIND_SERVICE, also over execve (capabilities(7): it is in the ambient
 * set), so that a reload may bind port 443 and an upgrade need not be root. The servers it forks give that up too.
 *
 * Owns nothing. What it changes is the process, so there is no way back and nothing to undo; that root is really gone
 * is tried afterwards, because a server that believes so wrongly is worse than one that does not start.
 */
#include "proc/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

enum { NAME = 256 };

/* Of all capabilities only those in `keep` stay, of what there is. */
static bool keep_capabilities(uint32_t keep)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 };
    if (syscall(SYS_capget, &head, data) != 0)
        return false;
    keep &= data[0].permitted;
    data[0] = (struct __user_cap_data_struct){ .effective = keep, .permitted = keep, .inheritable = keep };
    data[1] = (struct __user_cap_data_struct){ 0 };
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &head, data) != 0)
        return false;
    return keep == 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0) == 0;
}

static bool become(const char *name, uid_t uid, gid_t gid)
{
    (void)prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if (initgroups(name, gid) != 0 || setgid(gid) != 0 || setuid(uid) != 0) {
        log_write(LOG_ERROR, "cannot become user \"%s\": %s", name, strerror(errno));
        return false;
    }
    /* Whatever the libraries say: root must not come back. */
    if (uid != 0) {
        if (!keep_capabilities(1u << CAP_NET_BIND_SERVICE))
            log_write(LOG_WARN, "cannot keep CAP_NET_BIND_SERVICE: %s", strerror(errno));
        CHECK(setuid(0) != 0 && geteuid() == uid && getegid() == gid);
    }
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

void privileges_give(const char *path, struct str user)
{
    char name[NAME];
    uid_t uid;
    gid_t gid;
    if (geteuid() == 0 && user.n > 0 && look_up(user, name, &uid, &gid) && chown(path, uid, gid) != 0)
        log_write(LOG_WARN, "cannot give %s to %.*s: %s", path, STR_ARG(user), strerror(errno));
}

bool privileges_drop(struct str user)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        log_write(LOG_WARN, "PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
    if (user.n == 0)
        return true;
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

void privileges_drop_binding(void)
{
    if (geteuid() != 0 && !keep_capabilities(0))
        log_write(LOG_WARN, "cannot give up capabilities: %s", strerror(errno));
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
