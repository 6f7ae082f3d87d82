/* SPDX-License-Identifier: MIT */
/* Answers with a fixed status and text (ACTION_RESPOND). */
#ifndef HANDLER_FIXED_H
#define HANDLER_FIXED_H

#include "serve/handler.h"

extern const struct handler fixed_handler;

#endif
