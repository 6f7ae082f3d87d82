/* SPDX-License-Identifier: MIT */
/*
 * The field rules of the proxy: what belongs to one connection stays there, what tells the server who asks is weir's
 * to say, everything else passes untouched.
 *
 * - RFC 9110 §7.6.1: Connection, every field it names, and the connection's own fields by name. Not removable by
 *   being named: what weir writes itself (Host, framing, X-Forwarded-*, Via). Those are added after the stripping, so
 *   that no client can make them disappear on the way.
 * - §7.6.2 Max-Forwards, §7.6.3 Via, §7.8 Upgrade: the only upgrade that passes is a genuine WebSocket handshake; h2c
 *   is ignored.
 * - X-Forwarded-* and friends of a peer that is not trusted are removed, whatever their suffix.
 * - What weir writes or removes it also removes in the spelling with '_', which many applications cannot tell from it.
 * Nothing here owns memory: results live in the caller's arena.
 */
#include "handler/proxy_fields.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

enum {
    NAMED_MAX = 64,  /* fields that Connection may name */
    OWN_FIELDS = 12, /* at most added to what passes */
};

/* The fields named by Connection, other than the options everybody uses. */
struct named {
    struct str v[NAMED_MAX];
    unsigned n;
};

static bool is_common_option(struct str option)
{
    return str_eq_nocase(option, STR("keep-alive")) || str_eq_nocase(option, STR("close")) ||
        str_eq_nocase(option, STR("upgrade")) || str_eq_nocase(option, STR("te"));
}

static bool find_named(const struct fields *f, struct named *out)
{
    out->n = 0;
    for (const struct field *it = fields_get(f, F_CONNECTION); it != NULL; it = fields_next(f, it)) {
        struct str option;
        for (size_t at = 0; list_next(it->value, &at, &option);) {
            if (is_common_option(option))
                continue;
            if (out->n == NAMED_MAX)
                return false;
            out->v[out->n++] = option;
        }
    }
    return true;
}

static bool is_named(const struct named *named, struct str name)
{
    for (unsigned i = 0; i < named->n; i++)
        if (str_eq_nocase(named->v[i], name))
            return true;
    return false;
}

/* Adds to a list that has room. */
static void put(struct fields *out, struct arena *a, enum field_id id, struct str value)
{
    bool has_room = fields_add_id(out, a, id, value);
    CHECK(has_room);
}

static void pass(struct fields *out, struct arena *a, const struct field *f)
{
    bool has_room = fields_add(out, a, f->name, f->value, f->id);
    CHECK(has_room);
}

/* --- the request --- */

/* The name that an application sees in this field: in CGI and its heirs it is X-Real-IP that is called X_Real_IP. */
static enum field_id seen_as(const struct field *f)
{
    return f->id == F_OTHER && str_chr(f->name, '_', 0) >= 0 ? field_id_of_cgi(f->name) : f->id;
}

/* Is it said by a front end: about the client before it, or about the files that it can send for an app (Rack)? */
static bool is_forwarding(enum field_id id, struct str name)
{
    switch (id) {
    case F_FORWARDED:
    case F_X_ACCEL_MAPPING:
    case F_X_FORWARDED_FOR:
    case F_X_FORWARDED_HOST:
    case F_X_FORWARDED_PORT:
    case F_X_FORWARDED_PROTO:
    case F_X_REAL_IP:
    case F_X_REQUEST_ID:
    case F_X_SENDFILE_TYPE:
        return true;
    case F_OTHER:
        return name.n > 12 && is_cgi_name(str_take(name, 12), STR("x-forwarded-"));
    default:
        return false;
    }
}

/* Of this connection alone, or written anew; Proxy is no field, but a CGI program takes it for the variable HTTP_PROXY
 * (CVE-2016-5385). */
