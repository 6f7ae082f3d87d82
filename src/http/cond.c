/* SPDX-License-Identifier: MIT */
/*
 * Conditional requests (RFC 9110 §13).
 * The caller has found the representation and knows that the answer without any condition would be 200; here it is
 * decided whether it becomes 304 or 412, in the order of §13.2.2: If-Match, else If-Unmodified-Since; then
 * If-None-Match, else If-Modified-Since.
 * A date that is none, or that comes twice, is as if it were not there; a list that is malformed matches only what
 * stands before the fault. Nothing is kept, nothing allocated.
 */
#include "http/cond.h"

#include "http/date.h"

/* Splits off W/. */
static bool is_weak(struct str *tag)
{
    if (!str_starts(*tag, STR("W/")))
        return false;
    *tag = str_skip(*tag, 2);
    return true;
}

bool etag_weak_eq(struct str a, struct str b)
{
    is_weak(&a);
    is_weak(&b);
    return a.n >= 2 && str_eq(a, b);
}

bool etag_strong_eq(struct str a, struct str b)
{
    return a.n >= 2 && a.p[0] == '"' && str_eq(a, b);
}

static bool is_etag_char(char c)
{
    unsigned char u = (unsigned char)c;
    return u == 0x21 || (u >= 0x23 && u != 0x7f);
}

/* The next entity-tag of a list (§8.8.3: no escapes, a comma is an ordinary character inside). False at the end, or
 * where the list is malformed. */
static bool next_etag(struct str list, size_t *at, struct str *tag)
{
    size_t i = *at;
    bool had_comma = i == 0;
    for (; i < list.n && (list.p[i] == ' ' || list.p[i] == '\t' || list.p[i] == ','); i++)
        had_comma |= list.p[i] == ',';
    if (i == list.n || !had_comma)
        return false;
    size_t start = i;
    if (str_starts(str_skip(list, i), STR("W/")))
        i += 2;
    if (i == list.n || list.p[i] != '"')
        return false;
    for (i++; i < list.n && is_etag_char(list.p[i]); i++)
        continue;
    if (i == list.n || list.p[i] != '"')
        return false;
    *at = i + 1;
    *tag = str_of(list.p + start, *at - start);
    return true;
}

/* Is the tag in any line of this field? "*" is any representation, also one without a tag. */
static bool lists_tag(const struct fields *f, enum field_id id, struct str etag, bool (*eq)(struct str, struct str))
{
    for (const struct field *it = fields_get(f, id); it != NULL; it = fields_next(f, it)) {
        struct str tag;
        if (str_eq(it->value, STR("*")))
            return true;
        for (size_t at = 0; next_etag(it->value, &at, &tag);)
            if (eq(tag, etag))
                return true;
    }
    return false;
}

/* The date in the one line of this field. */
static bool has_date(const struct fields *f, enum field_id id, int64_t now, int64_t *date)
{
    const struct field *it = fields_get(f, id);
    return it != NULL && fields_next(f, it) == NULL && date_parse(it->value, now, date);
}

enum cond_result cond_check(const struct fields *f, const struct validators *v, int64_t now)
{
    int64_t date;
    bool is_dated = v->last_modified >= 0;
    if (fields_get(f, F_IF_MATCH) != NULL) {
        if (!lists_tag(f, F_IF_MATCH, v->etag, etag_strong_eq))
            return COND_FAILED;
    } else if (is_dated && has_date(f, F_IF_UNMODIFIED_SINCE, now, &date) && v->last_modified > date) {
        return COND_FAILED;
    }
    if (fields_get(f, F_IF_NONE_MATCH) != NULL)
        return lists_tag(f, F_IF_NONE_MATCH, v->etag, etag_weak_eq) ? COND_NOT_MODIFIED : COND_PASS;
    if (is_dated && has_date(f, F_IF_MODIFIED_SINCE, now, &date) && v->last_modified <= date)
        return COND_NOT_MODIFIED;
    return COND_PASS;
}

bool cond_if_range(const struct fields *f, const struct validators *v, int64_t now)
{
    const struct field *it = fields_get(f, F_IF_RANGE);
    int64_t date;
    if (it == NULL)
        return true;
    if (fields_next(f, it) != NULL)
        return false;
    if (str_starts(it->value, STR("\"")) || str_starts(it->value, STR("W/")))
        return etag_strong_eq(it->value, v->etag);
    return v->last_modified >= 0 && date_parse(it->value, now, &date) && date == v->last_modified;
}
