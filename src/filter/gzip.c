/* SPDX-License-Identifier: MIT */
/*
 * The gzip filter (RFC 9110 §8.4.1.3, RFC 1952). Decides on the head whether an answer is worth compressing and may
 * be, edits the head so that it tells the truth about the new body, and transforms the body. Owns the loop's pool of
 * compressors, and one of them for each answer under way; knows nothing of where bytes come from or go.
 *
 * May be: an answer with a body that is not a part of one, not coded already, of a listed type, without no-transform
 * (RFC 9110 §7.7), known to be min_length or of unknown length, to a client of HTTP/1.1 that takes gzip and does not
 * like the plain form better. Whatever would be compressed for some client says Vary, to every client; so do a
 * part of it and a 304. Tells the truth: the length is unknown, no ranges are offered, a strong ETag becomes a weak
 * one (§8.8.3.3: another representation, the same meaning).
 *
 * A file that is in memory anyway is compressed once, and both forms are kept (serve/stored.h); of a larger one, up to
 * KEPT_FILE, what went out to the first client is kept, as long as all that is kept stays below KEPT_MAX. Anything else
 * is a stream: at HOW_PAUSE all that went in comes out (Z_SYNC_FLUSH), so an event waits for nothing.
 */
#include "filter/gzip.h"

#include <limits.h>
#include <stdlib.h>

#include "filter/deflate_pool.h"
#include "http/accept.h"

enum {
    HEAD_COST = 48, /* what the fields of a coded answer take; less is not worth it */
    KEPT_FILE = 1024 * 1024,
    KEPT_MAX = 32 * 1024 * 1024,
};

/* Of one loop. */
struct gzip_state {
    struct deflate_pool pool;
    size_t kept; /* bytes of all stored.coded */
};

/* Of one answer; in the request's arena. */
struct coder {
    struct deflater *d;
    struct gzip_state *gz;
    struct stored *keep; /* the file that will have a copy of what comes out; NULL: none */
    char *copy;
    size_t n, cap; /* of the copy */
    uint64_t n_in;
};

static void *gzip_open(struct worker *w)
{
    struct gzip_state *gz = calloc(1, sizeof(*gz));
    if (gz)
        deflate_pool_init(&gz->pool, w->loop, DEFLATE_USED_MAX);
    return gz;
}

static void gzip_close(struct worker *w, void *state)
{
    (void)w;
    struct gzip_state *gz = state;
    deflate_pool_free(&gz->pool);
    free(gz);
}

/* ---- the decision ---- */

static bool is_listed(const struct gzip_conf *g, struct str type)
{
    ptrdiff_t semi = str_chr(type, ';', 0);
    if (semi >= 0)
        type = str_trim(str_take(type, (size_t)semi));
    for (unsigned i = 0; i < g->n_types; i++) {
        struct str listed = g->types[i];
        if (str_eq_nocase(listed, type) || str_eq(listed, STR("*/*")))
            return true;
        if (str_ends(listed, STR("/*")) && type.n >= listed.n - 1 &&
            str_eq_nocase(str_take(listed, listed.n - 1), str_take(type, listed.n - 1)))
            return true;
    }
    return false;
}

/* Fields that say something about the very bytes of the body. */
static bool has_digest(const struct fields *f)
{
    static const struct str names[] = { { "Content-MD5", 11 }, { "Content-Digest", 14 }, { "Repr-Digest", 11 },
                                        { "Digest", 6 } };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (fields_find(f, names[i]))
            return true;
    return false;
}

/* A 304 of a backend. It seldom says what the type of the 200 was: any may have been compressed. */
static bool is_bare_304(const struct response *p)
{
    return p->status == 304 && p->stored == NULL && p->block.n == 0;
}

/* Why no client would get this answer compressed; NULL: some would, or would the whole of it, if it is a 206 or a 304,
 * which have the same Vary (RFC 9110 §15.3.7, §15.4.5). *type is its Content-Type. */
