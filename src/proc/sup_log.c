/* SPDX-License-Identifier: MIT */
/*
 * The supervisor has a line to write now and then: a server has crashed, an upgrade was refused. It has no log writer
 * and keeps no log open: the file is opened by its path for each line, so rotation needs no word with it, and a full
 * disk costs the line. What cannot go there goes to stderr.
 */
#include "proc/sup_log.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { LINE = 4096 + 128 };

static const char *error_log;
static enum log_style error_style;

static void sink(void *arg, enum log_level level, struct str text)
{
    (void)arg;
    char line[LINE];
    size_t length = log_line_print(line, sizeof line, error_style, clock_wall_ms(), level, "supervisor", text);
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

void sup_log_use(const char *path, enum log_style style)
{
    error_log = path;
    error_style = style;
    log_set_sink(path != NULL ? sink : NULL, NULL);
}
