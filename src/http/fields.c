/* SPDX-License-Identifier: MIT */
/*
 * Header fields: the list of lines of one head, and the names weir knows.
 * The list owns nothing but its array, which lies in the caller's arena and doubles there; the bytes of names and
 * values belong to whoever added them. Order is kept by every operation, repeated names stay separate lines (RFC
 * 9110 §5.3: Set-Cookie cannot be joined).
 * Invariant: bit i of `have` is set exactly if a line with id i is in the list.
 * Lists inside values follow RFC 9110 §5.6.1, tokens and quoted strings §5.6.2 and §5.6.4.
 */
#include "http/fields.h"

#include "http/chars.h"

static const struct str names[F_COUNT] = {
#define X(id, name) [F_##id] = { name, sizeof(name) - 1 },
    FIELD_IDS(X)
#undef X
};

/* Equal but for case, for a canonical name of ours: letters, digits and '-'. Folding by |0x20 maps only controls onto
 * bytes it must not, and those count as different. No branch in the loop: it runs for every field of every head. */
static bool is_name(const char *p, struct str name)
{
    unsigned diff = 0;
    for (size_t i = 0; i < name.n; i++) {
        unsigned char a = (unsigned char)p[i], b = (unsigned char)name.p[i];
        diff |= ((a ^ b) & 0xdfu) | (a < 0x21);
    }
    return diff == 0;
}