static const char *refusal(const struct request *r, struct str *type)
{
    const struct response *p = &r->resp;
    const struct gzip_conf *g = &r->s->gzip;
    const struct field *field = fields_get(&p->fields, F_CONTENT_TYPE);
    bool is_partial = p->status == 206 || p->status == 304;
    bool has_length = p->stored || (p->has_length && !is_partial);
    uint64_t length = p->stored ? p->stored->length : p->length;
    if (p->status < 200 || p->status == 204)
        return "no: not a whole body";
    if (has_length && (length == 0 || length < g->min_length))
        return "no: shorter than gzip.min_length";
    *type = p->stored ? p->type : field ? field->value : STR_NONE;
    if (!(is_bare_304(p) && type->n == 0) && (type->n == 0 || !is_listed(g, *type)))
        return "no: not one of gzip.types";
    if (fields_get(&p->fields, F_CONTENT_ENCODING) || (fields_get(&p->fields, F_CONTENT_RANGE) && !is_partial))
        return "no: coded already, or a part";
    if (fields_have_token(&p->fields, F_CACHE_CONTROL, STR("no-transform")) || has_digest(&p->fields))
        return "no: the backend forbids it";
    return NULL;
}

/* Why this client does not get it; NULL: it does. */
static const char *client_refusal(const struct request *r)
{
    struct accept_codings q;
    if (r->resp.status == 206)
        return "no: parts are of the plain form";
    if (r->head->minor == 0)
        return "no: the client speaks HTTP/1.0";
    accept_codings(&r->head->fields, &q);
    if (q.gzip == 0 || q.gzip < q.identity)
        return "no: the client does not ask for it";
    if (fields_have_token(&r->head->fields, F_CACHE_CONTROL, STR("no-transform")))
        return "no: the client forbids it";
    return NULL;
}

/* ---- the head ---- */

static bool says_vary(const struct fields *f)
{
    return fields_have_token(f, F_VARY, STR("Accept-Encoding")) || fields_have_token(f, F_VARY, STR("*"));
}

static bool add_vary(struct request *r)
{
    struct fields *f = &r->resp.fields;
    return says_vary(f) || fields_add_id(f, &r->arena, F_VARY, STR("Accept-Encoding"));
}

/* The answer stays as it is, for this client. */
static void *stay(struct request *r, const char *why)
{
    request_note(r, "gzip", str_c(why), r->s->where[SET_body_gzip]);
    if (!add_vary(r))
        request_log(r, LOG_ERROR, 0, "out of memory for a response field");
    return NULL;
}

static void weaken_etag(struct request *r)
{
    struct fields *f = &r->resp.fields;
    for (unsigned i = 0; i < f->n; i++) {
        if (f->v[i].id != F_ETAG || str_starts(f->v[i].value, STR("W/")))
            continue;
        struct str weak = STR_NONE;
        if (str_starts(f->v[i].value, STR("\""))) /* else it is none, and what is taken for one would be a strong one */
            weak = arena_printf(&r->arena, "W/%.*s", STR_ARG(f->v[i].value));
        if (weak.p == NULL) {
            fields_remove(f, F_ETAG);
            return;
        }
        f->v[i].value = weak;
    }
}

/* Does the client have the form with the weak tag that a compressed answer got instead of this strong one? */
static bool holds_weak(struct request *r, struct str etag)
{
    const struct fields *f = &r->head->fields;
    struct str weak = arena_printf(&r->arena, "W/%.*s", STR_ARG(etag));
    for (const struct field *it = fields_get(f, F_IF_NONE_MATCH); weak.p != NULL && it != NULL; it = fields_next(f, it))
        if (it->value.n >= weak.n && memmem(it->value.p, it->value.n, weak.p, weak.n) != NULL)
            return true;
    return false;
}

/* A backend's 304 to somebody who has been sent the compressed form: with the strong tag of the other one, and its
 * length, a cache could not tell that it is meant (RFC 9111 §4.3.4). */
static void *head_of_304(struct request *r)
{
    const struct field *etag = fields_get(&r->resp.fields, F_ETAG);
    if (etag != NULL && holds_weak(r, etag->value)) {
        weaken_etag(r);
        r->resp.has_length = false;
    }
    return stay(r, "no: not a whole body");
}

static enum deflate_size size_for(uint64_t length)
{
    return length <= 4096 ? DEFLATE_4K : length <= 16384 ? DEFLATE_16K : DEFLATE_ANY;
}

/* A compressor for this answer. NULL: memory is out, or there are too many at work. */
static struct coder *new_coder(struct request *r, struct gzip_state *gz, enum deflate_size size)
{
    struct coder *c = arena_new(&r->arena, struct coder);
    if (c == NULL || (c->d = deflate_take(&gz->pool, size, r->s->gzip.level)) == NULL)
        return NULL;
    c->gz = gz;
    return c;
}

