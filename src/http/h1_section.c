/* SPDX-License-Identifier: MIT */
/*
 * Field sections: the fields of a head, and those after the last chunk (RFC 9112 §5, §7.1.2).
 * llhttp splits the lines and holds Content-Length and Transfer-Encoding against each other. It is started on a
 * constant start line (h1_line.c has read the real one), and stopped at the empty line: it never sees a body, so its
 * state cannot outlive a message.
 * Beside it runs a scan for line ends of our own. Even strict, llhttp takes obsolete folding (§5.2), an empty name,
 * and a bare LF as the empty line; and where a head ends is too important to have one opinion about: if the two
 * disagree, the message is malformed.
 * Of two faults the one at the earlier byte is reported, so that the answer does not depend on how the bytes came.
 */
#include "http/h1_parser.h"

#include "base/check.h"

static enum h1_bad grow(struct h1_section *s)
{
    struct h1_row *rows = arena_alloc(s->arena, 2 * (size_t)s->cap * sizeof *rows);
    if (rows == NULL)
        return H1_BAD_NO_MEMORY;
    memcpy(rows, s->rows, s->n * sizeof *rows);
    s->rows = rows;
    s->cap *= 2;
    return H1_BAD_NONE;
}

static int stop(struct h1_section *s, enum h1_bad why)
{
    s->bad = why;
    return -1;
}

static uint32_t offset_of(const struct h1_section *s, const char *at)
{
    return s->piece_off + (uint32_t)(at - s->piece);
}

/* A name or a value may come in several pieces; rows[n] is the line being read. */
static int on_name(llhttp_t *llhttp, const char *at, size_t n)
{
    struct h1_section *s = llhttp->data;
    struct h1_span *name = &s->rows[s->n].name;
    if (name->n == 0)
        name->off = offset_of(s, at);
    name->n += (uint32_t)n;
    return 0;
}

static int on_name_end(llhttp_t *llhttp)
{
    struct h1_section *s = llhttp->data;
    if (s->rows[s->n].name.n == 0)
        return stop(s, H1_BAD_FIELD);
    if (s->n == s->max)
        return stop(s, H1_BAD_TOO_MANY_FIELDS);
    s->rows[s->n].value = (struct h1_span){ 0 };
    return 0;
}

static int on_value(llhttp_t *llhttp, const char *at, size_t n)
{
    struct h1_section *s = llhttp->data;
    struct h1_span *value = &s->rows[s->n].value;
    if (value->n == 0)
        value->off = offset_of(s, at);
    value->n += (uint32_t)n;
    return 0;
}

static int on_value_end(llhttp_t *llhttp)
{
    struct h1_section *s = llhttp->data;
    struct h1_row *row = &s->rows[s->n];
    if (row->value.n == 0)
        row->value.off = row->name.off + row->name.n;
    if (++s->n == s->cap) {
        enum h1_bad bad = grow(s);
        if (bad != H1_BAD_NONE)
            return stop(s, bad);
    }
    s->rows[s->n].name = (struct h1_span){ 0 };
    return 0;
}

static int on_complete(llhttp_t *llhttp)
{
    struct h1_section *s = llhttp->data;
    s->complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_name,
    .on_header_field_complete = on_name_end,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_end,
    .on_headers_complete = on_complete,
};

void h1_section_init(struct h1_section *s, struct arena *a, uint32_t max_fields)
{
    static const char start[] = "GET / HTTP/1.1\r\n";
    s->arena = a;
    s->rows = s->first;
    s->n = 0;
    s->cap = ARRAY_LEN(s->first);
    s->max = max_fields;
    s->line = 0;
    s->cr = s->complete = false;
    s->bad = H1_BAD_NONE;
    s->first[0].name = (struct h1_span){ 0 };
    llhttp_init(&s->llhttp, HTTP_REQUEST, &settings);
    s->llhttp.data = s;
    if (llhttp_execute(&s->llhttp, start, sizeof start - 1) != HPE_OK)
        s->bad = H1_BAD_SYNTAX;
}

