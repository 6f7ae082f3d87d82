/* SPDX-License-Identifier: MIT */
/* The line about a crash: what it says, and that no broken pointer keeps it from being written. */
#include "proc/crash.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve/request.h"

/* Runs die() in a process of its own; what it wrote to stderr is in `said`. Returns the signal it died of. */
static char said[16384];

static int death_of(void (*die)(void))
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        crash_install();
        die();
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    ssize_t got;
    while ((got = read(ends[0], said + n, sizeof said - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static struct head head;
static struct request request;
static struct worker worker;

static void fill(const char *target)
{
    head = (struct head){ .method_text = STR("GET"), .target = str_c(target) };
    request = (struct request){ .magic = REQUEST_MAGIC, .step = STEP_HANDLE, .head = &head };
    worker.running = &request;
    crash_thread_begin("weir-loop-7", &worker);
}

static void *nowhere(void)
{
    void *p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static void die_of_a_bad_write(void)
{
    fill("/a?b=\"c\"");
    *(volatile int *)nowhere() = 1;
}

static void die_between_requests(void)
{
    fill("/");
    worker.running = NULL;
    abort();
}

static void die_with_a_broken_request(void)
{
    fill("/");
    worker.running = nowhere();
    abort();
}

static void die_with_a_broken_head(void)
{
    fill("/");
    request.head = nowhere();
    abort();
}

static void die_with_a_broken_target(void)
{
    fill("/");
    head.target = str_of(nowhere(), 100);
    abort();
}

static volatile int sink;

static int deep(int n)
{
    volatile char room[4096];
    room[0] = (char)n;
    return n == 0 ? 0 : deep(n + 1) + room[0];
}

static void die_of_an_endless_recursion(void)
{
    fill("/deep");
    sink = deep(1);
}

static void say_where(void)
{
    fill("/slow");
    crash_ask(pthread_self());
}

static void the_line_names_signal_thread_step_and_request(void **state)
{
    (void)state;
    assert_int_equal(death_of(die_of_a_bad_write), SIGSEGV);
    assert_non_null(strstr(said, "[emerg] crashed: SIGSEGV at address 0x"));
    assert_non_null(strstr(said, " in thread weir-loop-7, while starting the answer, "
                                 "request: \"GET /a?b=\\x22c\\x22\"\n"));
    assert_non_null(strstr(said, "t/unit/proc/crash("));
}

static void a_signal_that_was_sent_has_no_address(void **state)
{
    (void)state;
    assert_int_equal(death_of(die_between_requests), SIGABRT);
    assert_non_null(strstr(said, "[emerg] crashed: SIGABRT in thread weir-loop-7\n"));
}

static void a_broken_pointer_shortens_the_line(void **state)
{
    (void)state;
    assert_int_equal(death_of(die_with_a_broken_request), SIGABRT);
    assert_non_null(strstr(said, "crashed: SIGABRT in thread weir-loop-7\n"));
    assert_int_equal(death_of(die_with_a_broken_head), SIGABRT);
    assert_non_null(strstr(said, " in thread weir-loop-7, while starting the answer\n"));
    assert_int_equal(death_of(die_with_a_broken_target), SIGABRT);
    assert_non_null(strstr(said, "while starting the answer, request: \"GET \"\n"));
}

static void a_stack_that_has_run_out_is_no_obstacle(void **state)
{
    (void)state;
    assert_int_equal(death_of(die_of_an_endless_recursion), SIGSEGV);
    assert_non_null(strstr(said, "request: \"GET /deep\"\n"));
}

static void a_thread_says_where_it_is_and_goes_on(void **state)
{
    (void)state;
    assert_int_equal(death_of(say_where), 0);
    assert_non_null(strstr(said, "[emerg] thread weir-loop-7 is here, while starting the answer, "
                                 "request: \"GET /slow\"\n"));
}

int main(void)
{
    const struct CMUnitTest crashes[] = {
        cmocka_unit_test(the_line_names_signal_thread_step_and_request),
        cmocka_unit_test(a_signal_that_was_sent_has_no_address),
        cmocka_unit_test(a_broken_pointer_shortens_the_line),
        cmocka_unit_test(a_stack_that_has_run_out_is_no_obstacle),
    };
    const struct CMUnitTest always[] = {
        cmocka_unit_test(a_thread_says_where_it_is_and_goes_on),
    };
    int failed = cmocka_run_group_tests(always, NULL, NULL);
    /* Sanitizer builds keep the sanitizer's handlers. */
    return WEIR_SANITIZER ? failed : failed + cmocka_run_group_tests(crashes, NULL, NULL);
}