static bool is_request_own(enum field_id id)
{
    switch (id) {
    case F_CONNECTION:
    case F_CONTENT_LENGTH:
    case F_EXPECT:
    case F_HOST:
    case F_HTTP2_SETTINGS:
    case F_KEEP_ALIVE:
    case F_PROXY:
    case F_PROXY_AUTHENTICATE:
    case F_PROXY_AUTHORIZATION:
    case F_PROXY_CONNECTION:
    case F_TE:
    case F_TRAILER:
    case F_TRANSFER_ENCODING:
    case F_UPGRADE:
    case F_X_FORWARDED_FOR: /* a trusted peer's is continued */
    case F_X_REQUEST_ID:
        return true;
    default:
        return false;
    }
}

/* The address as text, in the arena; empty for a peer on a unix socket. */
static bool print_ip(struct arena *a, const struct ip *ip, struct str *out)
{
    char text[IP_TEXT];
    *out = STR_NONE;
    if (ip->family == 0)
        return true;
    *out = arena_dup(a, str_of(text, ip_print(ip, text)));
    return out->p != NULL;
}

static char *append(char *at, struct str s)
{
    if (s.n > 0)
        memcpy(at, s.p, s.n);
    return at + s.n;
}

/* The members of a list as one value: every line of that field, then two more; empty ones are left out. */
static struct str join(struct arena *a, const struct fields *f, enum field_id id, const struct str more[2])
{
    size_t n = more[0].n + more[1].n + 4;
    for (const struct field *it = fields_get(f, id); it != NULL; it = fields_next(f, it))
        n += it->value.n + 2;
    char *start = arena_alloc(a, n), *at = start;
    if (start == NULL)
        return STR_NONE;
    for (const struct field *it = fields_get(f, id); it != NULL; it = fields_next(f, it))
        if (it->value.n > 0)
            at = append(append(at, it->value), STR(", "));
    for (unsigned i = 0; i < 2; i++)
        if (more[i].n > 0)
            at = append(append(at, more[i]), STR(", "));
    return str_of(start, at > start ? (size_t)(at - start) - 2 : 0);
}

/* X-Forwarded-For of a trusted peer goes on with the peer; one that only names its client in Forwarded is understood. */
static struct str forwarded_for(struct arena *a, const struct proxy_facts *facts, const struct named *named, struct str client,
                                struct str peer)
{
    static const struct fields nothing;
    const struct fields *in = &facts->head->fields;
    bool is_kept = facts->peer_trusted && !is_named(named, field_name_of(F_X_FORWARDED_FOR));
    if (!is_kept || (fields_get(in, F_X_FORWARDED_FOR) == NULL && str_eq(client, peer)))
        return peer;
    bool has_list = fields_get(in, F_X_FORWARDED_FOR) != NULL;
    return join(a, has_list ? in : &nothing, F_X_FORWARDED_FOR, (struct str[2]){ has_list ? STR_NONE : client, peer });
}

/* Who asks: replaced for a stranger, continued for a trusted peer. A peer on a unix socket has no address to tell. */
static bool put_forwarding(struct arena *a, const struct proxy_facts *facts, const struct named *named, struct str host,
                           struct fields *out)
{
    bool is_kept = facts->peer_trusted;
    struct str peer, client;
    if (!print_ip(a, &facts->peer, &peer))
        return false;
    client = peer;
    if (is_kept && !print_ip(a, &facts->client, &client))
        return false;
    struct str list = forwarded_for(a, facts, named, client, peer);
    if (list.p == NULL && peer.n > 0)
        return false;
    if (list.n > 0)
        put(out, a, F_X_FORWARDED_FOR, list);
    if (client.n > 0 && (!is_kept || fields_get(out, F_X_REAL_IP) == NULL))
        put(out, a, F_X_REAL_IP, client);
    if (!is_kept || fields_get(out, F_X_FORWARDED_PROTO) == NULL)
        put(out, a, F_X_FORWARDED_PROTO, facts->secure ? STR("https") : STR("http"));
    if (!is_kept || fields_get(out, F_X_FORWARDED_HOST) == NULL)
        put(out, a, F_X_FORWARDED_HOST, host);
    if (facts->request_id.n > 0)
        put(out, a, F_X_REQUEST_ID, facts->request_id);
    return true;
}

