/* SPDX-License-Identifier: MIT */
/* The value of Authorization in the Basic scheme (RFC 7617). */
#ifndef HTTP_CREDENTIALS_H
#define HTTP_CREDENTIALS_H

#include "base/check.h"
#include "base/str.h"

enum { CREDENTIALS_MAX = 768 };

struct credentials {
    struct str user, password; /* into `text`; each ends with a NUL and holds none */
    char text[CREDENTIALS_MAX + 2];
};

/* False: another scheme, malformed, without a user, or too long. The spans point into *out. */
bool credentials_parse(struct str value, struct credentials *out) MUST_USE;

#endif
