/* SPDX-License-Identifier: MIT */
/* Which configuration is meant, for every kind of caller; who they are and which files exist is what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"

static struct {
    uid_t uid;
    bool is_terminal, has_here, has_system;
} world;

uid_t __wrap_geteuid(void);
int __wrap_isatty(int fd);
int __wrap_access(const char *path, int mode);

uid_t __wrap_geteuid(void)
{
    return world.uid;
}

int __wrap_isatty(int fd)
{
    (void)fd;
    return world.is_terminal;
}

int __wrap_access(const char *path, int mode)
{
    (void)mode;
    bool is_there = strcmp(path, "./proxy.conf") == 0           ? world.has_here
                    : strcmp(path, "/etc/weir/proxy.conf") == 0 ? world.has_system
                                                                : false;
    return is_there ? 0 : -1;
}

static void order(void **state)
{
    (void)state;
    world.uid = 1000;
    world.is_terminal = world.has_here = world.has_system = true;
    setenv("WEIR_CONF", "/env.conf", 1);
    assert_string_equal(find_conf("given.conf"), "given.conf");
    assert_string_equal(find_conf(NULL), "/env.conf");
    setenv("WEIR_CONF", "", 1);
    assert_string_equal(find_conf(NULL), "./proxy.conf");
    world.has_here = false;
    assert_string_equal(find_conf(NULL), "/etc/weir/proxy.conf");
    world.has_system = false;
    assert_null(find_conf(NULL));
    unsetenv("WEIR_CONF");
    assert_null(find_conf(NULL));
}

/* What root or a service runs does not depend on where it stands. */
static void here_only_for_people(void **state)
{
    (void)state;
    unsetenv("WEIR_CONF");
    world.has_here = world.has_system = true;
    world.uid = 0;
    world.is_terminal = true;
    assert_string_equal(find_conf(NULL), "/etc/weir/proxy.conf");
    world.uid = 1000;
    world.is_terminal = false;
    assert_string_equal(find_conf(NULL), "/etc/weir/proxy.conf");
    world.has_system = false;
    assert_null(find_conf(NULL));
}

static void colours(void **state)
{
    (void)state;
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    world.is_terminal = true;
    assert_true(cli_has_colours(2));
    setenv("NO_COLOR", "1", 1);
    assert_false(cli_has_colours(2));
    setenv("NO_COLOR", "", 1);
    assert_true(cli_has_colours(2));
    setenv("TERM", "dumb", 1);
    assert_false(cli_has_colours(2));
    setenv("TERM", "xterm", 1);
    world.is_terminal = false;
    assert_false(cli_has_colours(2));
}

static void only_conf(void **state)
{
    (void)state;
    const char *path = "x";
    char *none[] = { (char[]){ "check" }, NULL };
    char *apart[] = { (char[]){ "check" }, (char[]){ "-c" }, (char[]){ "a.conf" }, NULL };
    char *joined[] = { (char[]){ "check" }, (char[]){ "-ca.conf" }, NULL };
    char *missing[] = { (char[]){ "check" }, (char[]){ "-c" }, NULL };
    char *other[] = { (char[]){ "check" }, (char[]){ "a.conf" }, NULL };
    assert_true(cli_only_conf(1, none, &path));
    assert_null(path);
    assert_true(cli_only_conf(3, apart, &path));
    assert_string_equal(path, "a.conf");
    assert_true(cli_only_conf(2, joined, &path));
    assert_string_equal(path, "a.conf");
    assert_false(cli_only_conf(2, missing, &path));
    assert_false(cli_only_conf(2, other, &path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(here_only_for_people),
        cmocka_unit_test(colours),
        cmocka_unit_test(only_conf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
