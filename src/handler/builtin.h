/* SPDX-License-Identifier: MIT */
/* Answers about the server itself (ACTION_BUILTIN). */
#ifndef HANDLER_BUILTIN_H
#define HANDLER_BUILTIN_H

#include "serve/handler.h"

extern const struct handler builtin_handler;

#endif
