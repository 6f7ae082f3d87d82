/* SPDX-License-Identifier: MIT */
/*
 * The last line of a process that dies of a fault: which signal, which thread, at which address, over which request;
 * and where in the program, as addresses that addr2line(1) understands. The same is written about a thread that hangs.
 *
 * Everything in the handlers is async-signal-safe (signal-safety(7)): it formats into a local array and writes once.
 * backtrace(3) is, once it has loaded what it needs, which crash_install makes it do. What is said about the request is
 * copied by process_vm_readv(2), which returns an error where a plain read would fault again: after a fault no pointer
 * is to be trusted.
 *
 * The handler of a fatal signal is reset on entry, so returning to the faulting instruction, or raising again, ends the
 * process with the signal's own status. Each thread has a small stack of its own for it, because the fault may be that
 * the other one has run out. Sanitizer builds keep the sanitizer's handlers, which say more.
 */
#include "proc/crash.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "proc/log_writer.h"
#include "serve/request.h"

enum {
    STACK = 64 * 1024,
    FRAMES = 40,
    WORD = 24,   /* of a method */
    TARGET = 256, /* of a request target */
    FRAME_TEXT = WORD + 24, /* of one frame in JSON */
    STACK_TEXT = FRAMES * FRAME_TEXT,
};

static _Thread_local const char *thread_name = "main";
static _Thread_local const struct worker *thread_worker;
static _Thread_local void *thread_stack;

struct line {
    char text[4096];
    size_t n;
};

static void add_str(struct line *l, struct str s)
{
    for (size_t i = 0; i < s.n && l->n < sizeof l->text; i++)
        l->text[l->n++] = s.p[i];
}

static void add(struct line *l, const char *text)
{
    add_str(l, str_c(text));
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

/* Copies memory of this process that may not be there. */
static bool peek(void *out, const void *from, size_t n)
{
    const struct iovec here = { .iov_base = out, .iov_len = n };
    const struct iovec there = { .iov_base = (void *)(uintptr_t)from, .iov_len = n };
    return from != NULL && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)n;
}

/* A text of the request, as far as it is there; never what could break the line. */
static void add_peeked(struct line *l, struct str s, size_t max)
{
    char text[TARGET], clean[4 * TARGET];
    s = str_take(s, max < sizeof text ? max : sizeof text);
    if (peek(text, s.p, s.n))
        add_str(l, str_of(clean, log_escape(clean, sizeof clean, str_of(text, s.n))));
}

/* ", while sending the answer, request: "GET /x"", or nothing. */
static void add_request(struct line *l)
{
    struct request *running;
    struct request r;
    struct head h;
    if (thread_worker == NULL || !peek(&running, &thread_worker->running, sizeof running) ||
        !peek(&r, running, sizeof r) || r.magic != REQUEST_MAGIC || r.step >= STEP_COUNT)
        return;
    add(l, ", while ");
    add(l, request_step_name(r.step));
    if (!peek(&h, r.head, sizeof h))
        return;
    add(l, ", request: \"");
    add_peeked(l, h.method_text, WORD);
    add(l, " ");
    add_peeked(l, h.target, TARGET);
    add(l, "\"");
}

static void write_text(const struct line *message, void *const *frames, int n, int fd)
{
    struct line l = { .n = 0 };
    add(&l, "weir[");
    add_number(&l, (uintptr_t)getpid(), 10);
    add(&l, "] [emerg] ");
    add_str(&l, str_of(message->text, message->n));
    l.text[l.n < sizeof l.text ? l.n++ : sizeof l.text - 1] = '\n';
    ssize_t ignored = write(fd, l.text, l.n);
    (void)ignored;
    backtrace_symbols_fd(frames, n, fd);
}

