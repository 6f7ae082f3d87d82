/* SPDX-License-Identifier: MIT */
/* Range requests (RFC 9110 §14): one Range value against a length. Pure. */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include "base/check.h"
#include "base/str.h"

struct range {
    uint64_t off, n; /* n > 0 */
};

enum { RANGE_MAX = 16 }; /* more ranges than this, after coalescing, are answered with the whole file */

enum range_result {
    RANGE_NONE,          /* ignore: other unit, malformed, too many, silly: 200 */
    RANGE_SOME,          /* 206: *count ranges in the order of the request */
    RANGE_UNSATISFIABLE, /* 416 */
};

/* value: the one Range field. length: bytes of the representation. Overlapping and adjacent ranges are coalesced when
 * there are more than one; the sum never exceeds length. */
enum range_result range_plan(struct str value, uint64_t length, struct range out[RANGE_MAX], unsigned *count) MUST_USE;

#endif
