/* SPDX-License-Identifier: MIT */
/*
 * The configuration as the server uses it: immutable, complete, every value resolved (inheritance, defaults, paths,
 * regexes). Built by conf_load on any thread; read by all. It owns everything it points to (one arena) and nothing else
 * points back.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/map.h"

/* Where a value was written. line 0: nowhere, it is the default (or derived from a command line). */
struct where {
    uint16_t file; /* index into conf->files */
    uint32_t line;
};

/* One id per row of the settings tables (settings/AREA.def), e.g. SET_timeouts_header. */
enum setting_id {
#define SETTING(area, name, ...) SET_##area##_##name,
#include "conf/settings.inc"
#undef SETTING
    SET_COUNT
};

/* A template: literal text with $variables, compiled at load. One piece is either. */
enum var_id {
    VAR_LITERAL,
#define VAR(id, name, doc) VAR_##id,
#include "conf/vars.def"
#undef VAR
    VAR_COUNT
};

struct template_piece {
    enum var_id var;
    struct str text; /* VAR_LITERAL: the bytes; VAR_CAPTURE: the digit; VAR_HTTP, VAR_SENT_HTTP: which field (lower
                        case, '-' for '_'); VAR_ARG, VAR_COOKIE: which, as written */
};

struct template
{
    const struct template_piece *pieces;
    unsigned n;
    struct str source; /* as written */
};

struct header_rule {
    struct str name;
    const struct template *values; /* each becomes a line; n_values 0 removes the field */
    unsigned n_values;
    bool append; /* add_response_headers */
    struct where where;
};

enum action_kind { ACTION_FILE, ACTION_PROXY, ACTION_REDIRECT, ACTION_RESPOND, ACTION_BUILTIN, ACTION_METEOR, ACTION_COUNT };
enum builtin_kind { BUILTIN_STATUS, BUILTIN_METRICS, BUILTIN_STUB_STATUS, BUILTIN_READY };

struct conf_owned;
struct upstream_conf;

/* What answers a request. A tagged union; actions of a location are tried in order (meteor_bundle + root + proxy:
 * three). */
struct action {
    enum action_kind kind;
    struct where where;
    union {
        struct {
            struct str root;    /* absolute, without a trailing slash (except "/") */
            uint64_t root_hash; /* of `root`, ready for a cache key */
            bool alias;         /* the location's prefix is cut off the path */
            bool or_proxy;      /* followed by a proxy: answer only what product.md says, else DECLINED */
            bool own_index;     /* `index` stands in this very location */
        } file;
        struct {
            const struct upstream_conf *upstream;
        } proxy;
        struct {
            uint16_t status; /* 0: 301 for GET and HEAD, else 308 */
            struct template to;
        } redirect;
        struct {
            uint16_t status;
            struct str body; /* empty with has_body false: the small page for that status */
            bool has_body;
            struct str type;
        } respond;
        enum builtin_kind builtin;
        struct {
            struct str bundle; /* absolute; the folder that has `programs` in it; NUL-terminated */
            uint64_t hash;     /* of `bundle` */
        } meteor;
    } u;
};

enum log_format_kind { LOG_FORMAT_COMBINED, LOG_FORMAT_JSON, LOG_FORMAT_OWN };

struct access_log_conf {
    struct str path; /* absolute, or "stdout" */
    enum log_format_kind format;
    struct template own;
    unsigned index; /* among conf->logs: equal path and format share one entry */
};

struct expires_conf {
    enum { EXPIRES_OFF, EXPIRES_EPOCH, EXPIRES_AFTER } kind;
    uint64_t ms;
};

struct gzip_conf {
    bool on;
    const struct str *types;
    unsigned n_types;
    uint64_t min_length;
    int level;
};

struct error_page_conf {
    const uint16_t *statuses;
    unsigned n_statuses;
    struct str file; /* absolute */
    struct str body; /* what was in it when the configuration was loaded; p NULL: it was not there */
    bool intercept;  /* also in place of a backend's answer */
};

enum { AUTH_HASH_MAX = 384 }; /* CRYPT_OUTPUT_SIZE, crypt(3) */

struct auth_user {
    struct str name, hash; /* NUL-terminated, too; a hash is shorter than AUTH_HASH_MAX */
};

/* basic_auth. Shared by every scope that inherits it. */
struct auth_conf {
    struct str realm;
    struct str file; /* absolute; empty: none */
    const struct auth_user *users; /* those of the file, then those of the configuration */
    unsigned n_users;
};

/* limits.requests: at most `burst` at once, and one more every interval_us. limits.in_flight: at most `burst` at the same time.
 * Shared by every scope that inherits it. */
