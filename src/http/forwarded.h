/* SPDX-License-Identifier: MIT */
/* Who the client is, by the word of the proxies in front: X-Forwarded-For, or Forwarded (RFC 7239). */
#ifndef HTTP_FORWARDED_H
#define HTTP_FORWARDED_H

#include "base/addr.h"
#include "http/fields.h"

enum { FORWARDED_HOPS = 64 }; /* entries looked at; the client is the last of them if all are trusted */

struct forwarded {
    struct ip client; /* the peer itself if it names nobody; the port is 0 if none was said */
    bool has_scheme;  /* somebody said by what scheme the client came */
    bool is_https;
};

/* Reads the fields of a request whose peer is trusted. The entries are taken from the last to the first for as long as the
 * address that says them is in the list: the first that is not is the client. An entry that names no address (malformed,
 * "unknown", obfuscated) ends the walk at the address that said it. X-Forwarded-For counts if there is one, else Forwarded;
 * the scheme is that of X-Forwarded-Proto, else Forwarded's. */
struct forwarded forwarded_read(const struct fields *f, const struct ip *peer, const struct cidr *trusted, unsigned n_trusted);

/* May this X-Request-ID of a trusted peer be kept? 1 to 128 letters, digits and + - . / : = @ _ ~ */
bool is_request_id(struct str s);

#endif
