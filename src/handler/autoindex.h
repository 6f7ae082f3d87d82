/* SPDX-License-Identifier: MIT */
/* The listing of a folder, for people (HTML) or for programs (JSON). */
#ifndef HANDLER_AUTOINDEX_H
#define HANDLER_AUTOINDEX_H

#include "handler/file_cache.h"
#include "serve/handler.h"

enum { AUTOINDEX_MAX = 5000 }; /* entries of a folder that are read */

/* Answers with the listing of want->path, a folder ("." for the root), as r->s->autoindex says. 0, or an errno and
 * nothing has been done. */
int autoindex_serve(struct request *r, struct file_cache *c, const struct file_want *want) MUST_USE;

#endif
