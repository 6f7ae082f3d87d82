/* SPDX-License-Identifier: MIT */
/*
 * Sticky sessions, the HTTP side: where a request says whom it belongs to, and where an answer tells. Pure: the server
 * itself is found by upstream/affinity.h, and proxy.c decides.
 */
#ifndef HANDLER_STICKY_H
#define HANDLER_STICKY_H

#include "http/fields.h"

enum { STICKY_COOKIES = 8 }; /* of one name that are looked at: there is one for each path and domain that set it */

/* The values of the cookies of that name, at most max of them. */
unsigned sticky_cookies(const struct fields *f, struct str name, struct str *out, unsigned max);
/* The value of Set-Cookie; p is NULL when memory is out. */
struct str sticky_set_cookie(struct arena *a, struct str name, struct str value, bool secure) MUST_USE;

/* socket.io (Engine.IO's query, EIO=4&transport=polling&sid=...): the session; empty: none. */
struct str sticky_sid(struct str query);
/* Will the answer be a handshake, with the session in its body? A WebSocket alone needs none: it is one connection. */
bool sticky_is_handshake(struct str query);

enum sticky_found { STICKY_FOUND, STICKY_MORE, STICKY_NONE };
enum { STICKY_BODY = 256 }; /* bytes of a body beyond which no session is looked for */
/* The session in the first bytes of a handshake's answer; STICKY_MORE: they do not reach that far. */
enum sticky_found sticky_find_sid(struct str body, struct str *sid);

/* SockJS (/prefix/server/session/transport): the path up to and with the session; empty: none, or a WebSocket's. */
struct str sticky_sockjs(struct str path);

#endif
