/* SPDX-License-Identifier: MIT */
/* The files that the supervisor makes: the pid file and the control socket. */
#ifndef PROC_SUP_FILES_H
#define PROC_SUP_FILES_H

#include "proc/sup_state.h"

/* Opens and locks the pid file, if the configuration wants one; empty until pid_file_write. Before the drop of rights.
 * False: logged. */
bool pid_file_open(struct sup_file *f, const struct conf *conf) MUST_USE;
void pid_file_write(const struct sup_file *f);

/* Binds the control socket and gives it to the user that the server will run as. Before the drop of rights. False: one
 * was asked for and cannot be had (logged). Otherwise there is one, or f->fd is -1 and errno says why not (0: there is
 * no place for one). */
bool control_file_open(struct sup_file *f, const struct conf *conf) MUST_USE;

/* Removes the file if it is still the one made here; forgets it. */
void sup_file_remove(struct sup_file *f);

#endif
