/* SPDX-License-Identifier: MIT */
/* What the path of a request means to the file handler. Pure. */
#ifndef HANDLER_FILE_PATH_H
#define HANDLER_FILE_PATH_H

#include "conf/conf.h"

/* The part of the decoded path to look for beneath the action's root, without a leading slash; for an alias without
 * the location's prefix, which ends at a segment boundary. A span of `path`. */
struct str file_path_below(const struct location_conf *l, const struct action *a, struct str path);

/* Does a segment begin with a dot? at_top: `below` begins where the site does, so that a first segment ".well-known"
 * (RFC 8615) does not count. */
bool file_path_is_hidden(struct str below, bool at_top);

/* The bytes after the last slash. */
struct str file_path_name(struct str path);

/* Is there a hash of the content in this file name? A piece between '.' and '-', not the last extension, of at least
 * 8 hexadecimal digits or of exactly 40 letters and digits (a Meteor bundle), with a letter and a digit in it: a date
 * is none, a word is none. Neither is the first group of a UUID, which names a thing and not its content. */
bool file_path_has_hash(struct str name);

#endif
