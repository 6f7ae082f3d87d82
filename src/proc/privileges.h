/* SPDX-License-Identifier: MIT */
/* What the process may do and how much it may use. */
#ifndef PROC_PRIVILEGES_H
#define PROC_PRIVILEGES_H

#include "base/check.h"
#include "base/str.h"

/* Becomes "user" or "user:group" for good, and keeps only the right to bind ports below 1024; an empty string stays.
 * Also sees to it that no program started from here can gain rights. Before any thread starts. False: logged. */
bool privileges_drop(struct str user) MUST_USE;
/* Makes `user` the owner of a file that was made for it. */
void privileges_give(const char *path, struct str user);
/* Gives up that one too; root stays root. */
void privileges_drop_binding(void);
/* Raises the soft limit of descriptors to the hard one; returns what it is then. */
uint64_t privileges_raise_descriptors(void);

#endif