/* "program+0x1234" */
static void add_frame(struct line *l, void *frame)
{
    Dl_info where;
    bool is_known = dladdr(frame, &where) != 0 && where.dli_fname != NULL;
    add(l, "\"");
    if (is_known) {
        struct str path = str_c(where.dli_fname);
        while (str_chr(path, '/', 0) >= 0)
            path = str_skip(path, 1);
        add_str(l, str_take(path, WORD));
        add(l, "+");
    }
    add(l, "0x");
    add_number(l, (uintptr_t)frame - (is_known ? (uintptr_t)where.dli_fbase : 0), 16);
    add(l, "\"");
}

/* Without a time, which no async-signal-safe function prints; the supervisor's line about the same has it. */
static void write_json(const struct line *message, void *const *frames, int n, int fd)
{
    struct line l = { .n = 0 };
    add(&l, "{\"level\":\"emerg\",\"pid\":");
    add_number(&l, (uintptr_t)getpid(), 10);
    add(&l, ",\"thread\":\"");
    add(&l, thread_name);
    add(&l, "\",\"message\":\"");
    l.n += log_escape_json(l.text + l.n, sizeof l.text - l.n - STACK_TEXT, str_of(message->text, message->n));
    add(&l, "\",\"stack\":[");
    for (int i = 0; i < n && l.n + FRAME_TEXT < sizeof l.text; i++) {
        add(&l, i > 0 ? "," : "");
        add_frame(&l, frames[i]);
    }
    add(&l, "]}\n");
    ssize_t ignored = write(fd, l.text, l.n);
    (void)ignored;
}

static void write_line(const struct line *message, int fd, enum log_style style)
{
    void *frames[FRAMES];
    (style == LOG_STYLE_JSON ? write_json : write_text)(message, frames, backtrace(frames, FRAMES), fd);
}

static void on_fatal(int sig, siginfo_t *info, void *context)
{
    (void)context;
    struct line l = { .n = 0 };
    add(&l, "crashed: ");
    add(&l, name_of(sig));
    if (info->si_code > 0) { /* else somebody sent it */
        add(&l, " at address 0x");
        add_number(&l, (uintptr_t)info->si_addr, 16);
    }
    add(&l, " in thread ");
    add(&l, thread_name);
    add_request(&l);
    int fd = log_writer_error_fd();
    write_line(&l, fd, log_writer_error_style());
    if (fd != STDERR_FILENO)
        write_line(&l, STDERR_FILENO, LOG_STYLE_TEXT);
    (void)raise(sig); /* for one that was sent and would not come again by itself */
}

static void on_asked(int sig)
{
    (void)sig;
    struct line l = { .n = 0 };
    add(&l, "thread ");
    add(&l, thread_name);
    add(&l, " is here");
    add_request(&l);
    write_line(&l, log_writer_error_fd(), log_writer_error_style());
}

void crash_ask(pthread_t thread)
{
    (void)pthread_kill(thread, SIGRTMIN);
}

void crash_install(void)
{
    void *frame[1];
    (void)backtrace(frame, 1); /* loads the library it needs */
    struct sigaction ask = { .sa_handler = on_asked, .sa_flags = SA_RESTART };
    sigemptyset(&ask.sa_mask);
    (void)sigaction(SIGRTMIN, &ask, NULL);
    crash_thread_begin("main", NULL);
    if (WEIR_SANITIZER)
        return;
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
    struct sigaction act = { .sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND };
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
        (void)sigaction(fatal[i], &act, NULL);
}

void crash_thread_begin(const char *name, const struct worker *w)
{
    thread_name = name;
    thread_worker = w;
    if (WEIR_SANITIZER || thread_stack != NULL)
        return;
    thread_stack = malloc(STACK);
    const stack_t ss = { .ss_sp = thread_stack, .ss_size = STACK };
    if (thread_stack != NULL)
        (void)sigaltstack(&ss, NULL);
}

void crash_thread_end(void)
{
    thread_worker = NULL;
    if (thread_stack == NULL)
        return;
    const stack_t off = { .ss_flags = SS_DISABLE };
    (void)sigaltstack(&off, NULL);
    free(thread_stack);
    thread_stack = NULL;
}
