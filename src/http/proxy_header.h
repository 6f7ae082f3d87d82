/* SPDX-License-Identifier: MIT */
/* The PROXY protocol, versions 1 and 2 (haproxy.org/download/2.9/doc/proxy-protocol.txt): the header that a proxy puts before
 * the bytes of a connection to say whose it is. */
#ifndef HTTP_PROXY_HEADER_H
#define HTTP_PROXY_HEADER_H

#include "base/addr.h"
#include "base/check.h"

enum {
    PROXY_HEADER_V1 = 107,  /* the longest line, CRLF included */
    PROXY_HEADER_MAX = 4096, /* of version 2, with what follows the addresses */
};

enum proxy_header_event { PROXY_HEADER_MORE, PROXY_HEADER_DONE, PROXY_HEADER_BAD };

/* A header while it is read, and what it said. Zeroed at first. */
struct proxy_header {
    bool has_addresses; /* else (UNKNOWN, LOCAL, UNSPEC, unix sockets) those of the connection hold */
    struct ip from, to;
    const char *bad;    /* after PROXY_HEADER_BAD: what is wrong with it, a constant */
    uint16_t skip;      /* bytes that follow and do not matter */
    uint8_t n;
    char held[PROXY_HEADER_V1];
};

/* Takes bytes as they come; *used says how many were the header's. After DONE and BAD it is not called again. */
enum proxy_header_event proxy_header_feed(struct proxy_header *h, const char *p, size_t n, size_t *used) MUST_USE;

/* Writes a header of version 1 or 2 for a connection from and to these; `out` has PROXY_HEADER_V1 bytes. A family of 0
 * on either side: UNKNOWN, or with version 2 UNSPEC. Both NULL: a connection of our own (LOCAL). Returns the length. */
size_t proxy_header_write(unsigned version, const struct ip *from, const struct ip *to, char *out);

#endif
