/* SPDX-License-Identifier: MIT */
/*
 * Formats error log records and hands them to the sink. Owns the level and the sink, both process-wide; owns no file
 * and no thread: where a record ends up is the sink's business.
 * A record is one line of at most LINE bytes: what is longer is cut and ends in "...". Control bytes that reached a
 * format unescaped are replaced here, so that no peer can forge a second line whatever the caller forgot.
 * errno is kept: a call may stand between a failed system call and the look at its errno.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"

enum { LINE = 4096 };

static log_sink_fn *sink_fn;
static void *sink_arg;
static atomic_int level_now = LOG_NOTICE;

static const char *const level_names[] = {
    [LOG_EMERG] = "emerg",   [LOG_ERROR] = "error", [LOG_WARN] = "warn",
    [LOG_NOTICE] = "notice", [LOG_INFO] = "info",   [LOG_DEBUG] = "debug",
};

void log_set_sink(log_sink_fn *sink, void *arg)
{
    sink_fn = sink;
    sink_arg = arg;
}

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

bool log_is_on(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&level_now, memory_order_relaxed);
}

const char *log_level_name(enum log_level level)
{
    return (size_t)level < ARRAY_LEN(level_names) ? level_names[level] : "?";
}

static void to_stderr(enum log_level level, struct str text)
{
    struct str name = str_c(log_level_name(level));
    struct iovec iov[] = {
        { .iov_base = (void *)(uintptr_t)name.p, .iov_len = name.n },
        { .iov_base = (void *)(uintptr_t)": ", .iov_len = 2 },
        { .iov_base = (void *)(uintptr_t)text.p, .iov_len = text.n },
        { .iov_base = (void *)(uintptr_t)"\n", .iov_len = 1 },
    };
    /* One call, so that lines of several threads do not mix. */
    ssize_t ignored = writev(STDERR_FILENO, iov, (int)ARRAY_LEN(iov));
    (void)ignored;
}

void log_write(enum log_level level, const char *fmt, ...)
{
    if (!log_is_on(level))
        return;
    int saved = errno;
    char line[LINE];
    va_list ap;
    va_start(ap, fmt);
    int made = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (made < 0)
        made = 0;
    size_t n = (size_t)made;
    if (n >= sizeof line) {
        n = sizeof line - 1;
        memcpy(line + n - 3, "...", 3);
    }
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    if (sink_fn != NULL)
        sink_fn(sink_arg, level, str_of(line, n));
    else
        to_stderr(level, str_of(line, n));
    errno = saved;
}

size_t log_escape(char *out, size_t cap, struct str s)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            if (n + 1 > cap)
                break;
            out[n++] = (char)c;
            continue;
        }
        if (n + 4 > cap)
            break;
        out[n++] = '\\';
        out[n++] = 'x';
        out[n++] = hex[c >> 4];
        out[n++] = hex[c & 15];
    }
    return n;
}

size_t log_escape_json(char *out, size_t cap, struct str s)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    while (s.n > 0) {
        unsigned char c = (unsigned char)s.p[0];
        size_t plain = c >= 0x80 ? utf8_length(s) : c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
        const char escape[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
        size_t size = plain > 0 ? plain : sizeof escape;
        if (n + size > cap)
            break;
        memcpy(out + n, plain > 0 ? s.p : escape, size);
        n += size;
        s = str_skip(s, plain > 0 ? plain : 1);
    }
    return n;
}

/* The second is printed once for all lines of a thread in it. */
static const char *time_text(enum log_style style, time_t now)
{
    static _Thread_local char text[32];
    static _Thread_local time_t second;
    static _Thread_local enum log_style printed;
    if (now != second || style != printed || text[0] == '\0') {
        struct tm tm;
        (void)(style == LOG_STYLE_JSON ? gmtime_r(&now, &tm) : localtime_r(&now, &tm));
        (void)strftime(text, sizeof text, style == LOG_STYLE_JSON ? "%Y-%m-%dT%H:%M:%S" : "%Y/%m/%d %H:%M:%S", &tm);
        second = now;
        printed = style;
    }
    return text;
}

size_t log_line_print(char *out, size_t cap, enum log_style style, uint64_t wall_ms, enum log_level level,
                      const char *thread, struct str text)
{
    const char *when = time_text(style, (time_t)(wall_ms / 1000)), *name = log_level_name(level);
    bool is_json = style == LOG_STYLE_JSON;
    struct str end = is_json ? STR("\"}\n") : STR("\n");
    int head = is_json ? snprintf(out, cap, "{\"time\":\"%s.%03uZ\",\"level\":\"%s\",\"pid\":%ld,\"thread\":\"%s\",\"message\":\"",
                                  when, (unsigned)(wall_ms % 1000), name, (long)getpid(), thread)
                       : snprintf(out, cap, "%s [%s] %ld#%s: ", when, name, (long)getpid(), thread);
    size_t n = head > 0 ? (size_t)head : 0;
    if (n + end.n > cap)
        return 0;
    size_t room = cap - n - end.n;
    if (is_json) {
        n += log_escape_json(out + n, room, text);
    } else {
        text = str_take(text, room);
        memcpy(out + n, text.p, text.n);
        n += text.n;
    }
    memcpy(out + n, end.p, end.n);
    return n + end.n;
}
