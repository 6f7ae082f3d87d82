/* SPDX-License-Identifier: MIT */
/* The PROXY protocol's header, whole and in pieces. */
#include "http/proxy_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V2(command, family, length, rest) STR(SIGNATURE command family length rest)
#define FROM_4 "\xc0\x00\x02\x07" "\x0a\x00\x00\x01" "\x12\x67" "\x00\x50"
#define FROM_6 "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07" "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01" "\x12\x67" "\x01\xbb"

/* Feeds s and a byte more, in pieces of `step`; "192.0.2.7 4711 10.0.0.1 80", "none", or what is wrong. */
static const char *said(struct str s, size_t step)
{
    static char out[256];
    char text[2][IP_TEXT];
    struct proxy_header h = { 0 };
    size_t at = 0;
    enum proxy_header_event event = PROXY_HEADER_MORE;
    while (at < s.n && event == PROXY_HEADER_MORE) {
        size_t used, n = s.n - at < step ? s.n - at : step;
        char *piece = malloc(n);
        assert_non_null(piece);
        memcpy(piece, s.p + at, n);
        event = proxy_header_feed(&h, piece, n, &used);
        free(piece);
        assert_true(used == n || event != PROXY_HEADER_MORE);
        at += used;
    }
    if (event == PROXY_HEADER_BAD)
        return h.bad;
    if (event == PROXY_HEADER_MORE)
        return "more";
    assert_int_equal(at, s.n); /* not a byte less, and those behind are not touched */
    if (!h.has_addresses)
        return "none";
    text[0][ip_print(&h.from, text[0])] = '\0';
    text[1][ip_print(&h.to, text[1])] = '\0';
    snprintf(out, sizeof out, "%s %u %s %u", text[0], h.from.port, text[1], h.to.port);
    return out;
}

static void says(struct str s, const char *expected)
{
    for (size_t step = 1; step <= s.n; step++)
        assert_string_equal(said(s, step), expected);
}

static void version_1(void **state)
{
    (void)state;
    says(STR("PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n"), "192.0.2.7 4711 10.0.0.1 80");
    says(STR("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"), "255.255.255.255 65535 255.255.255.255 65535");
    says(STR("PROXY TCP6 2001:db8::7 ::1 4711 443\r\n"), "2001:db8::7 4711 ::1 443");
    says(STR("PROXY TCP6 ::ffff:192.0.2.7 ::ffff:10.0.0.1 0 80\r\n"), "192.0.2.7 0 10.0.0.1 80");
    says(STR("PROXY UNKNOWN\r\n"), "none");
    says(STR("PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n"), "none");
}

static void version_1_malformed(void **state)
{
    static const char *const bad[][2] = {
        { "PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\n", "its line does not end with CRLF" },
        { "PROXY TCP4 192.0.2.7 10.0.0.1\r 4711 80\r\n", "its line does not end with CRLF" },
        { "PROXY TCP5 192.0.2.7 10.0.0.1 4711 80\r\n", "a family other than TCP4, TCP6 and UNKNOWN" },
        { "PROXY \r\n", "a family other than TCP4, TCP6 and UNKNOWN" },
        { "PROXY  TCP4 192.0.2.7 10.0.0.1 4711 80\r\n", "a family other than TCP4, TCP6 and UNKNOWN" },
        { "PROXY TCP4  192.0.2.7 10.0.0.1 4711 80\r\n", "malformed address" },
        { "PROXY TCP4 ::1 10.0.0.1 4711 80\r\n", "malformed address" },
        { "PROXY TCP6 192.0.2.7 10.0.0.1 4711 80\r\n", "malformed address" },
        { "PROXY TCP4 192.0.2.7\r\n", "malformed address" },
        { "PROXY TCP4 192.0.2 10.0.0.1 4711 80\r\n", "malformed address" },
        { "PROXY TCP4 192.0.2.7 10.0.0.1 4711 \r\n", "malformed port" },
        { "PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n", "malformed port" },
        { "PROXY TCP4 192.0.2.7 10.0.0.1 04711 80\r\n", "malformed port" },
        { "PROXY TCP4 192.0.2.7 10.0.0.1 65536 80\r\n", "malformed port" },
        { "PROXY TCP4 192.0.2.7 10.0.0.1 4711 80 \r\n", "malformed port" },
        { "PROXY TCP4 192.0.2.7 10.0.0.1 -1 80\r\n", "malformed port" },
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
        says(str_c(bad[i][0]), bad[i][1]);
    char line[128] = "PROXY UNKNOWN ";
    memset(line + 14, 'x', sizeof line - 14);
    memcpy(line + 105, "\r\n", 2);
    says(str_of(line, 107), "none");
    memset(line + 14, 'x', sizeof line - 14);
    memcpy(line + 106, "\r\n", 2);
    says(str_of(line, 108), "its line is longer than 107 bytes");
}

static void something_else_is_refused_at_its_first_wrong_byte(void **state)
{
    static const char *const bad[] = { "G", "PU", "PROPF", "PROXY\t", "\r\n\r\n\r", "\n", "\x16", "\r\n\r\n\1", "proxy" };
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        struct proxy_header h = { 0 };
        size_t used;
        assert_int_equal(proxy_header_feed(&h, bad[i], strlen(bad[i]), &used), PROXY_HEADER_BAD);
        assert_string_equal(h.bad, "the connection begins with something else");
    }
    says(STR("PROXY"), "more");
    says(STR("\r\n\r\n"), "more");
}

