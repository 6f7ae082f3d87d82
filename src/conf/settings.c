/* SPDX-License-Identifier: MIT */
/*
 * The settings tables compiled into arrays, and looking a name up in them. No state, no I/O: everything that reads,
 * checks, prints or documents the configuration goes through these rows. Names are looked up by a walk over the table:
 * loading is not a hot path.
 */
#include "conf/settings.h"

#include "conf/load.h"

const struct area_row areas[AREA_COUNT] = {
#define AREA(id, key, kind, doc) [AREA_##id] = { { #id, sizeof #id - 1 }, { key, sizeof key - 1 }, kind, doc },
#include "conf/areas.def"
#undef AREA
};

const char *const type_expected[TYPE_COUNT] = {
#define TYPE(id, expected) [TYPE_##id] = expected,
#include "conf/types.def"
#undef TYPE
};

const struct word setting_words[] = {
#define VALUE(set, name, number, state) { WORDS_##set, { name, sizeof name - 1 }, number, state },
#include "conf/enums.def"
#undef VALUE
};
const size_t n_setting_words = ARRAY_LEN(setting_words);

/* The columns of the rows. */
enum { T = SCOPE_TOP, S = SCOPE_SITE, L = SCOPE_LOCATION, U = SCOPE_UPSTREAM, V = SCOPE_SERVER };
/* A type with arguments is the same word followed by "(": then these apply. */
#define TYPE_UINT(low, high) TYPE_UINT, .lo = (low), .hi = (uint64_t)(high)
#define TYPE_SIZE(low, high) TYPE_SIZE, .lo = (low), .hi = (uint64_t)(high)
#define TYPE_ENUM(set)       TYPE_ENUM, .words = WORDS_##set
#define UNSET(text)          NULL, .unset = (text)
#define MEMBER_OF(kind, type, member) \
    .base = (kind), .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define LIST_OF(kind, type, member, count) MEMBER_OF(kind, type, member), .n_offset = offsetof(type, count)
#define NOWHERE                            .base = IN_NOWHERE
#define CONF(member)                       MEMBER_OF(IN_CONF, struct conf, member)
#define CONF_LIST(member)                  LIST_OF(IN_CONF, struct conf, member, n_##member)
#define SCOPED(member)                     MEMBER_OF(IN_SCOPE, struct scope_conf, member)
#define SCOPED_LIST(member)                LIST_OF(IN_SCOPE, struct scope_conf, member, n_##member)
#define GZIP_LIST(member)                  LIST_OF(IN_SCOPE, struct scope_conf, gzip.member, gzip.n_##member)
#define UP(member)                         MEMBER_OF(IN_UPSTREAM, struct upstream_conf, member)
#define SRV(member)                        MEMBER_OF(IN_SERVER, struct server_conf, member)
#define SITE(member)                       MEMBER_OF(IN_SITE, struct site_conf, member)
#define TRUSTED(member)                    LIST_OF(IN_TRUSTED, struct trusted, member, n_##member)
#define LISTEN(member)                     MEMBER_OF(IN_PART, struct listen_conf, member)
#define ACTION(member)                     MEMBER_OF(IN_PART, struct action, u.member)
#define ERROR_PAGE(member)                 MEMBER_OF(IN_PART, struct error_page_conf, member)
#define ERROR_PAGE_LIST(member)            LIST_OF(IN_PART, struct error_page_conf, member, n_##member)
#define LOCATION(member)                   MEMBER_OF(IN_PART, struct location_conf, member)
#define AUTH(member)                       MEMBER_OF(IN_PART, struct auth_conf, member)
#define LIMIT(member)                      MEMBER_OF(IN_PART, struct limit_conf, member)
#define LOG(member)                        MEMBER_OF(IN_PART, struct access_log_conf, member)

