/* SPDX-License-Identifier: MIT */
/* Request targets: forms, decoding, dot segments, what is tricky; Host; encoding back. */
#include "http/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct arena arena;

/* "form raw | path | ?query @authority", or the name of the failure. */
static void expect(struct str raw, enum method m, const char *wanted)
{
    static const char *const forms[] = { "origin", "absolute", "asterisk", "authority" };
    static const char *const failures[] = { "ok", "bad", "above", "memory" };
    struct target t;
    char text[1024];
    enum target_result result = target_parse(&t, raw, m, &arena);
    if (result == TARGET_OK) {
        int n = snprintf(text, sizeof text, "%s %.*s | %.*s", forms[t.form], STR_ARG(t.raw), STR_ARG(t.path));
        if (t.has_query)
            n += snprintf(text + n, sizeof text - (size_t)n, " ?%.*s", STR_ARG(t.query));
        if (t.authority.n > 0)
            n += snprintf(text + n, sizeof text - (size_t)n, " @%.*s", STR_ARG(t.authority));
        snprintf(text + n, sizeof text - (size_t)n, "%s", t.tricky ? " tricky" : "");
        if (t.form != TARGET_AUTHORITY) {
            assert_true(t.raw.n == t.raw_path.n + (t.has_query ? 1 + t.query.n : 0));
            assert_true(str_starts(t.raw, t.raw_path));
        }
    } else {
        snprintf(text, sizeof text, "%s", failures[result]);
    }
    if (strcmp(text, wanted) != 0)
        fail_msg("%.*s gave\n%s, wanted\n%s", STR_ARG(raw), text, wanted);
}

#define EXPECT(raw, wanted) expect(STR(raw), METHOD_GET, wanted)

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_reset(&arena);
    return 0;
}

static void test_plain(void **state)
{
    (void)state;
    EXPECT("/", "origin / | /");
    EXPECT("/a/b.c?d=%2F+&%zz=1", "origin /a/b.c?d=%2F+&%zz=1 | /a/b.c ?d=%2F+&%zz=1");
    EXPECT("/?", "origin /? | / ?");
    EXPECT("/x?/../y?z", "origin /x?/../y?z | /x ?/../y?z");
    EXPECT("/a;v=1/x", "origin /a;v=1/x | /a;v=1/x");
    EXPECT("/a+b\\c|{}\"<>^`", "origin /a+b\\c|{}\"<>^` | /a+b\\c|{}\"<>^`");
    EXPECT("/...", "origin /... | /...");
    EXPECT("/.hidden/..x/y..", "origin /.hidden/..x/y.. | /.hidden/..x/y..");
    /* Nothing to do: nothing is copied. */
    struct target t;
    struct str raw = STR("/a/b?c");
    assert_int_equal(target_parse(&t, raw, METHOD_GET, &arena), TARGET_OK);
    assert_ptr_equal(t.path.p, raw.p);
}

static void test_decoding(void **state)
{
    (void)state;
    EXPECT("/%61dmin/x", "origin /%61dmin/x | /admin/x");
    EXPECT("/%6Fne%2etxt", "origin /%6Fne%2etxt | /one.txt");
    EXPECT("/a%2Fb%20c/%7e/x", "origin /a%2Fb%20c/%7e/x | /a/b c/~/x");
    EXPECT("/100%25.txt", "origin /100%25.txt | /100%.txt");
    EXPECT("/a%252fb/%2561", "origin /a%252fb/%2561 | /a%2fb/%61"); /* once */
    EXPECT("/%c3%bc/%c0%af/%ff", "origin /%c3%bc/%c0%af/%ff | /\xc3\xbc/\xc0\xaf/\xff");
    EXPECT("/dir%0d%0aX:%20y", "origin /dir%0d%0aX:%20y | /dir\r\nX: y");
    EXPECT("/%3Fq", "origin /%3Fq | /?q");
    EXPECT("/sp+ace", "origin /sp+ace | /sp+ace");
    EXPECT("/foo%", "bad");
    EXPECT("/a%4", "bad");
    EXPECT("/a%z1", "bad");
    EXPECT("/a%1z", "bad");
    EXPECT("/%NETHOOD%", "bad");
    EXPECT("/a%?41", "bad");
    EXPECT("/a%00", "bad");
    EXPECT("/%00/../x", "bad");
}

