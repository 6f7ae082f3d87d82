/* SPDX-License-Identifier: MIT */
/* One line in the error log when the process dies of a fault. */
#ifndef PROC_CRASH_H
#define PROC_CRASH_H

/* Handlers for the fatal signals; they write the line and let the signal have its way (a core, the exit status). */
void crash_install(void);
/* The calling thread's name for that line ("weir-loop-0"; borrowed for the thread's life) and a stack to write it from
 * when its own has run out. crash_thread_end gives the stack back. */
void crash_thread_begin(const char *name);
void crash_thread_end(void);

#endif
