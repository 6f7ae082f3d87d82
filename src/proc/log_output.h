/* SPDX-License-Identifier: MIT */
/* One file, pipe or inherited stream that log lines go to, with the lines that wait for it. Belongs to the log writer's
 * thread. */
#ifndef PROC_LOG_OUTPUT_H
#define PROC_LOG_OUTPUT_H

#include "base/check.h"
#include "base/str.h"

enum { LOG_BATCH = 256 * 1024 }; /* bytes gathered for one write */

enum output_kind {
    OUTPUT_FILE,   /* takes everything or fails */
    OUTPUT_PIPE,   /* opened by us, non-blocking */
    OUTPUT_SHARED, /* stdout or stderr that is no file: others hold it too, so it stays blocking and is polled */
};

struct log_output {
    struct log_output *next;
    struct str path; /* "stdout", "stderr" or absolute; owned */
    unsigned users;  /* log tables that name it; the writer's mutex */
    int fd;
    bool inherited; /* fd 1 or 2: never closed, never opened again */
    enum output_kind kind;
    char *batch; /* LOG_BATCH bytes; begins with the rest of a line if mid_line */
    size_t n;
    bool mid_line;     /* the last byte taken was not the end of a line */
    bool owes_newline; /* and the rest of that line was dropped */
    int error;         /* why lines are being lost; 0: they are not */
    uint64_t lost;     /* lines, since that began */
    uint64_t reported_ms;
};

/* Opens it. NULL: errno. */
struct log_output *log_output_open(struct str path) MUST_USE;
void log_output_free(struct log_output *o);
/* Queues one line; writes when the batch is full. A line that finds no room is counted as lost. */
void log_output_add(struct log_output *o, struct str line);
/* Writes what waits. What a slow reader does not take stays; what a failing file does not take is lost. Logs when
 * losing begins, goes on (once a minute) and ends. Never blocks on a pipe. */
void log_output_flush(struct log_output *o);
/* Opens the path again in the same descriptor. On failure the old file stays in use and the error is logged. */
void log_output_reopen(struct log_output *o);

#endif