static bool put_framing(struct arena *a, const struct head *h, struct fields *out)
{
    if (h->body == BODY_CHUNKED) {
        put(out, a, F_TRANSFER_ENCODING, STR("chunked"));
    } else if (h->has_length) {
        struct str length = arena_printf(a, "%llu", (unsigned long long)h->length);
        if (length.p == NULL)
            return false;
        put(out, a, F_CONTENT_LENGTH, length);
    }
    return true;
}

/* Max-Forwards less one, for the two methods that have it; what is no number passes. */
static bool put_max_forwards(struct arena *a, const struct head *h, const struct field *f, struct fields *out)
{
    uint64_t left;
    bool counts = h->method == METHOD_OPTIONS || h->method == METHOD_TRACE;
    if (!counts || !str_to_u64(f->value, &left) || left == 0) {
        pass(out, a, f);
        return true;
    }
    struct str text = arena_printf(a, "%llu", (unsigned long long)left - 1);
    if (text.p == NULL)
        return false;
    put(out, a, F_MAX_FORWARDS, text);
    return true;
}

static struct str choose_host(const struct proxy_facts *facts)
{
    const struct field *host = fields_get(&facts->head->fields, F_HOST);
    if (facts->authority.n > 0)
        return facts->authority;
    return host != NULL && host->value.n > 0 ? host->value : facts->default_host;
}

enum proxy_fields_result proxy_request_fields(struct arena *a, const struct proxy_facts *facts, struct fields *out)
{
    const struct head *h = facts->head;
    const struct fields *in = &h->fields;
    struct str host = choose_host(facts);
    struct named named;
    *out = (struct fields){ 0 };
    if (!find_named(in, &named))
        return PROXY_FIELDS_TOO_MANY;
    if (!fields_reserve(out, a, in->n + OWN_FIELDS))
        return PROXY_FIELDS_NO_MEMORY;
    put(out, a, F_HOST, host);
    for (unsigned i = 0; i < in->n; i++) {
        const struct field *f = &in->v[i];
        enum field_id id = seen_as(f);
        if (is_request_own(id))
            continue;
        if ((!facts->peer_trusted || id != f->id || f->value.n == 0) && is_forwarding(id, f->name))
            continue;
        if (facts->is_verified && id == F_AUTHORIZATION)
            continue;
        if (named.n > 0 && f->id != F_VIA && is_named(&named, f->name))
            continue;
        if (f->id != F_MAX_FORWARDS)
            pass(out, a, f);
        else if (!put_max_forwards(a, h, f, out))
            return PROXY_FIELDS_NO_MEMORY;
    }
    if (!put_forwarding(a, facts, &named, host, out) || !put_framing(a, h, out))
        return PROXY_FIELDS_NO_MEMORY;
    if (facts->via)
        put(out, a, F_VIA, h->minor == 0 ? STR("1.0 weir") : STR("1.1 weir"));
    if (facts->websocket) {
        put(out, a, F_CONNECTION, STR("Upgrade"));
        put(out, a, F_UPGRADE, STR("websocket"));
    } else if (facts->close) {
        put(out, a, F_CONNECTION, STR("close"));
    }
    return PROXY_FIELDS_OK;
}

/* --- the answer --- */

static bool is_answer_own(enum field_id id)
{
    switch (id) {
    case F_CONNECTION:
    case F_CONTENT_LENGTH:
    case F_KEEP_ALIVE:
    case F_PROXY_AUTHENTICATE:
    case F_PROXY_CONNECTION:
    case F_TE:
    case F_TRANSFER_ENCODING:
    case F_UPGRADE:
    case F_X_ACCEL_CHARSET: /* said to the front end. X-Accel-Buffering passes: weir holds nothing back, another may */
    case F_X_ACCEL_EXPIRES:
    case F_X_ACCEL_LIMIT_RATE:
    case F_X_ACCEL_REDIRECT:
    case F_X_SENDFILE:
        return true;
    default:
        return false;
    }
}

