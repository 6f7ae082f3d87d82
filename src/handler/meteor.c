/* SPDX-License-Identifier: MIT */
/*
 * meteor_bundle: GET and HEAD for exactly the files that the app's own server would answer from its manifest
 * (meteor_manifest.c has the rules); everything else is DECLINED to the location's next action, normally the app: HTML,
 * /sockjs, /websocket, dynamic imports, other methods, and every path the manifest does not have.
 *
 * Owns the loop's views of the bundles. The file comes from the file handler's cache, opened beneath the program's
 * folder by the kernel's word, and is sent by the file handler under the manifest's head.
 *
 * Invariant: what the manifest says of a file (ETag, a year) is said only of the content it describes, told by the
 * SHA-1 that the manifest gives, or by the size for a file too large to be read here. Anything else (a deployment under
 * way, a file edited in place) is sent under its own ETag and is to be asked for again.
 */
#include "handler/meteor.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

#include "handler/file.h"
#include "handler/meteor_bundle.h"
#include "http/target.h"
#include "serve/respond.h"

enum {
    SWEEP_S = 10,
    IDLE_MS = 60 * 1000,
    SUM_MAX = 8 * 1024 * 1024, /* read here once for each state of a file; a client's whole script is 1 to 5 MB */
    PIECE = 64 * 1024,
};

struct meteor_state {
    struct meteor_view *views;
    struct loop *loop;
    ev_timer sweep;
};

/* ---- per loop ---- */

/* Views nobody asks for any more go, so that a bundle which left the configuration can. */
static void on_sweep(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev;
    (void)events;
    struct meteor_state *st = timer->data;
    for (struct meteor_view **at = &st->views; *at != NULL;) {
        struct meteor_view *v = *at;
        if (st->loop->now_ms - v->used_ms < IDLE_MS) {
            at = &v->next;
            continue;
        }
        *at = v->next;
        meteor_view_close(v);
    }
    if (st->views == NULL)
        ev_timer_stop(st->loop->ev, &st->sweep);
}

static void *meteor_open(struct worker *w)
{
    struct meteor_state *st = calloc(1, sizeof *st);
    if (st == NULL)
        return NULL;
    st->loop = w->loop;
    ev_timer_init(&st->sweep, on_sweep, SWEEP_S, SWEEP_S);
    ev_set_priority(&st->sweep, EV_MINPRI);
    st->sweep.data = st;
    meteor_bundles_enter();
    meteor_bundles_prepare(worker_conf(w));
    return st;
}

static void meteor_close(struct worker *w, void *state)
{
    struct meteor_state *st = state;
    ev_timer_stop(w->loop->ev, &st->sweep);
    for (struct meteor_view *v = st->views, *next; v != NULL; v = next) {
        next = v->next;
        meteor_view_close(v);
    }
    meteor_bundles_leave();
    free(st);
}

static struct meteor_view *view_of(struct meteor_state *st, const struct action *a)
{
    for (struct meteor_view *v = st->views; v != NULL; v = v->next)
        if (v->hash == a->u.meteor.hash && str_eq(meteor_view_path(v), a->u.meteor.bundle))
            return v;
    struct meteor_view *v = meteor_view_open(a->u.meteor.bundle, a->u.meteor.hash);
    if (v == NULL)
        return NULL;
    v->next = st->views;
    st->views = v;
    ev_timer_start(st->loop->ev, &st->sweep);
    return v;
}

/* ---- is it the file the manifest means? ---- */

static bool sum_content(const struct file *f, unsigned char out[20])
{
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    char *piece = f->kind == FILE_BODY ? NULL : malloc(PIECE);
    bool ok = sum != NULL && EVP_DigestInit_ex(sum, EVP_sha1(), NULL) == 1;
    if (ok && f->kind == FILE_BODY)
        ok = EVP_DigestUpdate(sum, f->body, (size_t)f->id.size) == 1;
    for (int64_t at = 0; ok && f->kind != FILE_BODY && at < f->id.size;) {
        ssize_t got = piece != NULL ? pread(f->fd, piece, PIECE, (off_t)at) : -1;
        ok = got > 0 && EVP_DigestUpdate(sum, piece, (size_t)got) == 1;
        at += got;
    }
    ok = ok && EVP_DigestFinal_ex(sum, out, NULL) == 1;
    EVP_MD_CTX_free(sum);
    free(piece);
    return ok;
}

static bool is_as_described(struct file *f, const struct meteor_entry *e)
{
    if (f->unsettled || (e->size >= 0 && e->size != f->id.size))
        return false;
    if (!e->has_sha1 || f->id.size > SUM_MAX)
        return true;
    if (!f->has_sha1)
        f->has_sha1 = sum_content(f, f->sha1);
    return f->has_sha1 && memcmp(f->sha1, e->sha1, sizeof f->sha1) == 0;
}

/* ---- the answer ---- */

static size_t append(char *out, size_t at, struct str s)
{
    if (s.n > 0)
        memcpy(out + at, s.p, s.n);
    return at + s.n;
}

/* The head lines for a file that is not what the manifest describes, or of which it knows no hash. */
static struct str own_block(struct request *r, const struct file *f, const struct meteor_entry *e, bool is_described)
{
    struct str tag = f->validators.etag, map = e->source_map;
    const char *age = !is_described || !e->cacheable ? "0" : e->immutable ? "31536000, immutable" : "31536000";
    return arena_printf(&r->arena,
                        "Content-Type: %.*s\r\n%s%.*s%sAccept-Ranges: bytes\r\nCache-Control: public, max-age=%s\r\n"
                        "%s%.*s%s%.*s%s",
                        STR_ARG(e->type), tag.n ? "ETag: " : "", STR_ARG(tag), tag.n ? "\r\n" : "", age,
                        map.n ? "SourceMap: " : "", STR_ARG(map), map.n ? "\r\nX-SourceMap: " : "", STR_ARG(map),
                        map.n ? "\r\n" : "");
}

