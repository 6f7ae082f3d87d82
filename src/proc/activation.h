/* SPDX-License-Identifier: MIT */
/* Sockets that the service manager has opened: socket activation, sd_listen_fds(3). */
#ifndef PROC_ACTIVATION_H
#define PROC_ACTIVATION_H

#include "proc/listeners.h"

/* Puts those that listen on an address of the configuration into ls; the others are closed, and named in the log. */
void activation_take(struct listeners *ls, const struct conf *conf);

#endif
