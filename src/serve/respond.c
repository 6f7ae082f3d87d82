/* SPDX-License-Identifier: MIT */
/*
 * The handler's side of an answer: fixes what does not depend on the protocol (bodyless answers, counting, the small
 * pages) and passes the rest to the client's ops, through the filters if one takes part. Owns nothing.
 *
 * Invariant: head once, then bytes, then one end; r->ended is final. What a filter does is decided with the head; an
 * answer that none takes part in pays one test of a pointer for each piece.
 */
#include "serve/respond.h"

#include "http/accept.h"
#include "http/mime.h"
#include "http/status.h"
#include "serve/filter.h"
#include "serve/handler.h"
#include "serve/header_rules.h"

void respond_head(struct request *r)
{
    if (BUG_IF(r->head_sent))
        return;
    struct response *p = &r->resp;
    p->bodyless = (r->head && r->head->method == METHOD_HEAD) || status_has_no_body(p->status);
    if (UNLIKELY(r->s->n_response_headers > 0 || r->carried != NULL))
        header_rules_answer(r);
    if (!filter_begin(r)) {
        r->resp = (struct response){ .close = true };
        request_fail(r, FAIL_NO_MEMORY, 0, "for a filter");
        return;
    }
    r->head_sent = true;
    r->doing = NULL;
    r->ops->head(r);
}

enum io respond_body(struct request *r, struct str bytes, enum how how)
{
    if (r->ended)
        return IO_CLOSED;
    if (r->resp.bodyless)
        bytes.n = 0;
    else if (UNLIKELY(r->resp.instead.n > 0))
        bytes = how == HOW_LAST ? r->resp.instead : STR_NONE;
    if (bytes.n == 0) {
        if (how == HOW_LAST) {
            respond_end(r, NULL);
            return IO_OK;
        }
        if (how == HOW_MORE || r->resp.bodyless)
            return IO_OK;
    }
    if (UNLIKELY(r->filtering != NULL))
        return filter_body(r, bytes, how, NULL);
    r->body_sent += bytes.n;
    return r->ops->data(r, bytes, how);
}

enum io respond_file(struct request *r, struct chunk file, enum how how)
{
    if (r->ended || r->resp.bodyless || file.n == 0 || UNLIKELY(r->resp.instead.n > 0)) {
        enum io io = respond_body(r, STR_NONE, how);
        if (file.lease.release)
            file.lease.release(file.lease.arg); /* not before: what goes out instead may be its file's */
        return io;
    }
    if (UNLIKELY(r->filtering != NULL))
        return filter_file(r, file, how);
    r->body_sent += file.n;
    return r->ops->file(r, file, how);
}

void respond_end(struct request *r, const struct fields *trailers)
{
    if (r->ended)
        return;
    if (UNLIKELY(r->filtering != NULL))
        (void)!filter_body(r, STR_NONE, HOW_LAST, trailers);
    else
        r->ops->end(r, trailers);
}

void respond_resume(struct request *r)
{
    if (UNLIKELY(r->filtering != NULL) && !filter_resume(r))
        return;
    if (r->handler && r->handler->resume)
        r->handler->resume(r);
}

void respond_simple(struct request *r, uint16_t status, struct str type, struct str body)
{
    r->resp.status = status;
    r->resp.is_own = true;
    r->resp.has_length = true;
    r->resp.length = body.n;
    if (body.n > 0 && type.n > 0)
        respond_field(r, F_CONTENT_TYPE, type);
    respond_head(r);
    if (respond_body(r, body, HOW_LAST) == IO_CLOSED)
        return;
}

const struct error_page_conf *respond_error_page(const struct scope_conf *s, uint16_t status)
{
    for (unsigned i = 0; i < s->n_error_pages; i++)
        for (unsigned j = 0; j < s->error_pages[i].n_statuses; j++)
            if (s->error_pages[i].statuses[j] == status)
                return s->error_pages[i].body.p != NULL ? &s->error_pages[i] : NULL;
    return NULL;
}

/* Does the client like problem+json (RFC 9457) better than a page of this type? */
static bool prefers_json(const struct request *r, struct str type)
{
    if (r->head == NULL || fields_get(&r->head->fields, F_ACCEPT) == NULL)
        return false;
    const struct fields *f = &r->head->fields;
    int json = accept_type_q(f, STR("application/json")), problem = accept_type_q(f, STR("application/problem+json"));
    ptrdiff_t semi = str_chr(type, ';', 0);
    return (json > problem ? json : problem) > accept_type_q(f, semi < 0 ? type : str_take(type, (size_t)semi));
}

static struct str own_page(struct request *r, uint16_t status, bool as_json)
{
    struct str reason = status_reason(status);
    if (as_json)
        return arena_printf(&r->arena, "{\"type\":\"about:blank\",\"title\":\"%.*s\",\"status\":%u}\n",
                            STR_ARG(reason), status);
    return arena_printf(&r->arena,
                        "<!doctype html><html lang=en><meta charset=utf-8>"
                        "<meta name=viewport content=\"width=device-width\">"
                        "<meta name=color-scheme content=\"light dark\"><title>%u %.*s</title>"
                        "<body style=\"font-family:sans-serif;margin:4em auto;max-width:30em\">"
                        "<h1>%u %.*s</h1></body></html>\n",
                        status, STR_ARG(reason), status, STR_ARG(reason));
}

void respond_page(struct request *r, uint16_t status)
{
    const struct error_page_conf *page = UNLIKELY(r->s->n_error_pages > 0) ? respond_error_page(r->s, status) : NULL;
    struct str type = page ? mime_find(&r->conf->mime, page->file) : STR("text/html; charset=utf-8");
    bool as_json = status >= 400 && prefers_json(r, type);
    if (status_has_no_body(status)) {
        respond_simple(r, status, STR_NONE, STR_NONE);
        return;
    }
    if (status >= 400)
        respond_field(r, F_VARY, STR("Accept"));
    if (page)
        request_note(r, "error page", as_json ? STR("no: the client prefers JSON") : page->file,
                     r->s->where[SET_body_error_pages]);
    struct str body = page && !as_json ? page->body : own_page(r, status, as_json);
    if (body.p == NULL)
        body = STR_NONE;
    respond_simple(r, status, as_json ? STR("application/problem+json") : type, body);
}

void respond_redirect(struct request *r, uint16_t status, struct str location)
{
    if (!is_field_value(location)) {
        request_fail(r, FAIL_TARGET_MALFORMED, 0, "redirect target with control bytes");
        return;
    }
    respond_field(r, F_LOCATION, location);
    respond_page(r, status);
}

void respond_field(struct request *r, enum field_id id, struct str value)
{
    /* Want of memory here leaves one field out of an answer that the next allocation fails as a whole. */
    if (!fields_add_id(&r->resp.fields, &r->arena, id, value))
        request_log(r, LOG_ERROR, 0, "out of memory for a response field");
}
