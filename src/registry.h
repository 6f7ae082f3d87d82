/* SPDX-License-Identifier: MIT */
/* What the program consists of: the handlers, by the kind of action they answer, and the filters, in the order an
 * answer's bytes pass them. */
#ifndef REGISTRY_H
#define REGISTRY_H

#include "serve/filter.h"
#include "serve/handler.h"

extern const struct handler *const registry_handlers[ACTION_COUNT];
extern const struct filter *const registry_filters[]; /* ends with NULL */

#endif
