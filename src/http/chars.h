/* SPDX-License-Identifier: MIT */
/* Classes of bytes in HTTP/1.1 and URIs: one table, looked up by every parser of this folder. */
#ifndef HTTP_CHARS_H
#define HTTP_CHARS_H

#include "base/str.h"

enum {
    CHAR_TOKEN = 1,   /* tchar, RFC 9110 §5.6.2 */
    CHAR_VALUE = 2,   /* what a field value may hold: HTAB, SP, VCHAR, obs-text (RFC 9110 §5.5) */
    CHAR_TARGET = 4,  /* what a request target may hold: VCHAR but '#' */
    CHAR_QUOTED = 8,  /* qdtext, RFC 9110 §5.6.4 */
    CHAR_PATH = 16,   /* stands for itself in a path: pchar without '%', and '/' (RFC 3986 §3.3) */
    CHAR_HOST = 32,   /* reg-name without '%', RFC 3986 §3.2.2 */
};

extern const uint8_t char_classes[256];

static inline bool char_is(char c, unsigned classes)
{
    return (char_classes[(unsigned char)c] & classes) != 0;
}

static inline bool chars_are(struct str s, unsigned classes)
{
    for (size_t i = 0; i < s.n; i++)
        if (!char_is(s.p[i], classes))
            return false;
    return true;
}

#endif
