/* SPDX-License-Identifier: MIT */
/* The service manager's notification: what arrives at the socket that $NOTIFY_SOCKET names. */
#include "proc/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager(const char *path, socklen_t n)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    memcpy(at.sun_path, path, n);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, (socklen_t)offsetof(struct sockaddr_un, sun_path) + n), 0);
    return fd;
}

static void assert_receives(int fd, const char *want)
{
    char got[128];
    ssize_t n = recv(fd, got, sizeof got, MSG_DONTWAIT);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(got, want, (size_t)n);
}

static void a_path_and_an_abstract_name(void **state)
{
    (void)state;
    char path[64], name[64];
    int n = snprintf(path, sizeof path, "/tmp/weir-unit-notify-%ld", (long)getpid());
    int fd = manager(path, (socklen_t)n);
    setenv("NOTIFY_SOCKET", path, 1);
    notify("READY=1");
    assert_receives(fd, "READY=1");
    close(fd);
    unlink(path);

    n = snprintf(name, sizeof name, "@weir-unit-notify-%ld", (long)getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    name[0] = '\0';
    fd = manager(name, (socklen_t)n);
    notify("STOPPING=1");
    assert_receives(fd, "STOPPING=1");
    notify_reloading();
    char got[128];
    ssize_t length = recv(fd, got, sizeof got - 1, MSG_DONTWAIT);
    assert_true(length > 0);
    got[length] = '\0';
    unsigned long long us = 0;
    assert_int_equal(sscanf(got, "RELOADING=1\nMONOTONIC_USEC=%llu", &us), 1);
    assert_true(us > 0);
    close(fd);
}

static void without_a_manager_nothing_happens(void **state)
{
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    notify("READY=1");
    setenv("NOTIFY_SOCKET", "relative", 1);
    notify("READY=1");
    setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
    notify("READY=1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_and_an_abstract_name),
        cmocka_unit_test(without_a_manager_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
