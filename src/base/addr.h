/* SPDX-License-Identifier: MIT */
/* Socket addresses as people write them: "127.0.0.1:80", "[::1]:80", "80", "*:80", "unix:/path", "name:80"; CIDRs. */
#ifndef BASE_ADDR_H
#define BASE_ADDR_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/check.h"
#include "base/str.h"

/* One peer, compact: kept for every client. */
struct ip {
    uint8_t family; /* 4, 6; 0 = none (a unix socket) */
    uint16_t port;  /* host order */
    uint8_t b[16];  /* network order; IPv4 in the first four. An IPv4-mapped IPv6 address is stored as IPv4. */
};

enum { IP_TEXT = 64 }; /* enough for any ip_print with a port and for "unix:" */

/* One concrete socket address. */
struct addr {
    socklen_t len;
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } u;
};

struct cidr {
    struct ip ip;
    uint8_t bits;
    bool unix_peers; /* the word "unix": any peer of a unix socket */
};

/* An endpoint as written in the configuration, before names are resolved. */
struct endpoint {
    enum { ENDPOINT_ANY, ENDPOINT_IP, ENDPOINT_UNIX, ENDPOINT_NAME } kind;
    struct str host;   /* NAME: the name; UNIX: the path */
    struct addr addr;  /* IP and UNIX: ready to use; ANY: [::] with the port */
    uint16_t port;
};

/* "80", "*:80", "1.2.3.4:80", "[::1]:80", "name:80", "unix:/path". On failure false, and *why says in a few words what
 * was expected (a string constant). The spans point into s. */
bool endpoint_parse(struct str s, struct endpoint *out, const char **why) MUST_USE;
/* "10.0.0.0/8", "::1", "unix". Host bits beyond the prefix must be zero. */
bool cidr_parse(struct str s, struct cidr *out, const char **why) MUST_USE;
bool cidr_has(const struct cidr *c, const struct ip *ip);
/* Is it in any of them? */
bool cidrs_have(const struct cidr *list, unsigned n, const struct ip *ip);
/* A bare address without port ("127.0.0.1", "::1"); false if s is none. */
bool ip_parse(struct str s, struct ip *out) MUST_USE;
struct ip ip_of(const struct sockaddr *sa);
/* Without port, no brackets: "127.0.0.1", "::1"; "unix:" for family 0. Returns the length; out has IP_TEXT bytes. */
size_t ip_print(const struct ip *ip, char *out);
/* With port, as in the configuration: "127.0.0.1:80", "[::1]:80", "unix:/path". Returns the length (cut to cap). */
size_t addr_print(const struct addr *a, char *out, size_t cap);
bool addr_eq(const struct addr *a, const struct addr *b);

#endif