static void read_keep_alive(struct str value, struct proxy_answer *out)
{
    struct str member, name = STR("timeout=");
    for (size_t at = 0; list_next(value, &at, &member);) {
        uint64_t seconds;
        if (member.n <= name.n || !str_eq_nocase(str_take(member, name.n), name))
            continue;
        if (str_to_u64(str_trim(str_skip(member, name.n)), &seconds)) {
            out->has_keep_alive = true;
            out->keep_alive_s = seconds;
        }
    }
}

enum proxy_fields_result proxy_answer_fields(struct arena *a, const struct head *h, bool keep_trailer,
                                             struct proxy_answer *out)
{
    const struct fields *in = &h->fields;
    struct named named;
    *out = (struct proxy_answer){ 0 };
    if (!find_named(in, &named))
        return PROXY_FIELDS_TOO_MANY;
    if (!fields_reserve(&out->fields, a, in->n + 4)) /* room for what the location adds */
        return PROXY_FIELDS_NO_MEMORY;
    for (unsigned i = 0; i < in->n; i++) {
        const struct field *f = &in->v[i];
        if (f->id == F_KEEP_ALIVE)
            read_keep_alive(f->value, out);
        if (is_answer_own(f->id) || (f->id == F_TRAILER && !keep_trailer))
            continue;
        if (named.n > 0 && is_named(&named, f->name))
            continue;
        if (f->id == F_CONTENT_TYPE)
            out->is_event_stream = str_eq_nocase(str_take(f->value, 17), STR("text/event-stream"));
        pass(&out->fields, a, f);
    }
    return PROXY_FIELDS_OK;
}

/* Fields that frame, route, authenticate or describe the content must not come late; of the names weir knows only
 * validators may. Names it does not know carry no meaning for it, nor, as trailers, for a client that did not ask
 * for them. */
static bool may_trail(const struct field *f)
{
    enum field_id id = seen_as(f);
    return (id == F_OTHER && !is_forwarding(id, f->name)) || f->id == F_ETAG || f->id == F_WARNING;
}

enum proxy_fields_result proxy_trailer_fields(struct arena *a, const struct fields *trailers, struct fields *out)
{
    *out = (struct fields){ 0 };
    if (trailers->n > 0 && !fields_reserve(out, a, trailers->n))
        return PROXY_FIELDS_NO_MEMORY;
    for (unsigned i = 0; i < trailers->n; i++)
        if (may_trail(&trailers->v[i]))
            pass(out, a, &trailers->v[i]);
    return PROXY_FIELDS_OK;
}

bool proxy_is_accepted(const struct head *request, const struct head *answer)
{
    static const struct str suffix = { "258EAFA5-E914-47DA-95CA-C5AB0DC85B11", 36 };
    enum { KEY = 24 }; /* 16 bytes in base64 */
    const struct field *key = fields_get(&request->fields, F_SEC_WEBSOCKET_KEY);
    const struct field *accept = fields_get(&answer->fields, F_SEC_WEBSOCKET_ACCEPT);
    if (answer->status != 101 || key == NULL || accept == NULL || fields_next(&answer->fields, accept) != NULL)
        return false;
    if (!answer->wants_upgrade || !fields_have_token(&answer->fields, F_UPGRADE, STR("websocket")))
        return false;
    if (key->value.n != KEY)
        return false;
    unsigned char text[KEY + 36], digest[SHA_DIGEST_LENGTH], right[32];
    memcpy(text, key->value.p, KEY);
    memcpy(text + KEY, suffix.p, suffix.n);
    if (SHA1(text, sizeof text, digest) == NULL)
        return false;
    int n = EVP_EncodeBlock(right, digest, sizeof digest);
    return str_eq(accept->value, str_of((const char *)right, (size_t)n));
}
