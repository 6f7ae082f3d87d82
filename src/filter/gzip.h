/* SPDX-License-Identifier: MIT */
/* Compresses answers on their way out, as `gzip` says. */
#ifndef FILTER_GZIP_H
#define FILTER_GZIP_H

#include "serve/filter.h"

extern const struct filter gzip_filter;

#endif
