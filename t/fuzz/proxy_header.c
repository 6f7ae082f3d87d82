/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the reader of the PROXY protocol's header. The first byte says how the rest is cut. Wanted: the same result however
 * the bytes are cut; nothing behind the header is taken; a version 1 line that is accepted is what a second reader with
 * sscanf makes of it; and what is written for the addresses reads as them again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "http/proxy_header.h"

static bool ip_is(const struct ip *a, const struct ip *b)
{
    return a->family == b->family && a->port == b->port && memcmp(a->b, b->b, sizeof a->b) == 0;
}

static enum proxy_header_event feed_all(struct proxy_header *h, struct str in, size_t step, size_t *taken)
{
    enum proxy_header_event event = PROXY_HEADER_MORE;
    *h = (struct proxy_header){ 0 };
    *taken = 0;
    while (*taken < in.n && event == PROXY_HEADER_MORE) {
        size_t used, n = in.n - *taken < step ? in.n - *taken : step;
        char *piece = malloc(n);
        CHECK(piece != NULL);
        memcpy(piece, in.p + *taken, n);
        event = proxy_header_feed(h, piece, n, &used);
        CHECK(used <= n && (event != PROXY_HEADER_MORE || used == n));
        *taken += used;
        free(piece);
    }
    CHECK(*taken <= PROXY_HEADER_MAX);
    return event;
}

static void check_v1(const struct proxy_header *h, struct str in)
{
    char line[128] = "", family[8], from[64], to[64];
    unsigned from_port, to_port;
    int end = 0;
    struct ip ip;
    memcpy(line, in.p, in.n);
    if (sscanf(line, "PROXY %7s %63s %63s %u %u\r\n%n", family, from, to, &from_port, &to_port, &end) != 5)
        CHECK(str_starts(in, STR("PROXY UNKNOWN")) && !h->has_addresses);
    else if (h->has_addresses) {
        CHECK((size_t)end == in.n && (strcmp(family, "TCP4") == 0 || strcmp(family, "TCP6") == 0));
        CHECK(ip_parse(str_c(from), &ip) && memcmp(ip.b, h->from.b, sizeof ip.b) == 0 && h->from.port == from_port);
        CHECK(ip_parse(str_c(to), &ip) && memcmp(ip.b, h->to.b, sizeof ip.b) == 0 && h->to.port == to_port);
    }
}

static void check_rewrite(const struct proxy_header *h)
{
    for (unsigned version = 1; version <= 2; version++) {
        char out[PROXY_HEADER_V1];
        struct proxy_header again;
        size_t taken, n = proxy_header_write(version, &h->from, &h->to, out);
        CHECK(n <= sizeof out && feed_all(&again, str_of(out, n), n, &taken) == PROXY_HEADER_DONE && taken == n);
        CHECK(ip_is(&again.from, &h->from) && ip_is(&again.to, &h->to));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proxy_header whole, cut;
    size_t whole_n, cut_n;
    if (size < 2)
        return 0;
    struct str in = str_of((const char *)data + 1, size - 1);
    enum proxy_header_event event = feed_all(&whole, in, in.n, &whole_n);
    CHECK(feed_all(&cut, in, 1 + data[0] % 31, &cut_n) == event);
    CHECK(event == PROXY_HEADER_BAD || whole_n == cut_n);
    CHECK(whole.has_addresses == cut.has_addresses && whole.bad == cut.bad);
    if (event != PROXY_HEADER_DONE)
        return 0;
    CHECK(!whole.has_addresses || (ip_is(&whole.from, &cut.from) && ip_is(&whole.to, &cut.to)));
    if (in.p[0] == 'P')
        check_v1(&whole, str_take(in, whole_n));
    if (whole.has_addresses)
        check_rewrite(&whole);
    return 0;
}
