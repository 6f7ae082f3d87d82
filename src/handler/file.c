/* SPDX-License-Identifier: MIT */
/*
 * Files: GET and HEAD for what lies beneath a root. Owns the loop's file cache; an entry's descriptor is lent to the
 * client layer with a lease, and held with one of its own only while a multipart answer goes out in pieces.
 *
 * start is complete in itself: path -> cache entry -> conditions (RFC 9110 §13.2.2) -> range (§14.2) -> head and
 * bytes handed over. Only a multipart answer comes back, through resume. With a proxy behind it (root + proxy) every
 * "no" is DECLINED before anything was done to the answer, and the only "yes" is a readable visible regular file.
 *
 * Failures: what cannot be found by this name, for whatever reason of the file system, is 404; what may not be read,
 * and a folder without index, 403; want of descriptors 503. A 404 is remembered only where a backend answers
 * instead.
 */
#include "handler/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/map.h"
#include "handler/autoindex.h"
#include "handler/file_cache.h"
#include "handler/file_path.h"
#include "handler/file_sibling.h"
#include "http/cond.h"
#include "http/date.h"
#include "http/range.h"
#include "serve/respond.h"

enum { SWEEP_S = 10, IDLE_MS = 60 * 1000, EXPIRES_TEXT = 64 };

struct file_state {
    struct file_cache *cache;
    struct loop *loop;
    ev_timer sweep;
};

/* ---- per loop ---- */

static void on_sweep(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev;
    (void)events;
    struct file_state *st = timer->data;
    file_cache_sweep(st->cache, st->loop->now_ms, IDLE_MS);
}

/* A quarter of the descriptors, over all loops, may be kept open for files. */
static unsigned open_files_max(const struct worker *w)
{
    struct rlimit limit;
    uint64_t n =
        getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : 1024 * 1024;
    unsigned workers = worker_conf(w)->workers;
    n /= 4u * (workers ? workers : 1);
    return n < 4 ? 4 : n > 1024 * 1024 ? 1024 * 1024 : (unsigned)n;
}

static void *file_open(struct worker *w)
{
    int error = root_probe();
    if (error) {
        log_write(
            LOG_ERROR, "%s",
            error == ENOSYS
                ? "files cannot be served: this kernel has no openat2; weir needs Linux 5.6 or newer"
                : "files cannot be served: openat2 is forbidden here; allow it in the container's seccomp profile");
        return NULL;
    }
    struct file_state *st = calloc(1, sizeof(*st));
    if (!st)
        return NULL;
    st->cache = file_cache_new(open_files_max(w));
    if (!st->cache) {
        free(st);
        return NULL;
    }
    st->loop = w->loop;
    ev_timer_init(&st->sweep, on_sweep, SWEEP_S, SWEEP_S);
    ev_set_priority(&st->sweep, EV_MINPRI);
    st->sweep.data = st;
    ev_timer_start(w->loop->ev, &st->sweep);
    return st;
}

static void file_close(struct worker *w, void *state)
{
    struct file_state *st = state;
    ev_timer_stop(w->loop->ev, &st->sweep);
    file_cache_free(st->cache);
    free(st);
}

/* ---- what cannot be answered with a file ---- */

static void note(struct request *r, struct str below, const char *outcome)
{
    if (!r->trace)
        return;
    struct str root = r->action->u.file.root;
    struct str text =
        arena_printf(&r->arena, "%.*s/%.*s: %s", root.n > 1 ? (int)root.n : 0, root.p, STR_ARG(below), outcome);
    if (text.p)
        request_note(r, "file", text, r->action->where);
}

static enum fail fail_of(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EXDEV:
    case ENODEV: /* FIFO, socket, device */
    case ENXIO:
        return FAIL_FILE_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EISDIR:
        return FAIL_FILE_FORBIDDEN;
    case EMFILE:
    case ENFILE:
        return FAIL_NO_DESCRIPTORS;
    case ENOMEM:
        return FAIL_NO_MEMORY;
    default:
        return FAIL_FILE_ERROR;
    }
}

/* The same path with a slash, the query kept, relative to whatever scheme, host and port the client used (RFC 9110
 * §10.2.2). The path begins with exactly one slash, so the reference names no other host. */
static void redirect_to_folder(struct request *r)
{
    struct str path = path_encode(&r->arena, r->target.path);
    struct str to = STR_NONE;
    if (path.p)
        to = arena_printf(&r->arena, "%.*s/%s%.*s", STR_ARG(path), r->target.has_query ? "?" : "",
                          STR_ARG(r->target.query));
    if (!to.p) {
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
        return;
    }
    respond_redirect(r, 301, to);
}

