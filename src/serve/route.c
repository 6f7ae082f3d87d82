/* SPDX-License-Identifier: MIT */
/*
 * Routing: host to site, decoded path to location. Looks only at the resolved configuration; the regex engine's match
 * data is the worker's.
 *
 * Precedence: exact; else the longest prefix, which ends the search if it says ^~; else the first regex that matches;
 * else that longest prefix. A location that cuts off a prefix (alias, strip_prefix) matches only that prefix and what is
 * beneath it; a cut inside a segment is none. An
 * exact match is a look into a map, the longest prefix a binary search, however many there are; regexes are tried in
 * turn, some 25 ns each where PCRE2 compiles them to machine code.
 */
#include "serve/route.h"

const struct site_conf *route_site(const struct listen_conf *listen, struct str host)
{
    if (host.n > 0) {
        const struct site_conf *exact = map_get(&listen->names, host);
        if (exact)
            return exact;
        for (unsigned i = 0; i < listen->n_wildcards; i++)
            if (host.n > listen->wildcards[i].suffix.n && str_ends(host, listen->wildcards[i].suffix))
                return listen->wildcards[i].site;
    }
    return listen->default_site;
}

static bool has_alias(const struct location_conf *l)
{
    for (unsigned i = 0; i < l->n_actions; i++)
        if (l->actions[i]->kind == ACTION_FILE && l->actions[i]->u.file.alias)
            return true;
    return false;
}

/* May what the location cuts off be cut off this path? */
static bool can_cut(const struct location_conf *l, struct str path)
{
    if (l->s.strip_prefix.n > 0 && !path_is_beneath(path, l->s.strip_prefix))
        return false;
    return l->kind == MATCH_REGEX || !has_alias(l) || path_is_beneath(path, l->pattern);
}

static bool prefix_matches(const struct location_conf *l, struct str path)
{
    return str_starts(path, l->pattern) && can_cut(l, path);
}

/* Compares a path with a pattern bytewise; a pattern that the path begins with is not greater. */
static int order(struct str path, struct str pattern)
{
    size_t n = path.n < pattern.n ? path.n : pattern.n;
    int way = n > 0 ? memcmp(path.p, pattern.p, n) : 0;
    return way != 0 ? way : path.n < pattern.n ? -1 : 0;
}

/* Every prefix of the path lies, in the order of patterns, at or before the last pattern that is not greater than the
 * path; and whatever lies between a prefix of the path and the path begins with that prefix. So all prefixes of the
 * path are among that last one and those it begins with. */
static const struct location_conf *longest_prefix(const struct site_conf *site, struct str path)
{
    unsigned low = 0, high = site->n_prefix;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (order(path, site->sorted[middle]->pattern) >= 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct location_conf *l = low > 0 ? site->sorted[low - 1] : NULL;
    while (l != NULL && !prefix_matches(l, path))
        l = l->shorter;
    return l;
}

enum matched { NO, YES, GAVE_UP };

static enum matched match_regex(struct request *r, const struct location_conf *l)
{
    struct worker *w = r->w;
    struct str path = r->target.path;
    /* The fast path skips the checks of its arguments, and nothing else. */
    int rc = (l->has_jit ? pcre2_jit_match : pcre2_match)(l->regex, (PCRE2_SPTR)path.p, path.n, 0, 0, w->match,
                                                         w->match_context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return NO;
    if (rc < 0) {
        COUNT(w->counters.regex_limits);
        return GAVE_UP;
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(w->match);
    for (int i = 0; i < (int)ARRAY_LEN(r->captures); i++) {
        bool is_set = i < rc && at[2 * i] != PCRE2_UNSET;
        r->captures[i] = is_set ? str_of(path.p + at[2 * i], at[2 * i + 1] - at[2 * i]) : STR_NONE;
    }
    return YES;
}

/* The first regex that matches replaces *won, or one that gave up: false. */
static bool try_regexes(struct request *r, const struct site_conf *site, const struct location_conf **won)
{
    for (unsigned i = 0; i < site->n_regex; i++) {
        const struct location_conf *l = site->regex[i];
        enum matched matched = can_cut(l, r->target.path) ? match_regex(r, l) : NO;
        if (matched == NO)
            continue;
        *won = l;
        return matched == YES;
    }
    return true;
}

/* For explain: each location of the site and why it won or lost against `won`. */
static void note_candidates(struct request *r, const struct site_conf *site, const struct location_conf *won)
{
    struct str path = r->target.path;
    for (unsigned i = 0; i < site->n_all; i++) {
        const struct location_conf *l = site->all[i];
        const char *why = NULL;
        bool prefix = l->kind == MATCH_PREFIX || l->kind == MATCH_PREFIX_FINAL;
        if (l == won)
            continue;
        if (l->kind == MATCH_EXACT)
            why = "is not exactly this path";
        else if (prefix && !str_starts(path, l->pattern))
            why = "is not a prefix of the path";
        else if (l->s.strip_prefix.n > 0 && !str_starts(path, l->s.strip_prefix))
            why = "only matches beneath its strip_prefix";
        else if (!can_cut(l, path))
            why = "would cut the path inside a segment";
        else if (prefix && won && won->kind == MATCH_REGEX)
            why = "matches, but a regular expression goes before a plain prefix";
        else if (prefix && won && won->kind == MATCH_EXACT)
            why = "matches, but an exact match goes first";
        else if (prefix)
            why = "matches, but a longer prefix does too";
        else if (won && won->kind == MATCH_EXACT)
            why = "not tried: an exact match goes first";
        else if (won && won->kind == MATCH_PREFIX_FINAL)
            why = "not tried: the prefix chosen says ^~";
        else if (won && won->kind == MATCH_REGEX && l->order > won->order)
            why = "not tried: an earlier regular expression matches";
        else
            why = "does not match the path";
        request_note(r, "lost", arena_printf(&r->arena, "%.*s: %s", STR_ARG(l->match), why), l->where);
    }
}

bool route_location(struct request *r, const struct site_conf *site, const struct location_conf **won)
{
    struct str path = r->target.path;
    *won = map_get(&site->exact_map, path);
    memset(r->captures, 0, sizeof(r->captures));
    if (*won != NULL && !can_cut(*won, path))
        *won = NULL;
    if (*won == NULL) {
        *won = longest_prefix(site, path);
        if ((*won == NULL || (*won)->kind != MATCH_PREFIX_FINAL) && !try_regexes(r, site, won))
            return false;
    }
    if (r->trace)
        note_candidates(r, site, *won);
    return true;
}
