/* SPDX-License-Identifier: MIT */
/*
 * A group of settings, read by the table: which names may stand in this scope, who reads each value, where it was
 * written. Inheritance needs no code here: the caller copies the outer scope's struct and the inner settings overwrite
 * what they name; lists that merge do so in their own readers. Settings that hold whole objects (sites, locations,
 * servers) are only noted in target->written.
 */
#include "conf/load.h"

static const struct {
    struct str theirs;
    const char *ours;
} foreign[] = {
#define FOREIGN(theirs, ours) { { theirs, sizeof theirs - 1 }, ours },
#include "conf/foreign.def"
#undef FOREIGN
};

/* Does this row stand among the names of that scope (or of that area)? */
static bool is_among(const struct setting *row, unsigned scope, enum area area)
{
    return area < AREA_COUNT ? row->area == area : areas[row->area].kind == DIRECT && (row->scopes & scope);
}

static bool has_hint(const struct value *v, struct str name, unsigned scope, enum area area)
{
    struct load *ld = v->ld;
    struct nearest nearest;
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
        if (!str_eq(foreign[i].theirs, name))
            continue;
        diag_bad(v, "no such setting; expected %s", foreign[i].ours);
        return true;
    }
    /* The right name in a wrong place. */
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct setting *row = &settings[i];
        if (!str_eq(row->name, name) || areas[row->area].kind == MEMBER)
            continue;
        struct str group = areas[row->area].key;
        if (row->scopes & scope && areas[row->area].kind == GROUP && area == AREA_COUNT)
            diag_bad(v, "no such setting here; expected %.*s = { %.*s = ...; }", STR_ARG(group), STR_ARG(name));
        else if (!(row->scopes & scope) || area == AREA_COUNT)
            diag_bad(v, "cannot stand here; expected %s", scopes_print(ld->temp, row->scopes).p);
        else
            continue;
        return true;
    }
    nearest_init(&nearest, name);
    for (size_t i = 0; i < SET_COUNT; i++) {
        if (is_among(&settings[i], scope, area))
            nearest_offer(&nearest, settings[i].name);
        if (area == AREA_COUNT && areas[settings[i].area].kind == GROUP && (settings[i].scopes & scope))
            nearest_offer(&nearest, areas[settings[i].area].key);
    }
    if (nearest.best.n == 0)
        return false;
    diag_bad(v, "no such setting; did you mean `%.*s`?", STR_ARG(nearest.best));
    return true;
}

static void unknown(const struct value *v, struct str name, unsigned scope, enum area area)
{
    if (has_hint(v, name, scope, area))
        return;
    if (area == AREA_COUNT) {
        diag_bad(v, "no such setting; see proxy.conf(5) for all of them");
        return;
    }
    struct str all = STR("");
    for (size_t i = 0; i < SET_COUNT; i++)
        if (settings[i].area == area)
            all = load_printf(v->ld, "%.*s%s%.*s", STR_ARG(all), all.n > 0 ? ", " : "", STR_ARG(settings[i].name));
    diag_bad(v, "no such setting; expected one of %.*s", STR_ARG(all));
}

static void read_one(const struct value *v)
{
    const struct target *t = v->t;
    enum setting_id id = setting_id(v->row);
    struct where where = value_where(v->ld, v->s);
    if (t->written != NULL)
        t->written[id] = v->s;
    if (v->row->base != IN_NOWHERE && target_member(v) == NULL)
        return;
    bool has_word_states = v->row->type == TYPE_LOG_FORMAT;
    if (value_read(v) && !has_word_states && !value_is_off(v))
        value_state(v, v->row->state, load_printf(v->ld, "`%.*s`", STR_ARG(v->row->name)).p);
    if (t->scoped != NULL)
        t->scoped->where[id] = where;
    if (t->conf != NULL)
        t->conf->where[id] = where;
}

/* What stands in for the second of two equal names (lint.c). */
static bool is_placeholder(struct str name)
{
    return name.n > 1 && name.p[0] == '*' && is_digit(name.p[1]);
}

void area_read(struct load *ld, config_setting_t *group, enum area area, const struct target *t)
{
    for (unsigned i = 0; i < (unsigned)config_setting_length(group); i++) {
        struct value v = value_of(ld, config_setting_get_elem(group, i), NULL, t);
        struct str name = str_c(config_setting_name(v.s));
        if (is_placeholder(name))
            continue;
        v.row = setting_in_area(area, name);
        if (v.row == NULL || !(v.row->scopes & t->scope))
            unknown(&v, name, t->scope, area);
        else
            read_one(&v);
    }
}

static void read_group(struct load *ld, config_setting_t *s, enum area area, const struct target *t)
{
    struct value v = value_of(ld, s, NULL, t);
    if (value_is_group(&v)) {
        area_read(ld, s, area, t);
        return;
    }
    struct str found = value_show(&v);
    diag_bad(&v, "found %.*s; expected a group { ... }", STR_ARG(found));
}

void scope_read(struct load *ld, config_setting_t *group, const struct target *t)
{
    /* add_response_headers adds to what response_headers leaves, whatever their order in the file: it is read in a
     * second pass. */
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < (unsigned)config_setting_length(group); i++) {
            struct value v = value_of(ld, config_setting_get_elem(group, i), NULL, t);
            struct str name = str_c(config_setting_name(v.s));
            if (is_placeholder(name))
                continue;
            v.row = setting_in_scope(t->scope, name);
            if (v.row != NULL) {
                if ((v.row->type == TYPE_ADD_HEADERS) == (pass == 1))
                    read_one(&v);
                continue;
            }
            if (pass == 1)
                continue;
            enum area area = area_of_group(t->scope, name);
            if (area < AREA_COUNT)
                read_group(ld, v.s, area, t);
            else
                unknown(&v, name, t->scope, AREA_COUNT);
        }
    }
}

void scope_defaults(struct load *ld)
{
    struct source *source = &ld->sources[ld->n_sources - 1];
    config_setting_t *s = config_setting_add(config_root_setting(&source->tree), "default", CONFIG_TYPE_STRING);
    struct target t = {
        .scope = SCOPE_TOP,
        .conf = ld->conf,
        .scoped = &ld->top,
        .upstream = &ld->upstream_defaults,
        .server = &ld->server_defaults,
    };
    ld->is_defaults = true;
    for (size_t i = 0; i < SET_COUNT; i++) {
        struct value v = value_of(ld, s, &settings[i], &t);
        enum area area = settings[i].area;
        if (settings[i].value == NULL || area == AREA_log_to || settings[i].type == TYPE_MATCH)
            continue;
        t.part = area == AREA_listen    ? (void *)&ld->listen_defaults
                 : area == AREA_respond ? &ld->respond_defaults
                                        : NULL;
        if (config_setting_set_string(s, settings[i].value) != CONFIG_TRUE)
            longjmp(ld->no_memory, 1);
        bool is_right = value_read(&v);
        CHECK(is_right);
    }
    ld->is_defaults = false;
}