const struct setting settings[SET_COUNT] = {
#define SETTING(area_, name_, scopes_, type_, target_, default_, state_, doc_) \
    [SET_##area_##_##name_] = {                                                \
        .name = { #name_, sizeof #name_ - 1 },                                 \
        .area = AREA_##area_,                                                  \
        .scopes = (scopes_),                                                   \
        .type = TYPE_##type_,                                                  \
        target_,                                                               \
        .value = default_,                                                     \
        .state = (state_),                                                     \
        .doc = (doc_),                                                         \
    },
#include "conf/settings.inc"
#undef SETTING
};

const struct setting *setting_in_area(enum area area, struct str name)
{
    for (size_t i = 0; i < SET_COUNT; i++)
        if (settings[i].area == area && str_eq(settings[i].name, name))
            return &settings[i];
    return NULL;
}

const struct setting *setting_in_scope(unsigned scope, struct str name)
{
    for (size_t i = 0; i < SET_COUNT; i++)
        if (areas[settings[i].area].kind == DIRECT && (settings[i].scopes & scope) && str_eq(settings[i].name, name))
            return &settings[i];
    return NULL;
}

enum area area_of_group(unsigned scope, struct str name)
{
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct area_row *area = &areas[settings[i].area];
        if (area->kind == GROUP && (settings[i].scopes & scope) && str_eq(area->key, name))
            return settings[i].area;
    }
    return AREA_COUNT;
}

struct str setting_key(struct arena *a, const struct setting *s)
{
    const struct area_row *area = &areas[s->area];
    return area->kind == DIRECT ? s->name : arena_printf(a, "%.*s.%.*s", STR_ARG(area->key), STR_ARG(s->name));
}

/* The next character that counts in a comparison of words, 0 at the end. */
static char next_significant(struct str *s)
{
    while (s->n > 0) {
        char c = s->p[0];
        *s = str_skip(*s, 1);
        if (c != '-' && c != '_')
            return ascii_lower(c);
    }
    return '\0';
}

static bool word_eq(struct str a, struct str b)
{
    char c;
    do {
        c = next_significant(&a);
        if (c != next_significant(&b))
            return false;
    } while (c != '\0');
    return true;
}

const struct word *word_find(enum word_set set, struct str name)
{
    for (size_t i = 0; i < n_setting_words; i++)
        if (setting_words[i].set == set && word_eq(setting_words[i].name, name))
            return &setting_words[i];
    return NULL;
}

struct str scopes_print(struct arena *a, unsigned scopes)
{
    static const char *const names[] = { "at the top", "in a site", "in a location", "in an upstream",
                                         "in a server of an upstream" };
    struct str text = STR("");
    for (unsigned i = ARRAY_LEN(names); i-- > 0;) {
        if (!(scopes & (1u << i)))
            continue;
        text = text.n == 0 ? str_c(names[i]) : arena_printf(a, "%s or %.*s", names[i], STR_ARG(text));
    }
    return text;
}

void nearest_init(struct nearest *n, struct str word)
{
    *n = (struct nearest){ .word = word, .distance = word.n <= 3 ? 1 : word.n <= 6 ? 2 : 3 };
}

enum { NEAREST_MAX = 64 };

/* Edits (insert, delete, replace, swap of neighbours) between two words of at most NEAREST_MAX bytes, case aside. */
static size_t edit_distance(struct str a, struct str b)
{
    size_t rows[3][NEAREST_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.n; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            bool is_same = ascii_lower(a.p[i - 1]) == ascii_lower(b.p[j - 1]);
            size_t best = last[j - 1] + (is_same ? 0 : 1);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            bool is_swap = i > 1 && j > 1 && ascii_lower(a.p[i - 1]) == ascii_lower(b.p[j - 2]) &&
                           ascii_lower(a.p[i - 2]) == ascii_lower(b.p[j - 1]);
            if (is_swap && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b.n];
}

void nearest_offer(struct nearest *n, struct str candidate)
{
    if (n->word.n > NEAREST_MAX || candidate.n > NEAREST_MAX || candidate.n == 0)
        return;
    size_t distance = word_eq(n->word, candidate) ? 0 : edit_distance(n->word, candidate);
    if (distance >= candidate.n || distance > n->distance || (distance == n->distance && n->best.n > 0))
        return;
    n->best = candidate;
    n->distance = distance;
}
