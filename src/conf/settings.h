/* SPDX-License-Identifier: MIT */
/*
 * The settings tables as data. A row of settings/AREA.def:
 *   SETTING(area, name, scopes, type, target, default, state, doc)
 * scopes   where it may stand: T top, S site, L location, U upstream, V server of an upstream
 * type     a word of types.def; ENUM(set), UINT(lo, hi) and SIZE(lo, hi) say more
 * target   the member that takes the value; NOWHERE when the type's own function knows
 * default  the value as one would write it (without quotes), or UNSET("what happens without it")
 * state    BUILT; PLANNED: checked, but a warning says it has no effect yet; REFUSED: ignoring it would be unsafe, an
 * error
 */
#ifndef CONF_SETTINGS_H
#define CONF_SETTINGS_H

#include "conf/conf.h"

enum scope { SCOPE_TOP = 1, SCOPE_SITE = 2, SCOPE_LOCATION = 4, SCOPE_UPSTREAM = 8, SCOPE_SERVER = 16 };
enum setting_state { BUILT, PLANNED, REFUSED };

enum area {
#define AREA(id, key, kind, doc) AREA_##id,
#include "conf/areas.def"
#undef AREA
    AREA_COUNT
};
enum area_kind { DIRECT, GROUP, MEMBER };
struct area_row {
    struct str id, key;
    enum area_kind kind;
    const char *doc;
};
extern const struct area_row areas[AREA_COUNT];

enum setting_type {
#define TYPE(id, expected) TYPE_##id,
#include "conf/types.def"
#undef TYPE
    TYPE_COUNT
};
extern const char *const type_expected[TYPE_COUNT];

enum word_set {
    WORDS_NONE,
    WORDS_autoindex,
    WORDS_balance,
    WORDS_builtin,
    WORDS_error_log_format,
    WORDS_log_format,
    WORDS_log_level,
    WORDS_proxy_protocol,
};
struct word {
    enum word_set set;
    struct str name;
    int value;
    enum setting_state state;
};
extern const struct word setting_words[];
extern const size_t n_setting_words;

/* Which object of a `struct target` (load.h) the offset counts from. */
enum base { IN_NOWHERE, IN_CONF, IN_SCOPE, IN_UPSTREAM, IN_SERVER, IN_SITE, IN_TRUSTED, IN_PART };

struct setting {
    struct str name;
    enum area area;
    unsigned scopes; /* of enum scope */
    enum setting_type type;
    uint64_t lo, hi;
    enum word_set words;
    enum base base;
    size_t offset, size, n_offset; /* the member, its size, and for lists the member with the count */
    const char *value;             /* the default as written, without quotes; NULL: none */
    const char *unset;             /* what happens without a default */
    enum setting_state state;
    const char *doc;
};
extern const struct setting settings[SET_COUNT];

static inline enum setting_id setting_id(const struct setting *s)
{
    return (enum setting_id)(s - settings);
}

/* The row for a name: in `area` for members and groups, else among the direct areas of the scope. NULL: none. */
const struct setting *setting_in_area(enum area area, struct str name);
const struct setting *setting_in_scope(unsigned scope, struct str name);
/* The area of a group (`timeouts`) that has rows for that scope; AREA_COUNT: none. */
enum area area_of_group(unsigned scope, struct str name);
/* "file_cache.valid", "listen": the name with its group's. */
struct str setting_key(struct arena *a, const struct setting *s);
/* The word of that set, comparing without '-', '_' and case; NULL: none. */
const struct word *word_find(enum word_set set, struct str name);
/* "at the top or in a site". */
struct str scopes_print(struct arena *a, unsigned scopes);

/* Collects the candidate nearest to a word; none if all are too far to be what was meant. */
struct nearest {
    struct str word, best;
    size_t distance;
};
void nearest_init(struct nearest *n, struct str word);
void nearest_offer(struct nearest *n, struct str candidate);

#endif
