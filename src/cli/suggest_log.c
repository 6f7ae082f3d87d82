/* SPDX-License-Identifier: MIT */
/*
 * Access logs of others, read leniently: the request between the first pair of quotes, then status and bytes. What was
 * escaped (\xHH as nginx and weir write it, \" and \\ as Apache does) is undone, since files are looked up by it.
 * In JSON the names are tried in order; numbers may be strings, as nginx's templates tend to make them.
 */
#include "cli/suggest_log.h"

#include <jansson.h>

/* The text up to the next quote that is not escaped, unescaped; *line is moved behind it. */
static bool take_quoted(struct arena *a, struct str *line, struct str *out)
{
    char *p = arena_alloc(a, line->n + 1);
    size_t n = 0, i = 0;
    if (p == NULL)
        return false;
    for (; i < line->n && line->p[i] != '"'; i++) {
        char c = line->p[i];
        if (c == '\\' && i + 3 < line->n && line->p[i + 1] == 'x' && hex_value(line->p[i + 2]) >= 0 &&
            hex_value(line->p[i + 3]) >= 0) {
            c = (char)(hex_value(line->p[i + 2]) << 4 | hex_value(line->p[i + 3]));
            i += 3;
        } else if (c == '\\' && i + 1 < line->n) {
            c = line->p[++i];
        }
        p[n++] = c;
    }
    if (i == line->n)
        return false;
    *line = str_skip(*line, i + 1);
    *out = str_of(p, n);
    return true;
}

static struct str take_word(struct str *s)
{
    *s = str_trim(*s);
    ptrdiff_t end = str_chr(*s, ' ', 0);
    struct str word = end < 0 ? *s : str_take(*s, (size_t)end);
    *s = str_skip(*s, word.n);
    return word;
}

/* "GET /path HTTP/1.1" */
static bool read_request(struct str request, struct logged *out)
{
    out->method = take_word(&request);
    out->target = take_word(&request);
    return out->method.n > 0 && out->target.n > 0;
}

static bool read_status(struct str text, struct logged *out)
{
    uint64_t status;
    if (!str_to_u64(text, &status) || status < 100 || status > 999)
        return false;
    out->status = (unsigned)status;
    return true;
}

static bool read_combined(struct arena *a, struct str line, struct logged *out)
{
    struct str request;
    ptrdiff_t quote = str_chr(line, '"', 0);
    if (quote < 0)
        return false;
    line = str_skip(line, (size_t)quote + 1);
    if (!take_quoted(a, &line, &request) || !read_request(request, out) || !read_status(take_word(&line), out))
        return false;
    if (!str_to_u64(take_word(&line), &out->bytes)) /* "-" */
        out->bytes = 0;
    return true;
}

/* The first member of these that is there, as text; numbers too. */
static struct str member(struct arena *a, const json_t *line, const char *const *names)
{
    for (; *names != NULL; names++) {
        const json_t *v = json_object_get(line, *names);
        if (json_is_string(v))
            return arena_dup(a, str_of(json_string_value(v), json_string_length(v)));
        if (json_is_integer(v))
            return arena_printf(a, "%lld", (long long)json_integer_value(v));
    }
    return STR_NONE;
}

static bool read_json(struct arena *a, struct str line, struct logged *out)
{
    static const char *const methods[] = { "method", "request_method", "verb", NULL };
    static const char *const targets[] = { "uri", "request_uri", "url", "target", "path", NULL };
    static const char *const statuses[] = { "status", "status_code", "response", "code", NULL };
    static const char *const bytes[] = { "body_bytes_sent", "bytes_sent", "bytes", "size", "length", NULL };
    static const char *const requests[] = { "request", NULL };
    json_error_t error;
    json_t *json = json_loadb(line.p, line.n, 0, &error);
    if (json == NULL)
        return false;
    out->method = member(a, json, methods);
    out->target = member(a, json, targets);
    bool is_read = read_status(member(a, json, statuses), out);
    if (!str_to_u64(member(a, json, bytes), &out->bytes))
        out->bytes = 0;
    if (out->method.n == 0 || out->target.n == 0)
        is_read = read_request(member(a, json, requests), out) && is_read;
    json_decref(json);
    return is_read;
}

bool suggest_log_line(struct arena *a, struct str line, struct logged *out)
{
    *out = (struct logged){ .status = 0 };
    line = str_trim(line);
    return line.n > 0 && line.p[0] == '{' ? read_json(a, line, out) : read_combined(a, line, out);
}
