/* SPDX-License-Identifier: MIT */
/* A line in the error log when the process dies of a fault or a thread hangs: which thread, over which request. */
#ifndef PROC_CRASH_H
#define PROC_CRASH_H

#include <pthread.h>

struct worker;

/* Handlers for the fatal signals; they write the line and let the signal have its way (a core, the exit status). Call
 * it once, before other threads. */
void crash_install(void);
/* The calling thread's name for that line ("weir-loop-0"; borrowed for the thread's life), its worker (NULL: none), and
 * a stack to write it from when its own has run out. crash_thread_end gives the stack back. */
void crash_thread_begin(const char *name, const struct worker *w);
void crash_thread_end(void);
/* Has that thread write where it is, as soon as it can take a signal. */
void crash_ask(pthread_t thread);

#endif
