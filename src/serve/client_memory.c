/* SPDX-License-Identifier: MIT */
/*
 * client_ops into memory. One request at a time, on the caller's stack; the request is finished before client_memory_run returns,
 * so everything kept is copied into the answer's own arena.
 */
#include "serve/client_memory.h"

#include "serve/handler.h"

enum { BODY_KEPT = 1024 * 1024 };

struct memory_client {
    struct memory_answer *out;
    struct h1_read reader;
};

static struct memory_answer *answer_of(const struct request *r)
{
    return ((struct memory_client *)r->client)->out;
}

static void memory_head(struct request *r)
{
    struct memory_answer *a = answer_of(r);
    a->status = r->resp.status;
    a->block = arena_dup(&a->arena, r->resp.block);
    a->has_length = r->resp.has_length;
    a->length = r->resp.length;
    for (unsigned i = 0; i < r->resp.fields.n; i++) {
        const struct field *f = &r->resp.fields.v[i];
        struct str name = arena_dup(&a->arena, f->name), value = arena_dup(&a->arena, f->value);
        if (!fields_add(&a->fields, &a->arena, name, value, f->id))
            return;
    }
}

static void end_with(struct request *r, bool complete)
{
    answer_of(r)->complete = complete;
    r->ended = r->drained = true;
}

static enum io memory_data(struct request *r, struct str bytes, enum how how)
{
    struct memory_answer *a = answer_of(r);
    if (bytes.n > 0 && a->body.n + bytes.n <= BODY_KEPT) {
        char *grown = arena_alloc(&a->arena, a->body.n + bytes.n);
        if (grown == NULL)
            return IO_CLOSED;
        if (a->body.n > 0)
            memcpy(grown, a->body.p, a->body.n);
        memcpy(grown + a->body.n, bytes.p, bytes.n);
        a->body = str_of(grown, a->body.n + bytes.n);
    }
    if (how == HOW_LAST)
        end_with(r, true);
    return IO_OK;
}

static enum io memory_file(struct request *r, struct chunk file, enum how how)
{
    answer_of(r)->file_bytes += file.n;
    if (file.lease.release)
        file.lease.release(file.lease.arg);
    if (how == HOW_LAST)
        end_with(r, true);
    return IO_OK;
}

static void memory_end(struct request *r, const struct fields *trailers)
{
    (void)trailers;
    end_with(r, true);
}

static void memory_abort(struct request *r)
{
    end_with(r, false);
}

static void memory_nothing(struct request *r)
{
    (void)r;
}

static size_t memory_room(const struct request *r)
{
    (void)r;
    return LOOP_SCRATCH;
}

static bool memory_is_open(const struct request *r)
{
    (void)r;
    return true;
}

static const struct client_ops memory_ops = {
    .protocol = "memory",
    .head = memory_head,
    .data = memory_data,
    .file = memory_file,
    .end = memory_end,
    .abort = memory_abort,
    .want_body = memory_nothing,
    .wake = memory_nothing,
    .body_resume = memory_nothing,
    .room = memory_room,
    .is_open = memory_is_open,
};

/* Reads the head; a body in the text is not delivered. */
static bool read_head(struct request *r, struct h1_read *reader, struct str text)
{
    h1_read_init(reader, H1_REQUEST, &r->w->request_limits, &r->arena);
    while (text.n > 0) {
        size_t used = 0;
        switch (h1_read_feed(reader, text.p, text.n, &used)) {
        case H1_HEAD:
            r->head = &reader->head;
            r->body_complete = true;
            return true;
        case H1_MORE:
            text = str_skip(text, used);
            break;
        default:
            return false;
        }
    }
    return false;
}

bool client_memory_run(struct worker *w, const struct listen_conf *listen, struct str text, const struct ip *peer,
                       struct trace *trace, struct memory_answer *out)
{
    struct memory_client client = { .out = out };
    *out = (struct memory_answer){ 0 };
    arena_init(&out->arena, NULL);
    struct request *r = request_begin(w, &memory_ops, &client);
    if (r == NULL)
        return false;
    r->listen = listen;
    r->s = listen->default_site->s;
    r->peer = r->remote = *peer;
    r->nth = 1;
    r->trace = trace;
    bool is_read = read_head(r, &client.reader, text);
    if (!is_read)
        request_fail(r, fail_of_bad(client.reader.bad), 0, NULL);
    else
        out->waits = request_run(r) == STEP_WAIT;
    out->fail = r->fail;
    request_finish(r);
    return is_read;
}

void memory_answer_free(struct memory_answer *a)
{
    arena_reset(&a->arena);
}
