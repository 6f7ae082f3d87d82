/* SPDX-License-Identifier: MIT */
/*
 * Precompressed siblings. Owns nothing: which siblings a file has is remembered in its cache entry, and each sibling
 * is an entry of its own, with its own ETag, date and length; only the type is the plain file's.
 *
 * What is there is looked up when a file is first asked for, and again for those who accept codings, at most once per
 * file_cache.valid; in between it costs no system call. A sibling older than its file, by whole seconds, is the
 * remains of an earlier deploy and not used; one of the same second is, because packers cut the fractions off.
 *
 * The client's quality values decide (RFC 9110 §12.5.3), the denser coding among equals; the plain form wins only
 * when it is named and liked better. Ranges and conditions are those of the form chosen.
 */
#include "handler/file_sibling.h"

#include "handler/file.h"
#include "http/accept.h"
#include "serve/respond.h"

/* Denser ones first; the bits of struct file.siblings have this order. */
static const struct {
    struct str suffix, line;
} codings[] = {
    { { ".br", 3 }, { "Content-Encoding: br\r\n", 22 } },
    { { ".zst", 4 }, { "Content-Encoding: zstd\r\n", 24 } },
    { { ".gz", 3 }, { "Content-Encoding: gzip\r\n", 24 } },
};
enum { CODINGS = ARRAY_LEN(codings), SUFFIX_MAX = 4 };

static void note(struct request *r, const char *text)
{
    request_note(r, "precompressed", str_c(text), r->s->where[SET_files_precompressed]);
}

/* The path of f with the suffix, in the arena; p NULL: no memory. */
static struct str path_of(struct request *r, struct str path, unsigned coding)
{
    return arena_printf(&r->arena, "%.*s%.*s", STR_ARG(path), STR_ARG(codings[coding].suffix));
}

static void look(struct request *r, struct file_cache *c, const struct file_want *want, struct file *f)
{
    f->siblings = 0;
    f->siblings_ms = want->now_ms;
    f->knows_siblings = true;
    for (unsigned i = 0; i < CODINGS; i++) {
        struct file_want beside = *want;
        struct file_id id;
        beside.path = path_of(r, want->path, i);
        if (beside.path.p == NULL || file_cache_look(c, &beside, &id) != 0 || id.size == 0)
            continue;
        if (id.mtime_ns / 1000000000 < f->id.mtime_ns / 1000000000)
            note(r, "a sibling is older than the file, and not used");
        else
            f->siblings |= (uint8_t)(1u << i);
    }
}

/* The bit number of the coding to send; CODINGS: the plain form. */
static unsigned choose(const struct request *r, unsigned siblings)
{
    struct accept_codings q;
    accept_codings(&r->head->fields, &q);
    const int qualities[] = { q.br, q.zstd, q.gzip };
    unsigned best = CODINGS;
    int best_q = 0;
    for (unsigned i = 0; i < CODINGS; i++)
        if ((siblings & (1u << i)) && qualities[i] > best_q && qualities[i] >= q.identity) {
            best = i;
            best_q = qualities[i];
        }
    /* What the gzip filter can make may be liked better than what lies there. */
    return r->s->gzip.on && q.gzip > best_q ? CODINGS : best;
}

static char *put(char *at, struct str s)
{
    if (s.n > 0)
        memcpy(at, s.p, s.n);
    return at + s.n;
}

static struct str next_line(struct str *rest)
{
    ptrdiff_t lf = str_chr(*rest, '\n', 0);
    struct str line = str_take(*rest, lf < 0 ? rest->n : (size_t)lf + 1);
    *rest = str_skip(*rest, line.n);
    return line;
}

/* The line of the block with that name and colon; empty if there is none. */
static struct str line_of(struct str block, struct str name)
{
    while (block.n > 0) {
        struct str line = next_line(&block);
        if (str_starts(line, name))
            return line;
    }
    return STR_NONE;
}

/* The head for the coded form: the plain one's type, the coding, and the plain one's other lines with the sibling's
 * validators in place of its own. False: no memory. */
static bool make_head(struct request *r, const struct file *plain, const struct file *sibling, unsigned coding,
                      struct file *head)
{
    static const struct str etag = { "ETag:", 5 }, date = { "Last-Modified:", 14 };
    const struct str vary = STR("Vary: Accept-Encoding\r\n");
    struct str rest = plain->block;
    char *text = arena_alloc(&r->arena, plain->block.n + sibling->block.n + codings[coding].line.n + vary.n);
    if (text == NULL)
        return false;
    char *at = put(text, next_line(&rest));
    at = put(at, codings[coding].line);
    *head = *sibling;
    if (line_of(rest, date).n == 0)
        head->validators.last_modified = -1;
    if (line_of(rest, etag).n == 0)
        head->validators.etag = STR_NONE;
    while (rest.n > 0) {
        struct str line = next_line(&rest);
        at = put(at, str_starts(line, etag)   ? line_of(sibling->block, etag)
                     : str_starts(line, date) ? line_of(sibling->block, date)
                                              : line);
    }
    at = put(at, vary);
    head->block = str_of(text, (size_t)(at - text));
    head->type = str_of(text + (plain->type.p - plain->block.p), plain->type.n);
    head->type_line = plain->type_line;
    head->coding_line = codings[coding].line.n;
    head->hash_in_name = plain->hash_in_name;
    head->says_expiry = plain->says_expiry;
    return true;
}

bool sibling_serve(struct request *r, struct file_cache *c, const struct file_want *want, struct file *f,
                   const struct file *head)
{
    if (!r->s->precompressed || f->is_dense || want->path.n == 0)
        return false;
    bool asks = fields_get(&r->head->fields, F_ACCEPT_ENCODING) != NULL;
    if (!f->knows_siblings || (asks && want->now_ms - f->siblings_ms >= want->valid_ms))
        look(r, c, want, f);
    if (f->siblings == 0)
        return false;
    struct lease lease = file_lease(f);
    bool is_served = false;
    for (unsigned coding; asks && !is_served && (coding = choose(r, f->siblings)) < CODINGS;) {
        struct file_want beside = *want;
        struct file *sibling, coded;
        beside.path = path_of(r, want->path, coding);
        if (beside.path.p == NULL || file_cache_get(c, &beside, &sibling) != 0 || sibling->id.size == 0) {
            f->siblings &= (uint8_t)~(1u << coding);
            continue;
        }
        if (!make_head(r, head, sibling, coding, &coded))
            break;
        note(r, codings[coding].suffix.p);
        file_serve(r, sibling, &coded);
        is_served = true;
    }
    lease.release(lease.arg);
    if (!is_served)
        respond_field(r, F_VARY, STR("Accept-Encoding"));
    return is_served;
}