static enum handled miss(struct request *r, struct str below, int error)
{
    if (r->action->u.file.or_proxy) {
        note(r, below, "not there for this request; passed on");
        return DECLINED;
    }
    enum fail f = fail_of(error);
    struct str fallback = r->s->fallback;
    if ((f == FAIL_FILE_NOT_FOUND || error == EISDIR) && fallback.n > 0 && !str_eq(r->target.path, fallback)) {
        note(r, below, "not there; fallback");
        r->is_fallback = true;
        request_reroute(r, fallback);
        return HANDLED;
    }
    note(r, below, f == FAIL_FILE_NOT_FOUND ? "not there" : f == FAIL_FILE_FORBIDDEN ? "not readable" : "failed");
    request_fail(r, f, error,
                 error == EISDIR  ? "a folder without index"
                 : error == EXDEV ? "a link leads out of the root"
                                  : NULL);
    return HANDLED;
}

/* ---- the answer ---- */

/* Is it for this client, because it gave a password, or because a backend said so by X-Accel-Redirect or X-Sendfile?
 * `public` would let a shared cache give it to anyone (RFC 9111 §3.5). */
static bool is_guarded(const struct request *r)
{
    return r->s->basic_auth != NULL || r->verified != NULL || r->carried != NULL;
}

/* A fallback may not be kept under a name that is a file's after the next deploy, or was one before. */
static void add_expires(struct request *r, const struct file *f)
{
    const struct expires_conf *e = &r->s->expires;
    char date[HTTP_DATE];
    struct str cache = STR("no-cache");
    int64_t at = 1;
    if (e->kind == EXPIRES_AFTER && !r->is_fallback) {
        at = (int64_t)((r->w->loop->wall_ms + e->ms) / 1000);
        cache = arena_printf(&r->arena, "%s, max-age=%" PRIu64 "%s", is_guarded(r) ? "private" : "public",
                             e->ms / 1000, f->hash_in_name ? ", immutable" : "");
    }
    date_print(date, at);
    struct str expires = arena_dup(&r->arena, str_of(date, sizeof(date)));
    if (!cache.p || !expires.p)
        return; /* want of memory: a complete answer without them */
    respond_field(r, F_EXPIRES, expires);
    respond_field(r, F_CACHE_CONTROL, cache);
    struct where where = r->s->where[SET_files_expires];
    request_note(r, "field", arena_printf(&r->arena, "Expires: %.*s", STR_ARG(expires)), where);
    request_note(r, "field", arena_printf(&r->arena, "Cache-Control: %.*s", STR_ARG(cache)), where);
}

/* A piece of the file; the lease, if one is needed, is taken here. */
static enum io send_piece(struct request *r, struct file *f, uint64_t off, uint64_t n, enum how how)
{
    if (f->kind == FILE_BODY)
        return respond_body(r, str_of(f->body + off, (size_t)n), how);
    struct chunk c = { .kind = CHUNK_FILE, .fd = f->fd, .off = off, .n = n, .lease = file_lease(f) };
    return respond_file(r, c, how);
}

/* The lines of a head that says itself who may keep it, when it is guarded. */
static struct str make_private(struct request *r, struct str block)
{
    static const struct str open = { "Cache-Control: public", 21 };
    const char *at = block.n > 0 ? memmem(block.p, block.n, open.p, open.n) : NULL;
    if (at == NULL)
        return block;
    struct str before = str_take(block, (size_t)(at - block.p)), after = str_skip(block, before.n + open.n);
    struct str text =
        arena_printf(&r->arena, "%.*sCache-Control: private%.*s", STR_ARG(before), STR_ARG(after));
    return text.p != NULL ? text : before; /* want of memory: rather nothing of how long it may be kept */
}

/* The head of an answer with f, or with a part of it, under the lines `block`. */
static void send_head(struct request *r, struct file *f, const struct file *head, struct str block, uint16_t status)
{
    r->resp.status = status;
    r->resp.is_own = true;
    r->resp.block = UNLIKELY(head->says_expiry) && is_guarded(r) ? make_private(r, block) : block;
    r->resp.type = head->type;
    r->resp.stored = head->coding_line > 0 ? NULL : &f->stored; /* coded already: not for a filter */
    if (r->s->expires.kind != EXPIRES_OFF && !head->says_expiry)
        add_expires(r, head);
    respond_head(r);
}

