/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1 serialisation (RFC 9112 §3, §4, §5, §7.1).
 * The size is worked out first, then one piece of the caller's arena is filled and belongs to it.
 * Nothing is checked and nothing is added: whoever puts a line into a `struct fields` has made sure that its value
 * can stand in one (is_field_value), and which fields go is decided by the handlers and the header filter.
 * The version is always weir's own, 1.1 (RFC 9112 §2.3).
 */
#include "http/h1_write.h"

#include "http/status.h"

static char *put(char *at, struct str s)
{
    if (s.n > 0)
        memcpy(at, s.p, s.n);
    return at + s.n;
}

static size_t fields_size(const struct fields *f)
{
    size_t size = 0;
    for (unsigned i = 0; i < f->n; i++)
        size += f->v[i].name.n + f->v[i].value.n + 4;
    return size;
}

static char *put_fields(char *at, const struct fields *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        at = put(at, f->v[i].name);
        at = put(at, STR(": "));
        at = put(at, f->v[i].value);
        at = put(at, STR("\r\n"));
    }
    return at;
}

struct str h1_write_request(struct arena *a, struct str method, struct str target, const struct fields *f)
{
    struct str version = STR(" HTTP/1.1\r\n");
    size_t size = method.n + 1 + target.n + version.n + fields_size(f) + 2;
    char *p = arena_alloc(a, size);
    if (p == NULL)
        return STR_NONE;
    char *at = put(p, method);
    *at++ = ' ';
    at = put(at, target);
    at = put(at, version);
    at = put_fields(at, f);
    put(at, STR("\r\n"));
    return str_of(p, size);
}

struct str h1_write_response(struct arena *a, uint16_t status, struct str reason, struct str block,
                             const struct fields *f)
{
    struct str line = reason.n == 0 ? status_line(status) : STR_NONE;
    struct str version = STR("HTTP/1.1 ");
    size_t line_size = line.n > 0 ? line.n : version.n + 4 + reason.n + 2;
    size_t size = line_size + block.n + fields_size(f) + 2;
    char *p = arena_alloc(a, size);
    if (p == NULL)
        return STR_NONE;
    char *at = p;
    if (line.n > 0) {
        at = put(at, line);
    } else {
        at = put(at, version);
        *at++ = (char)('0' + status / 100 % 10);
        *at++ = (char)('0' + status / 10 % 10);
        *at++ = (char)('0' + status % 10);
        *at++ = ' ';
        at = put(at, reason);
        at = put(at, STR("\r\n"));
    }
    at = put(at, block);
    at = put_fields(at, f);
    put(at, STR("\r\n"));
    return str_of(p, size);
}

struct str h1_write_fields(struct arena *a, const struct fields *f)
{
    size_t size = fields_size(f);
    char *p = arena_alloc(a, size);
    if (p == NULL)
        return STR_NONE;
    put_fields(p, f);
    return str_of(p, size);
}

size_t h1_chunk_head(char *out, uint64_t n)
{
    size_t digits = 1;
    for (uint64_t rest = n >> 4; rest != 0; rest >>= 4)
        digits++;
    for (size_t i = digits; i-- > 0; n >>= 4)
        out[i] = (char)((n & 15) < 10 ? '0' + (n & 15) : 'a' + (n & 15) - 10);
    out[digits] = '\r';
    out[digits + 1] = '\n';
    return digits + 2;
}

struct str h1_chunk_end(struct arena *a, const struct fields *trailers)
{
    size_t size = 3 + fields_size(trailers) + 2;
    char *p = arena_alloc(a, size);
    if (p == NULL)
        return STR_NONE;
    char *at = put(p, STR("0\r\n"));
    at = put_fields(at, trailers);
    put(at, STR("\r\n"));
    return str_of(p, size);
}