/* Where llhttp may read to: past the empty line (*done), or up to a fault (*bad), or to the end of the piece. */
static const char *scan_lines(struct h1_section *s, const char *p, const char *end, bool *done, enum h1_bad *bad)
{
    while (p < end) {
        if (s->line == 0 && (*p == ' ' || *p == '\t')) {
            *bad = H1_BAD_FIELD;
            return p;
        }
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        if (lf == NULL) {
            s->line += (uint32_t)(end - p);
            s->cr = end[-1] == '\r';
            return end;
        }
        bool has_cr = lf > p ? lf[-1] == '\r' : s->cr;
        if (!has_cr) {
            *bad = H1_BAD_FIELD;
            return lf;
        }
        bool is_empty = s->line + (size_t)(lf - p) == 1;
        s->line = 0;
        s->cr = false;
        p = lf + 1;
        if (is_empty) {
            *done = true;
            return p;
        }
    }
    return p;
}

static enum h1_bad why(const struct h1_section *s, llhttp_errno_t error)
{
    bool has_length = (s->llhttp.flags & LLHTTP_F_CONTENT_LENGTH) != 0;
    bool has_coding = (s->llhttp.flags & LLHTTP_F_TRANSFER_ENCODING) != 0;
    if (s->bad != H1_BAD_NONE)
        return s->bad;
    switch (error) {
    case HPE_INVALID_CONTENT_LENGTH:
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        return has_coding ? H1_BAD_FRAMING : H1_BAD_LENGTH;
    case HPE_INVALID_TRANSFER_ENCODING:
        return has_length ? H1_BAD_FRAMING : H1_BAD_CODING;
    default:
        return H1_BAD_FIELD;
    }
}

/* llhttp refuses a HTAB after a Content-Length, where RFC 9112 §5.1 has OWS. In a field one blank is as good as
 * another, and its value is taken from the bytes received: llhttp is shown SP for every HTAB. */
static llhttp_errno_t execute(struct h1_section *s, const char *p, size_t n, uint32_t off)
{
    static const char blank = ' ';
    llhttp_errno_t error = HPE_OK;
    do {
        const char *tab = memchr(p, '\t', n);
        size_t piece = tab != NULL ? (size_t)(tab - p) : n;
        s->piece = p;
        s->piece_off = off;
        error = llhttp_execute(&s->llhttp, p, piece);
        if (tab != NULL && error == HPE_OK) {
            s->piece = &blank;
            s->piece_off = off + (uint32_t)piece++;
            error = llhttp_execute(&s->llhttp, &blank, 1);
        }
        p += piece;
        off += (uint32_t)piece;
        n -= piece;
    } while (n > 0 && error == HPE_OK);
    return error;
}

enum h1_bad h1_section_feed(struct h1_section *s, const char *p, size_t n, size_t *at, uint32_t off, bool *done)
{
    enum h1_bad bad = s->bad;
    if (bad != H1_BAD_NONE)
        return bad;
    const char *from = p + *at;
    const char *to = scan_lines(s, from, p + n, done, &bad);
    *at += (size_t)(to - from);
    llhttp_errno_t error = execute(s, from, (size_t)(to - from), off);
    if (error != HPE_OK && !(error == HPE_PAUSED && s->complete))
        return why(s, error);
    if (bad == H1_BAD_NONE && s->complete != *done)
        bad = H1_BAD_SYNTAX;
    return bad;
}

bool h1_section_fields(const struct h1_section *s, const char *text, struct arena *a, unsigned spare,
                       struct fields *f)
{
    if (!fields_reserve(f, a, s->n + spare))
        return false;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct h1_row *row = &s->rows[i];
        struct str name = str_of(text + row->name.off, row->name.n);
        struct str value = str_trim(str_of(text + row->value.off, row->value.n));
        if (!fields_add(f, a, name, value, field_id_of(name)))
            return false;
    }
    return true;
}