static void send_range(struct request *r, struct file *f, const struct file *head, struct range range)
{
    struct str at = arena_printf(&r->arena, "bytes %" PRIu64 "-%" PRIu64 "/%" PRId64, range.off,
                                 range.off + range.n - 1, f->id.size);
    if (!at.p) {
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
        return;
    }
    respond_field(r, F_CONTENT_RANGE, at);
    r->resp.has_length = true;
    r->resp.length = range.n;
    send_head(r, f, head, head->block, 206);
    if (send_piece(r, f, range.off, range.n, HOW_LAST) == IO_CLOSED)
        return;
}

/* A 304 has the fields that a cache updates; type and length would describe a body it does not have (RFC 9110
 * §15.4.5). */
static void send_not_modified(struct request *r, struct file *f, const struct file *head)
{
    send_head(r, f, head, str_skip(head->block, head->type_line + head->coding_line), 304);
    respond_end(r, NULL);
}

/* A multipart/byteranges answer under way (RFC 9110 §14.6). */
struct parts {
    struct file *file;
    struct lease lease; /* ours, until the last piece is handed over */
    struct range ranges[RANGE_MAX];
    struct str heads[RANGE_MAX];
    struct str close;
    unsigned n, step; /* step 2i: the head of part i; 2i+1: its bytes; 2n: the end */
};

static void parts_release(struct parts *p)
{
    if (p->file)
        p->lease.release(p->lease.arg);
    p->file = NULL;
}

static void send_parts(struct request *r)
{
    struct parts *p = r->handler_data;
    while (p->step < 2 * p->n) {
        unsigned i = p->step / 2;
        enum io io = p->step % 2 ? send_piece(r, p->file, p->ranges[i].off, p->ranges[i].n, HOW_MORE)
                                 : respond_body(r, p->heads[i], HOW_MORE);
        if (io == IO_CLOSED)
            return; /* abort releases */
        p->step++;
        if (io == IO_AGAIN)
            return;
    }
    parts_release(p);
    if (respond_body(r, p->close, HOW_LAST) == IO_CLOSED)
        return;
}

/* The texts between the pieces; the length of the whole answer, 0 when memory is out. */
static uint64_t print_parts(struct request *r, struct parts *p, struct str type, uint64_t boundary)
{
    uint64_t length = 0;
    for (unsigned i = 0; i < p->n; i++) {
        struct range at = p->ranges[i];
        p->heads[i] = arena_printf(&r->arena,
                                   "%s--%016" PRIx64 "\r\nContent-Type: %.*s\r\nContent-Range: bytes %" PRIu64
                                   "-%" PRIu64 "/%" PRId64 "\r\n\r\n",
                                   i ? "\r\n" : "", boundary, STR_ARG(type), at.off, at.off + at.n - 1,
                                   p->file->id.size);
        if (!p->heads[i].p)
            return 0;
        length += p->heads[i].n + at.n;
    }
    p->close = arena_printf(&r->arena, "\r\n--%016" PRIx64 "--\r\n", boundary);
    return p->close.p ? length + p->close.n : 0;
}

static void send_multipart(struct request *r, struct file *f, const struct file *head, const struct range *ranges,
                           unsigned n)
{
    struct {
        uint64_t connection, start_us, now_ms;
        const void *request;
    } unlikely = { r->connection, r->start_us, r->w->loop->wall_ms, r };
    uint64_t boundary = hash_bytes(str_of((const char *)&unlikely, sizeof(unlikely)));
    struct parts *p = arena_new(&r->arena, struct parts);
    struct str type = arena_printf(&r->arena, "multipart/byteranges; boundary=%016" PRIx64, boundary);
    if (!p || !type.p) {
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
        return;
    }
    p->file = f;
    p->n = n;
    memcpy(p->ranges, ranges, n * sizeof(*ranges));
    uint64_t length = print_parts(r, p, head->type, boundary);
    if (length == 0) {
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
        return;
    }
    p->lease = file_lease(f);
    r->handler_data = p;
    respond_field(r, F_CONTENT_TYPE, type);
    r->resp.has_length = true;
    r->resp.length = length;
    send_head(r, f, head, str_skip(head->block, head->type_line), 206);
    send_parts(r);
}

/* The file's own, but for a fallback's date: it does not say since when this name has led there, and who was sent a later
 * file of that name would be told that it is still the same. */
