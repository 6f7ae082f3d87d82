/* SPDX-License-Identifier: MIT */
/*
 * Start lines, byte by byte (RFC 9112 §3 and §4).
 * They are read here and not by llhttp, because a proxy has to be stricter and more open than it at once: llhttp has a
 * fixed table of methods, takes HTTP/0.9 and a bare LF after the version, lets '#' and bytes above 0x7f into a target,
 * and refuses HTTP/1.2. What is taken: one SP between the parts, any token as the method, CRLF at the end.
 * A message of another protocol is refused at the first byte that no request can have, so that nobody has to wait for a
 * timeout: a TLS hello at byte 1, an HTTP/2 preface at the dot of its version, "GET /" CRLF at the CR.
 */
#include "http/h1_parser.h"

#include "http/chars.h"

enum {
    METHOD,
    TARGET,
    REQUEST_VERSION,
    STATUS_VERSION,
    MAJOR,
    DOT,
    MINOR,
    AFTER_VERSION, /* responses: the SP before the status */
    STATUS,
    AFTER_STATUS,
    REASON,
    CR,
    LF,
};

static const char version_word[5] = { 'H', 'T', 'T', 'P', '/' };

void h1_line_init(struct h1_line *l, enum h1_kind kind)
{
    *l = (struct h1_line){ .state = kind == H1_REQUEST ? METHOD : STATUS_VERSION };
}

static enum h1_bad feed_method(struct h1_line *l, const char *p, size_t n, size_t *at)
{
    size_t i = *at;
    while (i < n && char_is(p[i], CHAR_TOKEN))
        i++;
    uint32_t got = (uint32_t)(i - *at);
    uint32_t room = H1_METHOD_MAX - l->method.n;
    if (got > room) {
        *at += room;
        return H1_BAD_METHOD;
    }
    l->method.n += got;
    *at = i;
    if (i == n)
        return H1_BAD_NONE;
    if (p[i] != ' ' || l->method.n == 0)
        return H1_BAD_START_LINE;
    l->target.off = l->method.n + 1;
    l->state = TARGET;
    *at = i + 1;
    return H1_BAD_NONE;
}

static enum h1_bad feed_target(struct h1_line *l, const char *p, size_t n, size_t *at)
{
    size_t i = *at;
    while (i < n && char_is(p[i], CHAR_TARGET))
        i++;
    l->target.n += (uint32_t)(i - *at);
    *at = i;
    if (i == n)
        return H1_BAD_NONE;
    if (p[i] == '\r' || p[i] == '\n' || (p[i] == ' ' && l->target.n == 0))
        return H1_BAD_START_LINE;
    if (p[i] != ' ')
        return H1_BAD_TARGET;
    l->state = REQUEST_VERSION;
    *at = i + 1;
    return H1_BAD_NONE;
}

static enum h1_bad feed_reason(struct h1_line *l, const char *p, size_t n, size_t *at)
{
    size_t i = *at;
    while (i < n && char_is(p[i], CHAR_VALUE))
        i++;
    l->reason.n += (uint32_t)(i - *at);
    *at = i;
    if (i == n)
        return H1_BAD_NONE;
    if (p[i] != '\r')
        return H1_BAD_START_LINE;
    l->state = LF;
    *at = i + 1;
    return H1_BAD_NONE;
}

/* "HTTP/" DIGIT "." DIGIT, then CRLF or SP status. */
static enum h1_bad take_version(struct h1_line *l, char c, bool is_response)
{
    switch (l->state) {
    case MAJOR:
        if (!is_digit(c))
            return H1_BAD_START_LINE;
        l->major = (uint8_t)(c - '0');
        l->state = DOT;
        return H1_BAD_NONE;
    case DOT:
        if (c != '.')
            return H1_BAD_START_LINE;
        l->state = MINOR;
        return l->major == 1 ? H1_BAD_NONE : H1_BAD_VERSION;
    case MINOR:
        if (!is_digit(c))
            return H1_BAD_START_LINE;
        l->minor = c == '0' ? 0 : 1; /* RFC 9110 §2.5: a higher minor version is treated as the highest known */
        l->state = is_response ? AFTER_VERSION : CR;
        return H1_BAD_NONE;
    default:
        if (c != version_word[l->word])
            return H1_BAD_START_LINE;
        if (++l->word == sizeof version_word)
            l->state = MAJOR;
        return H1_BAD_NONE;
    }
}

static enum h1_bad take_status(struct h1_line *l, char c)
{
    switch (l->state) {
    case AFTER_VERSION:
        l->state = STATUS;
        return c == ' ' ? H1_BAD_NONE : H1_BAD_START_LINE;
    case STATUS:
        if (!is_digit(c) || (l->status == 0 && c == '0'))
            return H1_BAD_START_LINE;
        l->status = (uint16_t)(l->status * 10 + (c - '0'));
        if (l->status >= 100)
            l->state = AFTER_STATUS;
        return H1_BAD_NONE;
    default: /* AFTER_STATUS: the SP is missing with some servers when there is no reason */
        l->reason.off = l->n + 1;
        l->state = c == ' ' ? REASON : LF;
        return c == ' ' || c == '\r' ? H1_BAD_NONE : H1_BAD_START_LINE;
    }
}

static enum h1_bad take_one(struct h1_line *l, char c, bool *done)
{
    switch (l->state) {
    case CR:
        l->state = LF;
        return c == '\r' ? H1_BAD_NONE : H1_BAD_START_LINE;
    case LF:
        *done = true;
        return c == '\n' ? H1_BAD_NONE : H1_BAD_START_LINE;
    case AFTER_VERSION:
    case STATUS:
    case AFTER_STATUS:
        return take_status(l, c);
    default:
        return take_version(l, c, l->method.n == 0);
    }
}

enum h1_bad h1_line_feed(struct h1_line *l, const char *p, size_t n, size_t *at, bool *done)
{
    enum h1_bad bad = H1_BAD_NONE;
    while (*at < n && !*done && bad == H1_BAD_NONE) {
        size_t from = *at;
        if (l->state == METHOD)
            bad = feed_method(l, p, n, at);
        else if (l->state == TARGET)
            bad = feed_target(l, p, n, at);
        else if (l->state == REASON)
            bad = feed_reason(l, p, n, at);
        else
            bad = take_one(l, p[(*at)++], done);
        l->n += (uint32_t)(*at - from);
    }
    return bad;
}
