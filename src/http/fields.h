/* SPDX-License-Identifier: MIT */
/*
 * Header fields (RFC 9110 §5): an ordered list of lines, names as received, with an id for the names weir knows so that
 * nobody compares strings twice. Repeated names stay separate lines. The spans borrow; the list lives in an arena.
 */
#ifndef HTTP_FIELDS_H
#define HTTP_FIELDS_H

#include "base/arena.h"
#include "base/str.h"

/* One row for each field name weir looks at: id, canonical spelling. Sorted by name. */
#define FIELD_IDS(X) \
    X(ACCEPT, "Accept") X(ACCEPT_ENCODING, "Accept-Encoding") X(ACCEPT_RANGES, "Accept-Ranges") X(AGE, "Age") \
    X(ALLOW, "Allow") X(ALT_SVC, "Alt-Svc") X(AUTHORIZATION, "Authorization") X(CACHE_CONTROL, "Cache-Control") \
    X(CONNECTION, "Connection") X(CONTENT_DISPOSITION, "Content-Disposition") X(CONTENT_ENCODING, "Content-Encoding") X(CONTENT_LENGTH, "Content-Length") \
    X(CONTENT_RANGE, "Content-Range") X(CONTENT_TYPE, "Content-Type") X(COOKIE, "Cookie") X(DATE, "Date") \
    X(ETAG, "ETag") X(EXPECT, "Expect") X(EXPIRES, "Expires") X(FORWARDED, "Forwarded") X(HOST, "Host") \
    X(HTTP2_SETTINGS, "HTTP2-Settings") X(IF_MATCH, "If-Match") X(IF_MODIFIED_SINCE, "If-Modified-Since") \
    X(IF_NONE_MATCH, "If-None-Match") X(IF_RANGE, "If-Range") X(IF_UNMODIFIED_SINCE, "If-Unmodified-Since") \
    X(KEEP_ALIVE, "Keep-Alive") X(LAST_MODIFIED, "Last-Modified") X(LOCATION, "Location") \
    X(MAX_FORWARDS, "Max-Forwards") X(PROXY, "Proxy") X(PROXY_AUTHENTICATE, "Proxy-Authenticate") \
    X(PROXY_AUTHORIZATION, "Proxy-Authorization") X(PROXY_CONNECTION, "Proxy-Connection") X(RANGE, "Range") \
    X(REFERER, "Referer") X(RETRY_AFTER, "Retry-After") X(SEC_WEBSOCKET_ACCEPT, "Sec-WebSocket-Accept") \
    X(SEC_WEBSOCKET_EXTENSIONS, "Sec-WebSocket-Extensions") X(SEC_WEBSOCKET_KEY, "Sec-WebSocket-Key") \
    X(SEC_WEBSOCKET_PROTOCOL, "Sec-WebSocket-Protocol") X(SEC_WEBSOCKET_VERSION, "Sec-WebSocket-Version") \
    X(SERVER, "Server") X(SET_COOKIE, "Set-Cookie") X(TE, "TE") X(TRACEPARENT, "traceparent") X(TRAILER, "Trailer") \
    X(TRANSFER_ENCODING, "Transfer-Encoding") X(UPGRADE, "Upgrade") X(USER_AGENT, "User-Agent") X(VARY, "Vary") \
    X(VIA, "Via") X(WARNING, "Warning") X(WWW_AUTHENTICATE, "WWW-Authenticate") \
    X(X_ACCEL_BUFFERING, "X-Accel-Buffering") X(X_ACCEL_CHARSET, "X-Accel-Charset") \
    X(X_ACCEL_EXPIRES, "X-Accel-Expires") X(X_ACCEL_LIMIT_RATE, "X-Accel-Limit-Rate") \
    X(X_ACCEL_MAPPING, "X-Accel-Mapping") X(X_ACCEL_REDIRECT, "X-Accel-Redirect") \
    X(X_FORWARDED_FOR, "X-Forwarded-For") X(X_FORWARDED_HOST, "X-Forwarded-Host") \
    X(X_FORWARDED_PORT, "X-Forwarded-Port") X(X_FORWARDED_PROTO, "X-Forwarded-Proto") \
    X(X_REAL_IP, "X-Real-IP") X(X_REQUEST_ID, "X-Request-ID") X(X_SENDFILE, "X-Sendfile") \
    X(X_SENDFILE_TYPE, "X-Sendfile-Type")

enum field_id {
    F_OTHER,
#define X(id, name) F_##id,
    FIELD_IDS(X)
#undef X
        F_COUNT
};

struct field {
    struct str name, value; /* value without surrounding OWS */
    enum field_id id;
};

struct fields {
    struct field *v;
    unsigned n, cap;
    uint64_t have[2]; /* a bit for each id present, so that asking for an absent name costs nothing; kept by fields_* */
};
_Static_assert(F_COUNT <= 128, "fields.have has a bit for each id");

/* The id of a name in any case; F_OTHER if weir does not know it. */
enum field_id field_id_of(struct str name);
/* The same, and are two names the same, for a program that reads fields as CGI does, where '-' and '_' are one (RFC 3875
 * §4.1.18; WSGI, Rack and PHP do). */
enum field_id field_id_of_cgi(struct str name);
bool is_cgi_name(struct str a, struct str b);
/* The canonical spelling. */
struct str field_name_of(enum field_id id);

/* Room for cap lines in all, so that adding up to that many moves nothing. False: out of memory. */
bool fields_reserve(struct fields *f, struct arena *a, unsigned cap) MUST_USE;
/* Appends a line; the spans are borrowed. False: out of memory. */
bool fields_add(struct fields *f, struct arena *a, struct str name, struct str value, enum field_id id) MUST_USE;
/* Appends a line of a known name in its canonical spelling. */
bool fields_add_id(struct fields *f, struct arena *a, enum field_id id, struct str value) MUST_USE;
/* The first line with that id, NULL if there is none. For F_OTHER use fields_find. */
const struct field *fields_get(const struct fields *f, enum field_id id);
const struct field *fields_find(const struct fields *f, struct str name);
/* The next line of the same name after `it`. */
const struct field *fields_next(const struct fields *f, const struct field *it);
unsigned fields_count(const struct fields *f, enum field_id id);
/* Removes every line of that name, keeping the order of the rest. */
void fields_remove(struct fields *f, enum field_id id);
void fields_remove_name(struct fields *f, struct str name);
/* Also what CGI would take for that name. */
void fields_remove_cgi_name(struct fields *f, struct str name);

/* Iterates the members of a comma-separated list over one value (RFC 9110 §5.6.1; quoted strings are kept whole, empty
 * members are skipped). *at starts at 0. False at the end. */
bool list_next(struct str value, size_t *at, struct str *member);
/* Does any line of that id list this token (case-insensitive, parameters after ';' ignored)? */
bool fields_have_token(const struct fields *f, enum field_id id, struct str token);

bool is_token(struct str s);      /* 1*tchar, RFC 9110 §5.6.2 */
bool is_field_value(struct str s); /* VCHAR, obs-text, SP, HTAB: nothing that could end a line */

#endif