static void test_dots(void **state)
{
    (void)state;
    EXPECT("/a/./b/../c", "origin /a/./b/../c | /a/c");
    EXPECT("/a/b/..", "origin /a/b/.. | /a/");
    EXPECT("/a/b/.", "origin /a/b/. | /a/b/");
    EXPECT("/.", "origin /. | /");
    EXPECT("/a/..", "origin /a/.. | /");
    EXPECT("/a/../", "origin /a/../ | /");
    EXPECT("/a/b/../../c/", "origin /a/b/../../c/ | /c/");
    EXPECT("/./admin/x", "origin /./admin/x | /admin/x");
    EXPECT("/..;/x", "origin /..;/x | /..;/x");
    EXPECT("/..\\x", "origin /..\\x | /..\\x");
    EXPECT("/....//x", "origin /....//x | /..../x");
    EXPECT("/..", "above");
    EXPECT("/../x", "above");
    EXPECT("/a/../../x", "above");
    EXPECT("/./.././x", "above");
    EXPECT("/%2e%2e/x", "above");
    EXPECT("/.%2e/x", "above");
    EXPECT("/..%2fx", "above");
    EXPECT("/a%2f..%2f..%2fx", "above");
    EXPECT("http://h/../x", "above");
}

static void test_slashes(void **state)
{
    (void)state;
    EXPECT("//a//b///", "origin //a//b/// | /a/b/");
    EXPECT("//", "origin // | /");
    EXPECT("/a%2F%2fb", "origin /a%2F%2fb | /a/b");
    EXPECT("/a//./b", "origin /a//./b | /a/b");
}

static void test_tricky(void **state)
{
    (void)state;
    EXPECT("/a/%2e%2e/admin/x", "origin /a/%2e%2e/admin/x | /admin/x tricky");
    EXPECT("/a/.%2e/b", "origin /a/.%2e/b | /b tricky");
    EXPECT("/a/%2e/b", "origin /a/%2e/b | /a/b tricky");
    EXPECT("/a%2Fb/../c", "origin /a%2Fb/../c | /a/c tricky");
    EXPECT("/a%2F../c", "origin /a%2F../c | /c tricky");
    EXPECT("/a/b%2f..", "origin /a/b%2f.. | /a/ tricky");
    EXPECT("/a%2fb/../../c", "origin /a%2fb/../../c | /c tricky");
    /* An empty segment taken back: gone already for those who merge slashes first. */
    EXPECT("/a//../b", "origin /a//../b | /a/b tricky");
    EXPECT("//../b", "origin //../b | /b tricky");
    /* Encoded, but no dot segment depends on it. */
    EXPECT("/a%2Fb/c%2e", "origin /a%2Fb/c%2e | /a/b/c.");
    EXPECT("/a/../b%2Fc", "origin /a/../b%2Fc | /b/c");
    EXPECT("/x%2e%2e/y", "origin /x%2e%2e/y | /x../y");
    EXPECT("/a/%2E.b", "origin /a/%2E.b | /a/..b");
    EXPECT("/%2Fa", "origin /%2Fa | /a");
}

static void test_bytes(void **state)
{
    (void)state;
    EXPECT("", "bad");
    EXPECT("/a#f", "bad");
    EXPECT("/a?b#f", "bad");
    EXPECT("/a b", "bad");
    EXPECT("/a\x01", "bad");
    EXPECT("/a\x7f", "bad");
    EXPECT("/\xc3\xa9", "bad");
    EXPECT("/?\xff", "bad");
    EXPECT("/a\0b", "bad");
    EXPECT("/a\r\n", "bad");
}

