/* SPDX-License-Identifier: MIT */
/* The head of one message, request or response, as bytes turned into structs. Protocol version does not matter here:
 * HTTP/1 fills it from lines, HTTP/2 will from frames. */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include "http/fields.h"

enum method {
    METHOD_OTHER, /* a token weir attaches no meaning to; forwarded as sent */
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_DELETE,
    METHOD_OPTIONS,
    METHOD_PATCH,
    METHOD_TRACE,
    METHOD_CONNECT,
};

/* By its exact, case-sensitive spelling. */
enum method method_of(struct str text);
/* RFC 9110 §9.2.2: may be sent a second time without asking. */
bool method_is_idempotent(enum method m);

enum body_kind {
    BODY_NONE,
    BODY_LENGTH,      /* `length` bytes (may be 0 only in a response that said Content-Length: 0) */
    BODY_CHUNKED,
    BODY_UNTIL_CLOSE, /* responses only */
};

struct head {
    /* request */
    struct str method_text;
    enum method method;
    struct str target; /* as sent, byte for byte */
    /* response */
    uint16_t status;
    struct str reason;
    /* both */
    uint8_t minor; /* of the sender's HTTP/1.x; 1.2 to 1.9 count as 1 */
    struct fields fields;
    enum body_kind body;
    uint64_t length;     /* BODY_LENGTH; for an answer to HEAD and a 304: see has_length */
    bool has_length;     /* a valid Content-Length stood there, whatever `body` says */
    bool keep_alive;     /* by version and Connection (RFC 9112 §9.3); false for BODY_UNTIL_CLOSE */
    bool expect_continue; /* request: Expect: 100-continue on HTTP/1.1 */
    bool wants_upgrade;  /* Connection lists "upgrade" and an Upgrade field is there, on HTTP/1.1 */
};

/* Is this request a genuine WebSocket opening handshake (RFC 6455 §4.1)? GET, HTTP/1.1, Upgrade lists "websocket",
 * Connection lists "upgrade", one Sec-WebSocket-Version 13, one Sec-WebSocket-Key of 16 bytes in base64, no body. */
bool head_is_websocket(const struct head *h);

#endif