struct limit_conf {
    uint64_t burst;
    uint64_t interval_us;
    uint64_t count; /* `rate` as written: so many ... */
    char per;       /* ... in a second, minute or hour: s, m, h */
    bool is_dry_run;
    struct template key; /* n 0: the client's address, IPv6 by its /64 */
    uint64_t id;         /* where it stands, the same after a reload; not 0 */
};

/* Every setting that can stand in a location and is inherited (top, site, location; timeouts also from the upstream).
 * Durations in ms, 0 = none; sizes in bytes, 0 = none. */
struct scope_conf {
    struct {
        uint64_t body, send, connect, queue, server, tunnel;
    } timeouts;
    struct {
        uint64_t body_size;
        struct limit_conf *requests, *in_flight; /* NULL: none */
    } limits;
    const struct access_log_conf *access_log; /* NULL: off */
    const struct str *index;
    unsigned n_index;
    struct str fallback; /* empty: none */
    enum { AUTOINDEX_OFF, AUTOINDEX_HTML, AUTOINDEX_JSON, AUTOINDEX_AUTO } autoindex;
    bool dotfiles;
    const struct str *follow; /* absolute folders */
    unsigned n_follow;
    struct expires_conf expires;
    struct gzip_conf gzip;
    bool precompressed;
    bool via;
    const struct header_rule *request_headers;
    unsigned n_request_headers;
    const struct header_rule *response_headers; /* add_response_headers too, in order */
    unsigned n_response_headers;
    struct str strip_prefix; /* empty: none; `true` is resolved to the location's prefix */
    bool strip_own_prefix;   /* `true` was written */
    struct template rewrite; /* n 0: none */
    const struct error_page_conf *error_pages;
    unsigned n_error_pages;
    uint64_t buffer_request;
    bool x_accel_redirect;
    const struct str *x_sendfile; /* absolute folders */
    unsigned n_x_sendfile;
    const struct cidr *allow, *deny;
    unsigned n_allow, n_deny;
    bool has_allow;
    const struct auth_conf *basic_auth; /* NULL: off */
    struct where where[SET_COUNT]; /* by setting_id; for explain */
};

enum match_kind { MATCH_EXACT, MATCH_PREFIX, MATCH_PREFIX_FINAL /* ^~ */, MATCH_REGEX };

struct location_conf {
    enum match_kind kind;
    struct str pattern; /* path or prefix, or the regex source without "~ " */
    struct str match;   /* the whole value as written: "~* \.png$" */
    bool nocase;
    pcre2_code *regex; /* MATCH_REGEX; JIT-compiled */
    bool has_jit;      /* whether it could be */
    const struct location_conf *shorter; /* of a prefix: the longest other one that it begins with; NULL: none */
    bool implicit;     /* the site's own "/" */
    bool internal;     /* only for reroutes */
    unsigned order;    /* in the file */
    const struct action *actions[3];
    unsigned n_actions;
    struct scope_conf s;
    struct where where;
    const struct site_conf *site;
};

struct server_name {
    struct str name; /* lower case; for a wildcard the suffix with its dot: ".example.com" */
    bool wildcard;
};

struct site_conf {
    struct str label; /* the first name, or the first listen address: for logs and explain */
    const struct server_name *names;
    unsigned n_names;
    bool is_default;                          /* said so */
    const struct location_conf *const *exact; /* each array sorted for the lookup that serve/route.c does */
    unsigned n_exact;
    const struct location_conf *const *prefix; /* by length, longest first */
    const struct location_conf *const *sorted; /* the same by pattern, to be searched */
    unsigned n_prefix;
    const struct location_conf *const *regex; /* in file order */
    unsigned n_regex;
    const struct location_conf *const *all; /* in file order, the implicit one last */
    unsigned n_all;
    struct map exact_map;       /* path -> location_conf */
    const struct scope_conf *s; /* the site's own scope, for answers before a location is known */
    const struct cidr *trusted;
    unsigned n_trusted;
    struct where where;
};

/* One address to listen on, with the sites reached through it in file order. */
struct listen_conf {
    struct endpoint endpoint;
    struct str text; /* as written, normalised: "*:80", "127.0.0.1:80", "unix:/path" */
    int backlog;
    bool defer, proxy_protocol;
    const struct site_conf *const *sites;
    unsigned n_sites;
    const struct site_conf *default_site;
    struct map names;                        /* exact name -> site_conf */
    const struct server_name_ref *wildcards; /* longest first */
    unsigned n_wildcards;
    struct where where;
};

struct server_name_ref {
    struct str suffix; /* ".example.com" */
    const struct site_conf *site;
};

enum balance_kind {
    BALANCE_ROUND_ROBIN,
    BALANCE_LEAST_CONN,
    BALANCE_RANDOM,
    BALANCE_IP_HASH,
    BALANCE_URI_HASH,
    BALANCE_HASH
};

