/* SPDX-License-Identifier: MIT */
/* Which site and which location a request belongs to: nginx's meanings and precedence (docs/settings.md, `match`). */
#ifndef SERVE_ROUTE_H
#define SERVE_ROUTE_H

#include "serve/request.h"

/* By exact name, then the longest wildcard, then the default, then the first. host is lower case, without port. */
const struct site_conf *route_site(const struct listen_conf *listen, struct str host);
/* *won: the location of r->target.path, NULL if none matches; sets r->captures. Notes every candidate for r->trace. False: the
 * regular expression of *won took too many steps; nobody knows whether it matches, so no other location may answer. */
bool route_location(struct request *r, const struct site_conf *site, const struct location_conf **won) MUST_USE;

#endif
