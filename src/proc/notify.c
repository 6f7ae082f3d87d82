/* SPDX-License-Identifier: MIT */
/*
 * The service manager's notification protocol, sd_notify(3): one datagram to the unix socket that $NOTIFY_SOCKET names,
 * a path or, after '@', an abstract name. Failing is no reason to do anything: whoever started the server without a
 * manager has none to tell. Stateless: a socket for each message, which are few, is simpler than one that has to be
 * kept open over everything. Only the main thread calls it.
 */
#include "proc/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

void notify(const char *state)
{
    struct str path = str_c(getenv("NOTIFY_SOCKET"));
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    if (path.n == 0 || path.n >= sizeof to.sun_path || (path.p[0] != '/' && path.p[0] != '@'))
        return;
    memcpy(to.sun_path, path.p, path.n);
    if (path.p[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n);
    ssize_t ignored = sendto(fd, state, str_c(state).n, MSG_NOSIGNAL, (struct sockaddr *)&to, length);
    (void)ignored;
    (void)close(fd);
}

void notify_reloading(void)
{
    char text[64];
    (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)clock_monotonic_us());
    notify(text);
}
