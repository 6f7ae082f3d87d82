/* SPDX-License-Identifier: MIT */
/* Content negotiation by quality values (RFC 9110 §12.4.2, §12.5.3). Pure. */
#ifndef HTTP_ACCEPT_H
#define HTTP_ACCEPT_H

#include "http/head.h"

/* Qualities in thousandths (0..1000) that the Accept-Encoding lines give to the codings weir has; a missing field gives 0
 * to all of them. identity is -1 if it is not named: then it is what is left when no other is wanted. A malformed member
 * is ignored. */
struct accept_codings {
    int gzip, br, zstd, identity;
};
void accept_codings(const struct fields *f, struct accept_codings *out);
/* Quality of a media type ("text/html") by the Accept lines; a missing field gives 1000. */
int accept_type_q(const struct fields *f, struct str type);

#endif
