/* SPDX-License-Identifier: MIT */
/*
 * The HTTP/1 reader: which machine the next bytes go to (RFC 9112 §2.2, §6, §7).
 *
 *     BLANK -> LINE -> FIELDS -> | NOTHING LENGTH UNTIL_CLOSE | -> DONE
 *                                | CHUNK DATA DATA_CR DATA_LF ... LAST TRAILER |
 *
 * Owns nothing but what it puts into the caller's arena: the parser (from the first byte of a message on), the bytes of
 * the head, the array of its fields. A head that comes in one piece is copied once, when it is complete; one that comes
 * in pieces is gathered in a block that doubles. Bodies are never copied.
 * Invariants: events are the same however the bytes are cut; every limit is checked before the byte that breaks it is
 * looked at; after H1_BAD the state is REFUSED for good. Chunk extensions may be as long as a head, plus a sixteenth of
 * the data they come with: signed uploads pass, a body of nothing but extensions does not.
 */
#include "http/h1_parser.h"

#include "base/check.h"

enum {
    BLANK,    /* before a message */
    BLANK_LF, /* after the CR of an empty line there */
    LINE,
    FIELDS,
    NOTHING, /* head delivered, no body: H1_END is due */
    LENGTH,
    UNTIL_CLOSE,
    CHUNK,
    DATA,
    DATA_CR,
    DATA_LF,
    LAST,    /* after the last chunk's line */
    LAST_LF, /* after the CR there */
    TRAILER,
    COMPLETE, /* body delivered: H1_END is due */
    DONE,
    REFUSED,
};

/* Places for the fields a proxy adds to a head it passes on. */
enum { SPARE_FIELDS = 8 };

void h1_read_init(struct h1_read *h, enum h1_kind kind, const struct h1_limits *limits, struct arena *arena)
{
    *h = (struct h1_read){ .kind = kind, .limits = limits, .arena = arena, .request_method = METHOD_GET };
}

void h1_read_expect(struct h1_read *h, enum method request_method)
{
    h->request_method = (uint8_t)request_method;
}

void h1_read_next(struct h1_read *h)
{
    enum method method = (enum method)h->request_method;
    h1_read_init(h, h->kind, h->limits, h->arena);
    h1_read_expect(h, method);
}

bool h1_read_has_begun(const struct h1_read *h)
{
    return h->state > BLANK_LF;
}

bool h1_read_in_body(const struct h1_read *h)
{
    return h->state > NOTHING && h->state < COMPLETE;
}

static enum h1_event refuse(struct h1_read *h, enum h1_bad why)
{
    h->bad = why;
    h->state = REFUSED;
    return H1_BAD;
}

/* Appends to the gathered bytes; is_all: nothing will follow. */
static bool gather(struct h1_text *t, struct arena *a, const char *p, size_t n, bool is_all)
{
    size_t want = t->n + n;
    if (want > t->cap) {
        size_t cap = is_all ? want : want < 512 ? 1024 : 2 * want;
        char *block = arena_alloc(a, cap);
        if (block == NULL)
            return false;
        if (t->n > 0)
            memcpy(block, t->p, t->n);
        t->p = block;
        t->cap = (uint32_t)cap;
    }
    if (n > 0)
        memcpy(t->p + t->n, p, n);
    t->n = (uint32_t)want;
    return true;
}

static struct str span_of(const struct h1_text *t, struct h1_span span)
{
    return str_of(t->p + span.off, span.n);
}

static enum h1_bad make_head(struct h1_read *h)
{
    const struct h1_parser *parser = h->parser;
    const struct h1_line *line = &parser->line;
    struct head *head = &h->head;
    head->minor = line->minor;
    if (!h1_section_fields(&parser->section, parser->text.p, h->arena, SPARE_FIELDS, &head->fields))
        return H1_BAD_NO_MEMORY;
    if (h->kind == H1_RESPONSE) {
        head->status = line->status;
        head->reason = span_of(&parser->text, line->reason);
        return h1_frame_response(head, (enum method)h->request_method);
    }
    head->method_text = span_of(&parser->text, line->method);
    head->method = method_of(head->method_text);
    head->target = span_of(&parser->text, line->target);
    return h1_frame_request(head);
}

static enum h1_event begin_body(struct h1_read *h)
{
    enum h1_bad bad = make_head(h);
    if (bad != H1_BAD_NONE)
        return refuse(h, bad);
    switch (h->head.body) {
    case BODY_LENGTH:
        h->left = h->head.length;
        h->state = h->left > 0 ? LENGTH : NOTHING;
        break;
    case BODY_CHUNKED:
        h->parser->chunk = (struct h1_chunk){ 0 };
        h->parser->body_bytes = 0;
        h->state = CHUNK;
        break;
    case BODY_UNTIL_CLOSE:
        h->state = UNTIL_CLOSE;
        break;
    default:
        h->state = NOTHING;
        break;
    }
    return H1_HEAD;
}

