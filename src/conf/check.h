/* SPDX-License-Identifier: MIT */
/* Checks against the file system, and across the whole configuration. */
#ifndef CONF_CHECK_H
#define CONF_CHECK_H

#include "conf/load.h"

/* Is there such a thing? Otherwise says what is wrong. A text that was served before is let through with a warning.
 * Always true with CONF_NO_FILES. */
bool check_folder(const struct value *v, struct str path);
bool check_exists(const struct value *v, struct str path);
/* Is there a client program in this Meteor bundle? */
bool check_bundle(const struct value *v, struct str path);
/* Says that something is not there, or is not what was expected; false, so that a reader can return it. A text that
 * was served before is let through with a warning: true. */
bool check_missing(const struct value *v, struct str path, const char *what, int error);
/* The user, and the group behind a ':', of `user`. */
bool check_user(const struct value *v, struct str user);
/* The folder of a file that will be written. */
bool check_parent(const struct value *v, struct str path);

#endif