static void test_forms(void **state)
{
    (void)state;
    EXPECT("http://other/admin/x?y=1", "absolute /admin/x?y=1 | /admin/x ?y=1 @other");
    EXPECT("HTTP://h:80/x", "absolute /x | /x @h:80");
    EXPECT("https://[::1]:8/%61", "absolute /%61 | /a @[::1]:8");
    EXPECT("http://other", "absolute / | / @other");
    EXPECT("http://other?a/b", "absolute /?a/b | / ?a/b @other");
    EXPECT("http://other?", "absolute /? | / ? @other");
    EXPECT("http://", "bad");
    EXPECT("http:///x", "bad");
    EXPECT("http://u@h/x", "bad");
    EXPECT("http://h:a1/x", "bad");
    EXPECT("http://h te/x", "bad");
    EXPECT("ftp://h/x", "bad");
    EXPECT("x", "bad");
    EXPECT("h:80", "bad");
    EXPECT("*", "bad");
    expect(STR("*"), METHOD_OPTIONS, "asterisk * | /");
    expect(STR("**"), METHOD_OPTIONS, "bad");
    /* OPTIONS about the whole server in absolute-form (RFC 9112 §3.2.4). */
    expect(STR("http://other:80"), METHOD_OPTIONS, "asterisk * | / @other:80");
    expect(STR("http://other/"), METHOD_OPTIONS, "absolute / | / @other");
    expect(STR("http://other?"), METHOD_OPTIONS, "absolute /? | / ? @other");
    expect(STR("/x"), METHOD_OPTIONS, "origin /x | /x");
    expect(STR("h:80"), METHOD_CONNECT, "authority h:80 | / @h:80");
    expect(STR("[::1]:443"), METHOD_CONNECT, "authority [::1]:443 | / @[::1]:443");
    expect(STR("h"), METHOD_CONNECT, "bad");
    expect(STR("/x"), METHOD_CONNECT, "bad");
    expect(STR("http://h:80/"), METHOD_CONNECT, "bad");
}

static void expect_host(const char *value, const char *wanted_name, unsigned wanted_port)
{
    struct str name = STR_NONE;
    uint16_t port = 1;
    if (!host_parse(str_c(value), &name, &port))
        fail_msg("%s was refused", value);
    assert_true(str_eq(name, str_c(wanted_name)));
    assert_int_equal(port, wanted_port);
}