static struct validators validators_of(const struct request *r, const struct file *head)
{
    struct validators v = head->validators;
    if (r->is_fallback)
        v.last_modified = -1;
    return v;
}

/* Answers a Range request if the range counts. False: send the whole file. Of an empty one no Content-Range could be
 * told, though a suffix is satisfiable (§14.1.2), and who asks for the first KB of everything is content with nothing. */
static bool serve_range(struct request *r, struct file *f, const struct file *head, struct str value, int64_t now)
{
    if (f->id.size == 0)
        return false;
    struct validators v = validators_of(r, head);
    if (head->is_young)
        v.last_modified = -1; /* it may change again within the same second: no strong validator (§8.8.2.2) */
    if (!cond_if_range(&r->head->fields, &v, now))
        return false;
    struct range ranges[RANGE_MAX];
    unsigned n = 0;
    switch (range_plan(value, (uint64_t)f->id.size, ranges, &n)) {
    case RANGE_NONE:
        return false;
    case RANGE_SOME:
        if (n == 1)
            send_range(r, f, head, ranges[0]);
        else
            send_multipart(r, f, head, ranges, n);
        return true;
    case RANGE_UNSATISFIABLE:
        break;
    }
    struct str at = arena_printf(&r->arena, "bytes */%" PRId64, f->id.size);
    if (at.p)
        respond_field(r, F_CONTENT_RANGE, at);
    respond_page(r, 416);
    return true;
}

/* What of the request's fields concerns a file, found in one pass. */
struct asked {
    bool condition;
    unsigned ranges;
    struct str range;
};

static struct asked look_at_fields(const struct fields *fields)
{
    struct asked asked = { .condition = false };
    for (unsigned i = 0; i < fields->n; i++) {
        switch (fields->v[i].id) {
        case F_IF_MATCH:
        case F_IF_NONE_MATCH:
        case F_IF_MODIFIED_SINCE:
        case F_IF_UNMODIFIED_SINCE:
            asked.condition = true;
            break;
        case F_RANGE:
            asked.ranges++;
            asked.range = fields->v[i].value;
            break;
        default:
            break;
        }
    }
    return asked;
}

void file_serve(struct request *r, struct file *f, const struct file *head)
{
    struct asked asked = look_at_fields(&r->head->fields);
    int64_t now = (int64_t)(r->w->loop->wall_ms / 1000);
    if (asked.condition) {
        struct validators v = validators_of(r, head);
        enum cond_result result = cond_check(&r->head->fields, &v, now);
        if (result == COND_NOT_MODIFIED) {
            send_not_modified(r, f, head);
            return;
        }
        if (result == COND_FAILED) {
            respond_page(r, 412);
            return;
        }
    }
    if (asked.ranges == 1 && r->head->method == METHOD_GET && serve_range(r, f, head, asked.range, now))
        return;
    r->resp.has_length = true;
    r->resp.length = (uint64_t)f->id.size;
    send_head(r, f, head, head->block, 200);
    if (r->resp.bodyless)
        respond_end(r, NULL);
    else if (send_piece(r, f, 0, (uint64_t)f->id.size, HOW_LAST) == IO_CLOSED)
        return;
}

/* ---- finding the file ---- */

/* The first index file that is there; EISDIR: the folder has none. want->path ends in '/' or is empty. */
static int get_index(struct file_cache *c, struct request *r, struct file_want *want, struct file **out)
{
    struct str folder = want->path;
    for (unsigned i = 0; i < r->s->n_index; i++) {
        struct str name = r->s->index[i];
        char *path = arena_alloc(&r->arena, folder.n + name.n);
        if (!path)
            return ENOMEM;
        if (folder.n > 0)
            memcpy(path, folder.p, folder.n);
        memcpy(path + folder.n, name.p, name.n);
        want->path = str_of(path, folder.n + name.n);
        int error = file_cache_get(c, want, out);
        if (error != ENOENT && error != EISDIR)
            return error;
    }
    if (r->action->u.file.or_proxy)
        return ENOENT;
    want->path = folder.n > 0 ? folder : STR(".");
    int error = file_cache_folder(c, want);
    return error ? error : EISDIR;
}

/* With a fallback, a folder that would answer with nothing of its own is no file: an app may have a route of its name.
 * want->path ends without a slash; empty: the root itself. */
