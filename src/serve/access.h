/* SPDX-License-Identifier: MIT */
/* May this client have this? What stands between the location and its handler. */
#ifndef SERVE_ACCESS_H
#define SERVE_ACCESS_H

#include "serve/request.h"

/* STEP_ACCESS; r->s is the location's. The next step is STEP_HANDLE, or the request has been refused. */
enum step_result access_check(struct request *r) MUST_USE;
/* At the request's end: gives back what it was counted for. */
void access_release(struct request *r);

#endif
