/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the HTTP/1 reader. The first byte of an input chooses requests or answers and how the rest is cut; the rest is
 * what a peer sends. Wanted: the same events however the bytes are cut, and that every head that is accepted holds up
 * against a second, slow reading by the letter of RFC 9112, so that no other reader can see another message in it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "http/h1_read.h"
#include "http/h1_write.h"
#include "http/target.h"

enum { ANSWERS = 1, TO_HEAD = 2, CUT_SHIFT = 2 };

static const struct h1_limits limits = { .head_size = 4096, .uri_size = 2048, .head_count = 24 };

/* Everything that was reported, in the order it came; pieces of a body are joined. */
struct journal {
    char *p;
    size_t n, cap;
};

static void note(struct journal *j, const void *p, size_t n)
{
    if (j->n + n > j->cap) {
        j->cap = 2 * (j->n + n) + 256;
        j->p = realloc(j->p, j->cap);
        CHECK(j->p != NULL);
    }
    if (n > 0)
        memcpy(j->p + j->n, p, n);
    j->n += n;
}

static void note_str(struct journal *j, char tag, struct str s)
{
    note(j, &tag, 1);
    note(j, &s.n, sizeof s.n);
    note(j, s.p, s.n);
}

static void note_fields(struct journal *j, const struct fields *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        note_str(j, 'n', f->v[i].name);
        note_str(j, 'v', f->v[i].value);
    }
}

