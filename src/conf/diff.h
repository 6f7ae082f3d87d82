/* SPDX-License-Identifier: MIT */
/* What a reload changes, in words. */
#ifndef CONF_DIFF_H
#define CONF_DIFF_H

#include "conf/conf.h"

/* "+1 location, 2 servers changed, -1 site" for the way from `old` to `new`; "nothing changed" if there is no difference. In the arena;
 * p is NULL when memory is out. */
struct str conf_diff(struct arena *a, const struct conf *old, const struct conf *new) MUST_USE;

#endif
