/* SPDX-License-Identifier: MIT */
/*
 * The access log line of a finished request, in the combined format:
 *   address - user [time] "request line" status body-bytes "referer" "user agent"
 * Bytes that could break the line are escaped (base/log.h). The time text is made once a second per loop. Cost matters here:
 * this runs for every request at full speed, so no printf.
 */
#include "serve/access_log.h"

#include <stdio.h>
#include <time.h>

enum { LINE_MAX_ = 16 * 1024 };

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

void access_log_write(struct request *r)
{
    const struct access_log_conf *log = r->s->access_log;
    if (log == NULL || r->w->ring == NULL)
        return;
    char text[LINE_MAX_], address[IP_TEXT];
    struct line l = { .p = text, .cap = sizeof(text) - 1 };
    put(&l, str_of(address, ip_print(&r->remote, address)));
    put(&l, STR(" - - "));
    put(&l, local_time(r->w));
    put_request_line(&l, r);
    put_u64(&l, r->resp.status);
    put(&l, STR(" "));
    put_u64(&l, r->body_sent);
    put(&l, STR(" "));
    put_field(&l, r, F_REFERER);
    put(&l, STR(" "));
    put_field(&l, r, F_USER_AGENT);
    l.cap++;
    put(&l, STR("\n"));
    log_ring_put(r->w->ring, (int)log->index, r->hold->snapshot->generation, str_of(text, l.n));
}
