/* SPDX-License-Identifier: MIT */
/*
 * The last line of a process that dies of a fault: which signal, which thread, at which address. Everything in the
 * handler is async-signal-safe (signal-safety(7)): it formats into a local array and writes once. The handler is reset
 * on entry, so returning to the faulting instruction, or raising again, ends the process with the signal's own status.
 * Each thread has a small stack of its own for it, because the fault may be that the other one has run out.
 * Sanitizer builds keep the sanitizer's handlers, which say more.
 */
#include "proc/crash.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "proc/log_writer.h"

enum { STACK = 64 * 1024 };

static _Thread_local const char *thread_name = "main";
static _Thread_local void *thread_stack;

struct line {
    char text[256];
    size_t n;
};

static void add(struct line *l, const char *text)
{
    for (; *text != '\0' && l->n < sizeof l->text; text++)
        l->text[l->n++] = *text;
}

static void add_number(struct line *l, uintptr_t v, unsigned base)
{
    char digits[2 + 8 * sizeof v];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do
        digits[--at] = "0123456789abcdef"[v % base];
    while ((v /= base) > 0);
    add(l, digits + at);
}

static const char *name_of(int sig)
{
    switch (sig) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGILL:
        return "SIGILL";
    case SIGFPE:
        return "SIGFPE";
    default:
        return "SIGABRT";
    }
}

static void on_fatal(int sig, siginfo_t *info, void *context)
{
    (void)context;
    struct line l = { .n = 0 };
    add(&l, "weir[");
    add_number(&l, (uintptr_t)getpid(), 10);
    add(&l, "] [emerg] crashed: ");
    add(&l, name_of(sig));
    if (sig != SIGABRT) {
        add(&l, " at address 0x");
        add_number(&l, (uintptr_t)info->si_addr, 16);
    }
    add(&l, " in thread ");
    add(&l, thread_name);
    add(&l, "\n");
    int fd = log_writer_error_fd();
    ssize_t ignored = write(fd, l.text, l.n);
    if (fd != STDERR_FILENO)
        ignored = write(STDERR_FILENO, l.text, l.n);
    (void)ignored;
    (void)raise(sig); /* for one that was sent and would not come again by itself */
}

void crash_install(void)
{
    if (WEIR_SANITIZER)
        return;
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
    struct sigaction act = { .sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND };
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
        (void)sigaction(fatal[i], &act, NULL);
    crash_thread_begin("main");
}

void crash_thread_begin(const char *name)
{
    thread_name = name;
    if (WEIR_SANITIZER || thread_stack != NULL)
        return;
    thread_stack = malloc(STACK);
    const stack_t ss = { .ss_sp = thread_stack, .ss_size = STACK };
    if (thread_stack != NULL)
        (void)sigaltstack(&ss, NULL);
}

void crash_thread_end(void)
{
    if (thread_stack == NULL)
        return;
    const stack_t off = { .ss_flags = SS_DISABLE };
    (void)sigaltstack(&off, NULL);
    free(thread_stack);
    thread_stack = NULL;
}
