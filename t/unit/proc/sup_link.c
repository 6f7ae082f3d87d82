/* SPDX-License-Identifier: MIT */
/* The link: what is encoded is decoded, nothing else is, descriptors arrive, and the end is told from a bad read. */
#include "proc/sup_link.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static struct link_message *new_message(void)
{
    struct link_message *m = calloc(1, sizeof *m);
    assert_non_null(m);
    return m;
}

static void what_is_encoded_is_decoded(void **state)
{
    (void)state;
    char bytes[LINK_BYTES];
    struct link_message *in = new_message(), *out = new_message();
    link_begin(in, LINK_OPEN, 7, STR("[::1]:8080"));
    in->have = 3;
    in->listen = (struct link_listen){ .backlog = 4096, .defer = true, .v6only = true };
    in->listen.addr.len = sizeof in->listen.addr.u.in6;
    in->listen.addr.u.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(8080) };
    size_t n = link_encode(in, bytes);
    assert_true(link_decode(out, bytes, n));
    assert_int_equal(out->kind, LINK_OPEN);
    assert_int_equal(out->n, 7);
    assert_int_equal(out->have, 3);
    assert_int_equal(out->listen.backlog, 4096);
    assert_true(out->listen.defer && out->listen.v6only);
    assert_true(addr_eq(&out->listen.addr, &in->listen.addr));
    assert_int_equal(out->listen.addr.len, in->listen.addr.len);
    assert_true(str_eq(out->text, STR("[::1]:8080")));
    free(in);
    free(out);
}

static void a_long_text_is_cut(void **state)
{
    (void)state;
    char bytes[LINK_BYTES];
    static char text[LINK_TEXT + 100];
    memset(text, 'x', sizeof text);
    struct link_message *m = new_message();
    link_begin(m, LINK_UPGRADE_FAILED, 0, str_of(text, sizeof text));
    size_t n = link_encode(m, bytes);
    assert_true(n <= LINK_BYTES);
    assert_true(link_decode(m, bytes, n));
    assert_int_equal(m->text.n, LINK_TEXT);
    free(m);
}

static void anything_else_is_refused(void **state)
{
    (void)state;
    char bytes[LINK_BYTES];
    struct link_message *m = new_message();
    link_begin(m, LINK_CLOSE, 0, STR("127.0.0.1:80"));
    size_t n = link_encode(m, bytes);
    for (size_t i = 0; i < n; i++)
        assert_false(link_decode(m, bytes, i));
    bytes[n] = 'x';
    assert_false(link_decode(m, bytes, n + 1));
    uint32_t huge = UINT32_MAX;
    memcpy(bytes, &huge, sizeof huge); /* the head's size */
    assert_false(link_decode(m, bytes, n));
    (void)link_encode(m, bytes);
    memcpy(bytes + 4, &huge, sizeof huge); /* the text's */
    assert_false(link_decode(m, bytes, n));
    free(m);
}

static void descriptors_arrive_and_are_close_on_exec(void **state)
{
    (void)state;
    int ends[2], through[2];
    assert_true(link_open(ends));
    assert_int_equal(pipe(through), 0);
    struct link_message *m = new_message();
    link_begin(m, LINK_OPENED, 2, STR("127.0.0.1:80"));
    m->fds[m->n_fds++] = through[0];
    m->fds[m->n_fds++] = through[1];
    assert_int_equal(link_send(ends[0], m), IO_OK);
    assert_int_equal(link_receive(ends[1], m), IO_OK);
    assert_int_equal(m->kind, LINK_OPENED);
    assert_int_equal(m->n_fds, 2);
    assert_int_not_equal(m->fds[0], through[0]);
    assert_true(fcntl(m->fds[0], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(m->fds[1], "x", 1), 1);
    char byte;
    assert_int_equal(read(through[0], &byte, 1), 1);
    int first = m->fds[0];
    link_close_fds(m);
    assert_int_equal(fcntl(first, F_GETFD), -1);
    assert_int_equal(link_receive(ends[1], m), IO_AGAIN);
    close(through[0]);
    close(through[1]);
    close(ends[0]);
    close(ends[1]);
    free(m);
}

static void the_end_comes_after_what_was_said(void **state)
{
    (void)state;
    int ends[2];
    struct link_message *m = new_message();
    assert_true(link_open(ends));
    assert_int_equal(link_say(ends[0], LINK_PING, 1), IO_OK);
    close(ends[0]);
    assert_int_equal(link_receive(ends[1], m), IO_OK);
    assert_int_equal(link_receive(ends[1], m), IO_EOF);
    assert_int_equal(link_say(ends[1], LINK_PONG, 1), IO_ERROR);
    close(ends[1]);
    /* A message that is none does not look like the end. */
    assert_true(link_open(ends));
    assert_int_equal(write(ends[0], "hello", 5), 5);
    assert_int_equal(link_receive(ends[1], m), IO_ERROR);
    assert_int_equal(link_receive(ends[1], m), IO_AGAIN);
    close(ends[0]);
    close(ends[1]);
    free(m);
}

static void a_reader_that_does_not_read_costs_no_time(void **state)
{
    (void)state;
    int ends[2];
    enum io io = IO_OK;
    assert_true(link_open(ends));
    for (int i = 0; i < 100000 && io == IO_OK; i++)
        io = link_say(ends[0], LINK_PING, 0);
    assert_int_equal(io, IO_AGAIN);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_is_decoded),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(descriptors_arrive_and_are_close_on_exec),
        cmocka_unit_test(the_end_comes_after_what_was_said),
        cmocka_unit_test(a_reader_that_does_not_read_costs_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
