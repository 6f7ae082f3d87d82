/* SPDX-License-Identifier: MIT */
/* Durations and sizes as people write them: "500ms" "30s" "5m" "1h" "30d", "512b" "64k" "1m" "5g"; "0" means none. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include "base/check.h"
#include "base/str.h"

enum { UNITS_TEXT = 24 }; /* enough for any duration_print or size_print */

/* Digits and one unit: ms s m h d. On failure false, *ms is untouched and *why says in a few words what is wrong and
 * what to write (a string constant). */
bool duration_parse(struct str s, uint64_t *ms, const char **why) MUST_USE;
/* Digits and one unit, powers of 1024, in either case: b k m g. */
bool size_parse(struct str s, uint64_t *bytes, const char **why) MUST_USE;
/* The same value in its largest unit that is exact ("90s", "1h"; "64k"). Returns the length; out has UNITS_TEXT bytes
 * and is NUL-terminated. */
size_t duration_print(uint64_t ms, char *out);
size_t size_print(uint64_t bytes, char *out);

#endif
