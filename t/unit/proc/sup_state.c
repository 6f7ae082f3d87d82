/* SPDX-License-Identifier: MIT */
/* The state that an upgrade hands on: what is printed is parsed, what is of another version or damaged is refused. */
#include "proc/sup_state.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdlib.h>

/* Descriptors nobody has: closing them does no harm. */
enum { FD = 5000 };

static char *print(const struct sup_state *s, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    assert_non_null(f);
    assert_true(sup_state_print(f, s));
    fclose(f);
    return text;
}

static void fill(struct sup_state *s)
{
    const int fds[] = { FD, FD + 1, FD + 2 };
    sup_state_init(s);
    s->name = strdup("the configuration");
    s->path = strdup("/etc/weir/proxy.conf");
    s->error_log = strdup("stderr");
    s->generation = 42;
    s->text_fd = FD + 3;
    s->control = (struct sup_file){ .path = strdup("/run/weir/control.sock"), .fd = FD + 4, .dev = 7, .ino = 1u << 31 };
    struct sockets *k = listeners_add(&s->listeners, STR("*:80"));
    assert_non_null(k);
    assert_true(sockets_take(k, fds, 2));
    k = listeners_add(&s->listeners, STR("unix:/run/weir.sock"));
    assert_non_null(k);
    assert_true(sockets_take(k, fds + 2, 1));
    k->given = true;
    k->ino = 99;
    s->servers[0] = (struct sup_server){ .pid = 1234, .link = FD + 5, .calls = FD + 6, .ready = true, .leaving = true };
    s->servers[1] = (struct sup_server){ .pid = 1235, .link = FD + 7, .calls = -1, .ready = true };
    s->n_servers = 2;
    s->upgrade_asked = true;
}

static void what_is_printed_is_parsed(void **state)
{
    (void)state;
    struct sup_state s, t;
    const char *why;
    size_t n;
    fill(&s);
    char *text = print(&s, &n);
    sup_state_init(&t);
    assert_true(sup_state_parse(&t, str_of(text, n), &why));
    assert_string_equal(t.name, "the configuration");
    assert_string_equal(t.path, "/etc/weir/proxy.conf");
    assert_string_equal(t.error_log, "stderr");
    assert_int_equal(t.generation, 42);
    assert_int_equal(t.text_fd, FD + 3);
    assert_string_equal(t.control.path, "/run/weir/control.sock");
    assert_int_equal(t.control.fd, FD + 4);
    assert_int_equal(t.control.dev, 7);
    assert_int_equal(t.control.ino, 1u << 31);
    assert_null(t.pid_file.path);
    assert_int_equal(t.pid_file.fd, -1);
    assert_int_equal(t.listeners.n, 2);
    assert_string_equal(t.listeners.all[0]->text, "*:80");
    assert_int_equal(t.listeners.all[0]->n, 2);
    assert_int_equal(t.listeners.all[0]->fds[1], FD + 1);
    assert_false(t.listeners.all[0]->given);
    assert_true(t.listeners.all[1]->given);
    assert_int_equal(t.listeners.all[1]->ino, 99);
    assert_int_equal(t.listeners.all[1]->fds[0], FD + 2);
    assert_int_equal(t.n_servers, 2);
    assert_int_equal(t.servers[0].pid, 1234);
    assert_true(t.servers[0].leaving);
    assert_int_equal(t.servers[1].link, FD + 7);
    assert_int_equal(t.servers[1].calls, -1);
    assert_true(t.servers[1].ready && !t.servers[1].leaving);
    assert_true(t.upgrade_asked);
    /* And once more, from the copy: the same text. */
    size_t again_n;
    char *again = print(&t, &again_n);
    assert_int_equal(again_n, n);
    assert_memory_equal(again, text, n);
    free(again);
    free(text);
    sup_state_free(&s);
    sup_state_free(&t);
}

static void words_of_a_newer_version_are_passed_over(void **state)
{
    (void)state;
    struct sup_state s, t;
    const char *why;
    size_t n;
    fill(&s);
    char *text = print(&s, &n), *more = NULL;
    assert_true(asprintf(&more, "%sshiny\t1\t2\t3\nbare\n", text) > 0);
    sup_state_init(&t);
    assert_true(sup_state_parse(&t, str_c(more), &why));
    free(text);
    free(more);
    sup_state_free(&s);
    sup_state_free(&t);
}

static void what_is_damaged_is_refused(void **state)
{
    (void)state;
    struct sup_state s, t;
    const char *why = NULL;
    size_t n;
    fill(&s);
    s.upgrade_asked = false;
    char *text = print(&s, &n);
    const char *last = strstr(text, "server\t1235");
    for (size_t cut = 0; cut < (size_t)(last - text); cut++) {
        bool is_line = cut > 0 && text[cut - 1] == '\n' && strstr(text, "server\t") < text + cut;
        sup_state_init(&t);
        assert_int_equal(sup_state_parse(&t, str_of(text, cut), &why), is_line);
        sup_state_free(&t);
    }
    text[sizeof "weir-state\t" - 1] = '9';
    sup_state_init(&t);
    assert_false(sup_state_parse(&t, str_of(text, n), &why));
    assert_string_equal(why, "it is of another version");
    sup_state_free(&t);
    free(text);
    sup_state_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_parsed),
        cmocka_unit_test(words_of_a_newer_version_are_passed_over),
        cmocka_unit_test(what_is_damaged_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
