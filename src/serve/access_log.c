/* SPDX-License-Identifier: MIT */
/*
 * The access log line of a finished request, in one of three formats:
 *   combined  address - user [time] "request line" status body-bytes "referer" "user agent"
 *   json      one object, with the timers and the upstream tries
 *   own       a template of the configuration; each variable's value is escaped, an empty one is "-"
 * Bytes that could break a line are escaped: \xHH (base/log.h), in JSON \u00HH (RFC 8259 §7; a byte beyond ASCII that is no
 * UTF-8 becomes the character of that number). The time text is made once a second per loop. Cost matters here: this
 * runs for every request at full speed, so the combined format uses no printf.
 */
#include "serve/access_log.h"

#include <stdio.h>
#include <time.h>

#include "serve/vars.h"

enum {
    LINE_MAX_ = 48 * 1024,
    VALUE_MAX = 1024, /* of one variable */
};

struct line {
    char *p;
    size_t n, cap;
};

static void put(struct line *l, struct str s)
{
    size_t n = s.n < l->cap - l->n ? s.n : l->cap - l->n;
    memcpy(l->p + l->n, s.p, n);
    l->n += n;
}

static void put_escaped(struct line *l, struct str s)
{
    l->n += log_escape(l->p + l->n, l->cap - l->n, s);
}

static void put_u64(struct line *l, uint64_t v)
{
    char digits[20];
    size_t n = 0;
    do
        digits[sizeof(digits) - ++n] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    put(l, str_of(digits + sizeof(digits) - n, n));
}

static void put_field(struct line *l, const struct request *r, enum field_id id)
{
    const struct field *f = r->head ? fields_get(&r->head->fields, id) : NULL;
    put(l, STR("\""));
    if (f)
        put_escaped(l, str_take(f->value, 2048));
    else
        put(l, STR("-"));
    put(l, STR("\""));
}

static struct str local_time(struct worker *w)
{
    uint64_t second = w->loop->wall_ms / 1000;
    if (w->log_time_second != second || w->log_time_n == 0) {
        time_t t = (time_t)second;
        struct tm tm;
        localtime_r(&t, &tm);
        static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
        long zone = tm.tm_gmtoff / 60, size = zone < 0 ? -zone : zone;
        int n = snprintf(w->log_time, sizeof(w->log_time), "[%02d/%s/%04d:%02d:%02d:%02d %c%02ld%02ld]", tm.tm_mday,
                         months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec, zone < 0 ? '-' : '+',
                         size / 60, size % 60);
        w->log_time_n = n > 0 ? (size_t)n : 0;
        w->log_time_second = second;
    }
    return str_of(w->log_time, w->log_time_n);
}

static void put_request_line(struct line *l, const struct request *r)
{
    put(l, STR(" \""));
    if (r->head && r->head->method_text.n > 0) {
        put_escaped(l, r->head->method_text);
        put(l, STR(" "));
        put_escaped(l, str_take(r->head->target, 8192));
        put(l, r->head->minor == 0 ? STR(" HTTP/1.0") : STR(" HTTP/1.1"));
    } else {
        put(l, STR("-"));
    }
    put(l, STR("\" "));
}

static void put_combined(struct line *l, const struct request *r)
{
    char address[IP_TEXT];
    put(l, str_of(address, ip_print(&r->remote, address)));
    put(l, STR(" - "));
    if (LIKELY(r->verified == NULL))
        put(l, STR("-"));
    else
        put_escaped(l, str_take(r->user, 255));
    put(l, STR(" "));
    put(l, local_time(r->w));
    put_request_line(l, r);
    put_u64(l, r->resp.status);
    put(l, STR(" "));
    put_u64(l, r->body_sent);
    put(l, STR(" "));
    put_field(l, r, F_REFERER);
    put(l, STR(" "));
    put_field(l, r, F_USER_AGENT);
}

static void put_json_string(struct line *l, struct str s)
{
    put(l, STR("\""));
    l->n += log_escape_json(l->p + l->n, l->cap - l->n, s);
    put(l, STR("\""));
}

/* One variable of the JSON object. */
struct member {
    const char *name;
    struct template_piece var;
    bool is_number; /* printed without quotes; null if empty */
};

static const struct member members[] = {
    { "time", { .var = VAR_TIME_ISO8601 }, false },
    { "remote_addr", { .var = VAR_REMOTE_ADDR }, false },
    { "request_id", { .var = VAR_REQUEST_ID }, false },
    { "host", { .var = VAR_HOST }, false },
    { "method", { .var = VAR_REQUEST_METHOD }, false },
    { "uri", { .var = VAR_REQUEST_URI }, false },
    { "protocol", { .var = VAR_SERVER_PROTOCOL }, false },
    { "status", { .var = VAR_STATUS }, true },
    { "body_bytes_sent", { .var = VAR_BODY_BYTES_SENT }, true },
    { "bytes_sent", { .var = VAR_BYTES_SENT }, true },
    { "request_length", { .var = VAR_REQUEST_LENGTH }, true },
    { "request_time", { .var = VAR_REQUEST_TIME }, true },
    { "referer", { .var = VAR_HTTP, .text = { "referer", 7 } }, false },
    { "user_agent", { .var = VAR_HTTP, .text = { "user-agent", 10 } }, false },
    { "upstream_addr", { .var = VAR_UPSTREAM_ADDR }, false },
    { "upstream_status", { .var = VAR_UPSTREAM_STATUS }, false },
    { "upstream_queue_time", { .var = VAR_UPSTREAM_QUEUE_TIME }, false },
    { "upstream_connect_time", { .var = VAR_UPSTREAM_CONNECT_TIME }, false },
    { "upstream_header_time", { .var = VAR_UPSTREAM_HEADER_TIME }, false },
    { "upstream_response_time", { .var = VAR_UPSTREAM_RESPONSE_TIME }, false },
};

static void put_json(struct line *l, struct request *r)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct member *m = &members[i];
        struct str value = str_take(vars_value(r, &m->var), VALUE_MAX);
        put(l, i == 0 ? STR("{\"") : STR(",\""));
        put(l, str_c(m->name));
        put(l, STR("\":"));
        if (value.n == 0)
            put(l, STR("null"));
        else if (m->is_number)
            put(l, value);
        else
            put_json_string(l, value);
    }
    if (r->fail != FAIL_NONE) {
        put(l, STR(",\"failure\":"));
        put_json_string(l, str_c(fail_row(r->fail)->symbol));
    }
    put(l, STR("}"));
}

static void put_own(struct line *l, struct request *r, const struct template *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        struct str value = vars_value(r, &t->pieces[i]);
        if (t->pieces[i].var == VAR_LITERAL)
            put(l, value);
        else if (value.n == 0)
            put(l, STR("-"));
        else
            put_escaped(l, str_take(value, VALUE_MAX));
    }
}

void access_log_write(struct request *r)
{
    const struct access_log_conf *log = r->s->access_log;
    if (log == NULL || r->w->ring == NULL)
        return;
    char text[LINE_MAX_];
    struct line l = { .p = text, .cap = sizeof(text) - 1 };
    if (log->format == LOG_FORMAT_COMBINED)
        put_combined(&l, r);
    else if (log->format == LOG_FORMAT_JSON)
        put_json(&l, r);
    else
        put_own(&l, r, &log->own);
    l.cap++;
    put(&l, STR("\n"));
    log_ring_put(r->w->ring, (int)log->index, r->hold->snapshot->generation, str_of(text, l.n));
}
