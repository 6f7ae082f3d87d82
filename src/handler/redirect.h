/* SPDX-License-Identifier: MIT */
/* Answers with a redirect made from a template (ACTION_REDIRECT). */
#ifndef HANDLER_REDIRECT_H
#define HANDLER_REDIRECT_H

#include "serve/handler.h"

extern const struct handler redirect_handler;

#endif
