/* SPDX-License-Identifier: MIT */
/*
 * The body of a proxied request, as the client sends it.
 *
 * Without buffer_request it passes as it comes, once a server has taken the head. With it, that much is collected
 * before a server is chosen, so that a slow upload has no slot, no connection and no place in the queue; what is longer
 * passes as it comes then. A chunked body that is complete by then has a known length, and goes out with it: there are
 * servers that take no chunks. One with trailers keeps its chunks, or they would be lost.
 *
 * What has been collected, or the first 64 KB of the body of an idempotent request, is kept as long as the request may
 * be sent again. Everything lies in blocks of the loop; a client holds at most buffer_request and one read (64 KB), so
 * limits.clients bounds the whole.
 */
#include "handler/proxy_try.h"
#include "http/h1_write.h"

/* Writes the head again, with the length that is now known. */
static void name_length(struct proxy *p)
{
    struct arena *a = &p->r->arena;
    struct str length = arena_printf(a, "%llu", (unsigned long long)p->kept.n);
    for (unsigned i = 0; i < p->fields.n; i++) {
        struct field *f = &p->fields.v[i];
        if (f->id == F_TRANSFER_ENCODING)
            *f = (struct field){ .name = field_name_of(F_CONTENT_LENGTH), .value = length, .id = F_CONTENT_LENGTH };
    }
    p->is_chunked = false;
    p->head = length.p != NULL ? h1_write_request(a, p->r->head->method_text, p->target, &p->fields) : STR_NONE;
}

/* Trailers go on with the chunks they came behind, but for those that must not come late, that say who asks, or that the
 * location has a rule for: a server may take them for fields of the head. False: out of memory. */
static bool take_trailers(struct proxy *p)
{
    struct request *r = p->r;
    struct fields trailers;
    if (!p->is_chunked || r->trailers == NULL)
        return true;
    if (proxy_trailer_fields(&r->arena, r->trailers, &trailers) != PROXY_FIELDS_OK)
        return false;
    for (unsigned i = 0; i < r->s->n_request_headers; i++)
        fields_remove_cgi_name(&trailers, r->s->request_headers[i].name);
    if (trailers.n == 0)
        return true;
    struct str end = h1_chunk_end(&r->arena, &trailers);
    p->chunk_end = end.p != NULL ? arena_printf(&r->arena, "\r\n%.*s", STR_ARG(end)) : STR_NONE;
    return p->chunk_end.p != NULL;
}

static enum io collect(struct proxy *p, struct str bytes, bool last)
{
    struct request *r = p->r;
    if (bytes.n > 0 && !buf_add(&p->kept, &p->loop->w->loop->blocks, bytes)) {
        proxy_give_up(p, FAIL_NO_MEMORY, 0, NULL);
        return IO_OK;
    }
    p->is_body_complete = last;
    if (!last && p->kept.n < r->s->buffer_request)
        return IO_OK;
    p->is_collecting = false;
    p->is_body_paused = !last;
    r->doing = NULL;
    if (last && p->is_chunked && p->chunk_end.n == 0)
        name_length(p);
    if (p->head.p == NULL)
        proxy_give_up(p, FAIL_NO_MEMORY, 0, NULL);
    else
        wait_ask_or_fail(p);
    return p->is_body_paused && !p->is_over ? IO_AGAIN : IO_OK; /* a server may have taken all of it already */
}

void body_begin(struct proxy *p, struct str target, const struct fields *fields)
{
    struct request *r = p->r;
    if (LIKELY(p->is_body_complete || r->s->buffer_request == 0)) {
        wait_ask_or_fail(p);
        return;
    }
    p->fields = *fields;
    p->target = target;
    p->is_collecting = true;
    r->doing = "collecting the request's body";
    request_want_body(r);
}

/* Keeps the body for another attempt while that is possible. */
static void keep(struct proxy *p, struct str bytes)
{
    struct block_pool *blocks = &p->loop->w->loop->blocks;
    if (p->is_body_lost || bytes.n == 0)
        return;
    bool is_worth = p->is_idempotent && p->kept.n + bytes.n <= PROXY_KEEP && !p->r->head_sent;
    if (is_worth && buf_add(&p->kept, blocks, bytes))
        return;
    buf_clear(&p->kept, blocks);
    p->is_body_lost = true;
}

enum io body_take(struct request *r, struct str bytes, bool last)
{
    struct proxy *p = r->handler_data;
    MAGIC_CHECK(p, PROXY_MAGIC);
    if (p->is_over || r->head->body == BODY_NONE) /* NONE: it was for an earlier backend, which has led here */
        return IO_OK;
    if (last && !take_trailers(p)) {
        proxy_give_up(p, FAIL_NO_MEMORY, 0, NULL);
        return IO_OK;
    }
    if (p->is_collecting)
        return collect(p, bytes, last);
    keep(p, bytes);
    p->is_body_complete |= last;
    if (p->t.uc == NULL) { /* between two attempts */
        p->is_body_paused = !last;
        return last ? IO_OK : IO_AGAIN;
    }
    if (p->t.send_broke)
        return IO_OK;
    enum io io = try_send_body(p, bytes, last);
    if (p->is_over || p->t.send_broke || last)
        return IO_OK;
    p->is_body_paused = io == IO_AGAIN;
    return io == IO_AGAIN ? IO_AGAIN : IO_OK;
}
