/* SPDX-License-Identifier: MIT */
/*
 * program.json read as Meteor's own server reads it. An entry with "where": "client" and a url is a file under that
 * url's path, decoded; the query (?hash=...) does not count; where a url comes twice the last one holds. Its source map
 * is a file of its own. js, css and json have the types Meteor gives them, everything else goes by its name; cacheable
 * means a year, else every use is asked for again; the hash is the ETag, and there is no Last-Modified, since a bundle
 * is unpacked at different times on different hosts.
 *
 * Lookup. "/__NAME/..." asks for the program web.NAME, then for the others; without such a prefix the app chooses
 * between web.browser and web.browser.legacy by what its packages take for a modern browser. Bundled files are named
 * by their content, so nearly always both choices lead to the same file; where they do not, the answer is
 * METEOR_DEPENDS. The paths that the app makes up itself are never files of the bundle.
 *
 * The text is somebody's: whatever it holds, the result is well-formed. A path that could not lie beneath the program's
 * folder is left out here, and the kernel has the last word when it is opened.
 */
#include "handler/meteor_manifest.h"

#include <jansson.h>
#include <stdlib.h>

#include "handler/file_path.h"
#include "http/mime.h"

enum { VALUE_MAX = 2048 };

struct meteor_manifest *meteor_manifest_new(void)
{
    struct meteor_manifest *m = calloc(1, sizeof *m);
    if (m != NULL)
        arena_init(&m->arena, NULL);
    return m;
}

void meteor_manifest_free(struct meteor_manifest *m)
{
    if (m == NULL)
        return;
    for (unsigned i = 0; i < m->n_programs; i++)
        map_free(&m->programs[i].by_url);
    arena_reset(&m->arena);
    free(m);
}

/* ---- values ---- */

static struct str text_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_string(v) ? str_of(json_string_value(v), json_string_length(v)) : STR_NONE;
}

/* What JavaScript takes for true. */
static bool is_truthy(const json_t *v)
{
    if (json_is_string(v))
        return json_string_length(v) > 0;
    if (json_is_number(v))
        return json_number_value(v) < 0 || json_number_value(v) > 0;
    return v != NULL && !json_is_false(v) && !json_is_null(v);
}

/* The decoded path of a url; p is NULL if it is none that a request could have. */
static struct str url_path(struct arena *a, struct str url)
{
    size_t n = 0, at = 0;
    while (n < url.n && url.p[n] != '?' && url.p[n] != '#')
        n++;
    char *out = n > 0 && url.p[0] == '/' ? arena_alloc(a, n + 1) : NULL;
    if (out == NULL)
        return STR_NONE;
    for (size_t i = 0; i < n; i++) {
        char c = url.p[i];
        if (c == '%') {
            int high = i + 2 < n ? hex_value(url.p[i + 1]) : -1, low = i + 2 < n ? hex_value(url.p[i + 2]) : -1;
            if (high < 0 || low < 0 || (high | low) == 0)
                return STR_NONE;
            c = (char)(high << 4 | low);
            i += 2;
        }
        out[at++] = c;
    }
    return str_of(out, at);
}

/* May this be the path of a file below the program's folder? */
static bool is_below(struct str path)
{
    if (path.n == 0)
        return false;
    for (size_t at = 0; at <= path.n;) {
        ptrdiff_t slash = str_chr(path, '/', at);
        size_t end = slash < 0 ? path.n : (size_t)slash;
        struct str name = str_of(path.p + at, end - at);
        if (name.n == 0 || str_eq(name, STR(".")) || str_eq(name, STR("..")))
            return false;
        at = end + 1;
    }
    return true;
}

/* Fit for a header line: a text of printable ASCII, not longer than anybody needs. */
static bool is_line_value(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x21 || s.p[i] > 0x7e)
            return false;
    return s.n > 0 && s.n <= VALUE_MAX;
}

