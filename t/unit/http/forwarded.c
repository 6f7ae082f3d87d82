/* SPDX-License-Identifier: MIT */
/* Who the client is, from the fields of a trusted peer. Rows are "field letter: value" lines, F Forwarded, X X-Forwarded-For,
 * P X-Forwarded-Proto; 10.0.0.0/8, ::1 and unix sockets are trusted. */
#include "http/forwarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct arena arena;
static struct fields fields;
static struct cidr trusted[3];
static struct ip peer;

static int setup(void **state)
{
    static const char *const list[] = { "10.0.0.0/8", "::1", "unix" };
    const char *why;
    (void)state;
    arena_init(&arena, NULL);
    for (unsigned i = 0; i < ARRAY_LEN(list); i++)
        assert_true(cidr_parse(str_c(list[i]), &trusted[i], &why));
    assert_true(ip_parse(STR("10.0.0.1"), &peer));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_reset(&arena);
    return 0;
}

static struct forwarded read_lines(const char *text)
{
    fields = (struct fields){ 0 };
    while (*text != '\0') {
        enum field_id id = *text == 'F' ? F_FORWARDED : *text == 'X' ? F_X_FORWARDED_FOR : F_X_FORWARDED_PROTO;
        size_t n = strcspn(text, "\n");
        assert_true(fields_add_id(&fields, &arena, id, str_trim(str_of(text + 2, n - 2))));
        text += n + (text[n] == '\n');
    }
    return forwarded_read(&fields, &peer, trusted, ARRAY_LEN(trusted));
}

/* "192.0.2.7", "192.0.2.7 80" with a port, " https" or " http" behind if somebody said so. */
static const char *client(const char *text)
{
    static char out[IP_TEXT + 32];
    struct forwarded f = read_lines(text);
    size_t n = ip_print(&f.client, out);
    out[n] = '\0';
    if (f.client.port > 0)
        n += (size_t)snprintf(out + n, sizeof out - n, " %u", f.client.port);
    snprintf(out + n, sizeof out - n, "%s", !f.has_scheme ? "" : f.is_https ? " https" : " http");
    return out;
}

static void from_the_right_until_somebody_is_not_trusted(void **state)
{
    (void)state;
    assert_string_equal(client(""), "10.0.0.1");
    assert_string_equal(client("X:192.0.2.7"), "192.0.2.7");
    assert_string_equal(client("X:192.0.2.7, 198.51.100.1"), "198.51.100.1");
    assert_string_equal(client("X:192.0.2.7, 10.2.3.4"), "192.0.2.7");
    assert_string_equal(client("X:192.0.2.7, 198.51.100.1, 10.2.3.4, ::1"), "198.51.100.1");
    assert_string_equal(client("X:10.0.0.3, 10.0.0.2"), "10.0.0.3");
    assert_string_equal(client("F:for=192.0.2.7, for=198.51.100.1;by=10.0.0.3, For=10.0.0.2"), "198.51.100.1");
}

static void lines_are_one_list(void **state)
{
    (void)state;
    assert_string_equal(client("X:192.0.2.7\nX:198.51.100.1"), "198.51.100.1");
    assert_string_equal(client("X:192.0.2.7\nP:http\nX:10.0.0.2,\nX:\nX: , ,"), "192.0.2.7 http");
    assert_string_equal(client("F:for=192.0.2.7\nF:for=10.0.0.4"), "192.0.2.7");
}

static void addresses_with_ports_and_brackets(void **state)
{
    (void)state;
    assert_string_equal(client("X:192.0.2.7:4711"), "192.0.2.7 4711");
    assert_string_equal(client("X:2001:db8::7"), "2001:db8::7");
    assert_string_equal(client("X:[2001:db8::7]"), "2001:db8::7");
    assert_string_equal(client("X:[2001:db8::7]:65535"), "2001:db8::7 65535");
    assert_string_equal(client("X:::ffff:192.0.2.7"), "192.0.2.7");
    assert_string_equal(client("F:for=\"[2001:db8::7]:4711\""), "2001:db8::7 4711");
    assert_string_equal(client("F:for=\"192.0.2.7:80\";by=x"), "192.0.2.7 80");
}

static void what_names_nobody_ends_the_walk(void **state)
{
    static const char *const bad[] = { "unknown", "_hidden", "localhost", "192.0.2", "192.0.2.7.", "192.0.2.7:", "192.0.2.7:65536",
                                       "192.0.2.7:+1", "192.0.2.7:_p", "192.0.2.07", "[192.0.2.7]", "[2001:db8::7", "2001:db8::7]",
                                       "[2001:db8::7]80", "[]", "[]:80", ":80", "fe80::1%eth0", "\"192.0.2.7\"", "1.1.1.1 2.2.2.2",
                                       "for=192.0.2.7", "-", "1", "0x7f000001" };
    char line[128];
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(line, sizeof line, "X:198.51.100.1, %s, 10.0.0.2", bad[i]);
        assert_string_equal(client(line), "10.0.0.2");
        snprintf(line, sizeof line, "X:%s", bad[i]);
        assert_string_equal(client(line), "10.0.0.1");
    }
}

