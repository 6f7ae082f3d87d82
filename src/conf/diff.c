/* SPDX-License-Identifier: MIT */
/*
 * Compares two configurations part by part (print.h): parts with the same key are the same thing, changed if their texts differ. Works on
 * what the configuration means, so a comment or another order of settings is no difference. Pure.
 */
#include "conf/diff.h"

#include "base/map.h"
#include "conf/print.h"

struct tally {
    unsigned added, changed, removed;
};

static const char *const nouns[PART_KINDS][2] = {
    [PART_TOP] = { "top-level setting group", "top-level setting groups" },
    [PART_LISTENER] = { "listener", "listeners" },
    [PART_SITE] = { "site", "sites" },
    [PART_LOCATION] = { "location", "locations" },
    [PART_UPSTREAM] = { "upstream", "upstreams" },
    [PART_SERVER] = { "server", "servers" },
};

/* Keys of different kinds must not meet. */
static struct str full_key(struct arena *a, const struct conf_part *part)
{
    return arena_printf(a, "%u %.*s", (unsigned)part->kind, STR_ARG(part->key));
}

static bool index_parts(struct arena *a, struct map *m, struct conf_part *parts, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct str key = full_key(a, &parts[i]);
        if (key.p == NULL || !map_put(m, key, &parts[i]))
            return false;
    }
    return true;
}

static bool compare(struct arena *a, const struct conf *old, const struct conf *new, struct tally *t)
{
    struct conf_part *before, *after;
    unsigned n_before, n_after;
    struct map old_parts = { 0 };
    bool is_done = false;
    if (!conf_parts(a, old, &before, &n_before) || !conf_parts(a, new, &after, &n_after))
        return false;
    if (index_parts(a, &old_parts, before, n_before)) {
        for (unsigned i = 0; i < n_after; i++) {
            const struct conf_part *same = map_remove(&old_parts, full_key(a, &after[i]));
            if (same == NULL)
                t[after[i].kind].added++;
            else if (!str_eq(same->text, after[i].text))
                t[after[i].kind].changed++;
        }
        for (unsigned i = 0; i < n_before; i++)
            if (map_get(&old_parts, full_key(a, &before[i])) == &before[i])
                t[before[i].kind].removed++;
        is_done = true;
    }
    map_free(&old_parts);
    return is_done;
}

static struct str append(struct arena *a, struct str list, const char *sign, unsigned n, enum conf_part_kind kind,
                         const char *verb)
{
    if (n == 0)
        return list;
    return arena_printf(a, "%.*s%s%s%u %s%s", STR_ARG(list), list.n > 0 ? ", " : "", sign, n, nouns[kind][n > 1], verb);
}

struct str conf_diff(struct arena *a, const struct conf *old, const struct conf *new)
{
    struct tally tallies[PART_KINDS] = { { 0 } };
    struct str text = STR("");
    if (!compare(a, old, new, tallies))
        return STR_NONE;
    for (unsigned kind = 0; kind < PART_KINDS; kind++) {
        text = append(a, text, "+", tallies[kind].added, kind, "");
        text = append(a, text, "", tallies[kind].changed, kind, " changed");
        text = append(a, text, "-", tallies[kind].removed, kind, "");
    }
    return text.n > 0 || text.p == NULL ? text : STR("nothing changed");
}
