/* SPDX-License-Identifier: MIT */
/* The log writer: records reach the file of their generation, the error log's line, rotation, and what a failed start
 * says. */
#include "proc/log_writer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static char dir[] = "/tmp/weir-unit-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(dir);
}

struct names {
    char error[128], access[2][128];
};

static struct names names_of(const char *suffix)
{
    struct names n;
    (void)snprintf(n.error, sizeof n.error, "%s/error%s", dir, suffix);
    (void)snprintf(n.access[0], sizeof n.access[0], "%s/access%s", dir, suffix);
    (void)snprintf(n.access[1], sizeof n.access[1], "%s/other%s", dir, suffix);
    return n;
}

/* A configuration with two access logs, as far as the writer looks at one. */
struct little_conf {
    struct conf conf;
    struct access_log_conf logs[2];
    const struct access_log_conf *list[2];
};

static void fill(struct little_conf *c, const struct names *n)
{
    *c = (struct little_conf){ 0 };
    c->conf.error_log = str_c(n->error);
    for (unsigned i = 0; i < 2; i++) {
        c->logs[i].path = str_c(n->access[i]);
        c->logs[i].index = i;
        c->list[i] = &c->logs[i];
    }
    c->conf.logs = c->list;
    c->conf.n_logs = 2;
}

static char *content_of(const char *path)
{
    static char text[1 << 16];
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, text, sizeof text - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    close(fd);
    return text;
}

static void remove_files(const struct names *n)
{
    unlink(n->error);
    unlink(n->access[0]);
    unlink(n->access[1]);
}

static void until(bool (*is_true)(const void *), const void *arg)
{
    uint64_t deadline = clock_monotonic_ms() + 10000;
    while (!is_true(arg)) {
        assert_true(clock_monotonic_ms() < deadline);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t re;
    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE), 0);
    int found = regexec(&re, text, 0, NULL, 0);
    regfree(&re);
    if (found != 0)
        fail_msg("\"%s\" does not match %s", text, pattern);
}

struct loop {
    struct log_ring *ring;
    const char *text;
};

static void *log_as_loop(void *arg)
{
    struct loop *l = arg;
    log_writer_bind_thread(l->ring, 3);
    log_write(LOG_WARN, "%s", l->text);
    return NULL;
}

static void records_reach_their_files(void **state)
{
    (void)state;
    unsigned before = descriptors();
    struct names n = names_of("");
    struct little_conf c;
    fill(&c, &n);
    struct log_writer *w = log_writer_new();
    struct log_ring *ring = log_ring_new(1 << 20);
    assert_non_null(w);
    assert_true(log_writer_add_ring(w, ring, 3));
    log_write(LOG_NOTICE, "before the files");
    assert_true(log_writer_open(w, &c.conf, 1));
    log_writer_started(w);
    assert_true(log_writer_start(w));
    assert_true(log_ring_put(ring, 0, 1, STR("GET /a\n")));
    assert_true(log_ring_put(ring, 1, 1, STR("GET /b\n")));
    pthread_t t;
    struct loop l = { ring, "from a loop" };
    assert_int_equal(pthread_create(&t, NULL, log_as_loop, &l), 0);
    pthread_join(t, NULL);
    log_writer_free(w);
    log_ring_free(ring);
    assert_string_equal(content_of(n.access[0]), "GET /a\n");
    assert_string_equal(content_of(n.access[1]), "GET /b\n");
    const char *errors = content_of(n.error);
    const char *line = "^[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} \\[%s\\] [0-9]+#%s: %s$";
    char pattern[256];
    (void)snprintf(pattern, sizeof pattern, line, "notice", "main", "before the files");
    assert_matches(errors, pattern);
    (void)snprintf(pattern, sizeof pattern, line, "warn", "3", "from a loop");
    assert_matches(errors, pattern);
    assert_int_equal(descriptors(), before);
    remove_files(&n);
}

static bool has_bytes(const void *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size > 0;
}

static bool is_back_to(const void *n)
{
    return descriptors() == *(const unsigned *)n;
}

/* A reload with other files: old records go to the old files until the generation is forgotten; then those are closed.
 */
static void generations_have_their_own_files(void **state)
{
    (void)state;
    struct names n1 = names_of(".1"), n2 = names_of(".2");
    struct little_conf c1, c2;
    fill(&c1, &n1);
    (void)snprintf(n2.access[1], sizeof n2.access[1], "%s", n1.access[1]); /* shared by both */
    fill(&c2, &n2);
    struct log_writer *w = log_writer_new();
    struct log_ring *ring = log_ring_new(1 << 20);
    assert_true(log_writer_add_ring(w, ring, 0));
    unsigned before = descriptors();
    assert_true(log_writer_open(w, &c1.conf, 1));
    assert_int_equal(descriptors(), before + 3);
    log_writer_started(w);
    assert_true(log_writer_start(w));
    assert_true(log_writer_open(w, &c2.conf, 2));
    assert_int_equal(descriptors(), before + 5);
    assert_true(log_ring_put(ring, 0, 1, STR("old\n")));
    assert_true(log_ring_put(ring, 0, 2, STR("new\n")));
    assert_true(log_ring_put(ring, 1, 1, STR("shared old\n")));
    assert_true(log_ring_put(ring, 1, 2, STR("shared new\n")));
    log_write(LOG_ERROR, "to the new error log");
    log_writer_forget(w, 1);
    unsigned after = before + 3;
    until(is_back_to, &after);
    until(has_bytes, n2.error);
    log_writer_free(w);
    log_ring_free(ring);
    assert_string_equal(content_of(n1.access[0]), "old\n");
    assert_string_equal(content_of(n2.access[0]), "new\n");
    assert_string_equal(content_of(n1.access[1]), "shared old\nshared new\n");
    assert_non_null(strstr(content_of(n2.error), "to the new error log"));
    assert_null(strstr(content_of(n1.error), "to the new error log"));
    remove_files(&n1);
    remove_files(&n2);
}

