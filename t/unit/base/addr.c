/* SPDX-License-Identifier: MIT */
/* Endpoints, peers and CIDRs: what parses, what is refused, and that printing gives back what was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "base/addr.h"

static struct endpoint parsed(const char *text)
{
    struct endpoint e;
    const char *why = NULL;
    if (!endpoint_parse(str_c(text), &e, &why))
        fail_msg("%s refused: %s", text, why);
    return e;
}

static void endpoints(void **state)
{
    (void)state;
    struct endpoint e = parsed("80");
    assert_int_equal(e.kind, ENDPOINT_ANY);
    assert_int_equal(e.port, 80);
    assert_int_equal(e.addr.u.in6.sin6_family, AF_INET6);
    assert_int_equal(ntohs(e.addr.u.in6.sin6_port), 80);
    e = parsed("*:8080");
    assert_int_equal(e.kind, ENDPOINT_ANY);
    assert_int_equal(e.port, 8080);

    e = parsed("127.0.0.1:65535");
    assert_int_equal(e.kind, ENDPOINT_IP);
    assert_int_equal(e.addr.u.in.sin_family, AF_INET);
    assert_int_equal(e.addr.len, sizeof(struct sockaddr_in));
    assert_int_equal(ntohl(e.addr.u.in.sin_addr.s_addr), 0x7f000001);
    assert_int_equal(ntohs(e.addr.u.in.sin_port), 65535);

    e = parsed("[2001:db8::1]:443");
    assert_int_equal(e.kind, ENDPOINT_IP);
    assert_int_equal(e.addr.len, sizeof(struct sockaddr_in6));
    assert_true(str_eq(e.host, STR("2001:db8::1")));

    e = parsed("app_1.internal:3000");
    assert_int_equal(e.kind, ENDPOINT_NAME);
    assert_int_equal(e.port, 3000);
    assert_true(str_eq(e.host, STR("app_1.internal")));

    e = parsed("unix:/run/app.sock");
    assert_int_equal(e.kind, ENDPOINT_UNIX);
    assert_true(str_eq(e.host, STR("/run/app.sock")));
    assert_string_equal(e.addr.u.un.sun_path, "/run/app.sock");
}

static void refused_endpoints_say_what_is_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "", "a port from" },
        { "0", "a port from" },
        { "65536", "a port from" },
        { "80x", "a port from" },
        { "127.0.0.1", "a port after" },
        { "localhost", "a port after" },
        { "127.0.0.1:", "a port from" },
        { "127.0.0.1:http", "a port from" },
        { "127.0.0.256:80", "an IPv4 address" },
        { "1.2.3:80", "an IPv4 address" },
        { "::1:80", "brackets" },
        { "[::1:80", "a closing bracket" },
        { "[::1]", "a port after" },
        { "[::1]80", "a port after" },
        { "[::g]:80", "an IPv6 address" },
        { "[127.0.0.1]:80", "an IPv6 address" },
        { ":80", "an address or a host name" },
        { "a b:80", "an address or a host name" },
        { "a..b:80", "an address or a host name" },
        { "http://x:80", "brackets" },
        { "unix:", "a path" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct endpoint e;
        const char *why = NULL;
        if (endpoint_parse(str_c(rows[i].text), &e, &why))
            fail_msg("%s accepted", rows[i].text);
        assert_true(str_starts(str_c(why), str_c(rows[i].why)));
    }
    struct endpoint e;
    const char *why;
    assert_false(endpoint_parse(str_of("unix:/a\0b", 9), &e, &why));
    assert_false(endpoint_parse(str_of("127.0.0.1\0:80", 13), &e, &why));
}

static void a_unix_path_fits_exactly_107_bytes(void **state)
{
    (void)state;
    char text[5 + 108];
    memcpy(text, "unix:", 5);
    memset(text + 5, 'p', 108);
    struct endpoint e;
    const char *why;
    assert_false(endpoint_parse(str_of(text, sizeof text), &e, &why));
    assert_true(endpoint_parse(str_of(text, sizeof text - 1), &e, &why));
    assert_int_equal(strlen(e.addr.u.un.sun_path), 107);
    assert_int_equal(e.addr.len, sizeof(struct sockaddr_un));
    char out[200];
    assert_int_equal(addr_print(&e.addr, out, sizeof out), 112);
    assert_memory_equal(out, text, 112);
}

static void printing_gives_back_what_was_written(void **state)
{
    (void)state;
    static const char *const texts[] = { "127.0.0.1:80", "[::1]:8080", "[2001:db8::1]:443", "unix:/x", "0.0.0.0:1" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct endpoint e = parsed(texts[i]);
        char out[64];
        assert_int_equal(addr_print(&e.addr, out, sizeof out), strlen(texts[i]));
        assert_string_equal(out, texts[i]);
        assert_int_equal(addr_print(&e.addr, out, 6), 5); /* cut, and still terminated */
        assert_int_equal(out[5], 0);
    }
}

