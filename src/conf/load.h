/* SPDX-License-Identifier: MIT */
/*
 * Between the files of this folder only: the state of one load, and the functions that read one kind of value each.
 *
 * A load runs on one thread, reports into one conf_result and builds one conf. Every finding goes through the diag_
 * functions, and the reading goes on, so that one run shows all problems. Want of memory leaves by longjmp to load.c,
 * which frees everything.
 */
#ifndef CONF_LOAD_H
#define CONF_LOAD_H

#include <libconfig.h>
#include <setjmp.h>

#include "conf/conf.h"
#include "conf/settings.h"

struct trusted {
    const struct cidr *trusted;
    unsigned n_trusted;
};

/* One file (or text) and its tree. */
struct source {
    struct str name; /* for diagnostics */
    struct str dir;  /* absolute; relative paths are relative to it */
    struct str text; /* what libconfig read: environment in place */
    config_t tree;
    bool has_tree;
};

enum { SOURCES_MAX = 1024 };

struct target;

/* A value to be read: where it stands, what it is for, where it goes. */
struct value {
    struct load *ld;
    config_setting_t *s;
    const struct setting *row;
    const struct target *t;
};

/* The objects that the rows of a scope write to; a row's `base` selects one. */
struct target {
    unsigned scope; /* one of enum scope */
    struct conf *conf;
    struct scope_conf *scoped;
    struct upstream_conf *upstream;
    struct server_conf *server;
    struct site_conf *site;
    struct trusted *trusted;
    void *part;              /* of a MEMBER area */
    struct actions *actions; /* found in this site or location */
    config_setting_t *
        *written; /* [SET_COUNT]: what was written in this very scope (builders read lists from here); or NULL */
};

/* The actions written in one site or location. */
struct actions {
    struct action *list[ACTION_COUNT + 1]; /* root and alias are both ACTION_FILE: one more */
    struct str names[ACTION_COUNT + 1];
    unsigned n;
    bool is_broken; /* one of them was wrong, and that was said */
};

struct upstream_build {
    struct upstream_conf *upstream;
    struct scope_conf scoped; /* its timeouts */
    config_setting_t *written[SET_COUNT];
    bool is_used, is_anonymous;
    struct upstream_build *next;
};

struct listen_build {
    struct listen_conf listen;
    struct site_conf **sites;
    unsigned n_sites, cap_sites;
    unsigned options; /* written by some site: a bit for each (merge_options) */
    struct listen_build *next;
};

struct load {
    struct conf_result *out;
    struct conf *conf;
    struct arena
        *arena; /* for load_alloc: the temp one while files are read, then the conf's, for everything the conf keeps */
    struct arena *temp; /* the result's: diagnostics, and what only the load needs */
    unsigned flags;     /* of enum conf_flags */
    bool is_defaults;   /* reading the defaults of the tables */
    bool is_replay;     /* the text is a resolved one that was served before: missing folders only warn */
    struct source *sources;
    unsigned n_sources;
    struct diagnostic *last;
    struct scope_conf top;
    struct trusted trusted;
    struct upstream_conf upstream_defaults;
    struct server_conf server_defaults;
    struct listen_conf listen_defaults;
    struct action respond_defaults;
    struct upstream_build *upstreams, **upstreams_end;
    struct listen_build *listens, **listens_end;
    struct site_conf **sites;
    unsigned n_sites, cap_sites;
    struct access_log_conf **logs;
    unsigned n_logs, cap_logs;
    jmp_buf no_memory;
};

/* Findings (diag.c). */
void diag_add(struct load *ld, struct where where, bool warning, const char *fmt, ...) PRINTF(4, 5);
/* With the source line and a caret under `column` (1-based). */
void diag_caret(struct load *ld, struct where where, struct str line, size_t column, const char *fmt, ...) PRINTF(5, 6);
void diag_sort(struct conf_result *r);
/* An error (a warning) about a value: its key path is put before the text. Says nothing about a value that lint has
 * reported. */
void diag_bad(const struct value *v, const char *fmt, ...) PRINTF(2, 3);
void diag_warn(const struct value *v, const char *fmt, ...) PRINTF(2, 3);
/* "found 12; expected what the row's type takes"; always false, so that a reader can return it. */
bool diag_bad_type(const struct value *v);
/* A path as `match` compares it: no //, no dot segments; one at the end counts only if it is the whole path. */
bool value_is_resolved_path(struct str path, bool is_whole);
/* Only bytes that may stand in a URL? Otherwise says which may not. */
bool value_check_url(const struct value *v, struct str text, bool may_have_fragment);
/* What stands there, short: `"text"`, 12, a group. */
struct str value_show(const struct value *v);
/* What the row's type takes. */
struct str value_expected(struct load *ld, const struct setting *row);

