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

/* The head for the coded form: the type of f, then the coding, then what the sibling says of itself. False: no
 * memory. */
static bool make_head(struct request *r, const struct file *f, const struct file *sibling, unsigned coding,
                      struct file *head)
{
    const struct str type = str_take(f->block, f->type_line), line = codings[coding].line,
                     own = str_skip(sibling->block, sibling->type_line), vary = STR("Vary: Accept-Encoding\r\n");
    char *text = arena_alloc(&r->arena, type.n + line.n + own.n + vary.n);
    if (text == NULL)
        return false;
    memcpy(text, type.p, type.n);
    memcpy(text + type.n, line.p, line.n);
    memcpy(text + type.n + line.n, own.p, own.n);
    memcpy(text + type.n + line.n + own.n, vary.p, vary.n);
    *head = *sibling;
    head->block = str_of(text, type.n + line.n + own.n + vary.n);
    head->type = str_of(text + (f->type.p - f->block.p), f->type.n);
    head->type_line = type.n;
    head->coding_line = line.n;
    head->hash_in_name = f->hash_in_name;
    return true;
}

bool sibling_serve(struct request *r, struct file_cache *c, const struct file_want *want, struct file *f)
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
        struct file *sibling, head;
        beside.path = path_of(r, want->path, coding);
        if (beside.path.p == NULL || file_cache_get(c, &beside, &sibling) != 0 || sibling->id.size == 0) {
            f->siblings &= (uint8_t)~(1u << coding);
            continue;
        }
        if (!make_head(r, f, sibling, coding, &head))
            break;
        note(r, codings[coding].suffix.p);
        file_serve(r, sibling, &head);
        is_served = true;
    }
    lease.release(lease.arg);
    if (!is_served)
        respond_field(r, F_VARY, STR("Accept-Encoding"));
    return is_served;
}