static bool read_sha1(struct str hash, unsigned char out[20])
{
    if (hash.n != 40)
        return false;
    for (size_t i = 0; i < 20; i++) {
        int high = hex_value(hash.p[2 * i]), low = hex_value(hash.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static struct str type_of(struct str kind, struct str path)
{
    if (str_eq(kind, STR("js")) || str_eq(kind, STR("dynamic js")))
        return STR("application/javascript; charset=UTF-8");
    if (str_eq(kind, STR("css")))
        return STR("text/css; charset=UTF-8");
    if (str_eq(kind, STR("json")))
        return STR("application/json; charset=UTF-8");
    return mime_of(file_path_name(path));
}

/* ---- entries ---- */

/* The head lines after Content-Type; empty when memory is out. */
static struct str print_lines(struct arena *a, const struct meteor_entry *e)
{
    struct str map = e->source_map;
    struct str tag = e->etag.n > 0 ? arena_printf(a, "ETag: %.*s\r\n", STR_ARG(e->etag)) : STR("");
    struct str maps =
        map.n > 0 ? arena_printf(a, "SourceMap: %.*s\r\nX-SourceMap: %.*s\r\n", STR_ARG(map), STR_ARG(map)) : STR("");
    if (tag.p == NULL || maps.p == NULL)
        return STR_NONE;
    return arena_printf(a, "%.*sAccept-Ranges: bytes\r\nCache-Control: public, max-age=%s%s\r\n%.*s", STR_ARG(tag),
                        e->cacheable ? "31536000" : "0", e->immutable ? ", immutable" : "", STR_ARG(maps));
}

static bool print_block(struct arena *a, struct meteor_entry *e)
{
    struct str lines = print_lines(a, e);
    if (lines.p == NULL)
        return false;
    e->block = arena_printf(a, "Content-Type: %.*s\r\n%.*s", STR_ARG(e->type), STR_ARG(lines));
    e->type_line = sizeof("Content-Type: \r\n") - 1 + e->type.n;
    return e->block.p != NULL;
}

enum added { ADDED, LEFT_OUT, NO_MEMORY };

static enum added add_entry(struct meteor_manifest *m, struct meteor_program *p, struct meteor_entry e, struct str url,
                            struct str path)
{
    struct str key = url_path(&m->arena, url);
    if (key.p == NULL || !is_below(path))
        return LEFT_OUT;
    struct meteor_entry *kept = arena_new(&m->arena, struct meteor_entry);
    e.program = p;
    e.path = arena_dup(&m->arena, path);
    e.immutable = e.cacheable && file_path_has_hash(file_path_name(key));
    if (kept == NULL || e.path.p == NULL || !print_block(&m->arena, &e))
        return NO_MEMORY;
    *kept = e;
    /* Replacing keeps the key that is there; both live in the arena. */
    return map_put(&p->by_url, key, kept) ? ADDED : NO_MEMORY;
}

static enum added add_item(struct meteor_manifest *m, struct meteor_program *p, const json_t *item)
{
    struct str url = text_of(item, "url"), path = text_of(item, "path"), hash = text_of(item, "hash");
    struct str map = text_of(item, "sourceMapUrl"), map_path = text_of(item, "sourceMap");
    const json_t *size = json_object_get(item, "size");
    if (url.n == 0 || !str_eq(text_of(item, "where"), STR("client")))
        return ADDED;
    struct meteor_entry e = {
        .type = type_of(text_of(item, "type"), path),
        .size = json_is_integer(size) ? json_integer_value(size) : -1,
        .cacheable = is_truthy(json_object_get(item, "cacheable")),
    };
    e.has_sha1 = read_sha1(hash, e.sha1);
    if (is_line_value(hash) && str_chr(hash, '"', 0) < 0) {
        e.etag = arena_printf(&m->arena, "\"%.*s\"", STR_ARG(hash));
        if (e.etag.p == NULL)
            return NO_MEMORY;
    }
    if (is_line_value(map)) {
        e.source_map = arena_dup(&m->arena, map);
        if (e.source_map.p == NULL)
            return NO_MEMORY;
    }
    enum added added = add_entry(m, p, e, url, path);
    if (added != ADDED || map_path.n == 0)
        return added;
    struct meteor_entry map_entry = { .type = mime_of(file_path_name(map_path)), .size = -1, .cacheable = true };
    return add_entry(m, p, map_entry, map, map_path);
}

static bool refuse(struct meteor_manifest *m, struct meteor_program *p, struct str *reason, struct str text)
{
    map_free(&p->by_url);
    memset(p, 0, sizeof *p);
    m->n_programs--;
    *reason = text.p != NULL ? text : STR("out of memory");
    return false;
}

static bool read_items(struct meteor_manifest *m, struct meteor_program *p, const json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) {
        switch (add_item(m, p, item)) {
        case ADDED:
            break;
        case LEFT_OUT:
            if (p->n_left_out++ == 0)
                p->left_out = arena_printf(&m->arena, "entry %zu (url %.*s, path %.*s)", i,
                                           STR_ARG(str_take(text_of(item, "url"), 200)),
                                           STR_ARG(str_take(text_of(item, "path"), 200)));
            break;
        case NO_MEMORY:
            return false;
        }
    }
    p->n_entries = (unsigned)p->by_url.n;
    return true;
}

bool meteor_manifest_add(struct meteor_manifest *m, struct str name, struct str root, uint64_t root_hash,
                         struct str json, struct str *reason)
{
    if (m->n_programs == METEOR_PROGRAMS_MAX) {
        *reason = STR("too many programs");
        return false;
    }
    struct meteor_program *p = &m->programs[m->n_programs++];
    p->name = arena_dup(&m->arena, name);
    p->root = arena_dup(&m->arena, root);
    p->root_hash = root_hash;
    p->prefix = arena_printf(&m->arena, "/__%.*s", STR_ARG(str_skip(name, str_starts(name, STR("web.")) ? 4 : 0)));
    if (p->name.p == NULL || p->root.p == NULL || p->prefix.p == NULL)
        return refuse(m, p, reason, STR_NONE);
    json_error_t error;
    json_t *top = json_loadb(json.p, json.n, 0, &error);
    if (top == NULL)
        return refuse(m, p, reason, arena_printf(&m->arena, "line %d: %s", error.line, error.text));
    const json_t *list = json_object_get(top, "manifest");
    struct str format = text_of(top, "format");
    struct str wrong = STR_NONE;
    bool is_read = false;
    if (!str_eq(format, STR("web-program-pre1")))
        wrong = arena_printf(&m->arena, "format is `%.*s`; expected `web-program-pre1`",
                             STR_ARG(str_take(format, 80)));
    else if (!json_is_array(list))
        wrong = STR("no list `manifest` in it");
    else
        is_read = read_items(m, p, list);
    json_decref(top);
    return is_read || refuse(m, p, reason, wrong);
}

/* ---- lookup ---- */

static const struct meteor_entry *find_in(const struct meteor_program *p, struct str path, struct str other)
{
    const struct meteor_entry *e = map_get(&p->by_url, path);
    return e != NULL || str_eq(path, other) ? e : map_get(&p->by_url, other);
}

/* The first program first, then the others in their order. */
static const struct meteor_entry *find_from(const struct meteor_manifest *m, const struct meteor_program *first,
                                            struct str path, struct str other)
{
    const struct meteor_entry *e = first != NULL ? find_in(first, path, other) : NULL;
    for (unsigned i = 0; i < m->n_programs && e == NULL; i++)
        e = find_in(&m->programs[i], path, other);
    return e;
}

static const struct meteor_program *named(const struct meteor_manifest *m, struct str name)
{
    for (unsigned i = 0; i < m->n_programs; i++)
        if (str_eq(m->programs[i].name, name))
            return &m->programs[i];
    return NULL;
}

/* The program whose prefix the path has, and what follows it. */
static const struct meteor_program *prefixed(const struct meteor_manifest *m, struct str raw, struct str *rest)
{
    for (unsigned i = 0; i < m->n_programs && str_starts(raw, STR("/__")); i++) {
        struct str prefix = m->programs[i].prefix;
        if (str_starts(raw, prefix) && (raw.n == prefix.n || raw.p[prefix.n] == '/')) {
            *rest = str_skip(raw, prefix.n);
            return &m->programs[i];
        }
    }
    return NULL;
}

/* By what the manifests say: the hash, or a name made of it (source maps have no hash of their own). */
static bool is_same(const struct meteor_entry *a, const struct meteor_entry *b)
{
    return a == b || (a != NULL && b != NULL && (a->etag.n > 0 || a->immutable) && a->size == b->size &&
                      str_eq(a->block, b->block));
}

enum meteor_answer meteor_manifest_find(const struct meteor_manifest *m, struct str path, struct str raw,
                                        const struct meteor_entry **out)
{
    struct str rest = raw;
    const struct meteor_program *asked = prefixed(m, raw, &rest);
    *out = NULL;
    if (str_eq(rest, STR("/meteor_runtime_config.js")) || (asked != NULL && str_eq(rest, STR("/manifest.json"))))
        return METEOR_NONE;
    if (asked != NULL) {
        *out = find_from(m, asked, path, rest);
        return *out != NULL ? METEOR_FILE : METEOR_NONE;
    }
    const struct meteor_program *modern = named(m, STR("web.browser")), *legacy = named(m, STR("web.browser.legacy"));
    *out = find_from(m, modern != NULL ? modern : legacy, path, raw);
    if (*out == NULL || modern == NULL || legacy == NULL)
        return *out != NULL ? METEOR_FILE : METEOR_NONE;
    return is_same(*out, find_from(m, legacy, path, raw)) ? METEOR_FILE : METEOR_DEPENDS;
}