static void *head_of_stream(struct request *r, struct gzip_state *gz, struct str type)
{
    struct response *p = &r->resp;
    struct coder *c = NULL;
    if (!fields_reserve(&p->fields, &r->arena, p->fields.n + 2))
        return stay(r, "no: out of memory");
    if (!p->bodyless) {
        /* A stream of events lives for hours and says the same things again: the small window is enough, and half of
         * the memory is for others. */
        bool is_events = str_starts(type, STR("text/event-stream"));
        if (!is_events || gz->pool.used < gz->pool.used_max / 2)
            c = new_coder(r, gz, is_events ? DEFLATE_4K : size_for(p->has_length ? p->length : UINT64_MAX));
        if (c == NULL)
            return stay(r, "no: too many answers are being compressed");
    }
    bool is_added = add_vary(r) && fields_add_id(&p->fields, &r->arena, F_CONTENT_ENCODING, STR("gzip"));
    (void)BUG_IF(!is_added); /* there is room */
    fields_remove(&p->fields, F_ACCEPT_RANGES);
    weaken_etag(r);
    p->has_length = false;
    return c;
}

/* ---- files ---- */

static char *put(char *at, struct str s)
{
    memcpy(at, s.p, s.n);
    return at + s.n;
}

/* The lines of the file's head, as they are for the coded form. A 304 says nothing of the body. */
static bool rewrite_block(struct request *r)
{
    struct response *p = &r->resp;
    const struct str coding = STR("Content-Encoding: gzip\r\n"), vary = STR("Vary: Accept-Encoding\r\n");
    char *text = arena_alloc(&r->arena, p->block.n + coding.n + vary.n + 2);
    if (text == NULL)
        return false;
    char *at = text;
    for (struct str rest = p->block; rest.n > 0;) {
        ptrdiff_t lf = str_chr(rest, '\n', 0);
        struct str line = str_take(rest, lf < 0 ? rest.n : (size_t)lf + 1);
        rest = str_skip(rest, line.n);
        if (str_starts(line, STR("Accept-Ranges:")))
            continue;
        if (str_starts(line, STR("ETag: \""))) {
            at = put(at, STR("ETag: W/"));
            line = str_skip(line, sizeof("ETag: ") - 1);
        }
        at = put(at, line);
    }
    if (p->status != 304)
        at = put(at, coding);
    if (!says_vary(&p->fields))
        at = put(at, vary);
    p->block = str_of(text, (size_t)(at - text));
    return true;
}

/* Gives the file its coded form, n bytes of `out`, which is taken over; or notes that it would not be worth it. */
static void keep(struct gzip_state *gz, struct stored *s, char *out, size_t n)
{
    s->is_coded = true;
    if (n >= s->length || s->length - n <= HEAD_COST) {
        free(out);
        return;
    }
    char *fitting = realloc(out, n);
    s->coded = str_of(fitting ? fitting : out, n);
    s->account = &gz->kept;
    gz->kept += n;
}

/* Compresses a file in memory, once. False: not now. */
static bool make_coded(struct gzip_state *gz, struct stored *s, int level)
{
    struct deflater *d = deflate_take(&gz->pool, size_for(s->length), level);
    if (d == NULL)
        return false;
    size_t cap = deflateBound(&d->z, (uLong)s->body.n);
    char *out = malloc(cap);
    if (out != NULL) {
        d->z.next_in = (z_const Bytef *)(uintptr_t)s->body.p;
        d->z.avail_in = (uInt)s->body.n;
        d->z.next_out = (Bytef *)out;
        d->z.avail_out = (uInt)cap;
        keep(gz, s, out, deflate(&d->z, Z_FINISH) == Z_STREAM_END ? cap - d->z.avail_out : SIZE_MAX);
    }
    deflate_give(&gz->pool, d);
    return out != NULL;
}

