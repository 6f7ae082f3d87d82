/* SPDX-License-Identifier: MIT */
/*
 * Values of the variables of conf/vars.def. Each returns a borrowed or arena-made span; an unknown value is empty. Values come from
 * peers: whoever puts them into a field or a log checks or escapes them there.
 */
#include "serve/vars.h"

#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static struct str number(struct request *r, uint64_t v)
{
    return arena_printf(&r->arena, "%llu", (unsigned long long)v);
}

static struct str address(struct request *r, const struct ip *ip)
{
    char text[IP_TEXT];
    return arena_dup(&r->arena, str_of(text, ip_print(ip, text)));
}

static struct str port(struct request *r, const struct ip *ip)
{
    return ip->port > 0 ? number(r, ip->port) : STR_NONE;
}

static struct str field_value(const struct fields *fields, struct str name)
{
    const struct field *f = fields_find(fields, name);
    return f ? f->value : STR_NONE;
}

/* Of the answer, whose fields may be ready-made lines. */
static struct str answer_field(const struct response *p, struct str name)
{
    for (struct str rest = p->block; rest.n > name.n;) {
        ptrdiff_t lf = str_chr(rest, '\n', 0);
        struct str line = str_take(rest, lf < 0 ? rest.n : (size_t)lf + 1);
        rest = str_skip(rest, line.n);
        if (line.n > name.n && line.p[name.n] == ':' && str_eq_nocase(str_take(line, name.n), name))
            return str_trim(str_skip(line, name.n + 1));
    }
    return field_value(&p->fields, name);
}

static struct str cookie(const struct request *r, struct str name)
{
    for (const struct field *f = fields_get(&r->head->fields, F_COOKIE); f; f = fields_next(&r->head->fields, f)) {
        struct str rest = f->value;
        while (rest.n > 0) {
            ptrdiff_t end = str_chr(rest, ';', 0);
            struct str pair = str_trim(end < 0 ? rest : str_take(rest, (size_t)end));
            if (pair.n > name.n && pair.p[name.n] == '=' && str_eq(str_take(pair, name.n), name))
                return str_skip(pair, name.n + 1);
            rest = end < 0 ? STR_NONE : str_skip(rest, (size_t)end + 1);
        }
    }
    return STR_NONE;
}

static struct str argument(const struct request *r, struct str name)
{
    struct str rest = r->target.query;
    while (rest.n > 0) {
        ptrdiff_t end = str_chr(rest, '&', 0);
        struct str pair = end < 0 ? rest : str_take(rest, (size_t)end);
        if (pair.n > name.n && pair.p[name.n] == '=' && str_eq_nocase(str_take(pair, name.n), name))
            return str_skip(pair, name.n + 1);
        rest = end < 0 ? STR_NONE : str_skip(rest, (size_t)end + 1);
    }
    return STR_NONE;
}

static struct str seconds_since(struct request *r, uint64_t start_us)
{
    uint64_t ms = (clock_monotonic_us() - start_us) / 1000;
    return arena_printf(&r->arena, "%llu.%03llu", (unsigned long long)(ms / 1000), (unsigned long long)(ms % 1000));
}

static struct str wall_time(struct request *r, const char *format)
{
    char text[64];
    time_t t = (time_t)(r->w->loop->wall_ms / 1000);
    struct tm tm;
    localtime_r(&t, &tm);
    return arena_dup(&r->arena, str_of(text, strftime(text, sizeof(text), format, &tm)));
}

static struct str local_address(struct request *r, bool want_port)
{
    struct addr a = { .len = sizeof(a.u) };
    if (r->fd < 0 || getsockname(r->fd, &a.u.sa, &a.len) != 0)
        return STR_NONE;
    struct ip ip = ip_of(&a.u.sa);
    return want_port ? number(r, ip.port) : address(r, &ip);
}

static struct str host(const struct request *r)
{
    if (r->host.n > 0 || r->site == NULL)
        return r->host;
    return r->site->n_names > 0 && !r->site->names[0].wildcard ? r->site->names[0].name : STR_NONE;
}

