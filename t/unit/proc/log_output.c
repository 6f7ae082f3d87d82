/* SPDX-License-Identifier: MIT */
/* One log destination: whole lines, losses counted and told, a slow reader that loses nothing it has room for. */
#include "proc/log_output.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static char dir[] = "/tmp/weir-unit-XXXXXX";
static char logged[4096];

static void keep_log(void *arg, enum log_level level, struct str text)
{
    (void)arg;
    (void)level;
    size_t n = strlen(logged);
    (void)snprintf(logged + n, sizeof logged - n, "%.*s\n", STR_ARG(text));
}

static int set_up(void **state)
{
    (void)state;
    log_set_sink(keep_log, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    return mkdtemp(dir) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    return rmdir(dir);
}

static struct str path_of(const char *name)
{
    static char path[128];
    return str_of(path, (size_t)snprintf(path, sizeof path, "%s/%s", dir, name));
}

static struct str content_of(const char *name)
{
    static char text[1 << 20];
    int fd = open(path_of(name).p, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof text);
    assert_true(n >= 0);
    close(fd);
    return str_of(text, (size_t)n);
}

static void assert_str(struct str got, const char *want)
{
    if (!str_eq(got, str_c(want)))
        fail_msg("got \"%.*s\", want \"%s\"", STR_ARG(got), want);
}

static void lines_are_gathered_and_appended(void **state)
{
    (void)state;
    struct log_output *o = log_output_open(path_of("a"));
    assert_non_null(o);
    log_output_add(o, STR("one\n"));
    log_output_add(o, STR("two\n"));
    assert_int_equal(content_of("a").n, 0);
    log_output_flush(o);
    assert_str(content_of("a"), "one\ntwo\n");
    /* Truncated in place by somebody else: no hole. */
    assert_int_equal(truncate(path_of("a").p, 0), 0);
    log_output_add(o, STR("three\n"));
    log_output_flush(o);
    assert_str(content_of("a"), "three\n");
    struct stat st;
    assert_int_equal(stat(path_of("a").p, &st), 0);
    assert_int_equal(st.st_mode & 0137, 0);
    log_output_free(o);
    unlink(path_of("a").p);
}

static void a_path_that_cannot_be_opened_says_why(void **state)
{
    (void)state;
    assert_null(log_output_open(path_of("missing/a")));
    assert_int_equal(errno, ENOENT);
    assert_null(log_output_open(str_c(dir)));
    assert_int_equal(errno, EISDIR);
}

static void a_full_batch_is_written_by_itself(void **state)
{
    (void)state;
    struct log_output *o = log_output_open(path_of("a"));
    for (int i = 0; i < LOG_BATCH / 8 + 1; i++)
        log_output_add(o, STR("1234567\n"));
    struct stat st;
    assert_int_equal(stat(path_of("a").p, &st), 0);
    assert_int_equal(st.st_size, LOG_BATCH);
    assert_int_equal(o->n, 8);
    log_output_free(o);
    unlink(path_of("a").p);
}

/* RLIMIT_FSIZE stands for a disk that fills up in the middle of a line. */
static void a_half_line_is_ended_before_the_next_one(void **state)
{
    (void)state;
    struct rlimit old, low = { .rlim_cur = 10, .rlim_max = RLIM_INFINITY };
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low.rlim_max = old.rlim_max;
    logged[0] = '\0';
    struct log_output *o = log_output_open(path_of("a"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    log_output_add(o, STR("first\n"));
    log_output_add(o, STR("second\n"));
    log_output_add(o, STR("third\n"));
    log_output_flush(o);
    assert_int_equal(o->lost, 2);
    log_output_add(o, STR("fourth\n"));
    log_output_flush(o);
    assert_int_equal(o->lost, 3);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_str(content_of("a"), "first\nseco");
    log_output_add(o, STR("fifth\n"));
    log_output_flush(o);
    log_output_add(o, STR("sixth\n"));
    log_output_flush(o);
    assert_str(content_of("a"), "first\nseco\nfifth\nsixth\n");
    assert_int_equal(o->error, 0);
    assert_non_null(strstr(logged, "/a: File too large; lines are dropped and counted\n"));
    assert_non_null(strstr(logged, "/a takes lines again; 3 were lost\n"));
    assert_null(strstr(strstr(logged, "again") + 1, "again"));
    log_output_free(o);
    unlink(path_of("a").p);
}

static void a_device_that_is_full_costs_counted_lines(void **state)
{
    (void)state;
    logged[0] = '\0';
    struct log_output *o = log_output_open(STR("/dev/full"));
    assert_non_null(o);
    for (int i = 0; i < 100; i++) {
        log_output_add(o, STR("line\n"));
        log_output_flush(o);
    }
    assert_int_equal(o->lost, 100);
    assert_int_equal(o->error, ENOSPC);
    const char *first = strstr(logged, "No space left on device");
    assert_non_null(first);
    assert_null(strstr(first + 1, "No space left"));
    log_output_free(o);
}

static size_t read_all(int fd, char *out, size_t cap)
{
    size_t n = 0;
    ssize_t got;
    while (n < cap && (got = read(fd, out + n, cap - n)) > 0)
        n += (size_t)got;
    return n;
}

/* A fifo opens without a reader, keeps what fits, loses whole lines beyond, and goes on when it is read. */
static void a_fifo_nobody_reads_stalls_nobody(void **state)
{
    (void)state;
    enum { LINES = 50000 };
    static char text[LINES * 32];
    logged[0] = '\0';
    assert_int_equal(mkfifo(path_of("f").p, 0600), 0);
    struct log_output *o = log_output_open(path_of("f"));
    assert_non_null(o);
    char line[32];
    for (int i = 0; i < LINES; i++) {
        int n = snprintf(line, sizeof line, "line %d of many\n", i);
        log_output_add(o, str_of(line, (size_t)n));
    }
    assert_true(o->lost > 0);
    int fd = open(path_of("f").p, O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    uint64_t lost = o->lost;
    size_t n = 0;
    while (o->n > 0) {
        n += read_all(fd, text + n, sizeof text - n);
        log_output_flush(o);
    }
    n += read_all(fd, text + n, sizeof text - n);
    assert_int_equal(o->error, 0);
    log_output_add(o, STR("last\n"));
    log_output_flush(o);
    n += read_all(fd, text + n, sizeof text - n);
    unsigned lines = 0;
    for (const char *p = text; p < text + n; p = memchr(p, '\n', (size_t)(text + n - p)) + 1) {
        if (p == text + n - 5) {
            assert_memory_equal(p, "last\n", 5);
            break;
        }
        int length = snprintf(line, sizeof line, "line %u of many\n", lines);
        assert_memory_equal(p, line, (size_t)length);
        lines++;
    }
    assert_int_equal(lines + lost, LINES);
    assert_non_null(strstr(logged, "nobody reads it; lines are dropped and counted"));
    assert_non_null(strstr(logged, "takes lines again"));
    close(fd);
    log_output_free(o);
    unlink(path_of("f").p);
}

/* stdout as a pipe that others hold too: it stays blocking, and yet a full one blocks nobody. */
static void an_inherited_pipe_is_asked_first(void **state)
{
    (void)state;
    int fds[2], old = dup(STDOUT_FILENO);
    static char text[1 << 20];
    assert_int_equal(pipe(fds), 0);
    (void)fflush(stdout);
    dup2(fds[1], STDOUT_FILENO);
    struct log_output *o = log_output_open(STR("stdout"));
    for (int i = 0; i < 20000; i++)
        log_output_add(o, STR("0123456789\n"));
    log_output_flush(o);
    bool waits = o->n > 0, blocking = (fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK) == 0;
    size_t n = 0;
    while (o->n > 0) {
        n += (size_t)read(fds[0], text + n, sizeof text - n);
        log_output_flush(o);
    }
    log_output_free(o);
    dup2(old, STDOUT_FILENO);
    close(old);
    close(fds[1]);
    n += read_all(fds[0], text + n, sizeof text - n);
    close(fds[0]);
    assert_true(waits);
    assert_true(blocking);
    assert_int_equal(n, 20000 * 11);
}

static void a_dead_reader_is_an_error_not_an_end(void **state)
{
    (void)state;
    int fds[2], old = dup(STDOUT_FILENO);
    logged[0] = '\0';
    assert_int_equal(pipe(fds), 0);
    (void)fflush(stdout);
    dup2(fds[1], STDOUT_FILENO);
    close(fds[1]);
    close(fds[0]);
    struct log_output *o = log_output_open(STR("stdout"));
    log_output_add(o, STR("gone\n"));
    log_output_flush(o);
    int error = o->error;
    uint64_t lost = o->lost;
    log_output_free(o);
    dup2(old, STDOUT_FILENO);
    close(old);
    assert_int_equal(error, EPIPE);
    assert_int_equal(lost, 1);
}

static void reopening_follows_the_path(void **state)
{
    (void)state;
    char moved[128];
    (void)snprintf(moved, sizeof moved, "%s", path_of("a.1").p);
    struct log_output *o = log_output_open(path_of("a"));
    int fd = o->fd;
    log_output_add(o, STR("old\n"));
    assert_int_equal(rename(path_of("a").p, moved), 0);
    log_output_reopen(o);
    log_output_add(o, STR("new\n"));
    log_output_flush(o);
    assert_int_equal(o->fd, fd);
    assert_str(content_of("a.1"), "old\n");
    assert_str(content_of("a"), "new\n");
    log_output_free(o);
    unlink(path_of("a").p);
    unlink(moved);
}

static void a_failed_reopening_keeps_the_old_file(void **state)
{
    (void)state;
    char sub[128], moved[160];
    logged[0] = '\0';
    (void)snprintf(sub, sizeof sub, "%s", path_of("sub").p);
    assert_int_equal(mkdir(sub, 0700), 0);
    struct log_output *o = log_output_open(path_of("sub/a"));
    (void)snprintf(moved, sizeof moved, "%s", path_of("a").p);
    assert_int_equal(rename(path_of("sub/a").p, moved), 0);
    assert_int_equal(rmdir(sub), 0);
    log_output_reopen(o);
    assert_non_null(strstr(logged, "cannot reopen the log"));
    assert_non_null(strstr(logged, "No such file or directory; the old file stays in use"));
    log_output_add(o, STR("still here\n"));
    log_output_flush(o);
    assert_str(content_of("a"), "still here\n");
    log_output_free(o);
    unlink(moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_gathered_and_appended),
        cmocka_unit_test(a_path_that_cannot_be_opened_says_why),
        cmocka_unit_test(a_full_batch_is_written_by_itself),
        cmocka_unit_test(a_half_line_is_ended_before_the_next_one),
        cmocka_unit_test(a_device_that_is_full_costs_counted_lines),
        cmocka_unit_test(a_fifo_nobody_reads_stalls_nobody),
        cmocka_unit_test(an_inherited_pipe_is_asked_first),
        cmocka_unit_test(a_dead_reader_is_an_error_not_an_end),
        cmocka_unit_test(reopening_follows_the_path),
        cmocka_unit_test(a_failed_reopening_keeps_the_old_file),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
