/* SPDX-License-Identifier: MIT */
/*
 * A file of media types: nginx's `types { text/html html htm; ... }`, or lines of a type and its extensions as
 * /etc/mime.types has them. Its rows go before the table that is built in (http/mime.c); an extension named twice has
 * the last type.
 *
 * Owns nothing that outlives the load but the map in the conf, whose strings lie in the conf's arena. Text gets its
 * charset as the built-in rows have it, unless the file says another.
 */
#include <errno.h>

#include "conf/check.h"

enum { TYPE_MAX = 100 };

struct reader {
    const struct value *v;
    struct str path, rest;
    unsigned line;
    bool has_braces; /* nginx's form: a row ends with ';', not with the line */
};

enum token { TOKEN_END, TOKEN_WORD, TOKEN_ROW_END, TOKEN_OPEN, TOKEN_CLOSE };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static enum token next(struct reader *rd, struct str *word)
{
    while (rd->rest.n > 0) {
        char c = rd->rest.p[0];
        if (c == '#') {
            ptrdiff_t end = str_chr(rd->rest, '\n', 0);
            rd->rest = str_skip(rd->rest, end < 0 ? rd->rest.n : (size_t)end);
        } else if (c == '\n') {
            rd->line++;
            rd->rest = str_skip(rd->rest, 1);
            if (!rd->has_braces)
                return TOKEN_ROW_END;
        } else if (is_blank(c)) {
            rd->rest = str_skip(rd->rest, 1);
        } else if (c == ';' || c == '{' || c == '}') {
            rd->rest = str_skip(rd->rest, 1);
            return c == ';' ? TOKEN_ROW_END : c == '{' ? TOKEN_OPEN : TOKEN_CLOSE;
        } else {
            size_t n = 0;
            while (n < rd->rest.n && !is_blank(rd->rest.p[n]) && strchr("\n#;{}", rd->rest.p[n]) == NULL)
                n++;
            *word = str_take(rd->rest, n);
            rd->rest = str_skip(rd->rest, n);
            return TOKEN_WORD;
        }
    }
    return TOKEN_END;
}

static bool bad(const struct reader *rd, const char *what, struct str found)
{
    diag_bad(rd->v, "%.*s:%u: %s `%.*s`; expected a media type and its extensions, as in `text/html html htm;`",
             STR_ARG(rd->path), rd->line, what, STR_ARG(str_take(found, 40)));
    return false;
}

/* type/subtype, as a field value without parameters. */
static bool is_type(struct str s)
{
    ptrdiff_t slash = str_chr(s, '/', 0);
    return s.n <= TYPE_MAX && slash > 0 && value_is_token(str_take(s, (size_t)slash)) &&
           value_is_token(str_skip(s, (size_t)slash + 1));
}

static void add(struct reader *rd, const struct str *type, struct str extension)
{
    struct load *ld = rd->v->ld;
    struct str key = load_dup(ld, extension);
    for (size_t i = 0; i < key.n; i++)
        ((char *)(uintptr_t)key.p)[i] = ascii_lower(key.p[i]);
    load_map_put(ld, &ld->conf->mime, key, type);
}

static bool read_rows(struct reader *rd)
{
    struct load *ld = rd->v->ld;
    const struct str *type = NULL;
    struct str word;
    for (;;) {
        switch (next(rd, &word)) {
        case TOKEN_WORD:
            if (type != NULL) {
                add(rd, type, word);
                break;
            }
            if (!is_type(word))
                return bad(rd, "found", word);
            struct str *t = load_new(ld, struct str);
            *t = str_starts(word, STR("text/")) ? load_printf(ld, "%.*s; charset=utf-8", STR_ARG(word))
                                                : load_dup(ld, word);
            type = t;
            break;
        case TOKEN_ROW_END:
            type = NULL;
            break;
        case TOKEN_OPEN:
            return bad(rd, "found", STR("{"));
        case TOKEN_CLOSE:
            if (!rd->has_braces || type != NULL)
                return bad(rd, "found", STR("}"));
            return next(rd, &word) == TOKEN_END || bad(rd, "more after", STR("}"));
        case TOKEN_END:
            return !rd->has_braces || bad(rd, "no", STR("}"));
        }
    }
}

bool read_mime_types(const struct value *v, struct str path)
{
    struct load *ld = v->ld;
    struct reader rd = { .v = v, .path = path, .line = 1 };
    if (ld->flags & CONF_NO_FILES)
        return true;
    if (!check_exists(v, path))
        return false;
    if (!load_file(ld, path.p, &rd.rest)) {
        if (ld->is_replay) /* said by check_exists, or gone since */
            return true;
        diag_bad(v, "\"%.*s\": %s; expected a file that can be read", STR_ARG(path), strerror(errno));
        return false;
    }
    ld->conf->mime_hash = hash_bytes(rd.rest) | 1;
    load_own_map(ld, &ld->conf->mime);
    struct reader start = rd;
    struct str word;
    rd.has_braces = true; /* empty lines before it do not count */
    rd.has_braces = next(&rd, &word) == TOKEN_WORD && str_eq(word, STR("types")) && next(&rd, &word) == TOKEN_OPEN;
    return read_rows(rd.has_braces ? &rd : &start);
}