/* The socket's, whatever a PROXY header has said. */
static const struct ip *other_end(const struct request *r)
{
    return r->proxied ? &r->proxied->peer : &r->peer;
}

static struct str of_proxy_header(struct request *r, enum var_id var)
{
    if (r->proxied == NULL || !r->proxied->header.has_addresses)
        return STR_NONE;
    const struct proxy_header *h = &r->proxied->header;
    switch (var) {
    case VAR_PROXY_PROTOCOL_ADDR:
        return address(r, &h->from);
    case VAR_PROXY_PROTOCOL_PORT:
        return port(r, &h->from);
    case VAR_PROXY_PROTOCOL_SERVER_ADDR:
        return address(r, &h->to);
    default:
        return port(r, &h->to);
    }
}

static struct str of_request(struct request *r, const struct template_piece *v)
{
    if (r->head == NULL) /* its head never came */
        return STR_NONE;
    switch (v->var) {
    case VAR_ARG:
        return argument(r, v->text);
    case VAR_ARGS:
    case VAR_QUERY_STRING:
        return r->target.query;
    case VAR_CAPTURE:
        return v->text.n == 1 && is_digit(v->text.p[0]) ? r->captures[v->text.p[0] - '0'] : STR_NONE;
    case VAR_COOKIE:
        return cookie(r, v->text);
    case VAR_HOST:
        return host(r);
    case VAR_HTTP:
        return field_value(&r->head->fields, v->text);
    case VAR_IS_ARGS:
        return r->target.has_query && r->target.query.n > 0 ? STR("?") : STR_NONE;
    case VAR_REQUEST:
        return arena_printf(&r->arena, "%.*s %.*s HTTP/1.%u", STR_ARG(r->head->method_text), STR_ARG(r->head->target),
                            r->head->minor);
    case VAR_REQUEST_METHOD:
        return r->head->method_text;
    case VAR_REQUEST_URI:
        return r->request_uri;
    case VAR_SERVER_PROTOCOL:
        return r->head->minor == 0 ? STR("HTTP/1.0") : STR("HTTP/1.1");
    case VAR_URI:
        return r->target.path;
    case VAR_SCHEME:
        return r->secure ? STR("https") : STR("http");
    default:
        return STR_NONE;
    }
}

static struct str of_connection(struct request *r, const struct template_piece *v)
{
    switch (v->var) {
    case VAR_CONNECTION:
        return number(r, r->connection);
    case VAR_CONNECTION_REQUESTS:
        return number(r, r->nth);
    case VAR_PID:
        return number(r, (uint64_t)getpid());
    case VAR_PROXY_PROTOCOL_ADDR:
    case VAR_PROXY_PROTOCOL_PORT:
    case VAR_PROXY_PROTOCOL_SERVER_ADDR:
    case VAR_PROXY_PROTOCOL_SERVER_PORT:
        return of_proxy_header(r, v->var);
    case VAR_REALIP_REMOTE_ADDR:
        return address(r, other_end(r));
    case VAR_REALIP_REMOTE_PORT:
        return port(r, other_end(r));
    case VAR_REMOTE_USER:
        return r->verified != NULL ? r->user : STR_NONE;
    case VAR_REMOTE_ADDR:
        return address(r, &r->remote);
    case VAR_REQUEST_ID:
        return request_id(r);
    case VAR_REMOTE_PORT:
        return port(r, &r->remote);
    case VAR_SERVER_ADDR:
        return local_address(r, false);
    case VAR_SERVER_NAME:
        return r->site ? r->site->label : STR_NONE;
    case VAR_SERVER_PORT:
        return local_address(r, true);
    default:
        return of_request(r, v);
    }
}

