/* SPDX-License-Identifier: MIT */
/* A configuration as a proxy.conf that stands for it, and the pages generated from the settings tables. */
#ifndef CONF_PRINT_H
#define CONF_PRINT_H

#include "conf/conf.h"

/* Only what differs from the defaults, every path absolute; loads to the same configuration. In the arena; p is NULL
 * when memory is out. */
struct str conf_print(struct arena *a, const struct conf *c);
/* docs/settings.md and docs/man/proxy.conf.5, generated from the settings tables. */
struct str conf_settings_md(struct arena *a);
struct str conf_settings_man(struct arena *a);

#endif
