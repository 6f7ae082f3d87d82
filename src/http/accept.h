/* SPDX-License-Identifier: MIT */
/* Content negotiation by quality values (RFC 9110 §12.4.2, §12.5.3). Pure. */
#ifndef HTTP_ACCEPT_H
#define HTTP_ACCEPT_H

#include "http/head.h"

/* Quality in thousandths (0..1000) that the Accept-Encoding lines give to a coding; identity is 1000 unless excluded; a
 * missing field gives 0 to every other coding. A malformed member is ignored. */
int accept_encoding_q(const struct fields *f, struct str coding);
/* Quality of a media type ("text/html") by the Accept lines; a missing field gives 1000. */
int accept_type_q(const struct fields *f, struct str type);

#endif
