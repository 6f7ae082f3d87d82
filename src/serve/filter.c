/* SPDX-License-Identifier: MIT */
/*
 * Runs the body of an answer through the filters that want it. Owns, for as long as the answer lasts, what each
 * filter said it needs, and the lease of a file that is being read for them.
 *
 * Life: filter_begin asks every filter about the head; if none takes part, r->filtering stays NULL and the answer
 * never comes here again. Otherwise bytes go through the first to the last, in pieces of OUT_MAX, and on to the
 * client; with the last byte, or when the request ends without one, filter_release.
 *
 * A file cannot go out by sendfile then. It is read here, at most FILE_SHARE of it in one turn of the loop and only
 * while the client takes what comes out, so that neither a fast client nor a slow one costs the others anything.
 */
#include "serve/filter.h"

#include <errno.h>
#include <unistd.h>

enum {
    OUT_MAX = 32 * 1024,
    FILE_PIECE = 16 * 1024,
    FILE_SHARE = 64 * 1024, /* some 2 ms of compressing */
};

struct filtering {
    struct {
        const struct filter *f;
        void *state, *use;
    } v[WORKER_FILTERS];
    unsigned n;
    struct chunk file; /* still to be read; lease.release NULL and n 0: none */
    enum how file_how;
};

bool filter_begin(struct request *r)
{
    struct worker *w = r->w;
    for (unsigned i = 0; i < w->n_filters; i++) {
        void *use = w->filters[i]->head(r, w->filter_state[i]);
        if (use == NULL)
            continue;
        if (r->filtering == NULL)
            r->filtering = arena_new(&r->arena, struct filtering);
        if (r->filtering == NULL) {
            w->filters[i]->free(w->filter_state[i], use);
            return false;
        }
        struct filtering *t = r->filtering;
        t->v[t->n].f = w->filters[i];
        t->v[t->n].state = w->filter_state[i];
        t->v[t->n++].use = use;
    }
    return true;
}

static void end_file(struct filtering *t)
{
    if (t->file.lease.release)
        t->file.lease.release(t->file.lease.arg);
    t->file = (struct chunk){ 0 };
}

void filter_release(struct request *r)
{
    struct filtering *t = r->filtering;
    if (t == NULL)
        return;
    for (unsigned i = 0; i < t->n; i++)
        if (t->v[i].use)
            t->v[i].f->free(t->v[i].state, t->v[i].use);
    t->n = 0;
    end_file(t);
}

static enum io to_client(struct request *r, struct str bytes, enum how how, const struct fields *trailers)
{
    if (bytes.n == 0 && how == HOW_MORE)
        return IO_OK;
    r->body_sent += bytes.n;
    if (how != HOW_LAST || trailers == NULL)
        return r->ops->data(r, bytes, how);
    enum io io = bytes.n > 0 ? r->ops->data(r, bytes, HOW_MORE) : IO_OK;
    if (io != IO_CLOSED)
        r->ops->end(r, trailers);
    return io;
}

/* Through the filters from the i-th on. All of `bytes` is taken, whatever the result. */
static enum io pass(struct request *r, unsigned i, struct str bytes, enum how how, const struct fields *trailers)
{
    struct filtering *t = r->filtering;
    if (i == t->n)
        return to_client(r, bytes, how, trailers);
    enum io result = IO_OK;
    char room[OUT_MAX];
    for (bool done = false; !done;) {
        struct filter_out out = { .p = room, .cap = sizeof(room) };
        done = t->v[i].f->body(t->v[i].use, &bytes, how, &out);
        if (out.n == 0 && (!done || how == HOW_MORE))
            continue;
        enum io io = pass(r, i + 1, str_of(room, out.n), done ? how : HOW_MORE, trailers);
        if (io == IO_CLOSED)
            return io;
        if (io == IO_AGAIN)
            result = io;
    }
    return result;
}

enum io filter_body(struct request *r, struct str bytes, enum how how, const struct fields *trailers)
{
    enum io io = pass(r, 0, bytes, how, trailers);
    if (how == HOW_LAST || io == IO_CLOSED)
        filter_release(r);
    return io;
}

/* Goes on with the file. IO_OK: all of it has been read and taken. */
static enum io read_on(struct request *r)
{
    struct filtering *t = r->filtering;
    char piece[FILE_PIECE];
    size_t share = FILE_SHARE;
    while (t->file.n > 0) {
        if (share == 0) {
            r->ops->again(r);
            return IO_AGAIN;
        }
        size_t want = t->file.n < sizeof(piece) ? (size_t)t->file.n : sizeof(piece);
        ssize_t got = pread(t->file.fd, piece, want, (off_t)t->file.off);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            request_fail(r, FAIL_FILE_TRUNCATED, got < 0 ? errno : 0, NULL);
            return IO_CLOSED;
        }
        t->file.off += (uint64_t)got;
        t->file.n -= (uint64_t)got;
        share -= (size_t)got;
        bool is_end = t->file.n == 0;
        enum io io = filter_body(r, str_of(piece, (size_t)got), is_end ? t->file_how : HOW_MORE, NULL);
        if (is_end)
            end_file(t); /* the lease lasts until the filters have seen all of the file */
        if (io != IO_OK)
            return io;
    }
    return IO_OK;
}

enum io filter_file(struct request *r, struct chunk file, enum how how)
{
    struct filtering *t = r->filtering;
    if (r->ops->again == NULL) { /* a client that only describes files */
        r->body_sent += file.n;
        return r->ops->file(r, file, how);
    }
    if (BUG_IF(t->file.n > 0))
        end_file(t);
    t->file = file;
    t->file_how = how;
    return read_on(r);
}

bool filter_resume(struct request *r)
{
    struct filtering *t = r->filtering;
    if (t == NULL || t->file.n == 0)
        return true;
    return read_on(r) == IO_OK && !r->ended;
}
