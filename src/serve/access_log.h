/* SPDX-License-Identifier: MIT */
#ifndef SERVE_ACCESS_LOG_H
#define SERVE_ACCESS_LOG_H

#include "serve/request.h"

/* One line for a request that ends, into the worker's ring; nothing where access_log is off. */
void access_log_write(struct request *r);

#endif
