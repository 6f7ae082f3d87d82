/* SPDX-License-Identifier: MIT */
/* Answers with a file beneath a root (ACTION_FILE): conditions, ranges, index files, folder redirects. */
#ifndef HANDLER_FILE_H
#define HANDLER_FILE_H

#include "serve/handler.h"

extern const struct handler file_handler;

#endif