struct str vars_value(struct request *r, const struct template_piece *v)
{
    switch (v->var) {
    case VAR_LITERAL:
        return v->text;
    case VAR_BODY_BYTES_SENT:
        return number(r, r->body_sent);
    case VAR_BYTES_SENT:
        return number(r, r->body_sent + r->head_bytes_sent);
    case VAR_REQUEST_LENGTH:
        return number(r, r->head_bytes + r->body_received);
    case VAR_REQUEST_TIME:
        return seconds_since(r, r->start_us);
    case VAR_SENT_HTTP:
        return answer_field(&r->resp, v->text);
    case VAR_STATUS:
        return number(r, r->resp.status);
    case VAR_TIME_ISO8601:
        return wall_time(r, "%Y-%m-%dT%H:%M:%S%z");
    case VAR_TIME_LOCAL:
        return wall_time(r, "%d/%b/%Y:%H:%M:%S %z");
    case VAR_UPSTREAM_ADDR:
        return r->upstream_addr;
    case VAR_UPSTREAM_CONNECT_TIME:
        return r->upstream_connect_time;
    case VAR_UPSTREAM_HEADER_TIME:
        return r->upstream_header_time;
    case VAR_UPSTREAM_QUEUE_TIME:
        return r->upstream_queue_time;
    case VAR_UPSTREAM_RESPONSE_TIME:
        return r->upstream_response_time;
    case VAR_UPSTREAM_STATUS:
        return r->upstream_status;
    default:
        return of_connection(r, v);
    }
}

/* Is it a part of the decoded path? */
static bool is_decoded(const struct template_piece *v)
{
    return v->var == VAR_URI || v->var == VAR_CAPTURE;
}

static struct str encode_controls(struct request *r, struct str s)
{
    static const char hex[] = "0123456789ABCDEF";
    if (is_field_value(s))
        return s;
    char *text = arena_alloc(&r->arena, 3 * s.n);
    size_t n = 0;
    if (text == NULL)
        return STR_NONE;
    for (size_t i = 0; i < s.n; i++) {
        if (is_field_value(str_of(s.p + i, 1))) {
            text[n++] = s.p[i];
            continue;
        }
        text[n++] = '%';
        text[n++] = hex[(unsigned char)s.p[i] >> 4];
        text[n++] = hex[(unsigned char)s.p[i] & 15];
    }
    return str_of(text, n);
}

/* What a value has to be fit for. */
enum use { AS_IT_IS, IN_URL, IN_QUERY, IN_FIELD };

/* The piece's value, encoded for its use. *ok becomes false when memory is out. */
static struct str value_for(struct request *r, const struct template_piece *v, enum use use, bool *ok)
{
    struct str value = vars_value(r, v);
    if (value.n == 0 || v->var == VAR_LITERAL)
        return value;
    if (use == IN_URL && is_decoded(v))
        value = path_encode(&r->arena, value);
    else if (use == IN_QUERY && is_decoded(v))
        value = query_encode(&r->arena, value);
    else if (use == IN_FIELD)
        value = encode_controls(r, value);
    *ok &= value.p != NULL;
    return value;
}

static struct str eval(struct request *r, const struct template *t, enum use use)
{
    if (t->n == 1 && t->pieces[0].var == VAR_LITERAL)
        return t->pieces[0].text;
    struct str *values = arena_array(&r->arena, struct str, t->n + 1);
    size_t n = 0;
    bool ok = values != NULL;
    for (unsigned i = 0; ok && i < t->n; i++) {
        values[i] = value_for(r, &t->pieces[i], use, &ok);
        n += values[i].n;
        if (use == IN_URL && str_chr(values[i], '?', 0) >= 0)
            use = IN_QUERY;
    }
    char *text = ok ? arena_alloc(&r->arena, n + 1) : NULL;
    if (text == NULL)
        return STR_NONE;
    size_t at = 0;
    for (unsigned i = 0; i < t->n; i++) {
        if (values[i].n > 0)
            memcpy(text + at, values[i].p, values[i].n);
        at += values[i].n;
    }
    text[at] = '\0';
    return str_of(text, at);
}

struct str vars_eval(struct request *r, const struct template *t)
{
    return eval(r, t, AS_IT_IS);
}

struct str vars_eval_url(struct request *r, const struct template *t)
{
    return eval(r, t, IN_URL);
}

struct str vars_eval_field(struct request *r, const struct template *t)
{
    return eval(r, t, IN_FIELD);
}
