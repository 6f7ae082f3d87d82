/* SPDX-License-Identifier: MIT */
/*
 * Serialises a response head in one pass into one allocation. On the hot path of every answer: no printf, no second copy. A ready-made
 * block of a cached file goes in as it is. Framing fields are written here and nowhere else (RFC 9112 §6), so they cannot
 * contradict what client_h1 sends.
 */
#include "serve/h1_head.h"

#include "http/date.h"
#include "http/status.h"

enum { FIXED = 256 }; /* more than status code, Date, Server, Content-Length and Connection lines together */

enum h1_framing h1_head_framing(const struct response *p, unsigned minor)
{
    if (p->bodyless)
        return H1_FRAMING_NONE;
    if (p->has_length)
        return H1_FRAMING_LENGTH;
    return minor >= 1 ? H1_FRAMING_CHUNKED : H1_FRAMING_CLOSE;
}

static char *put(char *at, struct str s)
{
    if (s.n > 0)
        memcpy(at, s.p, s.n);
    return at + s.n;
}

static char *put_u64(char *at, uint64_t v)
{
    char digits[20];
    size_t n = 0;
    do
        digits[sizeof(digits) - ++n] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    return put(at, str_of(digits + sizeof(digits) - n, n));
}

static char *put_status_line(char *at, const struct response *p)
{
    struct str line = p->reason.n == 0 ? status_line(p->status) : STR_NONE;
    if (line.n > 0)
        return put(at, line);
    at = put(at, STR("HTTP/1.1 "));
    at = put_u64(at, p->status);
    at = put(at, STR(" "));
    at = put(at, p->reason);
    return put(at, STR("\r\n"));
}

static char *put_framing(char *at, const struct response *p, enum h1_framing framing)
{
    /* A 1xx or 204 must not carry either; HEAD and 304 may say what a GET would have (RFC 9110 §8.6). */
    bool may_tell = framing == H1_FRAMING_LENGTH || (framing == H1_FRAMING_NONE && p->status >= 200 && p->status != 204);
    if (may_tell && p->has_length) {
        at = put(at, STR("Content-Length: "));
        at = put_u64(at, p->length);
        return put(at, STR("\r\n"));
    }
    return framing == H1_FRAMING_CHUNKED ? put(at, STR("Transfer-Encoding: chunked\r\n")) : at;
}

struct str h1_head_print(struct arena *a, const struct response *p, enum h1_framing framing, bool close,
                         bool keep_alive_10, const char *date)
{
    size_t need = FIXED + p->reason.n + p->block.n;
    bool has_date = false, has_server = false;
    for (unsigned i = 0; i < p->fields.n; i++) {
        const struct field *f = &p->fields.v[i];
        need += f->name.n + f->value.n + 4;
        has_date |= f->id == F_DATE;
        has_server |= f->id == F_SERVER;
    }
    char *start = arena_alloc(a, need);
    if (start == NULL)
        return STR_NONE;
    char *at = put_status_line(start, p);
    at = put(at, p->block);
    for (unsigned i = 0; i < p->fields.n; i++) {
        const struct field *f = &p->fields.v[i];
        at = put(at, f->name);
        at = put(at, STR(": "));
        at = put(at, f->value);
        at = put(at, STR("\r\n"));
    }
    if (p->is_own && !has_server)
        at = put(at, STR("Server: weir\r\n"));
    if (!has_date && p->status >= 200) {
        at = put(at, STR("Date: "));
        at = put(at, str_of(date, HTTP_DATE));
        at = put(at, STR("\r\n"));
    }
    at = put_framing(at, p, framing);
    if (p->status >= 200 && close)
        at = put(at, STR("Connection: close\r\n"));
    else if (keep_alive_10)
        at = put(at, STR("Connection: keep-alive\r\n"));
    at = put(at, STR("\r\n"));
    return str_of(start, (size_t)(at - start));
}
