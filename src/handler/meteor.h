/* SPDX-License-Identifier: MIT */
/* Answers with the client files of a Meteor bundle (ACTION_METEOR), as the app's own server would. */
#ifndef HANDLER_METEOR_H
#define HANDLER_METEOR_H

#include "serve/handler.h"

extern const struct handler meteor_handler;

#endif
