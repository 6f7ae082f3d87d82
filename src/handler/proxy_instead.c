/* SPDX-License-Identifier: MIT */
/*
 * Answers of a backend that are not for the client: X-Accel-Redirect names a path that weir goes on with, X-Sendfile a
 * file, and error_pages with `intercept` puts a page in the place of what the backend says.
 *
 * Life: instead_begin looks at a head that has just come, and takes from it what is kept. The rest of that answer is
 * read as far as it has come already, so that the connection can be used again, and never waited for. When the
 * connection and the slot have been given back, instead_finish does what was decided.
 *
 * What is kept beside the cookie of a sticky session is what nginx keeps: Content-Type, Content-Disposition,
 * Cache-Control, Expires and Accept-Ranges, which then go before those of the file, and every Set-Cookie. A page keeps
 * all but what describes the body that it replaces. The request goes on as a GET without a body (or as the HEAD that
 * it is): the backend has had the body.
 *
 * X-Accel-Redirect may lead to any location of the site, internal ones above all, and is judged there like a request:
 * allow and deny count. X-Sendfile is a path of the file system, so it needs a folder to be beneath of (x_sendfile),
 * and the kernel sees to it that it is (handler/root.c).
 */
#include "handler/file.h"
#include "handler/proxy_try.h"

static bool is_page(const struct request *r, uint16_t status)
{
    const struct error_page_conf *page = respond_error_page(r->s, status);
    return page != NULL && page->intercept;
}

static bool is_carried(enum field_id id)
{
    switch (id) {
    case F_ACCEPT_RANGES:
    case F_CACHE_CONTROL:
    case F_CONTENT_DISPOSITION:
    case F_CONTENT_TYPE:
    case F_EXPIRES:
    case F_SET_COOKIE:
        return true;
    default:
        return false;
    }
}

/* Does it say something about the body? A policy for the page is none of that. */
static bool is_of_body(const struct field *f)
{
    static const struct str policy = { "Content-Security-Policy", 23 };
    switch (f->id) {
    case F_ACCEPT_RANGES:
    case F_ETAG:
    case F_LAST_MODIFIED:
    case F_TRAILER:
        return true;
    default:
        break;
    }
    if (str_eq_nocase(f->name, STR("Digest")) || str_eq_nocase(f->name, STR("Repr-Digest")))
        return true;
    return f->name.n > 8 && str_eq_nocase(str_take(f->name, 8), STR("Content-")) &&
           !str_eq_nocase(str_take(f->name, policy.n), policy);
}

/* Keeps of the fields those that the next answer is to have. */
static void sift(struct fields *f, enum proxy_instead kind)
{
    struct fields kept = { .v = f->v, .cap = f->cap };
    for (unsigned i = 0; i < f->n; i++) {
        struct field it = f->v[i];
        if (kind == INSTEAD_PAGE ? is_of_body(&it) : !is_carried(it.id))
            continue;
        kept.v[kept.n++] = it;
        kept.have[it.id / 64] |= (uint64_t)1 << (it.id % 64);
    }
    *f = kept;
}

enum proxy_instead instead_of(const struct request *r, const struct head *h)
{
    const struct scope_conf *s = r->s;
    if (UNLIKELY(s->n_error_pages > 0) && is_page(r, h->status))
        return INSTEAD_PAGE;
    if (fields_get(&h->fields, F_X_ACCEL_REDIRECT) && s->x_accel_redirect)
        return INSTEAD_PATH;
    if (fields_get(&h->fields, F_X_SENDFILE) && s->n_x_sendfile > 0)
        return INSTEAD_FILE;
    return INSTEAD_NOTHING;
}

void instead_begin(struct proxy *p, enum proxy_instead kind)
{
    struct request *r = p->r;
    const struct head *h = &p->t.in.head;
    p->instead = kind;
    if (kind == INSTEAD_PATH)
        p->instead_at = fields_get(&h->fields, F_X_ACCEL_REDIRECT)->value;
    else if (kind == INSTEAD_FILE)
        p->instead_at = fields_get(&h->fields, F_X_SENDFILE)->value;
    sift(&r->resp.fields, kind);
}