static void version_2(void **state)
{
    (void)state;
    says(V2("\x21", "\x11", "\x00\x0c", FROM_4), "192.0.2.7 4711 10.0.0.1 80");
    says(V2("\x21", "\x21", "\x00\x24", FROM_6), "2001:db8::7 4711 ::1 443");
    says(V2("\x21", "\x11", "\x00\x12", FROM_4 "\x04\0\x03" "abc"), "192.0.2.7 4711 10.0.0.1 80");
    says(V2("\x20", "\x00", "\x00\x00", ""), "none");
    says(V2("\x20", "\x11", "\x00\x0c", FROM_4), "none"); /* LOCAL: the block is skipped, whatever it is */
    says(V2("\x20", "\xff", "\x00\x03", "abc"), "none");
    says(V2("\x21", "\x00", "\x00\x05", "abcde"), "none");
    says(V2("\x21", "\x12", "\x00\x0c", FROM_4), "none"); /* datagrams */
}

static void version_2_of_a_unix_socket(void **state)
{
    char text[16 + 216 + 1] = SIGNATURE "\x21\x31\x00";
    (void)state;
    text[15] = (char)216;
    says(str_of(text, 16 + 216), "none");
    text[15] = (char)215;
    says(str_of(text, 16 + 215), "too short for its addresses");
}

static void version_2_malformed(void **state)
{
    (void)state;
    says(V2("\x11", "\x11", "\x00\x0c", FROM_4), "a version or command that is not known");
    says(V2("\x22", "\x11", "\x00\x0c", FROM_4), "a version or command that is not known");
    says(V2("\x21", "\x10", "\x00\x0c", FROM_4), "a family or protocol that is not known");
    says(V2("\x21", "\x01", "\x00\x0c", FROM_4), "a family or protocol that is not known");
    says(V2("\x21", "\x13", "\x00\x0c", FROM_4), "a family or protocol that is not known");
    says(V2("\x21", "\x41", "\x00\x0c", FROM_4), "a family or protocol that is not known");
    says(V2("\x21", "\x11", "\x00\x0b", FROM_4), "too short for its addresses");
    says(V2("\x21", "\x21", "\x00\x23", FROM_6), "too short for its addresses");
    says(V2("\x21", "\x11", "\x0f\xf1", FROM_4), "longer than 4096 bytes");
    char longest[PROXY_HEADER_MAX] = SIGNATURE "\x21\x11\x0f\xf0" FROM_4;
    assert_string_equal(said(str_of(longest, sizeof longest), 1000), "192.0.2.7 4711 10.0.0.1 80");
    assert_string_equal(said(str_of(longest, sizeof longest - 1), 1), "more");
}

static void written_reads_the_same(void **state)
{
    static const struct {
        const char *from, *to, *expected;
    } rows[] = {
        { "192.0.2.7", "10.0.0.1", "192.0.2.7 4711 10.0.0.1 80" },
        { "2001:db8::7", "::1", "2001:db8::7 4711 ::1 80" },
        { "192.0.2.7", "::1", "192.0.2.7 4711 ::1 80" },
        { "2001:db8::7", "10.0.0.1", "2001:db8::7 4711 10.0.0.1 80" },
    };
    char out[PROXY_HEADER_V1];
    (void)state;
    for (unsigned version = 1; version <= 2; version++) {
        struct ip from, to, none = { 0 };
        for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
            assert_true(ip_parse(str_c(rows[i].from), &from) && ip_parse(str_c(rows[i].to), &to));
            from.port = 4711;
            to.port = 80;
            says(str_of(out, proxy_header_write(version, &from, &to, out)), rows[i].expected);
        }
        says(str_of(out, proxy_header_write(version, &none, &to, out)), "none");
        says(str_of(out, proxy_header_write(version, NULL, NULL, out)), "none");
    }
    assert_int_equal(out[12], 0x20);
    assert_int_equal(proxy_header_write(1, NULL, NULL, out), 15);
    assert_memory_equal(out, "PROXY UNKNOWN\r\n", 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_1),
        cmocka_unit_test(version_1_malformed),
        cmocka_unit_test(something_else_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(version_2),
        cmocka_unit_test(version_2_of_a_unix_socket),
        cmocka_unit_test(version_2_malformed),
        cmocka_unit_test(written_reads_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
