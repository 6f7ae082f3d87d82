/* SPDX-License-Identifier: MIT */
/* The thread that empties every loop's log ring into the files, and the sink of the error log. */
#ifndef PROC_LOG_WRITER_H
#define PROC_LOG_WRITER_H

#include <stdio.h>

#include "conf/conf.h"
#include "serve/log_ring.h"

struct log_writer;

/* Without files or rings yet; from now on log_write comes here. NULL when memory or descriptors are out. One per
 * process. */
struct log_writer *log_writer_new(void) MUST_USE;
/* Another ring to empty. Before log_writer_start; the ring must outlive log_writer_free. False: no memory. */
bool log_writer_add_ring(struct log_writer *w, struct log_ring *ring, unsigned index) MUST_USE;
/* Opens the logs of a configuration (those already open are shared); records of that generation may be put afterwards,
 * and its error log is the one in use. False: every file that cannot be opened was logged and nothing has changed. May
 * block on a file system: not for a loop. */
bool log_writer_open(struct log_writer *w, const struct conf *conf, uint64_t generation) MUST_USE;
/* No record of this generation will be put any more: its files are closed once the rings have been emptied. Any thread.
 */
void log_writer_forget(struct log_writer *w, uint64_t generation);
/* False: errno. */
bool log_writer_start(struct log_writer *w) MUST_USE;
/* Start-up is over: errors no longer appear on stderr beside the error log. */
void log_writer_started(struct log_writer *w);
/* Any thread: opens every file by its path again. What was put before goes to the old file. */
void log_writer_reopen(struct log_writer *w);
/* Ends the thread after a last round (at most a second for readers of pipes that are behind); log_write is stderr's
 * again. No other thread may log any more. */
void log_writer_free(struct log_writer *w);
/* The first part of it: everything is written, the thread ends. What is logged later is lost. */
void log_writer_end(struct log_writer *w);

/* The calling thread's error records go to this ring, marked with the loop's index. */
void log_writer_bind_thread(struct log_ring *ring, unsigned index);
/* The calling thread's error records of level warn and worse also go to f, a line each; NULL ends it. */
void log_writer_tee(FILE *f);
/* Where the error log goes just now, for a signal handler; stderr's descriptor if there is none. */
int log_writer_error_fd(void);
enum log_style log_writer_error_style(void);

#endif