static void equality(void **state)
{
    (void)state;
    static const char *const texts[] = { "127.0.0.1:80", "127.0.0.1:81", "127.0.0.2:80", "[::1]:80",
                                         "[::1]:81",     "[::2]:80",     "unix:/a",      "unix:/ab" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        for (size_t j = 0; j < ARRAY_LEN(texts); j++) {
            struct endpoint a = parsed(texts[i]), b = parsed(texts[j]);
            assert_int_equal(addr_eq(&a.addr, &b.addr), i == j);
        }
}

static void peers(void **state)
{
    (void)state;
    char out[IP_TEXT];
    struct endpoint e = parsed("[::ffff:10.1.2.3]:99");
    struct ip ip = ip_of(&e.addr.u.sa);
    assert_int_equal(ip.family, 4);
    assert_int_equal(ip.port, 99);
    assert_int_equal(ip_print(&ip, out), 8);
    assert_string_equal(out, "10.1.2.3");
    e = parsed("[2001:db8::7]:1");
    ip = ip_of(&e.addr.u.sa);
    assert_int_equal(ip.family, 6);
    ip_print(&ip, out);
    assert_string_equal(out, "2001:db8::7");
    e = parsed("unix:/x");
    ip = ip_of(&e.addr.u.sa);
    assert_int_equal(ip.family, 0);
    ip_print(&ip, out);
    assert_string_equal(out, "unix:");
    assert_true(ip_parse(STR("::1"), &ip));
    assert_int_equal(ip.family, 6);
    assert_true(ip_parse(STR("10.0.0.1"), &ip));
    assert_int_equal(ip.family, 4);
    assert_false(ip_parse(STR("10.0.0.1:80"), &ip));
    assert_false(ip_parse(STR("10.0.0.01x"), &ip));
    assert_false(ip_parse(STR("[::1]"), &ip));
    assert_false(ip_parse(STR(""), &ip));
    assert_false(ip_parse(STR("1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb"), &ip));
}

static bool matches(const char *cidr, const char *ip_text)
{
    struct cidr c;
    const char *why = "";
    if (!cidr_parse(str_c(cidr), &c, &why))
        fail_msg("%s refused: %s", cidr, why);
    struct ip ip = { 0 };
    if (ip_text != NULL)
        assert_true(ip_parse(str_c(ip_text), &ip));
    return cidr_has(&c, &ip);
}

static void cidrs(void **state)
{
    (void)state;
    assert_true(matches("10.0.0.0/8", "10.255.0.1"));
    assert_false(matches("10.0.0.0/8", "11.0.0.1"));
    assert_true(matches("192.168.4.0/22", "192.168.7.255"));
    assert_false(matches("192.168.4.0/22", "192.168.8.0"));
    assert_true(matches("0.0.0.0/0", "8.8.8.8"));
    assert_false(matches("0.0.0.0/0", "::1"));
    assert_true(matches("127.0.0.1", "127.0.0.1"));
    assert_true(matches("127.0.0.1", "::ffff:127.0.0.1"));
    assert_false(matches("127.0.0.1", "127.0.0.2"));
    assert_true(matches("::ffff:10.0.0.0/104", "10.9.9.9"));
    assert_false(matches("::ffff:10.0.0.0/104", "11.9.9.9"));
    assert_true(matches("2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(matches("2001:db8::/33", "2001:db8:8000::1"));
    assert_true(matches("::1", "::1"));
    assert_true(matches("::/0", "::1"));
    assert_false(matches("::/0", "1.2.3.4"));
    assert_true(matches("unix", NULL));
    assert_false(matches("unix", "0.0.0.0"));
    assert_false(matches("0.0.0.0/0", NULL));
    static const char *const bad[] = { "",           "10.0.0.0/33",     "10.1.0.0/8", "10.0.0.0/",  "10.0.0.0/x",
                                       "::1/129",    "2001:db8::1/64",  "unix/8",     "example.org", "10.0.0/8",
                                       "10.0.0.1/0", "::ffff:1.0.0.0/8" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct cidr c;
        const char *why = NULL;
        assert_false(cidr_parse(str_c(bad[i]), &c, &why));
        assert_non_null(why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints),
        cmocka_unit_test(refused_endpoints_say_what_is_expected),
        cmocka_unit_test(a_unix_path_fits_exactly_107_bytes),
        cmocka_unit_test(printing_gives_back_what_was_written),
        cmocka_unit_test(equality),
        cmocka_unit_test(peers),
        cmocka_unit_test(cidrs),
    };
    return cmocka_run_group_tests_name("base/addr", tests, NULL, NULL);
}
