/* SPDX-License-Identifier: MIT */
/*
 * What can be said of a head whatever the protocol version that brought it: what its method means (RFC 9110 §9) and
 * whether it opens a WebSocket (RFC 6455 §4.1).
 * Reads only; a head and its bytes belong to whoever filled it. Methods are case-sensitive: "get" is a method weir
 * knows nothing about, and is neither served from disk nor sent a second time.
 * The test for a WebSocket is as strict as the RFC, so that what is not one is not taken for a tunnel later.
 */
#include "http/head.h"

static const struct {
    struct str name;
    enum method method;
} methods[] = {
    { { "GET", 3 }, METHOD_GET },
    { { "POST", 4 }, METHOD_POST },
    { { "HEAD", 4 }, METHOD_HEAD },
    { { "PUT", 3 }, METHOD_PUT },
    { { "DELETE", 6 }, METHOD_DELETE },
    { { "OPTIONS", 7 }, METHOD_OPTIONS },
    { { "PATCH", 5 }, METHOD_PATCH },
    { { "TRACE", 5 }, METHOD_TRACE },
    { { "CONNECT", 7 }, METHOD_CONNECT },
};

enum method method_of(struct str text)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (str_eq(text, methods[i].name))
            return methods[i].method;
    return METHOD_OTHER;
}

bool method_is_idempotent(enum method m)
{
    switch (m) {
    case METHOD_GET:
    case METHOD_HEAD:
    case METHOD_PUT:
    case METHOD_DELETE:
    case METHOD_OPTIONS:
    case METHOD_TRACE:
        return true;
    default:
        return false;
    }
}

static bool is_base64(char c)
{
    char l = ascii_lower(c);
    return (l >= 'a' && l <= 'z') || is_digit(c) || c == '+' || c == '/';
}

/* 16 bytes in base64: 22 digits, of the last of which only two bits count, and "==". */
static bool is_websocket_key(struct str key)
{
    if (key.n != 24 || key.p[22] != '=' || key.p[23] != '=' || memchr("AQgw", key.p[21], 4) == NULL)
        return false;
    for (size_t i = 0; i < 22; i++)
        if (!is_base64(key.p[i]))
            return false;
    return true;
}

bool head_is_websocket(const struct head *h)
{
    const struct fields *f = &h->fields;
    if (h->method != METHOD_GET || !h->wants_upgrade || h->body != BODY_NONE)
        return false;
    if (fields_count(f, F_SEC_WEBSOCKET_VERSION) != 1 || fields_count(f, F_SEC_WEBSOCKET_KEY) != 1)
        return false;
    return fields_have_token(f, F_UPGRADE, STR("websocket")) &&
        str_eq(fields_get(f, F_SEC_WEBSOCKET_VERSION)->value, STR("13")) &&
        is_websocket_key(fields_get(f, F_SEC_WEBSOCKET_KEY)->value);
}