static bool is_in(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_in(s.p[i], "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
            return false;
    return s.n > 0;
}

static bool is_text(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* Takes a line and its CRLF off the front. */
static struct str take_line(struct str *rest)
{
    ptrdiff_t lf = str_chr(*rest, '\n', 0);
    CHECK(lf > 0 && rest->p[lf - 1] == '\r');
    struct str line = str_take(*rest, (size_t)lf - 1);
    *rest = str_skip(*rest, (size_t)lf + 1);
    return line;
}

static void check_fields(struct str rest, const struct fields *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        struct str line = take_line(&rest);
        ptrdiff_t colon = str_chr(line, ':', 0);
        CHECK(colon > 0);
        struct str name = str_take(line, (size_t)colon), value = str_trim(str_skip(line, (size_t)colon + 1));
        CHECK(is_name(name) && is_text(value));
        CHECK(str_eq(name, f->v[i].name) && str_eq(value, f->v[i].value));
    }
    CHECK(take_line(&rest).n == 0 && rest.n == 0);
}

static unsigned count_named(const struct fields *f, const char *name)
{
    unsigned n = 0;
    for (unsigned i = 0; i < f->n; i++)
        n += str_eq_nocase(f->v[i].name, str_c(name));
    return n;
}

static void check_body_kind(const struct h1_read *h)
{
    const struct head *head = &h->head;
    unsigned lengths = count_named(&head->fields, "content-length");
    unsigned codings = count_named(&head->fields, "transfer-encoding");
    CHECK(lengths + codings <= 1 && (codings == 0 || head->minor == 1));
    const struct field *coding = fields_get(&head->fields, F_TRANSFER_ENCODING);
    CHECK(coding == NULL || str_eq_nocase(coding->value, STR("chunked")));
    CHECK(head->has_length == (lengths == 1) && head->length <= INT64_MAX);
    bool is_bare = h->kind == H1_RESPONSE
        ? h->request_method == METHOD_HEAD || head->status < 200 || head->status == 204 || head->status == 304
        : head->method == METHOD_CONNECT;
    if (is_bare)
        CHECK(head->body == BODY_NONE);
    else if (codings == 1)
        CHECK(head->body == BODY_CHUNKED);
    else if (lengths == 1)
        CHECK(head->body == BODY_LENGTH || (head->length == 0 && h->kind == H1_REQUEST && head->body == BODY_NONE));
    else
        CHECK(head->body == (h->kind == H1_RESPONSE ? BODY_UNTIL_CLOSE : BODY_NONE));
}

/* The second reading. bytes: all that was consumed for this head, empty lines before it included. */
static void check_head(const struct h1_read *h, struct str bytes)
{
    const struct head *head = &h->head;
    char start[8192];
    while (h->kind == H1_REQUEST && str_starts(bytes, STR("\r\n")))
        bytes = str_skip(bytes, 2);
    struct str line = take_line(&bytes);
    CHECK(line.n < sizeof start);
    if (h->kind == H1_REQUEST) {
        CHECK(is_name(head->method_text) && head->target.n > 0);
        for (size_t i = 0; i < head->target.n; i++)
            CHECK(head->target.p[i] > 0x20 && head->target.p[i] < 0x7f && head->target.p[i] != '#');
        CHECK(count_named(&head->fields, "host") == 1 || (head->minor == 0 && count_named(&head->fields, "host") == 0));
        int n = snprintf(start, sizeof start, "%.*s %.*s HTTP/1.", STR_ARG(head->method_text), STR_ARG(head->target));
        CHECK(str_eq(str_take(line, line.n - 1), str_of(start, (size_t)n)));
        CHECK(is_digit(line.p[line.n - 1]) && (line.p[line.n - 1] == '0') == (head->minor == 0));
    } else {
        CHECK(line.n >= 12 && head->status >= 100 && head->status <= 999 && is_text(head->reason));
        int n = snprintf(start, sizeof start, "HTTP/1.%c %u", line.p[7], head->status);
        CHECK(str_eq(str_take(line, 12), str_of(start, (size_t)n)) && str_eq(str_skip(line, 13), head->reason));
    }
    check_fields(bytes, &head->fields);
    check_body_kind(h);
}

/* What weir would write for this head reads as the same head. */
static void check_rewrite(const struct h1_read *h)
{
    struct arena a;
    struct h1_read again;
    size_t used;
    struct h1_limits wide = { .head_size = 65536, .head_count = 64 };
    if (h->kind != H1_REQUEST || h->head.minor == 0)
        return;
    arena_init(&a, NULL);
    struct str made = h1_write_request(&a, h->head.method_text, h->head.target, &h->head.fields);
    h1_read_init(&again, H1_REQUEST, &wide, &a);
    CHECK(h1_read_feed(&again, made.p, made.n, &used) == H1_HEAD && used == made.n);
    CHECK(again.head.fields.n == h->head.fields.n && again.head.body == h->head.body);
    CHECK(again.head.length == h->head.length && again.head.keep_alive == h->head.keep_alive);
    arena_reset(&a);
}

/* A chunked body by the letter, all of it at hand: the number of bytes it stands for. */
static uint64_t count_chunked(struct str s)
{
    uint64_t total = 0, size;
    do {
        struct str line = take_line(&s);
        size_t i = 0;
        for (size = 0; i < line.n && hex_value(line.p[i]) >= 0; i++)
            size = size * 16 + (uint64_t)hex_value(line.p[i]);
        CHECK(i > 0 && i <= 16 && is_text(line));
        CHECK(i == line.n || line.p[i] == ';' || line.p[i] == ' ' || line.p[i] == '\t');
        if (size > 0) {
            CHECK(size + 2 <= s.n && s.p[size] == '\r' && s.p[size + 1] == '\n');
            s = str_skip(s, (size_t)size + 2);
        }
        total += size;
    } while (size > 0);
    while (take_line(&s).n > 0)
        continue;
    CHECK(s.n == 0);
    return total;
}

struct run {
    struct h1_read h;
    struct journal journal;
    struct str in;
    bool is_whole;      /* check as well as note */
    size_t message;     /* where the bytes of this head, then of its body, start in `in` */
    uint64_t body;
};

static void on_event(struct run *r, enum h1_event event, size_t at)
{
    struct h1_read *h = &r->h;
    struct str bytes = str_of(r->in.p + r->message, at - r->message);
    char tag = (char)('0' + event);
    if (event != H1_BODY)
        note(&r->journal, &tag, 1);
    switch (event) {
    case H1_HEAD:
        note_str(&r->journal, 't', h->kind == H1_REQUEST ? h->head.target : h->head.reason);
        note_fields(&r->journal, &h->head.fields);
        if (r->is_whole) {
            check_head(h, bytes);
            check_rewrite(h);
        }
        r->message = at;
        r->body = 0;
        break;
    case H1_BODY:
        CHECK(h->body.n > 0);
        note(&r->journal, h->body.p, h->body.n);
        r->body += h->body.n;
        break;
    case H1_END:
        note_fields(&r->journal, &h->trailers);
        CHECK(h->head.body != BODY_LENGTH || r->body == h->head.length);
        if (r->is_whole && h->head.body == BODY_CHUNKED)
            CHECK(count_chunked(bytes) == r->body);
        h1_read_next(h);
        r->message = at;
        break;
    default:
        note(&r->journal, &h->bad, sizeof h->bad);
        break;
    }
}

/* Feeds all of it in pieces of up to `step` bytes; each piece lies in memory of its own. */
static void feed_all(struct run *r, size_t step)
{
    enum h1_event event = H1_MORE;
    for (size_t at = 0; at < r->in.n && event != H1_BAD;) {
        size_t n = r->in.n - at < step ? r->in.n - at : step, done = 0;
        char *piece = malloc(n);
        CHECK(piece != NULL);
        memcpy(piece, r->in.p + at, n);
        do {
            size_t used;
            event = h1_read_feed(&r->h, piece + done, n - done, &used);
            CHECK(used <= n - done && (event != H1_MORE || used == n - done));
            done += used;
            if (event != H1_MORE)
                on_event(r, event, at + done);
        } while (event != H1_MORE && event != H1_BAD);
        free(piece);
        at += n;
    }
    if (event != H1_BAD) {
        event = h1_read_eof(&r->h);
        char tag = (char)('0' + event);
        note(&r->journal, &tag, 1);
    }
}

static void run(struct run *r, unsigned flags, struct str in, size_t step)
{
    struct arena a;
    arena_init(&a, NULL);
    *r = (struct run){ .in = in, .is_whole = step >= in.n };
    h1_read_init(&r->h, flags & ANSWERS ? H1_RESPONSE : H1_REQUEST, &limits, &a);
    if (flags & TO_HEAD)
        h1_read_expect(&r->h, METHOD_HEAD);
    feed_all(r, step);
    arena_reset(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    unsigned flags = data[0];
    struct str in = str_of((const char *)data + 1, size - 1);
    struct run whole, cut;
    run(&whole, flags, in, in.n);
    run(&cut, flags, in, 1 + (flags >> CUT_SHIFT) % 61);
    CHECK(str_eq(str_of(whole.journal.p, whole.journal.n), str_of(cut.journal.p, cut.journal.n)));
    free(whole.journal.p);
    free(cut.journal.p);
    return 0;
}
