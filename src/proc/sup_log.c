/* SPDX-License-Identifier: MIT */
/*
 * The supervisor has a line to write now and then: a server has crashed, an upgrade was refused. It has no log writer
 * and keeps no log open: the file is opened by its path for each line, so rotation needs no word with it, and a full
 * disk costs the line. What cannot go there goes to stderr.
 */
#include "proc/sup_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { LINE = 4096 + 128 };

static const char *error_log;

static void sink(void *arg, enum log_level level, struct str text)
{
    (void)arg;
    char line[LINE], when[32];
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct tm tm;
    (void)localtime_r(&now, &tm);
    (void)strftime(when, sizeof when, "%Y/%m/%d %H:%M:%S", &tm);
    int n = snprintf(line, sizeof line, "%s [%s] %ld#supervisor: %.*s\n", when, log_level_name(level), (long)getpid(),
                     STR_ARG(text));
    if (n < 0)
        return;
    size_t length = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    line[length - 1] = '\n';
    int fd = -1;
    if (strcmp(error_log, "stderr") != 0)
        fd = open(error_log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
    if (fd < 0 || write(fd, line, length) != (ssize_t)length) {
        ssize_t ignored = write(STDERR_FILENO, line, length);
        (void)ignored;
    }
    if (fd >= 0)
        (void)close(fd);
}

void sup_log_use(const char *path)
{
    error_log = path;
    log_set_sink(path != NULL ? sink : NULL, NULL);
}