static bool begin_message(struct h1_read *h)
{
    h->parser = arena_alloc(h->arena, sizeof *h->parser);
    if (h->parser == NULL)
        return false;
    h->parser->text = (struct h1_text){ 0 };
    h1_line_init(&h->parser->line, h->kind);
    h->state = LINE;
    return true;
}

/* Why a head that goes on at its limit is refused. */
static enum h1_bad too_large(const struct h1_read *h)
{
    return h->state == LINE && h->kind == H1_REQUEST ? H1_BAD_URI_TOO_LONG : H1_BAD_HEAD_TOO_LARGE;
}

/* Reads up to n bytes of a head, the first of them a byte of it. */
static enum h1_bad read_head(struct h1_read *h, const char *p, size_t n, size_t *at, bool *complete)
{
    struct h1_parser *parser = h->parser;
    enum h1_bad bad = H1_BAD_NONE;
    if (h->state == LINE) {
        size_t end = n;
        bool done = false;
        if (h->kind == H1_REQUEST && h->limits->uri_size != 0) { /* CRLF does not count */
            uint64_t room = (uint64_t)h->limits->uri_size + 2 - parser->line.n;
            if (end > room)
                end = (size_t)room;
        }
        bad = h1_line_feed(&parser->line, p, end, at, &done);
        if (bad != H1_BAD_NONE)
            return bad;
        if (!done)
            return end < n ? H1_BAD_URI_TOO_LONG : H1_BAD_NONE;
        h1_section_init(&parser->section, h->arena, h->limits->head_count);
        h->state = FIELDS;
    }
    if (*at < n)
        bad = h1_section_feed(&parser->section, p, n, at, parser->text.n + (uint32_t)*at, complete);
    return bad;
}

static enum h1_event feed_head(struct h1_read *h, const char *p, size_t n, size_t *used)
{
    size_t room = (size_t)(h->limits->head_size - h->head_bytes);
    size_t cut = n < room ? n : room, at = 0;
    bool complete = false;
    enum h1_bad bad = read_head(h, p, cut, &at, &complete);
    if (bad == H1_BAD_NONE && !complete && cut < n)
        bad = too_large(h);
    if (bad == H1_BAD_NONE && !gather(&h->parser->text, h->arena, p, at, complete))
        bad = H1_BAD_NO_MEMORY;
    if (bad != H1_BAD_NONE)
        return refuse(h, bad);
    h->head_bytes += at;
    *used = at;
    return complete ? begin_body(h) : H1_MORE;
}

/* Empty lines before a request are skipped (RFC 9112 §2.2), counted against the head. */
static enum h1_event feed_blank(struct h1_read *h, const char *p, size_t n, size_t *used)
{
    size_t i = 0;
    for (; i < n; i++) {
        if (h->state == BLANK_LF && p[i] != '\n')
            return refuse(h, H1_BAD_START_LINE);
        if (h->state == BLANK && (p[i] != '\r' || h->kind == H1_RESPONSE)) {
            if (!begin_message(h))
                return refuse(h, H1_BAD_NO_MEMORY);
            break;
        }
        if (h->head_bytes == h->limits->head_size)
            return refuse(h, H1_BAD_HEAD_TOO_LARGE);
        h->head_bytes++;
        h->state = h->state == BLANK ? BLANK_LF : BLANK;
    }
    *used = i;
    return H1_MORE;
}

static enum h1_event give_body(struct h1_read *h, const char *p, size_t n, size_t *used)
{
    h->body = str_of(p, n);
    *used = n;
    return H1_BODY;
}

static enum h1_event feed_counted(struct h1_read *h, const char *p, size_t n, size_t *used)
{
    size_t take = h->left < n ? (size_t)h->left : n;
    h->left -= take;
    if (h->left == 0)
        h->state = h->state == LENGTH ? COMPLETE : DATA_CR;
    return give_body(h, p, take, used);
}

static enum h1_event feed_chunk_line(struct h1_read *h, const char *p, size_t n, size_t *used)
{
    struct h1_parser *parser = h->parser;
    struct h1_chunk *chunk = &parser->chunk;
    bool done = false;
    size_t end = n;
    /* The line is read at most up to the byte at which its extensions would be too many. */
    uint64_t room = h->limits->head_size + parser->body_bytes / 16 - chunk->extra + 1;
    if (end > room)
        end = (size_t)room;
    enum h1_bad bad = h1_chunk_feed(chunk, p, end, used, &done);
    if (bad == H1_BAD_NONE && chunk->extra > h->limits->head_size + parser->body_bytes / 16)
        bad = H1_BAD_CHUNK;
    if (bad != H1_BAD_NONE)
        return refuse(h, bad);
    if (!done)
        return H1_MORE;
    h->left = chunk->size;
    parser->body_bytes += chunk->size;
    h->state = chunk->size > 0 ? DATA : LAST;
    chunk->size = 0;
    return H1_MORE;
}