static void *head_of_file(struct request *r, struct gzip_state *gz)
{
    struct response *p = &r->resp;
    struct stored *s = p->stored;
    struct coder *c = NULL;
    bool is_whole = p->status == 200, may_keep = is_whole && !s->is_coded && gz->kept < KEPT_MAX;
    if (may_keep && s->body.p != NULL && !make_coded(gz, s, r->s->gzip.level))
        return stay(r, "no: too many answers are being compressed");
    if (is_whole && s->is_coded && s->coded.p == NULL)
        return stay(r, "no: it would not be shorter");
    if (is_whole && !s->is_coded && !p->bodyless) {
        c = new_coder(r, gz, size_for(s->length));
        if (c == NULL)
            return stay(r, "no: too many answers are being compressed");
        if (may_keep && s->length <= KEPT_FILE)
            c->keep = s;
    }
    if (!rewrite_block(r)) {
        if (c)
            deflate_give(&gz->pool, c->d);
        return stay(r, "no: out of memory");
    }
    p->has_length = is_whole && s->is_coded;
    if (p->has_length) {
        p->length = s->coded.n;
        p->instead = s->coded;
    }
    return c;
}

static void *gzip_head(struct request *r, void *state)
{
    struct str type;
    if (LIKELY(!r->s->gzip.on) || r->head == NULL)
        return NULL;
    const char *why = refusal(r, &type);
    if (why != NULL) {
        request_note(r, "gzip", str_c(why), r->s->where[SET_body_gzip]);
        return NULL;
    }
    why = client_refusal(r);
    if (why != NULL)
        return stay(r, why);
    if (is_bare_304(&r->resp))
        return head_of_304(r);
    request_note(r, "gzip", STR("yes"), r->s->where[SET_body_gzip]);
    return r->resp.stored ? head_of_file(r, state) : head_of_stream(r, state, type);
}

/* ---- the body ---- */

static void give_up_copy(struct coder *c)
{
    free(c->copy);
    c->copy = NULL;
    c->keep = NULL;
}

/* Remembers what came out for the file. Without memory, or when it grows beyond the file, it does without. */
static void add_to_copy(struct coder *c, const char *p, size_t n)
{
    if (c->n + n > c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 32 * 1024;
        while (cap < c->n + n)
            cap *= 2;
        char *grown = c->n + n > c->keep->length ? NULL : realloc(c->copy, cap);
        if (grown == NULL) {
            give_up_copy(c);
            return;
        }
        c->copy = grown;
        c->cap = cap;
    }
    memcpy(c->copy + c->n, p, n);
    c->n += n;
}

/* The stream is complete: the next client gets the copy. Meanwhile another answer may have made one. */
static void end_copy(struct coder *c)
{
    struct stored *s = c->keep;
    if (s == NULL || s->is_coded || c->n_in != s->length)
        return;
    keep(c->gz, s, c->copy, c->n);
    c->copy = NULL;
    c->keep = NULL;
}

static bool gzip_body(void *use, struct str *in, enum how how, struct filter_out *out)
{
    struct coder *c = use;
    z_stream *z = &c->d->z;
    /* Told to flush with nothing to flush, zlib would put another empty block. */
    if (in->n == 0 && (how == HOW_MORE || (how == HOW_PAUSE && !c->d->is_behind)))
        return true;
    uInt n = in->n < INT_MAX ? (uInt)in->n : INT_MAX;
    size_t before = out->n;
    z->next_in = (z_const Bytef *)(uintptr_t)in->p;
    z->avail_in = n;
    z->next_out = (Bytef *)out->p + before;
    z->avail_out = (uInt)(out->cap - before);
    int rc = deflate(z, how == HOW_LAST ? Z_FINISH : how == HOW_PAUSE ? Z_SYNC_FLUSH : Z_NO_FLUSH);
    *in = str_skip(*in, n - z->avail_in);
    out->n = out->cap - z->avail_out;
    c->n_in += n - z->avail_in;
    if (c->keep && out->n > before)
        add_to_copy(c, out->p + before, out->n - before);
    if (how == HOW_LAST) {
        if (rc == Z_STREAM_END)
            end_copy(c);
        return rc == Z_STREAM_END;
    }
    bool is_full = z->avail_out == 0;
    c->d->is_behind = how == HOW_MORE || is_full;
    return !is_full;
}

static void gzip_free(void *state, void *use)
{
    struct gzip_state *gz = state;
    struct coder *c = use;
    free(c->copy);
    deflate_give(&gz->pool, c->d);
}

const struct filter gzip_filter = {
    .name = "gzip",
    .open = gzip_open,
    .close = gzip_close,
    .head = gzip_head,
    .body = gzip_body,
    .free = gzip_free,
};
