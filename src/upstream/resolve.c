/* SPDX-License-Identifier: MIT */
/*
 * Names to addresses through the system's resolver, so that /etc/hosts, nsswitch and search domains mean what they mean
 * elsewhere on the host. It blocks and is called on the main or the loader thread only. Keeps nothing.
 */
#include "upstream/resolve.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

static bool is_known(const struct addr *list, unsigned n, const struct addr *a)
{
    for (unsigned i = 0; i < n; i++)
        if (addr_eq(&list[i], a))
            return true;
    return false;
}

unsigned resolve_name(struct str host, uint16_t port, struct addr *out, unsigned max, const char **why)
{
    char name[256], service[8];
    *why = "the name is too long";
    if (host.n >= sizeof name)
        return 0;
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    snprintf(service, sizeof service, "%u", port);
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    int error = getaddrinfo(name, service, &hints, &found);
    if (error != 0) {
        *why = gai_strerror(error);
        return 0;
    }
    unsigned n = 0;
    for (const struct addrinfo *it = found; it != NULL && n < max; it = it->ai_next) {
        struct addr a = { .len = it->ai_addrlen };
        if (it->ai_addrlen > sizeof a.u)
            continue;
        memcpy(&a.u, it->ai_addr, it->ai_addrlen);
        if (!is_known(out, n, &a))
            out[n++] = a;
    }
    freeaddrinfo(found);
    *why = "the name has no address";
    return n;
}