static void logs_that_cannot_be_opened_are_all_named(void **state)
{
    (void)state;
    struct names n = names_of("");
    struct little_conf good, bad;
    fill(&good, &n);
    fill(&bad, &n);
    bad.logs[0].path = STR("/nowhere/access");
    bad.logs[1].path = STR("/nowhere/other");
    struct log_writer *w = log_writer_new();
    assert_true(log_writer_open(w, &good.conf, 1));
    unsigned before = descriptors();
    log_writer_started(w);
    assert_false(log_writer_open(w, &bad.conf, 2));
    assert_int_equal(descriptors(), before);
    log_writer_free(w);
    const char *errors = content_of(n.error);
    assert_matches(errors, "\\[error\\].*cannot open the log /nowhere/access: No such file or directory$");
    assert_matches(errors, "\\[error\\].*cannot open the log /nowhere/other: No such file or directory$");
    remove_files(&n);
}

/* Nobody has a log yet: what went wrong must be seen all the same. */
static void a_start_that_fails_speaks_on_stderr(void **state)
{
    (void)state;
    struct names n = names_of("");
    struct little_conf bad;
    fill(&bad, &n);
    bad.conf.error_log = STR("/nowhere/error");
    char out[128];
    (void)snprintf(out, sizeof out, "%s/stderr", dir);
    int old = dup(STDERR_FILENO), fd = open(out, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    close(fd);
    struct log_writer *w = log_writer_new();
    bool opened = log_writer_open(w, &bad.conf, 1);
    log_writer_free(w);
    dup2(old, STDERR_FILENO);
    close(old);
    assert_false(opened);
    assert_matches(content_of(out), "cannot open the log /nowhere/error: No such file or directory$");
    unlink(out);
    remove_files(&n);
}

struct producer {
    struct log_ring *ring;
    atomic_bool stop;
    unsigned lines;
};

static void *put_lines(void *arg)
{
    struct producer *p = arg;
    char line[32];
    while (!atomic_load(&p->stop)) {
        int n = snprintf(line, sizeof line, "%08u\n", p->lines);
        if (log_ring_put(p->ring, 0, 1, str_of(line, (size_t)n)))
            p->lines++;
        else
            nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    }
    return NULL;
}

static unsigned count_lines(const char *path, unsigned first)
{
    FILE *f = fopen(path, "r");
    char line[32], want[32];
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        (void)snprintf(want, sizeof want, "%08u\n", first++);
        assert_string_equal(line, want);
    }
    (void)fclose(f);
    return first;
}

/* mv and reopen, again and again under load: every line once, in order, across the files. */
static void rotation_loses_no_line(void **state)
{
    (void)state;
    struct names n = names_of("");
    struct little_conf c;
    fill(&c, &n);
    struct log_writer *w = log_writer_new();
    struct log_ring *ring = log_ring_new(1 << 20);
    assert_true(log_writer_add_ring(w, ring, 0));
    assert_true(log_writer_open(w, &c.conf, 1));
    log_writer_started(w);
    assert_true(log_writer_start(w));
    pthread_t t;
    struct producer p = { .ring = ring };
    assert_int_equal(pthread_create(&t, NULL, put_lines, &p), 0);
    char moved[5][160];
    for (unsigned i = 0; i < 5; i++) {
        (void)snprintf(moved[i], sizeof moved[i], "%s.%u", n.access[0], i);
        until(has_bytes, n.access[0]);
        assert_int_equal(rename(n.access[0], moved[i]), 0);
        log_writer_reopen(w);
    }
    atomic_store(&p.stop, true);
    pthread_join(t, NULL);
    log_writer_free(w);
    log_ring_free(ring);
    unsigned lines = 0;
    for (unsigned i = 0; i < 5; i++) {
        lines = count_lines(moved[i], lines);
        unlink(moved[i]);
    }
    if (access(n.access[0], F_OK) == 0)
        lines = count_lines(n.access[0], lines);
    assert_int_equal(lines, p.lines);
    remove_files(&n);
}

static void what_a_ring_dropped_is_told(void **state)
{
    (void)state;
    struct names n = names_of("");
    struct little_conf c;
    fill(&c, &n);
    struct log_writer *w = log_writer_new();
    struct log_ring *ring = log_ring_new(1024);
    assert_true(log_writer_add_ring(w, ring, 5));
    assert_true(log_writer_open(w, &c.conf, 1));
    unsigned dropped = 0;
    for (int i = 0; i < 100; i++)
        dropped += !log_ring_put(ring, 0, 1, STR("a line\n"));
    assert_true(dropped > 0);
    log_writer_started(w);
    log_writer_free(w);
    log_ring_free(ring);
    char pattern[128];
    (void)snprintf(pattern, sizeof pattern, "\\[warn\\].*: %u lines of loop 5 were dropped$", dropped);
    assert_matches(content_of(n.error), pattern);
    remove_files(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_reach_their_files),
        cmocka_unit_test(generations_have_their_own_files),
        cmocka_unit_test(logs_that_cannot_be_opened_are_all_named),
        cmocka_unit_test(a_start_that_fails_speaks_on_stderr),
        cmocka_unit_test(rotation_loses_no_line),
        cmocka_unit_test(what_a_ring_dropped_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
