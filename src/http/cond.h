/* SPDX-License-Identifier: MIT */
/* Conditional requests (RFC 9110 §13): validators of one representation against the request's If-* fields. Pure. */
#ifndef HTTP_COND_H
#define HTTP_COND_H

#include "http/head.h"

struct validators {
    struct str etag;       /* with quotes and W/ as sent; empty: none */
    int64_t last_modified; /* seconds; -1: none */
};

enum cond_result {
    COND_PASS,            /* answer normally */
    COND_NOT_MODIFIED,    /* 304 */
    COND_FAILED,          /* 412 */
};

/* The precedence of §13.2.2 for GET and HEAD (all If-None-Match lines count). now: seconds, for two-digit years. */
enum cond_result cond_check(const struct fields *f, const struct validators *v, int64_t now) MUST_USE;
/* If-Range (§13.1.5): true if absent or if it matches strongly, so that Range applies. */
bool cond_if_range(const struct fields *f, const struct validators *v, int64_t now) MUST_USE;
/* The opaque-tag comparisons of §8.8.3.2. */
bool etag_weak_eq(struct str a, struct str b);
bool etag_strong_eq(struct str a, struct str b);

#endif
