/* SPDX-License-Identifier: MIT */
/*
 * What is read and written for sticky sessions. Keeps nothing.
 *
 * The cookie is a session cookie of the whole site (RFC 6265): out of scripts' reach (HttpOnly), not sent along by
 * other sites' requests (SameSite=Lax), and over https never without (Secure).
 *
 * An Engine.IO session begins with a request without sid; its answer's first packet is `0{"sid":"...`, after a length
 * in protocol 3 ("96:0{...", or binary digits and 0xff). A SockJS client makes up server and session itself, of
 * anything but dots and slashes; the transports are those of its protocol 0.3.
 */
#include "handler/sticky.h"

static bool has_name(struct str pair, struct str name)
{
    return pair.n > name.n && pair.p[name.n] == '=' && memcmp(pair.p, name.p, name.n) == 0;
}

/* The next piece before `by`. */
static struct str next_piece(struct str *rest, char by)
{
    ptrdiff_t end = str_chr(*rest, by, 0);
    struct str piece = end < 0 ? *rest : str_take(*rest, (size_t)end);
    *rest = end < 0 ? STR_NONE : str_skip(*rest, (size_t)end + 1);
    return piece;
}

unsigned sticky_cookies(const struct fields *fields, struct str name, struct str *out, unsigned max)
{
    unsigned n = 0;
    for (const struct field *f = fields_get(fields, F_COOKIE); f != NULL; f = fields_next(fields, f)) {
        struct str rest = f->value;
        while (rest.n > 0 && n < max) {
            struct str pair = str_trim(next_piece(&rest, ';'));
            if (has_name(pair, name))
                out[n++] = str_skip(pair, name.n + 1);
        }
    }
    return n;
}

struct str sticky_set_cookie(struct arena *a, struct str name, struct str value, bool secure)
{
    return arena_printf(a, "%.*s=%.*s; Path=/; HttpOnly; SameSite=Lax%s", STR_ARG(name), STR_ARG(value),
                        secure ? "; Secure" : "");
}

/* --- socket.io --- */

static struct str argument(struct str query, struct str name)
{
    while (query.n > 0) {
        struct str pair = next_piece(&query, '&');
        if (has_name(pair, name))
            return str_skip(pair, name.n + 1);
    }
    return STR_NONE;
}

struct str sticky_sid(struct str query)
{
    return argument(query, STR("EIO")).n > 0 ? argument(query, STR("sid")) : STR_NONE;
}

bool sticky_is_handshake(struct str query)
{
    return argument(query, STR("EIO")).n > 0 && argument(query, STR("sid")).n == 0 &&
        str_eq(argument(query, STR("transport")), STR("polling"));
}

enum sticky_found sticky_find_sid(struct str body, struct str *sid)
{
    static const struct str open = { "0{\"sid\":\"", 9 };
    enum { LENGTH_MAX = 12 };
    body = str_take(body, STICKY_BODY);
    for (size_t at = 0; at <= LENGTH_MAX; at++) {
        struct str rest = str_skip(body, at);
        if (!str_starts(rest, str_take(open, rest.n)))
            continue;
        ptrdiff_t end = str_chr(rest, '"', open.n);
        if (end < 0)
            return body.n < STICKY_BODY ? STICKY_MORE : STICKY_NONE;
        *sid = str_take(str_skip(rest, open.n), (size_t)end - open.n);
        return sid->n > 0 ? STICKY_FOUND : STICKY_NONE;
    }
    return STICKY_NONE;
}

/* --- SockJS --- */

/* Takes the last piece off. */
static struct str last_piece(struct str *path)
{
    size_t n = path->n;
    while (n > 0 && path->p[n - 1] != '/')
        n--;
    struct str piece = str_skip(*path, n);
    *path = str_take(*path, n > 0 ? n - 1 : 0);
    return piece;
}

struct str sticky_sockjs(struct str path)
{
    static const struct str transports[] = {
        { "xhr", 3 },         { "xhr_send", 8 }, { "xhr_streaming", 13 }, { "eventsource", 11 },
        { "htmlfile", 8 },    { "jsonp", 5 },    { "jsonp_send", 10 },
    };
    struct str transport = last_piece(&path), session = path;
    bool is_known = false;
    for (size_t i = 0; i < ARRAY_LEN(transports); i++)
        is_known |= str_eq(transport, transports[i]);
    if (!is_known)
        return STR_NONE;
    struct str id = last_piece(&path), server = last_piece(&path);
    bool has_dots = str_chr(id, '.', 0) >= 0 || str_chr(server, '.', 0) >= 0;
    return id.n > 0 && server.n > 0 && !has_dots ? session : STR_NONE;
}
