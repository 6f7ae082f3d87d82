/* SPDX-License-Identifier: MIT */
/* Methods, and which requests open a WebSocket. */
#include "http/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "http/h1_read.h"

static void test_methods(void **state)
{
    (void)state;
    assert_int_equal(method_of(STR("GET")), METHOD_GET);
    assert_int_equal(method_of(STR("HEAD")), METHOD_HEAD);
    assert_int_equal(method_of(STR("POST")), METHOD_POST);
    assert_int_equal(method_of(STR("PUT")), METHOD_PUT);
    assert_int_equal(method_of(STR("DELETE")), METHOD_DELETE);
    assert_int_equal(method_of(STR("OPTIONS")), METHOD_OPTIONS);
    assert_int_equal(method_of(STR("PATCH")), METHOD_PATCH);
    assert_int_equal(method_of(STR("TRACE")), METHOD_TRACE);
    assert_int_equal(method_of(STR("CONNECT")), METHOD_CONNECT);
    assert_int_equal(method_of(STR("get")), METHOD_OTHER);
    assert_int_equal(method_of(STR("GETS")), METHOD_OTHER);
    assert_int_equal(method_of(STR("")), METHOD_OTHER);
    assert_true(method_is_idempotent(METHOD_GET));
    assert_true(method_is_idempotent(METHOD_PUT));
    assert_true(method_is_idempotent(METHOD_DELETE));
    assert_false(method_is_idempotent(METHOD_POST));
    assert_false(method_is_idempotent(METHOD_PATCH));
    assert_false(method_is_idempotent(METHOD_CONNECT));
    assert_false(method_is_idempotent(METHOD_OTHER));
}

static bool opens(const char *line, const char *fields)
{
    static const struct h1_limits limits = { .head_size = 4096, .head_count = 30 };
    struct arena a;
    struct h1_read h;
    char text[1024];
    size_t used;
    arena_init(&a, NULL);
    h1_read_init(&h, H1_REQUEST, &limits, &a);
    int n = snprintf(text, sizeof text, "%s\r\nHost: h\r\n%s\r\n", line, fields);
    assert_int_equal(h1_read_feed(&h, text, (size_t)n, &used), H1_HEAD);
    bool result = head_is_websocket(&h.head);
    arena_reset(&a);
    return result;
}

#define GET "GET /chat HTTP/1.1"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define WS_VERSION "Sec-WebSocket-Version: 13\r\n"
#define WS_KEY "Sec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\n"

static void test_websocket(void **state)
{
    (void)state;
    assert_true(opens(GET, UPGRADE WS_VERSION WS_KEY));
    assert_true(opens(GET, "upgrade: h2c, WebSocket\r\nconnection: keep-alive, UPGRADE\r\n" WS_VERSION WS_KEY));
    assert_true(opens(GET, UPGRADE WS_VERSION WS_KEY "Content-Length: 0\r\n"));
    assert_false(opens("POST /chat HTTP/1.1", UPGRADE WS_VERSION WS_KEY));
    assert_false(opens("get /chat HTTP/1.1", UPGRADE WS_VERSION WS_KEY));
    assert_false(opens("GET /chat HTTP/1.0", UPGRADE WS_VERSION WS_KEY));
    assert_false(opens(GET, "Upgrade: h2c\r\nConnection: Upgrade\r\n" WS_VERSION WS_KEY));
    assert_false(opens(GET, "Upgrade: websocket\r\nConnection: keep-alive\r\n" WS_VERSION WS_KEY));
    assert_false(opens(GET, "Connection: Upgrade\r\n" WS_VERSION WS_KEY));
    assert_false(opens(GET, UPGRADE WS_KEY));
    assert_false(opens(GET, UPGRADE WS_VERSION));
    assert_false(opens(GET, UPGRADE WS_VERSION WS_VERSION WS_KEY));
    assert_false(opens(GET, UPGRADE WS_VERSION WS_KEY WS_KEY));
    assert_false(opens(GET, UPGRADE "Sec-WebSocket-Version: 8\r\n" WS_KEY));
    assert_false(opens(GET, UPGRADE WS_VERSION WS_KEY "Content-Length: 5\r\n"));
    assert_false(opens(GET, UPGRADE WS_VERSION WS_KEY "Transfer-Encoding: chunked\r\n"));
    assert_false(opens(GET, UPGRADE WS_VERSION "Sec-WebSocket-Key: short\r\n"));
    assert_false(opens(GET, UPGRADE WS_VERSION "Sec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODxA=\r\n")); /* 17 bytes */
    assert_false(opens(GET, UPGRADE WS_VERSION "Sec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODx==\r\n")); /* bits beyond 16 */
    assert_false(opens(GET, UPGRADE WS_VERSION "Sec-WebSocket-Key: AAECAwQFBgcICQoLD*0ODw==\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_websocket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
