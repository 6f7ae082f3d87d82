/* SPDX-License-Identifier: MIT */
/* Finding the verb: what runs, with which arguments, and the exit codes of everything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/cli.h"

static char seen[200];

/* Notes its arguments. */
static int note(int argc, char **argv)
{
    size_t n = 0;
    seen[0] = '\0';
    for (int i = 0; i < argc; i++)
        n += (size_t)snprintf(seen + n, sizeof seen - n, "%s%s", i > 0 ? " " : "", argv[i]);
    assert_null(argv[argc]);
    return 42;
}

static const struct command table[] = {
    { "run", "", "", NULL, note },  { "check", "", "", NULL, note }, { "version", "", "", NULL, note },
    { "stop", "", "", NULL, note }, { "later", "", "", NULL, NULL },
};

/* The words of a command line, after the program's name. */
static int command(const char *words)
{
    char text[200], *argv[16] = { (char[]){ "weir" } };
    int argc = 1;
    seen[0] = '\0';
    snprintf(text, sizeof text, "%s", words);
    for (char *p = text, *rest; *p != '\0' && argc < 15; p = rest) {
        rest = p + strcspn(p, " ");
        if (*rest != '\0')
            *rest++ = '\0';
        argv[argc++] = p;
    }
    return command_main(table, ARRAY_LEN(table), argc, argv);
}

static void verbs(void **state)
{
    (void)state;
    assert_int_equal(command("check -c a"), 42);
    assert_string_equal(seen, "check -c a");
    assert_int_equal(command("stop --now"), 42);
    assert_string_equal(seen, "stop --now");
    assert_int_equal(command("later"), EXIT_FAILURE);
}

static void as_nginx_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *words, *seen;
    } rows[] = {
        { "-t", "check" },     { "-t -c a", "check -c a" }, { "-c a -t", "check -c a" }, { "-v", "version" },
        { "-V", "version" },   { "--version", "version" },  { "-c a", "run -c a" },      { "-s stop", "stop" },
        { "-s quit", "stop" }, { "-x", "run -x" }, /* the verb knows what it does not know */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(command(rows[i].words), 42);
        assert_string_equal(seen, rows[i].seen);
    }
}

static void help_and_misuse(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int status;
    } rows[] = {
        { "", CLI_USAGE },      { "help", 0 },
        { "--help", 0 },        { "-h", 0 },
        { "help check", 0 },    { "check --help", 0 },
        { "later --help", 0 },  { "help nothing", CLI_USAGE },
        { "chekc", CLI_USAGE }, { "-s nothing", CLI_USAGE },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(command(rows[i].words), rows[i].status);
        assert_string_equal(seen, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs),
        cmocka_unit_test(as_nginx_has_them),
        cmocka_unit_test(help_and_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