/* ---- what is done then ---- */

static void refuse(struct proxy *p, const char *why)
{
    p->r->resp = (struct response){ 0 };
    request_fail(p->r, FAIL_ACCEL_REFUSED, 0, why);
}

/* The backend has had the request: what follows is a GET, or the HEAD that it was. Cookies that led here before stay.
 */
static bool go_on(struct request *r)
{
    struct head *h = arena_new(&r->arena, struct head);
    struct fields *carried = arena_new(&r->arena, struct fields);
    if (h == NULL || carried == NULL)
        return false;
    *h = *r->head;
    h->method = h->method == METHOD_HEAD ? METHOD_HEAD : METHOD_GET;
    h->body = BODY_NONE;
    h->has_length = h->wants_upgrade = h->expect_continue = false;
    h->length = 0;
    *carried = r->resp.fields;
    for (unsigned i = 0; r->carried != NULL && i < r->carried->n; i++)
        if (r->carried->v[i].id == F_SET_COOKIE &&
            !fields_add_id(carried, &r->arena, F_SET_COOKIE, r->carried->v[i].value))
            return false;
    r->head = h;
    r->carried = carried;
    r->resp = (struct response){ 0 };
    r->doing = NULL;
    return true;
}

/* The path may come without the escapes that a target needs; what is one already stays. */
static struct str escape(struct arena *a, struct str path)
{
    static const char hex[] = "0123456789ABCDEF";
    char *text = arena_alloc(a, 3 * path.n + 1);
    size_t n = 0;
    if (text == NULL)
        return STR_NONE;
    for (size_t i = 0; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];
        if (c > 0x20 && c < 0x7f && c != '#') {
            text[n++] = path.p[i];
            continue;
        }
        text[n++] = '%';
        text[n++] = hex[c >> 4];
        text[n++] = hex[c & 15];
    }
    return str_of(text, n);
}

static void go_to_path(struct proxy *p)
{
    struct request *r = p->r;
    struct target to;
    struct str raw = escape(&r->arena, p->instead_at);
    enum target_result result = raw.p != NULL ? target_parse(&to, raw, METHOD_GET, &r->arena) : TARGET_NO_MEMORY;
    if (result == TARGET_NO_MEMORY)
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
    else if (result != TARGET_OK || to.form != TARGET_ORIGIN)
        refuse(p, "X-Accel-Redirect is no path");
    else if (!go_on(r))
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
    else
        request_reroute_to(r, &to);
}

/* The folder of x_sendfile that the file lies beneath, and the path below it; p NULL: none. */
static struct str folder_of(const struct scope_conf *s, struct str file, struct str *below)
{
    for (unsigned i = 0; i < s->n_x_sendfile; i++) {
        struct str folder = s->x_sendfile[i];
        if (!path_is_beneath(file, folder))
            continue;
        *below = str_skip(file, folder.n);
        while (below->n > 0 && below->p[0] == '/')
            *below = str_skip(*below, 1);
        if (below->n > 0)
            return folder;
    }
    return STR_NONE;
}

static void go_to_file(struct proxy *p)
{
    struct request *r = p->r;
    struct str below, folder = folder_of(r->s, p->instead_at, &below);
    if (folder.p == NULL) {
        refuse(p, "X-Sendfile names no file beneath x_sendfile");
    } else if (!go_on(r)) {
        request_fail(r, FAIL_NO_MEMORY, 0, NULL);
    } else {
        r->handler = r->w->handlers[ACTION_FILE];
        file_send(r, folder, below);
    }
}

void instead_finish(struct proxy *p)
{
    switch (p->instead) {
    case INSTEAD_PAGE:
        respond_page(p->r, p->r->resp.status);
        break;
    case INSTEAD_PATH:
        go_to_path(p);
        break;
    case INSTEAD_FILE:
        go_to_file(p);
        break;
    case INSTEAD_NOTHING:
        break;
    }
}
