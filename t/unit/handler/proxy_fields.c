/* SPDX-License-Identifier: MIT */
/* Which fields cross the proxy: heads as text in, fields as text out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "handler/proxy_fields.h"
#include "http/h1_read.h"
#include "http/h1_write.h"

static struct arena arena;
static struct proxy_facts facts;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, NULL);
    facts = (struct proxy_facts){ .default_host = STR("pool"), .via = true };
    assert_true(ip_parse(STR("192.0.2.7"), &facts.peer));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_reset(&arena);
    return 0;
}

static const struct head *read_head(enum h1_kind kind, const char *text)
{
    static const struct h1_limits limits = { .head_size = 65536, .head_count = 1000 };
    struct h1_read *h = arena_new(&arena, struct h1_read);
    size_t used;
    h1_read_init(h, kind, &limits, &arena);
    assert_int_equal(h1_read_feed(h, text, strlen(text), &used), H1_HEAD);
    return &h->head;
}

static const char *printed(const struct fields *f)
{
    struct str s = h1_write_fields(&arena, f);
    return arena_dup(&arena, s).p;
}

static const char *request(const char *text)
{
    struct fields out;
    facts.head = read_head(H1_REQUEST, text);
    assert_int_equal(proxy_request_fields(&arena, &facts, &out), PROXY_FIELDS_OK);
    return printed(&out);
}

static const char *answer(const char *text, bool keep_trailer)
{
    struct proxy_answer out;
    assert_int_equal(proxy_answer_fields(&arena, read_head(H1_RESPONSE, text), keep_trailer, &out), PROXY_FIELDS_OK);
    return printed(&out.fields);
}

#define OWN \
    "X-Forwarded-For: 192.0.2.7\r\nX-Real-IP: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h.test\r\n"
#define VIA "Via: 1.1 weir\r\n"

static void what_is_end_to_end_passes_in_order(void **state)
{
    (void)state;
    assert_string_equal(
        request("GET /a HTTP/1.1\r\nX-B: 1\r\nhost: h.test\r\nx-b: 2\r\nCookie: a=b\r\nCookie: c=d\r\n\r\n"),
        "Host: h.test\r\nX-B: 1\r\nx-b: 2\r\nCookie: a=b\r\nCookie: c=d\r\n" OWN VIA);
}

static void the_connections_own_fields_stay(void **state)
{
    (void)state;
    assert_string_equal(
        request("GET /a HTTP/1.1\r\nHost: h.test\r\nConnection: keep-alive, X-Foo,,TE\r\nX-foo: 1\r\n"
                "connection: x-bar\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
                "Proxy-Connection: x\r\nProxy-Authorization: y\r\nX-Bar: 2\r\nX-Baz: 3\r\nExpect: "
                "100-continue\r\n\r\n"),
        "Host: h.test\r\nX-Baz: 3\r\n" OWN VIA);
}

static void what_weir_says_cannot_be_nominated_away(void **state)
{
    (void)state;
    assert_string_equal(
        request("POST /a HTTP/1.1\r\nHost: h.test\r\nConnection: Host, Content-Length, X-Forwarded-For, Via, "
                "X-Real-IP, X-Forwarded-Proto\r\nVia: 1.0 fred\r\nContent-Length: 5\r\n\r\n"),
        "Host: h.test\r\nVia: 1.0 fred\r\n" OWN "Content-Length: 5\r\n" VIA);
    assert_string_equal(request("POST /a HTTP/1.1\r\nHost: h.test\r\nConnection: Transfer-Encoding\r\n"
                                "Transfer-Encoding: CHUNKED\r\n\r\n"),
                        "Host: h.test\r\n" OWN "Transfer-Encoding: chunked\r\n" VIA);
}

static void a_stranger_cannot_say_who_asks(void **state)
{
    (void)state;
    assert_string_equal(
        request("GET / HTTP/1.1\r\nHost: h.test\r\nX-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 2.2.2.2\r\n"
                "X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nX-Real-IP: 3.3.3.3\r\n"
                "Forwarded: for=1.1.1.1\r\nX-Forwarded-Prefix: /x\r\nX-Request-ID: 1\r\n"
                "X-Forwarded-Port: 1\r\nX-Accel-Mapping: /=/x\r\nX-Sendfile-Type: X-Sendfile\r\n\r\n"),
        "Host: h.test\r\n" OWN VIA);
}

static void another_spelling_for_cgi_passes_no_better(void **state)
{
    (void)state;
    static const char *const text =
        "GET / HTTP/1.1\r\nHost: h.test\r\nX_Forwarded-For: 1.1.1.1\r\nX_FORWARDED_PREFIX: /x\r\nContent_Length: 1\r\n"
        "Proxy: x\r\nX_Real_IP: 1.1.1.1\r\nUser_Agent: y\r\nAuthorization_: z\r\n_: 1\r\n\r\n";
    assert_string_equal(request(text), "Host: h.test\r\nUser_Agent: y\r\nAuthorization_: z\r\n_: 1\r\n" OWN VIA);
    facts.is_verified = true;
    assert_string_equal(request("GET / HTTP/1.1\r\nHost: h.test\r\nAuthorization: a\r\nA: b\r\n\r\n"),
                        "Host: h.test\r\nA: b\r\n" OWN VIA);
}

static void a_trusted_peer_is_continued(void **state)
{
    (void)state;
    facts.peer_trusted = true;
    facts.client = facts.peer;
    facts.request_id = STR("1");
    assert_string_equal(
        request("GET / HTTP/1.1\r\nHost: h.test\r\nX-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 2.2.2.2\r\n"
                "X-Forwarded-Proto: https\r\nX-Forwarded-Host: first.test\r\nX-Real-IP: 3.3.3.3\r\n"
                "Forwarded: for=1.1.1.1\r\nX-Request-ID: 1\r\n\r\n"),
        "Host: h.test\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: first.test\r\nX-Real-IP: 3.3.3.3\r\n"
        "Forwarded: for=1.1.1.1\r\n"
        "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7\r\nX-Request-ID: 1\r\n" VIA);
    assert_string_equal(request("GET / HTTP/1.1\r\nHost: h.test\r\n\r\n"),
                        "Host: h.test\r\n" OWN "X-Request-ID: 1\r\n" VIA);
}

static void the_client_of_forwarded_is_told_in_both_ways(void **state)
{
    (void)state;
    facts.peer_trusted = true;
    facts.via = false;
    assert_true(ip_parse(STR("2001:db8::9"), &facts.client));
    const char *text = "GET / HTTP/1.1\r\nHost: h.test\r\nForwarded: for=\"[2001:db8::9]\"\r\n\r\n";
    assert_string_equal(request(text), "Host: h.test\r\nForwarded: for=\"[2001:db8::9]\"\r\n"
                                       "X-Forwarded-For: 2001:db8::9, 192.0.2.7\r\nX-Real-IP: 2001:db8::9\r\n"
                                       "X-Forwarded-Proto: http\r\nX-Forwarded-Host: h.test\r\n");
    facts.peer = (struct ip){ 0 };
    assert_non_null(strstr(request(text), "\r\nX-Forwarded-For: 2001:db8::9\r\n"));
}

static void addresses_of_every_kind(void **state)
{
    (void)state;
    assert_true(ip_parse(STR("2001:db8::1"), &facts.peer));
    facts.secure = true;
    facts.via = false;
    assert_string_equal(request("GET / HTTP/1.1\r\nHost: h.test\r\n\r\n"),
                        "Host: h.test\r\nX-Forwarded-For: 2001:db8::1\r\nX-Real-IP: 2001:db8::1\r\n"
                        "X-Forwarded-Proto: https\r\nX-Forwarded-Host: h.test\r\n");
    facts.peer = (struct ip){ 0 };
    facts.secure = false;
    assert_string_equal(request("GET / HTTP/1.1\r\nHost: h.test\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n"),
                        "Host: h.test\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h.test\r\n");
    facts.peer_trusted = true;
    assert_string_equal(
        request("GET / HTTP/1.1\r\nHost: h.test\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n"),
        "Host: h.test\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h.test\r\n");
}

static void host_of_target_field_or_upstream(void **state)
{
    (void)state;
    facts.via = false;
    facts.peer = (struct ip){ 0 };
    facts.authority = STR("a.test:81");
    assert_string_equal(request("GET http://a.test:81/ HTTP/1.1\r\nHost: b.test\r\n\r\n"),
                        "Host: a.test:81\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a.test:81\r\n");
    facts.authority = STR_NONE;
    assert_string_equal(request("GET / HTTP/1.0\r\n\r\n"),
                        "Host: pool\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: pool\r\n");
}

static void max_forwards_counts_down_for_options_only(void **state)
{
    (void)state;
    facts.via = false;
    facts.peer = (struct ip){ 0 };
    assert_non_null(
        strstr(request("OPTIONS / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 10\r\n\r\n"), "Max-Forwards: 9\r\n"));
    assert_non_null(strstr(request("GET / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 10\r\n\r\n"), "Max-Forwards: 10\r\n"));
}

static void only_a_websocket_is_upgraded(void **state)
{
    (void)state;
    facts.websocket = true;
    assert_string_equal(request("GET / HTTP/1.1\r\nHost: h.test\r\nConnection: keep-alive, Upgrade\r\n"
                                "Upgrade: WebSocket, foo\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
                                "Sec-WebSocket-Protocol: a\r\nsec-websocket-protocol: b\r\n\r\n"),
                        "Host: h.test\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: a\r\n"
                        "sec-websocket-protocol: b\r\n" OWN VIA "Connection: Upgrade\r\nUpgrade: websocket\r\n");
}

static void too_many_nominations_are_refused(void **state)
{
    (void)state;
    char text[4096] = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close";
    size_t n = strlen(text);
    for (int i = 0; i < 65; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",x%d", i);
    snprintf(text + n, sizeof text - n, "\r\n\r\n");
    struct fields out;
    facts.head = read_head(H1_REQUEST, text);
    assert_int_equal(proxy_request_fields(&arena, &facts, &out), PROXY_FIELDS_TOO_MANY);
}

static void an_answers_own_fields_stay(void **state)
{
    (void)state;
    const char *text =
        "HTTP/1.1 200 OK\r\nServer: node\r\nSet-Cookie: a=1, x\r\nConnection: X-Foo\r\nset-cookie: b=2\r\n"
        "X-Foo: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\nUpgrade: h2\r\nX-MiXeD: caf\xe9\r\n"
        "Trailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_string_equal(answer(text, false),
                        "Server: node\r\nSet-Cookie: a=1, x\r\nset-cookie: b=2\r\nX-MiXeD: caf\xe9\r\n");
    assert_non_null(strstr(answer(text, true), "Trailer: X-T\r\n"));
}

static void what_is_said_to_the_front_end_stays_here(void **state)
{
    (void)state;
    assert_string_equal(answer("HTTP/1.1 200 OK\r\nX-Accel-Redirect: /a\r\nx-sendfile: /b\r\nX-ACCEL-EXPIRES: 5\r\n"
                               "X-Accel-Limit-Rate: 1\r\nX-Accel-Charset: x\r\nX-Accel-Buffering: no\r\n\r\n",
                               false),
                        "X-Accel-Buffering: no\r\n");
}

static void keep_alive_and_event_streams_are_noticed(void **state)
{
    (void)state;
    struct proxy_answer out;
    const struct head *h =
        read_head(H1_RESPONSE, "HTTP/1.1 200 OK\r\nKeep-Alive: max=3, Timeout=5\r\n"
                               "Content-Type: text/event-stream; charset=utf-8\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(proxy_answer_fields(&arena, h, false, &out), PROXY_FIELDS_OK);
    assert_true(out.is_event_stream);
    assert_true(out.has_keep_alive);
    assert_int_equal(out.keep_alive_s, 5);
    h = read_head(H1_RESPONSE, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=x\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(proxy_answer_fields(&arena, h, false, &out), PROXY_FIELDS_OK);
    assert_false(out.is_event_stream);
    assert_false(out.has_keep_alive);
}

static void trailers_that_frame_or_route_are_dropped(void **state)
{
    (void)state;
    struct fields in = { 0 }, out;
    assert_true(fields_add(&in, &arena, STR("X-T"), STR("1"), F_OTHER));
    assert_true(fields_add_id(&in, &arena, F_CONTENT_LENGTH, STR("5")));
    assert_true(fields_add_id(&in, &arena, F_SET_COOKIE, STR("a=b")));
    assert_true(fields_add_id(&in, &arena, F_ETAG, STR("\"e\"")));
    assert_int_equal(proxy_trailer_fields(&arena, &in, &out), PROXY_FIELDS_OK);
    assert_string_equal(printed(&out), "X-T: 1\r\nETag: \"e\"\r\n");
}

/* The example of RFC 6455 §1.3. */
static void the_accept_value_must_match_the_key(void **state)
{
    (void)state;
    const struct head *q =
        read_head(H1_REQUEST, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                              "Sec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    static const struct {
        const char *upgrade, *connection, *accept;
        bool right;
    } rows[] = {
        { "websocket", "Upgrade", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", true },
        { "WebSocket", "keep-alive, upgrade", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", true },
        { "websocket", "Upgrade", "s3pPLMBiTxaQ9kYGzzhZRbK+xOO=", false },
        { "foo", "Upgrade", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", false },
        { "websocket", "close", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", false },
    };
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        struct str text =
            arena_printf(&arena, "HTTP/1.1 101 S\r\nUpgrade: %s\r\nConnection: %s\r\nSec-WebSocket-Accept: %s\r\n\r\n",
                         rows[i].upgrade, rows[i].connection, rows[i].accept);
        assert_int_equal(proxy_is_accepted(q, read_head(H1_RESPONSE, text.p)), rows[i].right);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(what_is_end_to_end_passes_in_order),
        T(the_connections_own_fields_stay),
        T(what_weir_says_cannot_be_nominated_away),
        T(a_stranger_cannot_say_who_asks),
        T(another_spelling_for_cgi_passes_no_better),
        T(a_trusted_peer_is_continued),
        T(the_client_of_forwarded_is_told_in_both_ways),
        T(addresses_of_every_kind),
        T(host_of_target_field_or_upstream),
        T(max_forwards_counts_down_for_options_only),
        T(only_a_websocket_is_upgraded),
        T(too_many_nominations_are_refused),
        T(an_answers_own_fields_stay),
        T(what_is_said_to_the_front_end_stays_here),
        T(keep_alive_and_event_streams_are_noticed),
        T(trailers_that_frame_or_route_are_dropped),
        T(the_accept_value_must_match_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
