/* SPDX-License-Identifier: MIT */
/* UTF-8 (RFC 3629) as far as it matters when foreign bytes are put into a text that promises it. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/str.h"

/* Bytes of the sequence that s, which is not empty, begins with; 0 if it is none. */
static inline size_t utf8_length(struct str s)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (n > s.n)
        return 0;
    unsigned char second = n > 1 ? (unsigned char)s.p[1] : 0;
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) || (c == 0xf0 && second < 0x90) ||
        (c == 0xf4 && second > 0x8f))
        return 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s.p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

#endif