static void test_host(void **state)
{
    (void)state;
    struct str name;
    uint16_t port;
    expect_host("h.test", "h.test", 0);
    expect_host("H-1_a~.test:8080", "H-1_a~.test", 8080);
    expect_host("h:", "h", 0);
    expect_host("h:065535", "h", 65535);
    expect_host("127.0.0.1:80", "127.0.0.1", 80);
    expect_host("a%2Db", "a%2Db", 0);
    expect_host("[::1]", "[::1]", 0);
    expect_host("[::ffff:1.2.3.4]:1", "[::ffff:1.2.3.4]", 1);
    expect_host("[2001:db8:1111:2222:3333:4444:5555:6666]:1", "[2001:db8:1111:2222:3333:4444:5555:6666]", 1);
    static const char *const bad[] = {
        "", ":80", "a/b", "a b", "a@b", "a?b", "a#b", "a\\b", "\"a\"", "<a>", "a, b", "h:abc", "h:80:90", "h:-1",
        "h:65536", "h:99999", "h:18446744073709551696", "[::1", "[]", "[::1]x", "[::1]:x", "[1.2.3.4]", "[::g]",
        "[fe80::1%25eth0]", "::1", "h%zz", "h%4", "h\t", "h\x01", "h\x7f", "\xc3\xbc", "http://h",
        "[1111:2222:3333:4444:5555:6666:7777:8888:9]",
        "[0000000000000000000000000000000000000000000000000::1]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (host_parse(str_c(bad[i]), &name, &port))
            fail_msg("%s was taken", bad[i]);
    assert_false(host_parse(STR("h\0i"), &name, &port));
    assert_false(host_parse(STR("[::\0]"), &name, &port));
}

static void test_encode(void **state)
{
    (void)state;
    struct str out = path_encode(&arena, STR("/a-._~!$&'()*+,;=:@z/"));
    assert_true(str_eq(out, STR("/a-._~!$&'()*+,;=:@z/")));
    out = path_encode(&arena, STR("/ \"#%<>?[\\]^`{|}\x7f\r\n\0\xc3\xbc/"));
    assert_true(str_eq(out, STR("/%20%22%23%25%3C%3E%3F%5B%5C%5D%5E%60%7B%7C%7D%7F%0D%0A%00%C3%BC/")));
    assert_int_equal(path_encode(&arena, STR("")).n, 0);
    assert_non_null(path_encode(&arena, STR("")).p);
    /* Decoding gives the path back. */
    struct target t;
    char all[256];
    all[0] = '/';
    for (int i = 1; i < 256; i++)
        all[i] = (char)i;
    all['.'] = all['/'] = 'x';
    struct str path = str_of(all, sizeof all);
    assert_int_equal(target_parse(&t, path_encode(&arena, path), METHOD_GET, &arena), TARGET_OK);
    assert_true(str_eq(t.path, path));
}

static void expect_cut(const char *raw, const char *prefix, const char *wanted)
{
    struct target t;
    assert_int_equal(target_parse(&t, str_c(raw), METHOD_GET, &arena), TARGET_OK);
    assert_true(path_is_beneath(t.path, str_c(prefix)));
    struct str got = target_cut(&t, str_c(prefix), &arena);
    if (!str_eq(got, str_c(wanted)))
        fail_msg("%s without %s gave %.*s, wanted %s", raw, prefix, STR_ARG(got), wanted);
}

static void test_cut(void **state)
{
    (void)state;
    expect_cut("/api/users?x=%2F", "/api", "/users?x=%2F");
    expect_cut("/api/users", "/api/", "/users");
    expect_cut("/api", "/api", "/");
    expect_cut("/api?", "/api", "/?");
    expect_cut("/api/?a", "/api/", "/?a");
    expect_cut("/a/b", "/", "/a/b");
    /* The rest keeps its bytes. */
    expect_cut("/api//a%20b/%7e;v=1", "/api", "//a%20b/%7e;v=1");
    expect_cut("/%61pi/%2f%2Fx/./y", "/api", "/%2f%2Fx/./y");
    expect_cut("/api/http://h/x", "/api", "/http://h/x");
    expect_cut("/api/a/../b", "/api", "/a/../b");
    /* It would mean something else by itself. */
    expect_cut("/x/../api/y?q", "/api", "/y?q");
    expect_cut("/api/a/../../api/b", "/api", "/b");
    expect_cut("//api//y", "/api", "/y");
    expect_cut("/api%2fa%20b", "/api", "/a%20b");
    expect_cut("http://h/api/x?y", "/api", "/x?y");
}

static void test_beneath(void **state)
{
    (void)state;
    assert_true(path_is_beneath(STR("/a"), STR("/a")));
    assert_true(path_is_beneath(STR("/a/"), STR("/a")));
    assert_true(path_is_beneath(STR("/a/b"), STR("/a/")));
    assert_true(path_is_beneath(STR("/a"), STR("/")));
    assert_false(path_is_beneath(STR("/ab"), STR("/a")));
    assert_false(path_is_beneath(STR("/a"), STR("/a/")));
    assert_false(path_is_beneath(STR("/a.."), STR("/a")));
    assert_false(path_is_beneath(STR("/b"), STR("/a")));
}

static void test_make(void **state)
{
    (void)state;
    struct target t;
    assert_int_equal(target_parse(&t, STR("http://h:1/a/../b?x=%20"), METHOD_GET, &arena), TARGET_OK);
    assert_true(target_make(&t, STR("/new name?"), &arena));
    assert_true(str_eq(t.raw, STR("/new%20name%3F?x=%20")) && str_eq(t.raw_path, STR("/new%20name%3F")));
    assert_true(str_eq(t.query, STR("x=%20")) && str_eq(t.authority, STR("h:1")) && str_eq(t.path, STR("/new name?")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_dots),
        cmocka_unit_test(test_slashes),
        cmocka_unit_test(test_tricky),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_beneath),
        cmocka_unit_test(test_make),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
