/* SPDX-License-Identifier: MIT */
/* What the program consists of: the handlers, by the kind of action they answer. */
#ifndef REGISTRY_H
#define REGISTRY_H

#include "serve/handler.h"

extern const struct handler *const registry_handlers[ACTION_COUNT];

#endif
