/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the reading of X-Forwarded-For and Forwarded. Lines of the input begin with a byte that says which field they are.
 * Wanted: the answer is the peer or an address that the text names; and once somebody who is not trusted has been found,
 * nothing in front of the entry that named him (which he may have written himself) changes the answer.
 */
#include <stdlib.h>

#include "http/forwarded.h"

static const enum field_id ids[] = { F_X_FORWARDED_FOR, F_FORWARDED, F_X_FORWARDED_PROTO, F_X_REQUEST_ID };

static bool ip_is(const struct ip *a, const struct ip *b)
{
    return a->family == b->family && a->port == b->port && memcmp(a->b, b->b, sizeof a->b) == 0;
}

static struct forwarded read_all(const struct fields *f)
{
    static struct cidr trusted[2];
    struct ip peer;
    const char *why;
    CHECK(cidr_parse(STR("10.0.0.0/8"), &trusted[0], &why) && cidr_parse(STR("fd00::/8"), &trusted[1], &why));
    CHECK(ip_parse(STR("10.0.0.1"), &peer));
    struct forwarded out = forwarded_read(f, &peer, trusted, ARRAY_LEN(trusted));
    CHECK(out.client.family == 4 || out.client.family == 6);
    CHECK(out.has_scheme || !out.is_https);
    CHECK(!ip_is(&out.client, &peer) || cidrs_have(trusted, ARRAY_LEN(trusted), &out.client));
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct str before[] = { { "for=6.6.6.6", 11 }, { "6.6.6.6", 7 }, { "\"", 1 }, { "for=\"\\", 6 } };
    struct arena a;
    struct fields f = { 0 }, more = { 0 };
    arena_init(&a, NULL);
    char *copy = malloc(size + 1);
    CHECK(copy != NULL);
    memcpy(copy, data, size);
    struct str rest = str_of(copy, size);
    while (rest.n > 0) {
        ptrdiff_t lf = str_chr(rest, '\n', 0);
        struct str line = str_take(rest, lf < 0 ? rest.n : (size_t)lf);
        rest = str_skip(rest, line.n + 1);
        if (line.n > 1)
            CHECK(fields_add_id(&f, &a, ids[(unsigned char)line.p[0] % ARRAY_LEN(ids)], str_trim(str_skip(line, 1))));
    }
    struct forwarded first = read_all(&f);
    bool is_trusted = first.client.family == 4 ? first.client.b[0] == 10 : first.client.b[0] == 0xfd;
    bool is_plain = fields_get(&f, F_X_FORWARDED_FOR) != NULL;
    for (unsigned i = 0; i < ARRAY_LEN(before) && !is_trusted; i++) {
        more = (struct fields){ 0 };
        bool is_done = false;
        for (unsigned j = 0; j < f.n; j++) {
            struct field line = f.v[j];
            if (!is_done && line.id == (is_plain ? F_X_FORWARDED_FOR : F_FORWARDED)) {
                line.value = arena_printf(&a, "%.*s,%.*s", STR_ARG(before[i]), STR_ARG(line.value));
                is_done = true;
                CHECK(str_chr(f.v[j].value, '\0', 0) >= 0 || line.value.n == before[i].n + 1 + f.v[j].value.n);
                if (str_chr(f.v[j].value, '\0', 0) >= 0)
                    line.value = f.v[j].value;
            }
            CHECK(fields_add(&more, &a, line.name, line.value, line.id));
        }
        struct forwarded again = read_all(&more);
        CHECK(ip_is(&again.client, &first.client) && again.is_https == first.is_https);
    }
    for (const struct field *id = fields_get(&f, F_X_REQUEST_ID); id != NULL; id = fields_next(&f, id))
        CHECK(!is_request_id(id->value) || is_field_value(id->value));
    arena_reset(&a);
    free(copy);
    return 0;
}
