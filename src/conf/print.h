/* SPDX-License-Identifier: MIT */
/* A configuration as a proxy.conf that stands for it, and the pages generated from the settings tables. */
#ifndef CONF_PRINT_H
#define CONF_PRINT_H

#include "conf/conf.h"

/* Only what differs from the defaults, every path absolute; loads to the same configuration. In the arena; p is NULL
 * when memory is out. */
struct str conf_print(struct arena *a, const struct conf *c);
/* A configuration taken apart, to be compared with another: what a part is known by, and everything it says (a
 * location with all it inherits), as text. */
enum conf_part_kind { PART_TOP, PART_LISTENER, PART_SITE, PART_LOCATION, PART_UPSTREAM, PART_SERVER, PART_KINDS };

struct conf_part {
    enum conf_part_kind kind;
    struct str key, text;
};

/* All parts, in the arena. False: memory is out. */
bool conf_parts(struct arena *a, const struct conf *c, struct conf_part **out, unsigned *n) MUST_USE;
/* docs/settings.md and docs/man/proxy.conf.5, generated from the settings tables. */
struct str conf_settings_md(struct arena *a);
struct str conf_settings_man(struct arena *a);

#endif