/* Memory (load.c). These never return NULL. */
void *load_alloc(struct load *ld, size_t n);
struct str load_dup(struct load *ld, struct str s);
struct str load_printf(struct load *ld, const char *fmt, ...) PRINTF(2, 3);
#define load_new(ld, type)      ((type *)load_alloc((ld), sizeof(type)))
#define load_array(ld, type, n) ((type *)load_alloc((ld), sizeof(type) * (size_t)(n)))
/* Makes room for one more pointer in a list of the temp arena: call it before list[n++] = p. */
void *load_grow(struct load *ld, void *list, unsigned n, unsigned *cap);
struct where value_where(const struct load *ld, const config_setting_t *s);
/* "proxy.conf:12" */
struct str where_show(struct load *ld, struct where w);
/* Hands a regex or a map to the conf, which frees it. */
void load_own_regex(struct load *ld, pcre2_code *code);
void load_own_map(struct load *ld, struct map *map);
void load_map_put(struct load *ld, struct map *map, struct str key, const void *value);
/* Absolute, "//" and "/./" gone, no trailing slash (except "/"). */
struct str load_path(struct load *ld, unsigned file, struct str path);

/* The whole file, in the temp arena. False with errno. */
bool load_file(struct load *ld, const char *path, struct str *out) MUST_USE;
/* Replaces the environment, checks the syntax, rewrites escapes; the result has the same lines. False: libconfig need
 * not see it. */
bool lint(struct load *ld, unsigned file, struct str text, struct str *out) MUST_USE;

/* Values (value.c). A value may be a list: value_count is 1 for anything else, and value_at(v, 0) then is v itself. */
unsigned value_count(const struct value *v);
struct value value_at(const struct value *v, unsigned i);
struct value value_of(struct load *ld, config_setting_t *s, const struct setting *row, const struct target *t);
bool value_is_group(const struct value *v);
bool value_is_list(const struct value *v);
/* The text of a string; false (nothing said) if it is none. For templates "$$" stays, else it becomes "$". */
bool value_text(const struct value *v, struct str *out) MUST_USE;
bool value_raw_text(const struct value *v, struct str *out) MUST_USE;
/* A bool, or a string that spells one; false (nothing said) if it is none. */
bool value_bool(const struct value *v, bool *out) MUST_USE;
/* A number, or a string that spells one. */
bool value_number(const struct value *v, int64_t *out) MUST_USE;
/* false, 0, "off": nothing wanted. */
bool value_is_off(const struct value *v);

/* Where a row's value goes; NULL: this target has no such object. */
void *target_member(const struct value *v);
/* Reads a value by the type of its row into the row's member. False: something was wrong (and said). */
bool value_read(const struct value *v);
bool read_word(const struct value *v, enum word_set set, int *out);
bool read_uint(const struct value *v, uint64_t lo, uint64_t hi, uint64_t *out);
bool read_duration(const struct value *v, uint64_t *ms);
bool read_path(const struct value *v, struct str *out);
/* Says what it thinks of a value's state: PLANNED warns, REFUSED is an error. */
void value_state(const struct value *v, enum setting_state state, const char *what);
/* Compiles a text with $variables (template.c). */
bool template_compile(const struct value *v, struct str text, struct template *out);
struct str template_var_name(enum var_id id); /* "status"; of a family its beginning */
unsigned template_captures(const struct template *t); /* the highest $1 … $9, 0: none */
bool value_is_token(struct str s);

/* Scopes (scope.c): every setting of a group, by the table. */
void scope_read(struct load *ld, config_setting_t *group, const struct target *t);
/* The members of the group form of a setting. */
void area_read(struct load *ld, config_setting_t *group, enum area area, const struct target *t);
/* The defaults of the tables into the load's defaults. */
void scope_defaults(struct load *ld);

/* The readers of single types, one file for each family. */
bool read_access_log(const struct value *v);
bool read_log_format(const struct value *v);
bool read_headers(const struct value *v, bool add);
bool read_basic_auth(const struct value *v);
bool read_limit(const struct value *v);
bool read_rate(const struct value *v);
bool read_gzip(const struct value *v);
bool read_types(const struct value *v);
bool read_error_pages(const struct value *v);
bool read_statuses(const struct value *v);
bool read_expires(const struct value *v);
bool read_strip_prefix(const struct value *v);
bool read_mime_types(const struct value *v, struct str path);
bool read_workers(const struct value *v);
bool read_cpus(const struct value *v);
bool read_health(const struct value *v);
bool read_expect(const struct value *v);
bool read_sticky(const struct value *v);
bool read_address(const struct value *v);
bool read_action(const struct value *v);
bool read_redirect_status(const struct value *v);
bool read_match(const struct value *v);
bool read_listen_address(const struct value *v);
unsigned cpus_auto(bool may_read_files);

/* Building (upstream.c, site.c, location.c, check.c), in this order. */
void upstreams_read(struct load *ld, config_setting_t *group);
struct upstream_build *upstream_find(struct load *ld, struct str name);
/* The upstream that `proxy` names; NULL: said why. */
const struct upstream_conf *upstream_for(const struct value *v, struct str text);
void upstreams_finish(struct load *ld);
void sites_read(struct load *ld, config_setting_t *list);
void locations_read(struct load *ld, struct site_conf *site, const struct value *site_value,
                    const struct target *site_target);
void listens_finish(struct load *ld);
void limits_finish(struct load *ld); /* tells them apart */
void logs_finish(struct load *ld); /* keeps the access logs that some scope uses */
void check_all(struct load *ld);

#endif
