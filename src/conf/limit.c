/* SPDX-License-Identifier: MIT */
/*
 * limits.requests and limits.in_flight: a number, or a group that says more. What is read becomes a struct limit_conf that
 * every scope which inherits it points to: so a limit written at the top counts over all sites, one in a location there
 * only. What tells limits apart at run time is where they stand (site and match), not the line, so that a reload finds the
 * same counts again.
 */
#include "conf/load.h"

/* A number is a second's; "5/m", "100/h", "10r/s" as nginx has it. */
static bool rate_parse(struct str text, uint64_t *count, char *per)
{
    ptrdiff_t slash = str_chr(text, '/', 0);
    struct str number = slash < 0 ? text : str_take(text, (size_t)slash), unit = slash < 0 ? STR("s") : str_skip(text, (size_t)slash + 1);
    if (str_ends(number, STR("r")))
        number.n--;
    *per = unit.n == 1 ? unit.p[0] : '\0';
    return str_to_u64(number, count) && *count > 0 && *count <= 1000000 && (*per == 's' || *per == 'm' || *per == 'h');
}

bool read_rate(const struct value *v)
{
    struct limit_conf *limit = v->t->part;
    struct str text;
    int64_t n;
    if (value_number(v, &n))
        text = load_printf(v->ld, "%lld", (long long)n);
    else if (!value_text(v, &text))
        return diag_bad_type(v);
    if (!rate_parse(text, &limit->count, &limit->per))
        return diag_bad_type(v);
    uint64_t second = 1000000, seconds = limit->per == 's' ? 1 : limit->per == 'm' ? 60 : 3600;
    limit->interval_us = (second * seconds + limit->count / 2) / limit->count;
    return true;
}

/* The group form, or a single value for the member that matters. */
bool read_limit(const struct value *v)
{
    struct load *ld = v->ld;
    bool is_rate = v->row->type == TYPE_REQUESTS;
    struct limit_conf *limit = load_new(ld, struct limit_conf);
    struct target t = *v->t;
    unsigned n_errors = ld->out->n_errors;
    t.part = limit;
    t.written = NULL;
    if (value_is_off(v)) {
        *(struct limit_conf **)target_member(v) = NULL;
        return true;
    }
    if (value_is_group(v)) {
        area_read(ld, v->s, is_rate ? AREA_requests : AREA_in_flight, &t);
    } else {
        struct value one = value_of(ld, v->s, &settings[is_rate ? SET_requests_rate : SET_in_flight_max], &t);
        if (!value_read(&one))
            return false;
    }
    if (ld->out->n_errors > n_errors)
        return false;
    if (is_rate ? limit->interval_us == 0 : limit->burst == 0) {
        diag_bad(v, "not complete; expected %s", is_rate ? "{ rate = 10; }" : "{ max = 10; }");
        return false;
    }
    if (limit->burst == 0)
        limit->burst = limit->per == 's' ? limit->count : 1;
    *(struct limit_conf **)target_member(v) = limit;
    return true;
}

/* FNV-1a over what says where a limit stands; never 0. */
static uint64_t place(struct str site, struct str match)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < site.n; i++)
        h = (h ^ (unsigned char)site.p[i]) * 0x100000001b3u;
    h = (h ^ 0xff) * 0x100000001b3u;
    for (size_t i = 0; i < match.n; i++)
        h = (h ^ (unsigned char)match.p[i]) * 0x100000001b3u;
    return h | 1;
}

/* The outermost scope that has a limit is where it stands. */
static void name_limits(const struct scope_conf *s, struct str site, struct str match)
{
    struct limit_conf *const limits[] = { s->limits.requests, s->limits.in_flight };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        if (limits[i] != NULL && limits[i]->id == 0)
            limits[i]->id = place(site, match);
}

void limits_finish(struct load *ld)
{
    name_limits(&ld->top, STR_NONE, STR_NONE);
    for (unsigned i = 0; i < ld->n_sites; i++) {
        const struct site_conf *site = ld->sites[i];
        name_limits(site->s, site->label, STR_NONE);
        for (unsigned j = 0; j < site->n_all; j++)
            name_limits(&site->all[j]->s, site->label, site->all[j]->match);
    }
}
