/* SPDX-License-Identifier: MIT */
/* The reverse proxy: answers a request from a server of an upstream. */
#ifndef HANDLER_PROXY_H
#define HANDLER_PROXY_H

#include "serve/handler.h"

extern const struct handler proxy_handler;

#endif
