/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes a Meteor bundle's program.json: an input is the text of one, added twice under two names, and then asked for
 * with every path that it names and with the text itself. What is served must lie beneath the program's folder, and a
 * head must be lines.
 */
#include "base/check.h"
#include "handler/meteor_manifest.h"

static bool has_line_break(struct str s)
{
    return str_chr(s, '\n', 0) >= 0 || str_chr(s, '\r', 0) >= 0 || str_chr(s, '\0', 0) >= 0;
}

static void check_path(struct str path)
{
    struct str rest = path;
    CHECK(path.n > 0 && path.p[0] != '/' && path.p[path.n] == '\0' && str_chr(path, '\0', 0) < 0);
    while (rest.n > 0) {
        ptrdiff_t slash = str_chr(rest, '/', 0);
        struct str part = slash < 0 ? rest : str_take(rest, (size_t)slash);
        CHECK(!str_eq(part, STR("..")));
        rest = str_skip(rest, slash < 0 ? rest.n : (size_t)slash + 1);
    }
}

/* Each line of the block ends in CRLF and holds no other control byte. */
static void check_block(struct str block)
{
    while (block.n > 0) {
        ptrdiff_t end = str_chr(block, '\n', 0);
        CHECK(end > 0 && block.p[end - 1] == '\r' && !has_line_break(str_take(block, (size_t)end - 1)));
        block = str_skip(block, (size_t)end + 1);
    }
}

static void check_entry(const struct meteor_entry *e)
{
    check_path(e->path);
    CHECK(e->size >= -1 && !has_line_break(e->type) && !has_line_break(e->etag) && !has_line_break(e->source_map));
    check_block(e->block);
    CHECK(e->type_line <= e->block.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_of((const char *)data, size), reason = STR_NONE;
    const struct meteor_entry *e = NULL;
    struct meteor_manifest *m = meteor_manifest_new();
    CHECK(m != NULL);
    if (!meteor_manifest_add(m, STR("web.browser"), STR("/srv/web.browser"), 1, text, &reason))
        CHECK(reason.n > 0);
    if (!meteor_manifest_add(m, STR("web.browser.legacy"), STR("/srv/web.browser.legacy"), 2, text, &reason))
        CHECK(reason.n > 0);
    for (size_t at = 0; at < size; at++) { /* whatever stands between quotes may be a URL */
        ptrdiff_t end = text.p[at] == '"' ? str_chr(text, '"', at + 1) : -1;
        if (end < 0)
            continue;
        struct str path = str_of(text.p + at + 1, (size_t)end - at - 1);
        if (meteor_manifest_find(m, path, path, &e) != METEOR_NONE)
            check_entry(e);
    }
    if (meteor_manifest_find(m, text, text, &e) != METEOR_NONE)
        check_entry(e);
    meteor_manifest_free(m);
    return 0;
}
