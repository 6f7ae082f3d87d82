/* SPDX-License-Identifier: MIT */
/* HTTP dates (RFC 9110 §5.6.7). */
#ifndef HTTP_DATE_H
#define HTTP_DATE_H

#include <time.h>

#include "base/check.h"
#include "base/str.h"

enum { HTTP_DATE = 29 };
/* IMF-fixdate, HTTP_DATE bytes without a NUL, locale-free. Years 0..9999. */
void date_print(char out[HTTP_DATE], int64_t seconds);
/* The three formats of the RFC (two-digit years by the 50-year rule against now). False: not a date. */
bool date_parse(struct str s, int64_t now, int64_t *seconds) MUST_USE;

#endif
