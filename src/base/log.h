/* SPDX-License-Identifier: MIT */
/*
 * Error log records. The sink decides where they go (stderr, the log writer's ring); base only formats.
 * Control bytes and quotes from peers are escaped as \xHH by log_escape: one record is one line.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/check.h"
#include "base/str.h"

enum log_style { LOG_STYLE_TEXT, LOG_STYLE_JSON };
enum log_level { LOG_EMERG, LOG_ERROR, LOG_WARN, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

/* Receives one formatted record without a newline. Called on the thread that logs; must not block. */
typedef void log_sink_fn(void *arg, enum log_level level, struct str text);

/* Process-wide; set once before threads start (and by tests). NULL: stderr. */
void log_set_sink(log_sink_fn *sink, void *arg);
/* Records above this level are dropped unformatted. May be changed at any time by any thread. */
void log_set_level(enum log_level level);
bool log_is_on(enum log_level level);
void log_write(enum log_level level, const char *fmt, ...) PRINTF(2, 3);
const char *log_level_name(enum log_level level);

/* Copies s to out, escaping what could break a line or a quoted field (controls, DEL, '"', '\\'; bytes >= 0x80 too) as
 * \xHH. Stops before a piece that does not fit. Returns the length written, at most cap. */
size_t log_escape(char *out, size_t cap, struct str s);
/* The same for the inside of a JSON string (RFC 8259 §7): \u00HH; bytes >= 0x80 are kept where they are UTF-8. */
size_t log_escape_json(char *out, size_t cap, struct str s);

/* A whole line of the error log with its newline; what does not fit in cap (at least 256) is cut. Text has local time,
 * JSON has UTC (RFC 3339). `thread` names the loop or thread that speaks. Returns the length. */
size_t log_line_print(char *out, size_t cap, enum log_style style, uint64_t wall_ms, enum log_level level,
                      const char *thread, struct str text);

#endif
