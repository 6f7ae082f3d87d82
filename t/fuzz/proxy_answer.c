/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes what a backend answers: the reader's response side, then the proxy's field rules, then the head that would be
 * written for the client. The first byte says whether the question was HEAD and how the bytes are cut. Wanted: whatever
 * passes is text of one line each; nothing of the backend's connection passes, nor what its Connection names; the fields
 * that are written read as the same fields again; and trailers never bring a field that frames, routes or authenticates.
 */
#include <stdlib.h>

#include "base/check.h"
#include "handler/proxy_fields.h"
#include "http/h1_read.h"
#include "http/h1_write.h"

static const struct h1_limits limits = { .head_size = 8192, .head_count = 40 };

static bool is_connections_own(enum field_id id)
{
    return id == F_CONNECTION || id == F_KEEP_ALIVE || id == F_PROXY_AUTHENTICATE || id == F_PROXY_CONNECTION || id == F_TE ||
        id == F_TRANSFER_ENCODING || id == F_CONTENT_LENGTH || id == F_UPGRADE;
}

static void check_fields(const struct fields *out)
{
    for (unsigned i = 0; i < out->n; i++) {
        const struct field *f = &out->v[i];
        CHECK(is_token(f->name) && is_field_value(f->value));
        CHECK(field_id_of(f->name) == f->id && !is_connections_own(f->id));
    }
}

static void check_rewrite(struct arena *a, const struct fields *out)
{
    static const struct str start = { "HTTP/1.1 200 OK\r\n", 17 };
    static const struct h1_limits wide = { .head_size = 1 << 20, .head_count = 1000 };
    struct h1_read again;
    size_t used;
    struct str fields = h1_write_fields(a, out);
    struct str head = arena_printf(a, "%.*s%.*s\r\n", STR_ARG(start), STR_ARG(fields));
    h1_read_init(&again, H1_RESPONSE, &wide, a);
    h1_read_expect(&again, METHOD_GET);
    CHECK(h1_read_feed(&again, head.p, head.n, &used) == H1_HEAD && used == head.n);
    CHECK(again.head.fields.n == out->n && again.head.body == BODY_UNTIL_CLOSE);
    for (unsigned i = 0; i < out->n; i++)
        CHECK(str_eq(again.head.fields.v[i].name, out->v[i].name) && str_eq(again.head.fields.v[i].value, out->v[i].value));
}

/* Is this name a member of Connection? */
static bool is_named(const struct fields *f, struct str name)
{
    for (const struct field *line = fields_get(f, F_CONNECTION); line != NULL; line = fields_next(f, line)) {
        struct str member;
        for (size_t at = 0; list_next(line->value, &at, &member);)
            if (str_eq_nocase(member, name))
                return true;
    }
    return false;
}

static void on_head(struct arena *a, const struct head *head)
{
    struct proxy_answer out;
    if (proxy_answer_fields(a, head, false, &out) != PROXY_FIELDS_OK)
        return;
    check_fields(&out.fields);
    CHECK(out.fields.n <= head->fields.n);
    for (unsigned i = 0; i < out.fields.n; i++)
        CHECK(!is_named(&head->fields, out.fields.v[i].name) || str_eq_nocase(out.fields.v[i].name, STR("close")));
    check_rewrite(a, &out.fields);
}

static void on_trailers(struct arena *a, const struct fields *trailers)
{
    struct fields out;
    if (proxy_trailer_fields(a, trailers, &out) != PROXY_FIELDS_OK)
        return;
    check_fields(&out);
    for (unsigned i = 0; i < out.n; i++)
        CHECK(out.v[i].id == F_OTHER || out.v[i].id == F_ETAG || out.v[i].id == F_WARNING);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct arena a;
    struct h1_read h;
    size_t step = 1 + (data[0] >> 1) % 97;
    arena_init(&a, NULL);
    h1_read_init(&h, H1_RESPONSE, &limits, &a);
    h1_read_expect(&h, data[0] & 1 ? METHOD_HEAD : METHOD_GET);
    enum h1_event event = H1_MORE;
    for (size_t at = 1, messages = 0; at < size && event != H1_BAD && messages < 8;) {
        size_t n = size - at < step ? size - at : step, used;
        char *piece = malloc(n);
        CHECK(piece != NULL);
        memcpy(piece, data + at, n);
        event = h1_read_feed(&h, piece, n, &used);
        CHECK(used <= n);
        if (event == H1_HEAD)
            on_head(&a, &h.head);
        if (event == H1_END) {
            on_trailers(&a, &h.trailers);
            h1_read_next(&h);
            messages++;
        }
        free(piece);
        at += used;
    }
    arena_reset(&a);
    return 0;
}
