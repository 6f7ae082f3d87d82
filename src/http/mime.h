/* SPDX-License-Identifier: MIT */
/* Media types of files. Pure. */
#ifndef HTTP_MIME_H
#define HTTP_MIME_H

#include "base/map.h"

/* The type for a file name by its last extension, any case; "application/octet-stream" if unknown. Text types come with
 * "; charset=utf-8". The span is static. */
struct str mime_of(struct str file_name);

/* The same, but for what `own` (extension in lower case -> struct str) says. own may be NULL. */
struct str mime_find(const struct map *own, struct str file_name);
/* Is a file of this type compressed by nature: an image, a film, an archive? */
bool mime_is_dense(struct str type);
/* Is a file of this name, which has that type, the gzip coded form of it (RFC 9110 §8.4), as .svgz is of an SVG image? */
bool mime_is_stored_coded(struct str file_name, struct str type);

#endif
