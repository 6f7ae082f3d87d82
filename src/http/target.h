/* SPDX-License-Identifier: MIT */
/*
 * The request target (RFC 9112 §3.2, RFC 3986): the bytes as sent, and beside them the decoded path that routing and
 * files use. Decoded once, then dot segments resolved, then runs of slashes merged. Pure.
 */
#ifndef HTTP_TARGET_H
#define HTTP_TARGET_H

#include "http/head.h"

enum target_form { TARGET_ORIGIN, TARGET_ABSOLUTE, TARGET_ASTERISK, TARGET_AUTHORITY };

struct target {
    enum target_form form;
    struct str raw;       /* what goes to a backend: origin-form path and query, byte for byte ("*" for asterisk) */
    struct str raw_path;  /* raw without the query */
    struct str query;     /* without '?'; has_query tells "/x?" from "/x" */
    bool has_query;
    struct str path;      /* decoded, resolved, merged; starts with '/' ("/" for asterisk and authority); in the arena,
                           * or raw_path itself if nothing changed */
    struct str authority; /* absolute-form and authority-form: host[:port] from the target; else empty */
    bool tricky;          /* an encoded '/' or '.', or an empty segment before "..", changed the result of dot
                           * resolution: 400 where a backend would see the raw bytes */
};

enum target_result {
    TARGET_OK,
    TARGET_BAD,        /* bad percent escape, %00, fragment, control byte, byte >= 0x80, wrong form for the method */
    TARGET_ABOVE_ROOT, /* ".." leads above "/" */
    TARGET_NO_MEMORY,
};

/* Parses the target of a request with this method. */
enum target_result target_parse(struct target *t, struct str raw, enum method m, struct arena *a) MUST_USE;

/* The target of a GET with this decoded path and the query of t (also its authority): for one that weir goes on with
 * itself. The path is borrowed. False: out of memory. */
bool target_make(struct target *t, struct str path, struct arena *a) MUST_USE;

/* t->raw without the prefix (of the decoded path, which is beneath it), from its '/' on and with the query. The rest
 * keeps its bytes as long as they mean the rest of the path by themselves; otherwise it is the decoded path's rest,
 * encoded. p is NULL when memory is out. */
struct str target_cut(const struct target *t, struct str prefix, struct arena *a) MUST_USE;

/* Host (RFC 9110 §7.2): splits "name", "name:port", "[v6]:port". *name without port, but with the brackets; *port 0 if
 * absent or empty. False: malformed. An empty value is malformed. */
bool host_parse(struct str value, struct str *name, uint16_t *port) MUST_USE;

/* Percent-encodes a decoded path for use in a Location or a listing: everything but unreserved, sub-delims, ':', '@'
 * and '/'. p is NULL when memory is out. */
struct str path_encode(struct arena *a, struct str path) MUST_USE;
/* The same for a part of a query: '&' and ';' would end a parameter there, and '+' would be a space. */
struct str query_encode(struct arena *a, struct str text) MUST_USE;

#endif
