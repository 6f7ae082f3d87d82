/* SPDX-License-Identifier: MIT */
/* What is known of each status code. Pure. */
#ifndef HTTP_STATUS_H
#define HTTP_STATUS_H

#include "base/str.h"

/* The reason phrase of the IANA registry ("" for a code without one). */
struct str status_reason(uint16_t status);
/* "HTTP/1.1 200 OK\r\n" ready-made for the codes of the table; empty for others. */
struct str status_line(uint16_t status);
/* RFC 9112 §6.3: 1xx, 204 and 304 never have a body. */
bool status_has_no_body(uint16_t status);

#endif
