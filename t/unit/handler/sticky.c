/* SPDX-License-Identifier: MIT */
/* What sticky sessions are read from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "handler/sticky.h"

#define assert_str(got, want) \
    do { \
        struct str got_ = (got), want_ = (want); \
        assert_int_equal(got_.n, want_.n); \
        if (want_.n > 0) \
            assert_memory_equal(got_.p, want_.p, want_.n); \
    } while (0)

static void cookies_of_one_name(void **state)
{
    (void)state;
    struct arena a;
    struct fields f = { 0 };
    struct str got[4];
    arena_init(&a, NULL);
    assert_true(fields_add_id(&f, &a, F_COOKIE, STR("s=; xs=1; s=one;s1=2; S=3;s")));
    assert_int_equal(sticky_cookies(&f, STR("s"), got, 4), 2);
    assert_str(got[0], STR_NONE);
    assert_str(got[1], STR("one"));
    assert_true(fields_add_id(&f, &a, F_COOKIE, STR(" s=a=b ; s=three")));
    assert_int_equal(sticky_cookies(&f, STR("s"), got, 4), 4);
    assert_str(got[2], STR("a=b"));
    assert_str(got[3], STR("three"));
    assert_int_equal(sticky_cookies(&f, STR("s"), got, 3), 3);
    assert_int_equal(sticky_cookies(&f, STR("none"), got, 4), 0);
    arena_reset(&a);
}

static void set_cookie(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL);
    assert_str(sticky_set_cookie(&a, STR("n"), STR("v"), false), STR("n=v; Path=/; HttpOnly; SameSite=Lax"));
    assert_str(sticky_set_cookie(&a, STR("n"), STR("v"), true), STR("n=v; Path=/; HttpOnly; SameSite=Lax; Secure"));
    arena_reset(&a);
}

static void socket_io_queries(void **state)
{
    (void)state;
    assert_str(sticky_sid(STR("EIO=4&transport=polling&t=x&sid=abc")), STR("abc"));
    assert_str(sticky_sid(STR("sid=abc&EIO=3&transport=websocket")), STR("abc"));
    assert_str(sticky_sid(STR("sid=abc")), STR_NONE); /* some other application's */
    assert_str(sticky_sid(STR("EIO=4&xsid=abc&sid=")), STR_NONE);
    assert_true(sticky_is_handshake(STR("EIO=4&transport=polling&t=x")));
    assert_false(sticky_is_handshake(STR("EIO=4&transport=polling&sid=x")));
    assert_false(sticky_is_handshake(STR("EIO=4&transport=websocket")));
    assert_false(sticky_is_handshake(STR("transport=polling")));
    assert_false(sticky_is_handshake(STR_NONE));
}

static void the_session_in_a_handshakes_answer(void **state)
{
    (void)state;
    static const struct str answers[] = {
        { "0{\"sid\":\"abc\",\"upgrades\":[]}", 27 },
        { "96:0{\"sid\":\"abc\",\"upgrades\":[]}", 30 },
        { "\0\11\6\377" "0{\"sid\":\"abc\",\"upgrades\":[]}", 31 },
    };
    struct str sid;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        size_t whole = answers[i].n - 15; /* up to and with the quote */
        for (size_t n = 0; n <= answers[i].n; n++) {
            enum sticky_found found = sticky_find_sid(str_take(answers[i], n), &sid);
            assert_int_equal(found, n <= whole ? STICKY_MORE : STICKY_FOUND);
            if (found == STICKY_FOUND)
                assert_str(sid, STR("abc"));
        }
    }
    static const struct str others[] = {
        { "{\"code\":0,\"message\":\"x\"}", 24 }, { "0{\"sid\":\"\",\"x\":1}", 16 },
        { "0{\"upgrades\":[],\"sid\":\"abc\"}", 27 }, { "<!doctype html><html>", 21 },
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(sticky_find_sid(others[i], &sid), STICKY_NONE);
    char endless[STICKY_BODY + 1] = "0{\"sid\":\"";
    memset(endless + 9, 'x', sizeof endless - 9);
    assert_int_equal(sticky_find_sid(str_of(endless, STICKY_BODY - 1), &sid), STICKY_MORE);
    assert_int_equal(sticky_find_sid(str_of(endless, sizeof endless), &sid), STICKY_NONE);
}

static void sockjs_paths(void **state)
{
    (void)state;
    assert_str(sticky_sockjs(STR("/sockjs/123/abc/xhr")), STR("/sockjs/123/abc"));
    assert_str(sticky_sockjs(STR("/a/b/123/abc/xhr_streaming")), STR("/a/b/123/abc"));
    assert_str(sticky_sockjs(STR("/123/abc/jsonp_send")), STR("/123/abc"));
    static const struct str none[] = {
        { "/sockjs/123/abc/websocket", 25 }, { "/sockjs/info", 12 },         { "/sockjs/123/abc/xhr/", 20 },
        { "/sockjs/12.3/abc/xhr", 20 },      { "/sockjs/123/a.c/xhr", 19 },  { "/sockjs//abc/xhr", 16 },
        { "/sockjs/123//xhr", 16 },          { "/xhr", 4 },                  { "xhr", 3 },
        { "", 0 },                           { "/sockjs/123/abc/xhrx", 20 },
    };
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_str(sticky_sockjs(none[i]), STR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cookies_of_one_name),
        cmocka_unit_test(set_cookie),
        cmocka_unit_test(socket_io_queries),
        cmocka_unit_test(the_session_in_a_handshakes_answer),
        cmocka_unit_test(sockjs_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
