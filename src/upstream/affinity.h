/* SPDX-License-Identifier: MIT */
/*
 * Which server a client belongs to: by the tag that its cookie holds, and by what was learnt of its session. Shared by
 * all loops. Knows no HTTP.
 */
#ifndef UPSTREAM_AFFINITY_H
#define UPSTREAM_AFFINITY_H

#include "upstream/upstream.h"

/* Characters of a tag: 128 bits in base64url. */
enum { AFFINITY_TAG = 22 };

struct affinity_tag {
    char text[AFFINITY_TAG];
    uint16_t index; /* of the entry */
};

/* Makes the tags of a set whose upstream is sticky. False: out of memory. */
bool affinity_prepare(struct server_set *set, const struct upstream_conf *c) MUST_USE;
/* Makes the table of sessions, if it is wanted and not there. False: out of memory. */
bool affinity_open(struct upstream *u, const struct upstream_conf *c) MUST_USE;
void affinity_close(struct upstream *u);

/* The server of that tag. NULL: there is none, or it takes no sessions any more. */
struct server *affinity_by_tag(struct upstream *u, struct str tag);
/* The tag of a server, valid as long as the request's snapshot; empty: it is no longer of this upstream. */
struct str affinity_tag(struct upstream *u, const struct server *s);

/* A session is known by a hash of its name. */
uint64_t affinity_session(struct upstream *u, struct str name);
/* The session lives on this server. now_ms: monotonic. */
void affinity_learn(struct upstream *u, uint64_t session, struct server *s, uint64_t now_ms);
/* NULL: not known, or the server takes no sessions any more. */
struct server *affinity_by_session(struct upstream *u, uint64_t session, uint64_t now_ms);

#endif
