/* SPDX-License-Identifier: MIT */
/*
 * The text of the configuration in force, in a sealed memory file: what a restarted server and an upgrade load,
 * whatever has become of the files on disk.
 */
#ifndef PROC_RUNNING_TEXT_H
#define PROC_RUNNING_TEXT_H

#include "conf/conf.h"

/* A memory file with the text that nobody can change any more, close-on-exec. -1: errno. */
int running_text_seal(struct str text) MUST_USE;
/* Loads it, as conf_load does. */
void running_text_load(int fd, struct conf_result *out);

#endif
