/* SPDX-License-Identifier: MIT */
/*
 * The line that opens a chunk: size, extensions, CRLF (RFC 9112 §7.1, §7.1.1).
 *
 *     chunk-size *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ) CRLF
 *
 * Read here and not by llhttp, which refuses a quoted-pair in an extension. Extensions are checked and forgotten; they
 * are hop-by-hop. Their bytes are counted in `extra` for the caller to bound. A size has at most 16 digits, zeros
 * included, and stays within an int64_t, so that no arithmetic on it can overflow.
 */
#include "http/chars.h"
#include "http/h1_parser.h"

enum {
    SIZE,
    BEFORE_NAME, /* after ';' */
    NAME,
    AFTER_NAME,  /* blank seen after a name: '=' or ';' must come */
    BEFORE_VALUE,
    VALUE,
    QUOTED,
    ESCAPED,
    AFTER_VALUE, /* the closing quote: blank, ';' or CR */
    BLANK,       /* blank seen after a size or value: only ';' may follow */
    LF,
    REFUSED,
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Where a part of the line may end: the state after it, REFUSED if c ends nothing. */
static unsigned after_part(char c, unsigned on_blank)
{
    if (c == ';')
        return BEFORE_NAME;
    if (c == '\r')
        return LF;
    return is_blank(c) ? on_blank : REFUSED;
}

static unsigned take_size(struct h1_chunk *c, char byte)
{
    int digit = hex_value(byte);
    if (digit < 0)
        return c->digits > 0 ? after_part(byte, BLANK) : REFUSED;
    if (++c->digits > 16 || c->size > INT64_MAX >> 4)
        return REFUSED;
    c->size = c->size << 4 | (unsigned)digit;
    return SIZE;
}

static unsigned take(struct h1_chunk *c, char byte)
{
    switch (c->state) {
    case SIZE:
        return take_size(c, byte);
    case BEFORE_NAME:
        return is_blank(byte) ? BEFORE_NAME : char_is(byte, CHAR_TOKEN) ? NAME : REFUSED;
    case NAME:
        if (char_is(byte, CHAR_TOKEN))
            return NAME;
        return byte == '=' ? BEFORE_VALUE : after_part(byte, AFTER_NAME);
    case AFTER_NAME:
        return is_blank(byte) ? AFTER_NAME : byte == '=' ? BEFORE_VALUE : byte == ';' ? BEFORE_NAME : REFUSED;
    case BEFORE_VALUE:
        if (is_blank(byte))
            return BEFORE_VALUE;
        return byte == '"' ? QUOTED : char_is(byte, CHAR_TOKEN) ? VALUE : REFUSED;
    case VALUE:
        return char_is(byte, CHAR_TOKEN) ? VALUE : after_part(byte, BLANK);
    case QUOTED:
        if (char_is(byte, CHAR_QUOTED))
            return QUOTED;
        return byte == '"' ? AFTER_VALUE : byte == '\\' ? ESCAPED : REFUSED;
    case ESCAPED:
        return char_is(byte, CHAR_VALUE) ? QUOTED : REFUSED;
    case AFTER_VALUE:
        return after_part(byte, BLANK);
    case BLANK:
        return is_blank(byte) ? BLANK : byte == ';' ? BEFORE_NAME : REFUSED;
    default: /* LF */
        return byte == '\n' ? SIZE : REFUSED;
    }
}

enum h1_bad h1_chunk_feed(struct h1_chunk *c, const char *p, size_t n, size_t *at, bool *done)
{
    while (*at < n) {
        char byte = p[(*at)++];
        unsigned before = c->state, next = take(c, byte);
        if (next == REFUSED)
            return H1_BAD_CHUNK;
        c->state = (uint8_t)next;
        if (before == LF) {
            c->digits = 0;
            *done = true;
            return H1_BAD_NONE;
        }
        if (next != SIZE && next != LF)
            c->extra++;
    }
    return H1_BAD_NONE;
}
