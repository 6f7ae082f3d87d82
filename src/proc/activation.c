/* SPDX-License-Identifier: MIT */
/*
 * LISTEN_FDS descriptors from number 3 on, if LISTEN_PID is this process. Each is matched with an address of the
 * configuration by its own address; "8080" and "*:8080" mean [::]:8080, as systemd's ListenStream=8080 does. Such a
 * socket is a single one, watched by every loop: a second could not be bound beside it. What nobody asked for is
 * closed, or its clients would connect and wait for ever.
 */
#include "proc/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

enum { FIRST_FD = 3 };

static const struct listen_conf *address_of(const struct conf *conf, const struct addr *a)
{
    for (unsigned i = 0; i < conf->n_listens; i++)
        if (addr_eq(&conf->listens[i].endpoint.addr, a))
            return &conf->listens[i];
    return NULL;
}

static bool is_listening(int fd)
{
    int yes = 0, type = 0;
    socklen_t n = sizeof yes;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &n) == 0 && yes != 0 &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
}

static void set_up(int fd, const struct listen_conf *l)
{
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (l->endpoint.kind != ENDPOINT_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){ l->defer }, sizeof(int));
}

static void take_one(struct listeners *ls, const struct conf *conf, int fd)
{
    struct addr a = { .len = sizeof a.u };
    char text[sizeof(struct sockaddr_un) + 8];
    if (getsockname(fd, &a.u.sa, &a.len) != 0 || !is_listening(fd)) {
        log_write(LOG_WARN, "descriptor %d of the service manager is not a listening socket", fd);
        (void)close(fd);
        return;
    }
    const struct listen_conf *l = address_of(conf, &a);
    struct sockets *s = l != NULL ? listeners_find(ls, l->text) : NULL;
    if (l != NULL && s == NULL && (s = listeners_add(ls, l->text)) != NULL)
        s->given = true;
    if (s != NULL && sockets_take(s, &fd, 1)) {
        set_up(fd, l);
        return;
    }
    log_write(LOG_WARN, "the service manager's socket %.*s is in no `listen`: closed",
              (int)addr_print(&a, text, sizeof text), text);
    (void)close(fd);
}

void activation_take(struct listeners *ls, const struct conf *conf)
{
    uint64_t pid, n;
    bool ok = str_to_u64(str_c(getenv("LISTEN_PID")), &pid) && pid == (uint64_t)getpid() &&
              str_to_u64(str_c(getenv("LISTEN_FDS")), &n) && n < 10000;
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    for (int i = 0; ok && i < (int)n; i++)
        take_one(ls, conf, FIRST_FD + i);
}