/* One byte that has to be this one. */
static enum h1_event feed_fixed(struct h1_read *h, char c, size_t *used)
{
    bool is_lf = h->state == DATA_LF || h->state == LAST_LF;
    if (c != (is_lf ? '\n' : '\r'))
        return refuse(h, h->state == LAST_LF ? H1_BAD_TRAILER : H1_BAD_CHUNK);
    *used = 1;
    h->state = h->state == DATA_CR ? DATA_LF : h->state == DATA_LF ? CHUNK : h->state == LAST ? LAST_LF : COMPLETE;
    return H1_MORE;
}

static enum h1_event feed_trailer(struct h1_read *h, const char *p, size_t n, size_t *used)
{
    struct h1_parser *parser = h->parser;
    size_t room = h->limits->head_size - parser->text.n;
    size_t cut = n < room ? n : room, at = 0;
    bool complete = false;
    enum h1_bad bad = h1_section_feed(&parser->section, p, cut, &at, parser->text.n, &complete);
    if (bad != H1_BAD_NONE || (!complete && cut < n))
        return refuse(h, bad == H1_BAD_NO_MEMORY ? bad : H1_BAD_TRAILER);
    if (!gather(&parser->text, h->arena, p, at, complete))
        return refuse(h, H1_BAD_NO_MEMORY);
    *used = at;
    if (!complete)
        return H1_MORE;
    if (!h1_section_fields(&parser->section, parser->text.p, h->arena, 0, &h->trailers))
        return refuse(h, H1_BAD_NO_MEMORY);
    h->state = COMPLETE;
    return H1_MORE;
}

/* After the last chunk: an empty line, or the first byte of a trailer section. */
static enum h1_event feed_last(struct h1_read *h, const char *p, size_t n, size_t *used)
{
    if (*p == '\r')
        return feed_fixed(h, *p, used);
    h->parser->text = (struct h1_text){ 0 };
    h1_section_init(&h->parser->section, h->arena, h->limits->head_count);
    h->state = TRAILER;
    return feed_trailer(h, p, n, used);
}

/* One machine's turn. H1_MORE here means only that this machine has had its turn. */
static enum h1_event feed_one(struct h1_read *h, const char *p, size_t n, size_t *used)
{
    switch (h->state) {
    case BLANK:
    case BLANK_LF:
        return feed_blank(h, p, n, used);
    case LINE:
    case FIELDS:
        return feed_head(h, p, n, used);
    case LENGTH:
    case DATA:
        return feed_counted(h, p, n, used);
    case UNTIL_CLOSE:
        return give_body(h, p, n, used);
    case CHUNK:
        return feed_chunk_line(h, p, n, used);
    case DATA_CR:
    case DATA_LF:
    case LAST_LF:
        return feed_fixed(h, *p, used);
    case LAST:
        return feed_last(h, p, n, used);
    default:
        return feed_trailer(h, p, n, used);
    }
}

enum h1_event h1_read_feed(struct h1_read *h, const char *p, size_t n, size_t *used)
{
    *used = 0;
    if (h->state == REFUSED)
        return H1_BAD;
    if (BUG_IF(h->state == DONE && n > 0))
        return refuse(h, H1_BAD_SYNTAX);
    for (;;) {
        if (h->state == NOTHING || h->state == COMPLETE) {
            h->state = DONE;
            return H1_END;
        }
        if (*used == n)
            return H1_MORE;
        size_t taken = 0;
        enum h1_event event = feed_one(h, p + *used, n - *used, &taken);
        *used += taken;
        if (event != H1_MORE)
            return event;
    }
}

enum h1_event h1_read_eof(struct h1_read *h)
{
    switch (h->state) {
    case BLANK:
    case BLANK_LF:
    case DONE:
        return H1_MORE;
    case NOTHING:
    case COMPLETE:
    case UNTIL_CLOSE:
        h->state = DONE;
        return H1_END;
    case REFUSED:
        return H1_BAD;
    default:
        return refuse(h, H1_BAD_TRUNCATED);
    }
}

#define X(symbol, status, text) [H1_BAD_##symbol] = { #symbol, text, status },
static const struct {
    const char *name, *text;
    uint16_t status;
} reasons[] = { [H1_BAD_NONE] = { "NONE", "no fault", 200 }, H1_BAD_REASONS(X) };
#undef X

uint16_t h1_bad_status(enum h1_bad bad)
{
    return reasons[bad].status;
}

const char *h1_bad_text(enum h1_bad bad)
{
    return reasons[bad].text;
}

const char *h1_bad_name(enum h1_bad bad)
{
    return reasons[bad].name;
}