static bool is_for_fallback(struct file_cache *c, struct request *r, const struct file_want *want)
{
    struct file_want index = *want;
    struct file *f;
    if (r->s->fallback.n == 0 || r->s->autoindex != AUTOINDEX_OFF)
        return false;
    if (want->path.n > 0)
        index.path = arena_printf(&r->arena, "%.*s/", STR_ARG(want->path));
    return (want->path.n == 0 || index.path.p != NULL) && get_index(c, r, &index, &f) == EISDIR;
}

bool file_refuses(struct request *r)
{
    if (r->head->method == METHOD_GET || r->head->method == METHOD_HEAD)
        return false;
    respond_field(r, F_ALLOW, STR("GET, HEAD"));
    request_fail(r, FAIL_METHOD_REFUSED, 0, NULL);
    return true;
}

struct file_cache *file_cache_of(const struct worker *w)
{
    return ((struct file_state *)w->handler_state[ACTION_FILE])->cache;
}

struct file_want file_want_of(const struct request *r, struct str root, uint64_t root_hash, struct str path)
{
    const struct conf *conf = worker_conf(r->w);
    return (struct file_want){
        .root = root,
        .root_hash = root_hash,
        .path = path,
        .follow = { .folders = r->s->follow, .n = r->s->n_follow },
        .now_ms = r->w->loop->now_ms,
        .wall_ms = r->w->loop->wall_ms,
        .entries = conf->file_cache.entries,
        .small = conf->file_cache.small,
        .valid_ms = conf->file_cache.valid,
        .mime = &conf->mime,
        .mime_hash = conf->mime_hash,
    };
}

void file_answer(struct request *r, const struct file_want *want, struct file *f, const struct file *head)
{
    /* Looking for a sibling may push f out of the cache: it must live until it has been sent. */
    struct lease lease = file_lease(f);
    if (!sibling_serve(r, file_cache_of(r->w), want, f, head))
        file_serve(r, f, head);
    lease.release(lease.arg);
}

void file_send(struct request *r, struct str root, struct str path)
{
    struct file_want want = file_want_of(r, root, hash_bytes(root), path);
    struct file *f = NULL;
    r->handler_data = NULL;
    int error = file_cache_get(file_cache_of(r->w), &want, &f);
    if (error)
        request_fail(r, fail_of(error), error, NULL);
    else
        file_answer(r, &want, f, f);
}

static enum handled file_start(struct request *r)
{
    const struct action *a = r->action;
    struct str path = r->target.path;
    struct str below = file_path_below(r->location, a, path);
    r->handler_data = NULL;
    if (a->u.file.or_proxy && r->head->method != METHOD_GET && r->head->method != METHOD_HEAD)
        return DECLINED;
    if (file_refuses(r))
        return HANDLED;
    if (!r->s->dotfiles && file_path_is_hidden(below, below.p == path.p + 1))
        return miss(r, below, ENOENT);
    struct file_want want = file_want_of(r, a->u.file.root, a->u.file.root_hash, below);
    want.may_be_absent = a->u.file.or_proxy;
    struct file_cache *cache = file_cache_of(r->w);
    struct file *f = NULL;
    bool is_folder = path.p[path.n - 1] == '/';
    int error;
    if (!is_folder)
        error = file_cache_get(cache, &want, &f);
    else if (a->u.file.or_proxy && !a->u.file.own_index)
        error = ENOENT;
    else
        error = get_index(cache, r, &want, &f);
    if (error == EISDIR && !is_folder && !a->u.file.or_proxy && !r->location->internal &&
        !is_for_fallback(cache, r, &want)) {
        note(r, below, "a folder");
        redirect_to_folder(r);
        return HANDLED;
    }
    if (error == EISDIR && r->s->autoindex != AUTOINDEX_OFF && !a->u.file.or_proxy) {
        error = autoindex_serve(r, cache, &want);
        if (error == 0) {
            note(r, want.path, "a folder; listed");
            return HANDLED;
        }
    }
    if (error)
        return miss(r, want.path, error);
    note(r, want.path, "served");
    file_answer(r, &want, f, f);
    return HANDLED;
}

void file_resume(struct request *r)
{
    if (BUG_IF(r->handler_data == NULL)) {
        request_fail(r, FAIL_BUG, 0, NULL);
        return;
    }
    send_parts(r);
}

void file_abort(struct request *r)
{
    struct parts *p = r->handler_data;
    if (p)
        parts_release(p);
    r->handler_data = NULL;
}

const struct handler file_handler = {
    .name = "file",
    .open = file_open,
    .close = file_close,
    .start = file_start,
    .resume = file_resume,
    .abort = file_abort,
};
