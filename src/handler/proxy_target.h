/* SPDX-License-Identifier: MIT */
/* The target that a backend gets: as it came, without a prefix (strip_prefix), or made anew (rewrite). */
#ifndef HANDLER_PROXY_TARGET_H
#define HANDLER_PROXY_TARGET_H

#include "serve/request.h"

/* *out is borrowed from r or in its arena. FAIL_NONE, or why there is none. */
enum fail proxy_target(struct request *r, struct str *out) MUST_USE;

#endif
