/* SPDX-License-Identifier: MIT */
/* Opening all addresses or none, what is said about those that fail, and whose socket file is removed at the end. */
#include "proc/listeners.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "net/listen.h"

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
    return mkdtemp(dir) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    return rmdir(dir);
}

/* A configuration with these addresses, as far as opening them looks at one. */
static void fill(struct conf *c, struct listen_conf *listens, unsigned n, const char *const *text)
{
    static const struct str file = { .p = "proxy.conf", .n = 10 };
    *c = (struct conf){ .files = &file, .n_files = 1, .workers = 2, .listens = listens, .n_listens = n };
    for (unsigned i = 0; i < n; i++) {
        const char *why;
        listens[i] = (struct listen_conf){ .text = str_c(text[i]), .backlog = 16, .where = { .line = 7 + i } };
        assert_true(endpoint_parse(listens[i].text, &listens[i].endpoint, &why));
        if (listens[i].endpoint.port == 1) /* any that is free */
            listens[i].endpoint.addr.u.in.sin_port = 0;
    }
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int port_of(int fd)
{
    struct sockaddr_in in;
    socklen_t n = sizeof in;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &n), 0);
    return ntohs(in.sin_port);
}

static void each_loop_has_a_socket_of_its_own(void **state)
{
    (void)state;
    unsigned before = descriptors();
    char path[160];
    (void)snprintf(path, sizeof path, "unix:%s/sock", dir);
    struct conf c;
    struct listen_conf listens[2];
    const char *text[] = { "127.0.0.1:1", path };
    fill(&c, listens, 2, text);
    struct listeners ls = { 0 };
    assert_true(listeners_open(&ls, &c));
    assert_int_equal(ls.n, 2);
    assert_int_equal(ls.all[0]->n, 2);
    assert_int_equal(ls.all[1]->n, 1);
    assert_int_not_equal(ls.all[0]->fds[0], ls.all[0]->fds[1]);
    assert_int_equal(port_of(ls.all[0]->fds[0]), port_of(ls.all[0]->fds[1]));
    assert_int_equal(access(path + 5, F_OK), 0);
    assert_ptr_equal(listeners_find(&ls, STR("127.0.0.1:1")), ls.all[0]);
    assert_null(listeners_find(&ls, STR("127.0.0.1:2")));
    listeners_unlink(&ls);
    listeners_close(&ls);
    assert_int_not_equal(access(path + 5, F_OK), 0);
    assert_int_equal(descriptors(), before);
}

static void a_server_with_more_loops_gets_more_sockets(void **state)
{
    (void)state;
    unsigned before = descriptors();
    struct conf c;
    struct listen_conf listens[1];
    const char *text[] = { "127.0.0.1:1" };
    const char *step;
    fill(&c, listens, 1, text);
    c.workers = 1;
    struct listeners ls = { 0 };
    assert_true(listeners_open(&ls, &c));
    struct link_listen at = listen_of(&listens[0]);
    assert_true(sockets_grow(&ls, ls.all[0], &at, 3, &step));
    assert_int_equal(ls.all[0]->n, 3);
    for (unsigned i = 1; i < 3; i++)
        assert_int_equal(port_of(ls.all[0]->fds[i]), port_of(ls.all[0]->fds[0]));
    assert_true(sockets_grow(&ls, ls.all[0], &at, 2, &step));
    assert_int_equal(ls.all[0]->n, 3);
    /* One that the service manager has opened stays alone. */
    ls.all[0]->given = true;
    assert_true(sockets_grow(&ls, ls.all[0], &at, 5, &step));
    assert_int_equal(ls.all[0]->n, 3);
    listeners_remove(&ls, ls.all[0]);
    assert_int_equal(ls.n, 0);
    listeners_close(&ls);
    assert_int_equal(descriptors(), before);
}

static void every_failure_is_named_and_nothing_is_left(void **state)
{
    (void)state;
    logged[0] = '\0';
    struct conf c;
    struct listen_conf listens[3];
    struct listeners first = { 0 }, second = { 0 };
    const char *one[] = { "127.0.0.1:1" };
    fill(&c, listens, 1, one);
    assert_true(listeners_open(&first, &c));
    unsigned before = descriptors();
    char taken[32], path[160];
    (void)snprintf(taken, sizeof taken, "127.0.0.1:%d", port_of(first.all[0]->fds[0]));
    (void)snprintf(path, sizeof path, "unix:%s/sock", dir);
    const char *three[] = { taken, path, "192.0.2.1:1" };
    fill(&c, listens, 3, three);
    assert_false(listeners_open(&second, &c));
    char want[160];
    (void)snprintf(want, sizeof want,
                   "cannot listen on %s: Address already in use; another server listens there (proxy.conf:7)\n", taken);
    assert_non_null(strstr(logged, want));
    assert_non_null(strstr(logged, "cannot listen on 192.0.2.1:1: Cannot assign requested address; "
                                   "no interface of this host has the address (proxy.conf:9)\n"));
    assert_null(strstr(logged, path));
    assert_int_not_equal(access(path + 5, F_OK), 0);
    assert_int_equal(descriptors(), before);
    listeners_close(&first);
}

static void a_socket_file_of_another_stays(void **state)
{
    (void)state;
    char path[160];
    (void)snprintf(path, sizeof path, "unix:%s/sock", dir);
    struct conf c;
    struct listen_conf listens[1];
    const char *text[] = { path };
    fill(&c, listens, 1, text);
    struct listeners ls = { 0 };
    assert_true(listeners_open(&ls, &c));
    /* Somebody removes it and puts one of their own there. */
    assert_int_equal(unlink(path + 5), 0);
    int fd = open(path + 5, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
    listeners_unlink(&ls);
    listeners_close(&ls);
    assert_int_equal(access(path + 5, F_OK), 0);
    unlink(path + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_loop_has_a_socket_of_its_own),
        cmocka_unit_test(a_server_with_more_loops_gets_more_sockets),
        cmocka_unit_test(every_failure_is_named_and_nothing_is_left),
        cmocka_unit_test(a_socket_file_of_another_stays),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