static void malformed_elements_of_forwarded(void **state)
{
    static const char *const bad[] = { "for", "for=", "=1.1.1.1", "for=unknown", "for=\"_a:_b\"", "by=192.0.2.7", "for=192.0.2.7;for=192.0.2.7",
                                       "for=192.0.2.7 proto=https", "for=\"192.0.2.7", "for=192.0.2.7\"", "fo r=192.0.2.7",
                                       "for=\"192.0.2.7\"x", "for=\"192.0\\.2.7\"", "for=192.0.2.7;x", "\"", "\\" };
    char line[128];
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(line, sizeof line, "F:for=198.51.100.1, %s, for=10.0.0.2", bad[i]);
        assert_string_equal(client(line), "10.0.0.2");
    }
    assert_string_equal(client("F:for=192.0.2.7 ; proto=https ;"), "192.0.2.7 https");
}

/* Nothing that a client writes at the front changes how the trusted proxy's own entry is read. */
static void an_open_quote_swallows_nothing(void **state)
{
    (void)state;
    assert_string_equal(client("F:for=1.1.1.1;x=\", for=192.0.2.7"), "192.0.2.7");
    assert_string_equal(client("F:for=1.1.1.1;x=\"\\, for=\"192.0.2.7\""), "192.0.2.7");
    assert_string_equal(client("F:x=\", for=\"[2001:db8::7]\";by=\"a,\\\",b\""), "2001:db8::7");
}

static void x_forwarded_for_goes_before_forwarded(void **state)
{
    (void)state;
    assert_string_equal(client("F:for=1.1.1.1\nX:192.0.2.7"), "192.0.2.7");
    assert_string_equal(client("F:for=1.1.1.1\nX:"), "10.0.0.1");
}

static void the_scheme(void **state)
{
    (void)state;
    assert_string_equal(client("P:https"), "10.0.0.1 https");
    assert_string_equal(client("P:HTTPS\nX:192.0.2.7"), "192.0.2.7 https");
    assert_string_equal(client("P:wss"), "10.0.0.1 https");
    assert_string_equal(client("P:ftp"), "10.0.0.1");
    assert_string_equal(client("P:https, http\nX:192.0.2.7"), "192.0.2.7 http"); /* what the client said itself */
    assert_string_equal(client("P:https, http\nX:192.0.2.7, 10.0.0.2"), "192.0.2.7 https");
    assert_string_equal(client("P:http\nF:for=192.0.2.7;proto=https"), "192.0.2.7 http");
    assert_string_equal(client("F:for=192.0.2.7;proto=https, for=10.0.0.2;proto=http"), "192.0.2.7 https");
    assert_string_equal(client("F:for=192.0.2.7;proto=https, for=198.51.100.1"), "198.51.100.1");
}

static void a_peer_on_a_unix_socket(void **state)
{
    (void)state;
    peer = (struct ip){ 0 };
    assert_string_equal(client("X:192.0.2.7"), "192.0.2.7");
    assert_string_equal(client("X:unix:"), "unix:");
}

static void a_long_list_costs_what_is_looked_at(void **state)
{
    char line[32 * 1024] = "X:192.0.2.7";
    size_t n = strlen(line);
    (void)state;
    for (unsigned i = 0; i < FORWARDED_HOPS - 1; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, ",10.0.0.%u", i);
    assert_string_equal(client(line), "192.0.2.7");
    n += (size_t)snprintf(line + n, sizeof line - n, ",10.9.9.9");
    assert_string_equal(client(line), "10.0.0.0");
    memset(line + 2, ',', sizeof line - 3);
    line[sizeof line - 1] = '\0';
    assert_string_equal(client(line), "10.0.0.1");
}

static void which_ids_are_kept(void **state)
{
    char longest[129];
    (void)state;
    memset(longest, 'a', sizeof longest);
    assert_true(is_request_id(STR("0af7651916cd43dd8448eb211c80319c")));
    assert_true(is_request_id(STR("Root=1-67891233-abcdef012345678912345678")));
    assert_true(is_request_id(str_of(longest, 128)));
    assert_false(is_request_id(str_of(longest, 129)));
    assert_false(is_request_id(STR("")));
    assert_false(is_request_id(STR("a b")));
    assert_false(is_request_id(STR("a\"b")));
    assert_false(is_request_id(STR("a\0b")));
    assert_false(is_request_id(STR("\xc3\xa4")));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(from_the_right_until_somebody_is_not_trusted),
        T(lines_are_one_list),
        T(addresses_with_ports_and_brackets),
        T(what_names_nobody_ends_the_walk),
        T(malformed_elements_of_forwarded),
        T(an_open_quote_swallows_nothing),
        T(x_forwarded_for_goes_before_forwarded),
        T(the_scheme),
        T(a_peer_on_a_unix_socket),
        T(a_long_list_costs_what_is_looked_at),
        T(which_ids_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
