/* SPDX-License-Identifier: MIT */
/* CHECK and MAGIC_CHECK abort and say where; BUG_IF counts, logs and goes on, but aborts under sanitizers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"

static int logged;

static void sink(void *arg, enum log_level level, struct str text)
{
    (void)arg;
    (void)text;
    logged += level == LOG_ERROR;
}

/* Runs fn in a child; returns its wait status and what it wrote to stderr. */
static int in_child(void (*fn)(void), char *said, size_t cap)
{
    int p[2];
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = { 0 };
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        dup2(p[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(p[1]);
    size_t n = 0;
    ssize_t got;
    while ((got = read(p[0], said + n, cap - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = '\0';
    close(p[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void fails_check(void)
{
    volatile int two = 2;
    CHECK(two + two == 4);
    CHECK(two + two == 5);
}

static void fails_magic(void)
{
    struct {
        uint32_t magic;
    } obj;
    MAGIC_SET(&obj, 0x1234);
    MAGIC_CHECK(&obj, 0x1234);
    MAGIC_CHECK(&obj, 0x4321);
}

static void has_bug(void)
{
    volatile int one = 1;
    if (BUG_IF(one == 1))
        _exit(7);
}

static void check_aborts_and_says_where(void **state)
{
    (void)state;
    char said[1024];
    int status = in_child(fails_check, said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "two + two == 5"));
    assert_non_null(strstr(said, "check.c:"));
    status = in_child(fails_magic, said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "0x4321"));
}

static void bug_goes_on_except_under_sanitizers(void **state)
{
    (void)state;
    char said[1024];
    int status = in_child(has_bug, said, sizeof said);
    if (WEIR_SANITIZER)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_non_null(strstr(said, "one == 1"));
}

static void bugs_are_counted_and_logged(void **state)
{
    (void)state;
    log_set_sink(sink, NULL);
    volatile int zero = 0;
    assert_false(BUG_IF(zero != 0));
    assert_int_equal(check_bug_count(), 0);
    assert_int_equal(logged, 0);
    if (WEIR_SANITIZER)
        return;
    assert_true(BUG_IF(zero == 0));
    assert_true(BUG_IF(zero == 0));
    assert_int_equal(check_bug_count(), 2);
    assert_int_equal(logged, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_aborts_and_says_where),
        cmocka_unit_test(bug_goes_on_except_under_sanitizers),
        cmocka_unit_test(bugs_are_counted_and_logged),
    };
    return cmocka_run_group_tests_name("base/check", tests, NULL, NULL);
}