/* The file's Content-Encoding, if it is stored coded: the second line of the block. */
static bool insert_coding(struct request *r, const struct file *f, struct file *head)
{
    struct str type = str_take(head->block, head->type_line), rest = str_skip(head->block, head->type_line);
    char *p = arena_alloc(&r->arena, head->block.n + f->coding_line);
    if (p == NULL)
        return false;
    size_t n = append(p, 0, type);
    n = append(p, n, str_of(f->block.p + f->type_line, f->coding_line));
    head->block = str_of(p, append(p, n, rest));
    return true;
}

/* False: no memory. Everything in the head lies in the request's arena: the manifest may go before the request. */
static bool make_head(struct request *r, struct file *f, const struct meteor_entry *e, struct file *head)
{
    bool is_described = is_as_described(f, e);
    *head = *f;
    head->says_expiry = true;
    head->type_line = e->type_line;
    if (is_described && e->etag.n > 0) {
        char *p = arena_alloc(&r->arena, e->block.n + e->etag.n);
        if (p == NULL)
            return false;
        head->block = str_of(p, append(p, 0, e->block));
        head->validators.etag = str_of(p + e->block.n, append(p + e->block.n, 0, e->etag));
        head->is_young = false;
    } else {
        head->block = own_block(r, f, e, is_described);
        if (head->block.p == NULL)
            return false;
    }
    if (UNLIKELY(f->coding_line > 0) && !insert_coding(r, f, head))
        return false;
    head->type = str_of(head->block.p + sizeof("Content-Type: ") - 1, e->type.n);
    head->validators.last_modified = -1;
    return true;
}

static void note(struct request *r, const struct meteor_entry *e, const char *outcome)
{
    if (!r->trace)
        return;
    struct str text = e != NULL ? arena_printf(&r->arena, "programs/%.*s/%.*s: %s", STR_ARG(e->program->name),
                                               STR_ARG(e->path), outcome)
                                : str_c(outcome);
    if (text.p)
        request_note(r, "meteor_bundle", text, r->action->where);
}

/* Did the path come as it is, but for percent escapes? Resolving dots and merging slashes, which the app does not do,
 * make it shorter than decoding alone. */
static bool is_plain(const struct target *t)
{
    size_t n = t->raw_path.n;
    for (size_t i = 0; i < t->raw_path.n; i++)
        if (t->raw_path.p[i] == '%')
            n -= 2;
    return n == t->path.n;
}

static const struct meteor_entry *find(struct request *r, bool is_last)
{
    struct meteor_view *v = view_of(r->w->handler_state[ACTION_METEOR], r->action);
    const struct meteor_manifest *m = v != NULL ? meteor_view_get(v) : NULL;
    const struct meteor_entry *e = NULL;
    if (v != NULL)
        v->used_ms = r->w->loop->now_ms;
    if (m == NULL) {
        note(r, NULL, "no manifest could be read");
        return NULL;
    }
    bool is_rerouted = r->reroutes > 0; /* then the path is weir's own, and raw is not its text */
    if (!is_rerouted && !is_plain(&r->target)) {
        note(r, NULL, "not in the manifest in this spelling");
        return NULL;
    }
    struct str path = r->target.path, raw = is_rerouted ? path : r->target.raw_path, prefix = r->s->strip_prefix;
    if (prefix.n > 0 && prefix.p[prefix.n - 1] == '/')
        prefix.n--; /* the slash begins what is left */
    if (!str_starts(path, prefix) || !str_starts(raw, prefix)) {
        note(r, NULL, "not in the manifest in this spelling");
        return NULL;
    }
    switch (meteor_manifest_find(m, str_skip(path, prefix.n), str_skip(raw, prefix.n), &e)) {
    case METEOR_FILE:
        return e;
    case METEOR_DEPENDS:
        if (is_last)
            return e;
        note(r, e, "depends on the browser: the app decides");
        return NULL;
    case METEOR_NONE:
        note(r, NULL, "not in the manifest");
        break;
    }
    return NULL;
}

static enum handled meteor_start(struct request *r)
{
    bool is_last = r->action_index == r->location->n_actions;
    bool is_read = r->head->method == METHOD_GET || r->head->method == METHOD_HEAD;
    r->handler_data = NULL;
    if (!is_read && !is_last)
        return DECLINED;
    const struct meteor_entry *e = find(r, is_last);
    if (e == NULL)
        return DECLINED;
    if (file_refuses(r))
        return HANDLED;
    struct file_want want = file_want_of(r, e->program->root, e->program->root_hash, e->path);
    struct file *f, head;
    int error = file_cache_get(file_cache_of(r->w), &want, &f);
    if (error) {
        note(r, e, strerror(error));
        return DECLINED;
    }
    note(r, e, "served");
    if (make_head(r, f, e, &head))
        file_answer(r, &want, f, &head);
    else
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
    return HANDLED;
}

const struct handler meteor_handler = {
    .name = "meteor",
    .open = meteor_open,
    .close = meteor_close,
    .prepare = meteor_bundles_prepare,
    .start = meteor_start,
    .resume = file_resume,
    .abort = file_abort,
};