struct health_conf {
    enum { HEALTH_PASSIVE, HEALTH_TCP, HEALTH_HTTP } kind;
    struct str path;
    uint64_t interval, timeout;
    unsigned rise, fall;
    uint16_t expect_low, expect_high; /* statuses */
    unsigned proxy_protocol; /* the upstream's */
};

struct server_conf {
    struct endpoint endpoint;
    struct str text; /* as written: the server's name in logs and over the control socket */
    unsigned weight;
    bool backup, drain;
    uint64_t maxconn; /* 0: none */
    uint64_t keepalive, max_tunnels;
    uint64_t queue_size; /* requests bound to this server that may wait */
    struct where where;
};

struct upstream_conf {
    struct str name; /* for a bare address: that address */
    const struct server_conf *servers;
    unsigned n_servers;
    enum balance_kind balance;
    struct template hash;
    unsigned hash_balance_factor; /* percent, over 100; 0: no bound */
    unsigned retries;
    bool redispatch;
    unsigned proxy_protocol; /* version of the header that connections begin with, and then serve one request; 0: none */
    uint64_t queue_size, hold;
    uint64_t upstream_idle; /* ms */
    bool has_upstream_idle; /* false (default): learn from the backend; true with 0 ms: no limit */
    struct health_conf health;
    enum { STICKY_OFF, STICKY_AUTO, STICKY_COOKIE } sticky;
    struct str sticky_cookie, sticky_key;
    unsigned index; /* in conf->upstreams */
    struct where where;
};

struct conf {
    struct arena arena;
    struct conf_owned *owned; /* what the arena cannot free: regexes, maps */
    const struct str *files;  /* names as given; 0 is the main file */
    unsigned n_files;
    struct str
        text; /* the exact resolved text that was loaded (included files after the main one, environment replaced); it
                 loads again with conf_load_text, wherever the process then stands, and keeps files and lines */

    unsigned workers; /* resolved: at least 1 */
    const unsigned *cpu_affinity;
    unsigned n_cpu_affinity;
    struct str user, pid_file, control;
    struct str error_log; /* absolute, or "stderr" */
    enum log_style error_log_style;
    enum log_level log_level;
    struct {
        uint64_t header, keepalive, shutdown, lame_duck;
    } timeouts;
    struct {
        uint64_t header_size, header_count, uri_size, response_header_size,
            clients; /* clients 0: derive from the descriptor limit */
    } limits;
    struct {
        uint64_t entries, small, valid;
    } file_cache;
    struct str mime_types; /* absolute; empty: none */
    struct map mime;       /* what it says: extension in lower case -> const struct str, the type with its charset */
    uint64_t mime_hash;    /* of the file's text; 0: none */

    const struct scope_conf *s;    /* the top scope: for failures before a site is known */
    struct where where[SET_COUNT]; /* top-level settings */
    const struct listen_conf *listens;
    unsigned n_listens;
    const struct site_conf *const *sites;
    unsigned n_sites;
    const struct upstream_conf *const *upstreams;
    unsigned n_upstreams;
    const struct access_log_conf *const *logs;
    unsigned n_logs;
};

/* One finding. Errors refuse the file, warnings do not. */
struct diagnostic {
    struct diagnostic *next;
    struct where where;
    bool warning;
    struct str text;        /* "what is wrong; what was expected" */
    struct str source_line; /* syntax errors: the line, for the caret */
    unsigned column;        /* 1-based; 0: no caret */
};

struct conf_result {
    struct conf *conf;        /* NULL if there was an error */
    struct diagnostic *first; /* in file order, warnings included; in `arena` */
    unsigned n_errors, n_warnings;
    const struct str *files; /* names for where.file */
    unsigned n_files;
    struct arena arena;
};

/* Reads, checks and builds. Never prints, never exits; no side effect on the system other than reading files and
 * resolving nothing. Thread-safe for different results. The result's conf is owned by the caller (conf_free), the
 * result by conf_result_free. */
void conf_load(const char *path, struct conf_result *out);
/* From memory: `name` stands for the file in diagnostics, relative paths are relative to `dir`. */
void conf_load_text(struct str text, const char *name, const char *dir, struct conf_result *out);
/* The same with flags. CONF_NO_FILES: looks at no file at all (no include, nothing need exist; workers = "auto" is 1).
 */
enum conf_flags { CONF_NO_FILES = 1 };
void conf_load_flags(struct str text, const char *name, const char *dir, unsigned flags, struct conf_result *out);
void conf_result_free(struct conf_result *r);
void conf_free(struct conf *c);
/* "file:line: text" (and the caret lines) for one diagnostic, newline-terminated, into the arena. */
struct str diagnostic_print(struct arena *a, const struct conf_result *r, const struct diagnostic *d);
/* "proxy.conf:12", or "default". */
struct str where_print(struct arena *a, const struct conf *c, struct where w);

#endif