#define IS(id) \
    if (((name.p[0] ^ names[F_##id].p[0]) & 0xdf) == 0 && is_name(name.p, names[F_##id])) \
        return F_##id;

enum field_id field_id_of(struct str name)
{
    switch (name.n) {
    case 2: IS(TE) break;
    case 3: IS(AGE) IS(VIA) break;
    case 4: IS(HOST) IS(DATE) IS(ETAG) IS(VARY) break;
    case 5: IS(RANGE) IS(ALLOW) IS(PROXY) break;
    case 6: IS(ACCEPT) IS(COOKIE) IS(SERVER) IS(EXPECT) break;
    case 7: IS(REFERER) IS(UPGRADE) IS(EXPIRES) IS(ALT_SVC) IS(TRAILER) IS(WARNING) break;
    case 8: IS(IF_MATCH) IS(IF_RANGE) IS(LOCATION) break;
    case 9: IS(FORWARDED) IS(X_REAL_IP) break;
    case 10: IS(CONNECTION) IS(USER_AGENT) IS(KEEP_ALIVE) IS(SET_COOKIE) IS(X_SENDFILE) break;
    case 11: IS(RETRY_AFTER) IS(TRACEPARENT) break;
    case 12: IS(CONTENT_TYPE) IS(MAX_FORWARDS) IS(X_REQUEST_ID) break;
    case 13:
        IS(CACHE_CONTROL) IS(IF_NONE_MATCH) IS(LAST_MODIFIED) IS(ACCEPT_RANGES) IS(CONTENT_RANGE) IS(AUTHORIZATION)
        break;
    case 14: IS(CONTENT_LENGTH) IS(HTTP2_SETTINGS) break;
    case 15: IS(ACCEPT_ENCODING) IS(X_FORWARDED_FOR) IS(X_ACCEL_CHARSET) IS(X_ACCEL_EXPIRES)
        IS(X_ACCEL_MAPPING) IS(X_SENDFILE_TYPE) break;
    case 16:
        IS(CONTENT_ENCODING) IS(WWW_AUTHENTICATE) IS(PROXY_CONNECTION)
        IS(X_FORWARDED_HOST) IS(X_FORWARDED_PORT) IS(X_ACCEL_REDIRECT)
        break;
    case 17:
        IS(IF_MODIFIED_SINCE) IS(TRANSFER_ENCODING) IS(SEC_WEBSOCKET_KEY)
        IS(X_FORWARDED_PROTO) IS(X_ACCEL_BUFFERING)
        break;
    case 18: IS(PROXY_AUTHENTICATE) IS(X_ACCEL_LIMIT_RATE) break;
    case 19: IS(CONTENT_DISPOSITION) IS(IF_UNMODIFIED_SINCE) IS(PROXY_AUTHORIZATION) break;
    case 20: IS(SEC_WEBSOCKET_ACCEPT) break;
    case 21: IS(SEC_WEBSOCKET_VERSION) break;
    case 22: IS(SEC_WEBSOCKET_PROTOCOL) break;
    case 24: IS(SEC_WEBSOCKET_EXTENSIONS) break;
    default: break;
    }
    return F_OTHER;
}

#undef IS

enum field_id field_id_of_cgi(struct str name)
{
    char text[32]; /* longer than every name of the table */
    if (name.n > sizeof text || str_chr(name, '_', 0) < 0)
        return field_id_of(name);
    for (size_t i = 0; i < name.n; i++)
        text[i] = (char)(name.p[i] == '_' ? '-' : name.p[i]);
    return field_id_of(str_of(text, name.n));
}

struct str field_name_of(enum field_id id)
{
    return names[id];
}

static bool has(const struct fields *f, enum field_id id)
{
    return (f->have[id / 64] >> (id % 64) & 1) != 0;
}

bool fields_reserve(struct fields *f, struct arena *a, unsigned cap)
{
    if (cap <= f->cap)
        return true;
    struct field *v = arena_alloc(a, (size_t)cap * sizeof *v);
    if (v == NULL)
        return false;
    if (f->n > 0)
        memcpy(v, f->v, f->n * sizeof *v);
    f->v = v;
    f->cap = cap;
    return true;
}

bool fields_add(struct fields *f, struct arena *a, struct str name, struct str value, enum field_id id)
{
    if (f->n == f->cap && !fields_reserve(f, a, f->cap == 0 ? 16 : f->cap * 2))
        return false;
    f->v[f->n++] = (struct field){ .name = name, .value = value, .id = id };
    f->have[id / 64] |= (uint64_t)1 << (id % 64);
    return true;
}

bool fields_add_id(struct fields *f, struct arena *a, enum field_id id, struct str value)
{
    return fields_add(f, a, names[id], value, id);
}

const struct field *fields_get(const struct fields *f, enum field_id id)
{
    if (!has(f, id))
        return NULL;
    for (unsigned i = 0; i < f->n; i++)
        if (f->v[i].id == id)
            return &f->v[i];
    return NULL;
}

static bool same_name(const struct field *it, enum field_id id, struct str name)
{
    return it->id == id && (id != F_OTHER || str_eq_nocase(it->name, name));
}

static const struct field *find_from(const struct fields *f, unsigned at, enum field_id id, struct str name)
{
    for (; at < f->n; at++)
        if (same_name(&f->v[at], id, name))
            return &f->v[at];
    return NULL;
}

const struct field *fields_find(const struct fields *f, struct str name)
{
    enum field_id id = field_id_of(name);
    return has(f, id) ? find_from(f, 0, id, name) : NULL;
}

const struct field *fields_next(const struct fields *f, const struct field *it)
{
    return find_from(f, (unsigned)(it - f->v) + 1, it->id, it->name);
}

unsigned fields_count(const struct fields *f, enum field_id id)
{
    unsigned count = 0;
    if (has(f, id))
        for (unsigned i = 0; i < f->n; i++)
            count += f->v[i].id == id;
    return count;
}

static void drop(struct fields *f, enum field_id id, struct str name)
{
    unsigned kept = 0;
    bool still = false;
    if (!has(f, id))
        return;
    for (unsigned i = 0; i < f->n; i++) {
        if (id == F_OTHER ? same_name(&f->v[i], id, name) : f->v[i].id == id)
            continue;
        still |= f->v[i].id == id;
        if (kept != i)
            f->v[kept] = f->v[i];
        kept++;
    }
    f->n = kept;
    if (!still)
        f->have[id / 64] &= ~((uint64_t)1 << (id % 64));
}

void fields_remove(struct fields *f, enum field_id id)
{
    if (id != F_OTHER)
        drop(f, id, STR_NONE);
}

void fields_remove_name(struct fields *f, struct str name)
{
    drop(f, field_id_of(name), name);
}

bool is_cgi_name(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        bool is_dash = a.p[i] == '-' || a.p[i] == '_', is_other = b.p[i] == '-' || b.p[i] == '_';
        if (is_dash != is_other || (!is_dash && ascii_lower(a.p[i]) != ascii_lower(b.p[i])))
            return false;
    }
    return true;
}

void fields_remove_cgi_name(struct fields *f, struct str name)
{
    for (unsigned i = 0; i < f->n;) {
        struct str it = f->v[i].name;
        if (!is_cgi_name(it, name)) {
            i++;
            continue;
        }
        fields_remove_name(f, it);
    }
}

bool list_next(struct str value, size_t *at, struct str *member)
{
    while (*at < value.n) {
        size_t start = *at, i = start;
        bool quoted = false;
        for (; i < value.n && (quoted || value.p[i] != ','); i++) {
            if (value.p[i] == '"')
                quoted = !quoted;
            else if (quoted && value.p[i] == '\\' && i + 1 < value.n)
                i++;
        }
        *at = i + 1;
        *member = str_trim(str_of(value.p + start, i - start));
        if (member->n > 0)
            return true;
    }
    return false;
}

bool fields_have_token(const struct fields *f, enum field_id id, struct str token)
{
    for (const struct field *it = fields_get(f, id); it != NULL; it = fields_next(f, it)) {
        struct str member;
        for (size_t at = 0; list_next(it->value, &at, &member);) {
            ptrdiff_t semi = str_chr(member, ';', 0);
            if (semi >= 0)
                member = str_trim(str_take(member, (size_t)semi));
            if (str_eq_nocase(member, token))
                return true;
        }
    }
    return false;
}

bool is_token(struct str s)
{
    return s.n > 0 && chars_are(s, CHAR_TOKEN);
}

bool is_field_value(struct str s)
{
    return chars_are(s, CHAR_VALUE);
}
