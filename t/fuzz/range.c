/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the values a file handler reads: Range, the conditions, the qualities of Accept-Encoding and Accept, dates. An
 * input is eight bytes of length and lines; each line's first byte chooses the field it is a value of.
 */
#include <stdlib.h>

#include "base/check.h"
#include "http/accept.h"
#include "http/cond.h"
#include "http/date.h"
#include "http/mime.h"
#include "http/range.h"

static const enum field_id ids[] = {
    F_RANGE, F_IF_MATCH, F_IF_NONE_MATCH, F_IF_MODIFIED_SINCE, F_IF_UNMODIFIED_SINCE, F_IF_RANGE,
    F_ACCEPT_ENCODING, F_ACCEPT,
};

static void check_range(struct str value, uint64_t length)
{
    struct range v[RANGE_MAX];
    unsigned count;
    enum range_result result = range_plan(value, length, v, &count);
    uint64_t sum = 0;
    CHECK((result == RANGE_SOME) == (count > 0) || result == RANGE_NONE);
    for (unsigned i = 0; result == RANGE_SOME && i < count; i++) {
        CHECK(v[i].n > 0 && v[i].off < length && v[i].n <= length - v[i].off && sum <= length - v[i].n);
        sum += v[i].n;
        for (unsigned k = 0; k < i; k++)
            CHECK(v[i].off > v[k].off + v[k].n || v[k].off > v[i].off + v[i].n);
    }
}

static void check_date(struct str value)
{
    int64_t seconds, again;
    char text[HTTP_DATE];
    if (!date_parse(value, 1795000000, &seconds))
        return;
    date_print(text, seconds);
    CHECK(date_parse(str_of(text, HTTP_DATE), 0, &again) && again == seconds);
}

static void check_all(const struct fields *f, uint64_t length)
{
    struct validators dated = { .etag = STR("\"abc\""), .last_modified = 784111777 };
    struct validators none = { .last_modified = -1 };
    CHECK(cond_check(f, &dated, 0) <= COND_FAILED && cond_check(f, &none, 0) <= COND_FAILED);
    if (fields_get(f, F_IF_NONE_MATCH) == NULL)
        CHECK(cond_check(f, &none, 0) != COND_NOT_MODIFIED);
    if (fields_get(f, F_IF_RANGE) != NULL)
        CHECK(!cond_if_range(f, &none, 0));
    struct accept_codings q;
    accept_codings(f, &q);
    int type = accept_type_q(f, STR("text/html"));
    CHECK(q.gzip >= 0 && q.gzip <= 1000 && q.br >= 0 && q.br <= 1000 && q.zstd >= 0 && q.zstd <= 1000);
    CHECK(q.identity >= -1 && q.identity <= 1000 && type >= 0 && type <= 1000);
    for (unsigned i = 0; i < f->n; i++) {
        check_date(f->v[i].value);
        CHECK(mime_of(f->v[i].value).n > 0);
        check_range(f->v[i].value, length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t length;
    struct arena a;
    struct fields f = { 0 };
    if (size < sizeof length)
        return 0;
    memcpy(&length, data, sizeof length);
    size -= sizeof length;
    char *copy = malloc(size + 1);
    CHECK(copy != NULL);
    memcpy(copy, data + sizeof length, size);
    arena_init(&a, NULL);
    struct str rest = str_of(copy, size);
    while (rest.n > 0) {
        ptrdiff_t lf = str_chr(rest, '\n', 0);
        struct str line = str_take(rest, lf < 0 ? rest.n : (size_t)lf);
        rest = str_skip(rest, line.n + 1);
        if (line.n > 0)
            CHECK(fields_add_id(&f, &a, ids[(unsigned char)line.p[0] % ARRAY_LEN(ids)], str_trim(str_skip(line, 1))));
    }
    check_all(&f, length);
    arena_reset(&a);
    free(copy);
    return 0;
}
