/* SPDX-License-Identifier: MIT */
/*
 * From a file (or a text) to a struct conf: reading, lint, libconfig, the table, the builders, the checks, in that
 * order; and the end of a load, whatever way it ends. The conf lives in its own arena and owns its regexes and maps
 * through conf->owned; everything that only the load needs lives in the result's arena. The trees of libconfig are
 * freed here and nowhere else.
 *
 * conf->text is what a restarted or upgraded server loads instead of the files: a first line that says so, then for
 * each file a line with its length, name and folder, and its text. So a finding, and `weir explain`, still name the
 * original file and line.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/load.h"

struct conf_owned {
    struct conf_owned *next;
    pcre2_code *regex;
    struct map *map;
};

enum { FILE_MAX = 64 << 20, PIPE_MS = 5000 };
#define REPLAY_HEAD "#weir-resolved 1\n"
#define REPLAY_FILE "#weir-file "

/* ---- memory */

void *load_alloc(struct load *ld, size_t n)
{
    void *p = arena_zalloc(ld->arena, n > 0 ? n : 1);
    if (p == NULL)
        longjmp(ld->no_memory, 1);
    return p;
}

struct str load_dup(struct load *ld, struct str s)
{
    struct str copy = arena_dup(ld->arena, s);
    if (copy.p == NULL)
        longjmp(ld->no_memory, 1);
    return copy;
}

struct str load_printf(struct load *ld, const char *fmt, ...)
{
    char *text;
    va_list args;
    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    if (n < 0)
        longjmp(ld->no_memory, 1);
    struct str copy = arena_dup(ld->arena, str_of(text, (size_t)n));
    free(text);
    if (copy.p == NULL)
        longjmp(ld->no_memory, 1);
    return copy;
}

void *load_grow(struct load *ld, void *list, unsigned n, unsigned *cap)
{
    if (n < *cap)
        return list;
    unsigned bigger = *cap * 2 + 8;
    void **copy = load_array(ld, void *, bigger);
    if (n > 0)
        memcpy(copy, list, n * sizeof *copy);
    *cap = bigger;
    return copy;
}

static void own(struct load *ld, pcre2_code *regex, struct map *map)
{
    struct conf_owned *owned = load_new(ld, struct conf_owned);
    *owned = (struct conf_owned){ .next = ld->conf->owned, .regex = regex, .map = map };
    ld->conf->owned = owned;
}

void load_own_regex(struct load *ld, pcre2_code *code)
{
    own(ld, code, NULL);
}

void load_own_map(struct load *ld, struct map *map)
{
    own(ld, NULL, map);
}

void load_map_put(struct load *ld, struct map *map, struct str key, const void *value)
{
    if (!map_put(map, key, (void *)(uintptr_t)value))
        longjmp(ld->no_memory, 1);
}

void conf_free(struct conf *c)
{
    if (c == NULL)
        return;
    for (struct conf_owned *o = c->owned; o != NULL; o = o->next) {
        if (o->regex != NULL)
            pcre2_code_free(o->regex);
        if (o->map != NULL)
            map_free(o->map);
    }
    arena_reset(&c->arena);
    free(c);
}

void conf_result_free(struct conf_result *r)
{
    arena_reset(&r->arena);
    r->first = NULL;
    r->files = NULL;
    r->n_files = 0;
}

/* ---- places */

static unsigned file_of(const struct load *ld, const config_setting_t *s)
{
    for (unsigned i = 0; i < ld->n_sources; i++)
        if (s->config == &ld->sources[i].tree)
            return i;
    return 0;
}

struct where value_where(const struct load *ld, const config_setting_t *s)
{
    return (struct where){ .file = (uint16_t)file_of(ld, s), .line = config_setting_source_line(s) };
}

struct str where_show(struct load *ld, struct where w)
{
    return load_printf(ld, "%.*s:%u", STR_ARG(ld->sources[w.file].name), w.line);
}

struct str load_path(struct load *ld, unsigned file, struct str path)
{
    struct str dir = ld->sources[file].dir;
    struct str whole =
        path.n > 0 && path.p[0] == '/' ? path : load_printf(ld, "%.*s/%.*s", STR_ARG(dir), STR_ARG(path));
    char *clean = load_alloc(ld, whole.n + 2);
    size_t n = 0;
    for (size_t i = 0; i < whole.n;) {
        ptrdiff_t slash = str_chr(whole, '/', i);
        size_t stop = slash < 0 ? whole.n : (size_t)slash;
        struct str part = str_of(whole.p + i, stop - i);
        if (part.n > 0 && !str_eq(part, STR("."))) {
            clean[n++] = '/';
            memcpy(clean + n, part.p, part.n);
            n += part.n;
        }
        i = stop + 1;
    }
    if (n == 0)
        clean[n++] = '/';
    return str_of(clean, n);
}

/* ---- files */

static struct source *source_add(struct load *ld, struct str name, struct str dir)
{
    struct source *source = &ld->sources[ld->n_sources];
    *source = (struct source){ .name = name, .dir = dir, .has_tree = true };
    config_init(&source->tree);
    ld->n_sources++;
    return source;
}

/* Lint and parse the source added last. */
static bool source_parse(struct load *ld, struct str text)
{
    struct source *source = &ld->sources[ld->n_sources - 1];
    unsigned file = ld->n_sources - 1;
    if (!lint(ld, file, text, &source->text))
        return false;
    if (config_read_string(&source->tree, source->text.p) == CONFIG_TRUE)
        return true;
    /* Lint knows the same grammar; should it have let something pass, this is still an error with its line. */
    struct where where = { .file = (uint16_t)file, .line = (uint32_t)config_error_line(&source->tree) };
    diag_add(ld, where, false, "%s", config_error_text(&source->tree));
    return false;
}

/* read(2), but a pipe that nobody writes to is an error before long: who reads may be a server at work. */
static ssize_t read_some(int fd, char *to, size_t cap)
{
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    if (poll(&readable, 1, PIPE_MS) == 0) {
        errno = ENODATA;
        return -1;
    }
    return read(fd, to, cap);
}

bool load_file(struct load *ld, const char *path, struct str *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return false;
    if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode) || st.st_size > FILE_MAX) {
        int error = S_ISDIR(st.st_mode) ? EISDIR : EFBIG;
        close(fd);
        errno = error;
        return false;
    }
    /* Also of a pipe or /dev/stdin, whose size is unknown. */
    size_t cap = (size_t)st.st_size + 4096, n = 0;
    char *text = arena_alloc(ld->temp, cap);
    ssize_t got = 1;
    while (text != NULL && (got = read_some(fd, text + n, cap - n)) != 0) {
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0 || n > FILE_MAX)
            break;
        n += (size_t)got;
        if (n < cap)
            continue;
        char *bigger = arena_alloc(ld->temp, cap * 2);
        if (bigger != NULL)
            memcpy(bigger, text, n);
        text = bigger;
        cap *= 2;
    }
    int error = errno;
    close(fd);
    if (text == NULL)
        longjmp(ld->no_memory, 1);
    errno = got < 0 ? error : EFBIG;
    *out = str_of(text, n);
    return got == 0;
}

static struct str dir_of(struct load *ld, struct str path)
{
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/')
        n--;
    struct str dir = n > 1 ? str_take(path, n - 1) : n == 1 ? STR("/") : STR("");
    if (dir.n > 0 && dir.p[0] == '/')
        return load_dup(ld, dir);
    char *cwd = getcwd(NULL, 0);
    struct str whole = load_printf(ld, "%s/%.*s", cwd ? cwd : "", STR_ARG(dir));
    free(cwd);
    while (whole.n > 1 && whole.p[whole.n - 1] == '/')
        whole.n--;
    return whole;
}

/* Another whole file: what it has at the top besides sites and upstreams is an error. */
static void include_file(struct load *ld, const struct value *v, struct str path)
{
    struct str text;
    for (unsigned i = 0; i < ld->n_sources; i++)
        if (str_eq(ld->sources[i].name, path))
            return; /* two globs may meet the same file */
    if (ld->n_sources >= SOURCES_MAX - 1) {
        diag_bad(v, "too many files; expected at most %d", SOURCES_MAX - 2);
        return;
    }
    if (!load_file(ld, path.p, &text)) {
        diag_bad(v, "cannot read \"%.*s\": %s", STR_ARG(path), strerror(errno));
        return;
    }
    source_add(ld, load_dup(ld, path), dir_of(ld, path));
    (void)source_parse(ld, text);
}

static void include_glob(struct load *ld, const struct value *v)
{
    struct str text;
    glob_t found = { 0 };
    if (!value_text(v, &text) || text.n == 0) {
        diag_bad_type(v);
        return;
    }
    struct str pattern = load_dup(ld, load_path(ld, 0, text));
    int rc = glob(pattern.p, GLOB_ERR, NULL, &found);
    bool is_pattern = strpbrk(pattern.p, "*?[") != NULL;
    if (rc == GLOB_NOMATCH && !is_pattern)
        diag_bad(v, "cannot read \"%.*s\": no such file", STR_ARG(pattern));
    else if (rc != 0 && rc != GLOB_NOMATCH)
        diag_bad(v, "cannot read the folder of \"%.*s\"", STR_ARG(pattern));
    /* The matches are copied first: want of memory must not leave glob's list behind. */
    unsigned n = 0;
    char **paths = arena_array(ld->temp, char *, found.gl_pathc + 1);
    for (size_t i = 0; paths != NULL && rc == 0 && i < found.gl_pathc; i++) {
        struct str copy = arena_dup(ld->temp, str_c(found.gl_pathv[i]));
        if (copy.p != NULL)
            paths[n++] = (char *)(uintptr_t)copy.p;
    }
    bool is_whole = rc != 0 || n == found.gl_pathc;
    globfree(&found);
    if (!is_whole)
        longjmp(ld->no_memory, 1);
    for (unsigned i = 0; i < n; i++)
        include_file(ld, v, str_c(paths[i]));
}

static void include_all(struct load *ld)
{
    config_setting_t *s = config_setting_get_member(config_root_setting(&ld->sources[0].tree), "include");
    if (s == NULL || ld->is_replay || (ld->flags & CONF_NO_FILES))
        return;
    struct value all = value_of(ld, s, &settings[SET_top_include], NULL);
    for (unsigned i = 0; i < value_count(&all); i++) {
        struct value item = value_at(&all, i);
        include_glob(ld, &item);
    }
}

/* ---- the resolved text */

/* The next line of a resolved text; false at its end. */
static bool replay_next(struct str *rest, struct str *name, struct str *dir, struct str *text)
{
    ptrdiff_t eol = str_chr(*rest, '\n', 0);
    if (eol < 0 || !str_starts(*rest, STR(REPLAY_FILE)))
        return false;
    struct str line = str_skip(str_take(*rest, (size_t)eol), sizeof REPLAY_FILE - 1);
    ptrdiff_t first = str_chr(line, '\t', 0), second = first < 0 ? -1 : str_chr(line, '\t', (size_t)first + 1);
    uint64_t n;
    *rest = str_skip(*rest, (size_t)eol + 1);
    if (second < 0 || !str_to_u64(str_take(line, (size_t)first), &n) || n >= rest->n)
        return false;
    *name = str_of(line.p + first + 1, (size_t)(second - first) - 1);
    *dir = str_skip(line, (size_t)second + 1);
    *text = str_take(*rest, n);
    *rest = str_skip(*rest, n + 1);
    return true;
}

static bool replay_parse(struct load *ld, struct str rest)
{
    struct str name, dir, text;
    bool is_right = true;
    ld->is_replay = true;
    while (ld->n_sources < SOURCES_MAX - 1 && replay_next(&rest, &name, &dir, &text)) {
        source_add(ld, load_dup(ld, name), load_dup(ld, dir));
        is_right &= source_parse(ld, text);
    }
    if (ld->n_sources > 0 && rest.n == 0)
        return is_right;
    if (ld->n_sources == 0)
        source_add(ld, STR("-"), STR("/"));
    diag_add(ld, (struct where){ 0 }, false, "the resolved text is damaged; expected one that weir wrote");
    return false;
}

static struct str resolved_text(struct load *ld)
{
    size_t n = sizeof REPLAY_HEAD;
    for (unsigned i = 0; i < ld->n_sources; i++)
        n += ld->sources[i].name.n + ld->sources[i].dir.n + ld->sources[i].text.n + 64;
    char *text = load_alloc(ld, n);
    size_t at = (size_t)snprintf(text, n, "%s", REPLAY_HEAD);
    for (unsigned i = 0; i < ld->n_sources; i++) {
        const struct source *s = &ld->sources[i];
        at += (size_t)snprintf(text + at, n - at, "%s%zu\t%.*s\t%.*s\n%.*s\n", REPLAY_FILE, s->text.n, STR_ARG(s->name),
                               STR_ARG(s->dir), STR_ARG(s->text));
    }
    return str_of(text, at);
}

/* ---- the load */

/* What an included file may have at the top. */
static void check_included(struct load *ld, const config_setting_t *root)
{
    for (unsigned i = 0; i < (unsigned)config_setting_length(root); i++) {
        config_setting_t *s = config_setting_get_elem(root, i);
        struct value v = value_of(ld, s, NULL, NULL);
        struct str name = str_c(config_setting_name(s));
        if (!str_eq(name, STR("sites")) && !str_eq(name, STR("upstreams")))
            diag_bad(&v, "cannot stand in an included file; expected only sites and upstreams there");
    }
}

static void each_source(struct load *ld, const char *name, void (*read)(struct load *ld, config_setting_t *s))
{
    for (unsigned i = 0; i < ld->n_sources; i++) {
        config_setting_t *s = config_setting_get_member(config_root_setting(&ld->sources[i].tree), name);
        if (s != NULL)
            read(ld, s);
    }
}

static void build(struct load *ld)
{
    struct conf *c = ld->conf;
    ld->arena = &c->arena;
    config_setting_t *written[SET_COUNT] = { 0 };
    struct target top = {
        .scope = SCOPE_TOP,
        .conf = c,
        .scoped = &ld->top,
        .trusted = &ld->trusted,
        .written = written,
    };
    unsigned n_files = ld->n_sources;
    ld->upstreams_end = &ld->upstreams;
    ld->listens_end = &ld->listens;
    source_add(ld, STR("-"), STR("/")); /* the tree the defaults pass through */
    scope_defaults(ld);
    ld->n_sources = n_files;
    config_destroy(&ld->sources[n_files].tree);

    scope_read(ld, config_root_setting(&ld->sources[0].tree), &top);
    for (unsigned i = 1; i < n_files; i++)
        check_included(ld, config_root_setting(&ld->sources[i].tree));
    each_source(ld, "upstreams", upstreams_read);
    each_source(ld, "sites", sites_read);
    if (ld->n_sites == 0 && ld->out->n_errors == 0)
        diag_add(ld, (struct where){ .line = 1 }, false,
                 "no site; expected at least sites = ( { listen = \"8080\"; proxy = \"127.0.0.1:3000\"; } );");
    upstreams_finish(ld);
    listens_finish(ld);
    limits_finish(ld);
    logs_finish(ld);
    check_all(ld);

    struct scope_conf *scope = load_new(ld, struct scope_conf);
    *scope = ld->top;
    c->s = scope;
    c->sites = (const struct site_conf *const *)ld->sites;
    c->n_sites = ld->n_sites;
    c->logs = (const struct access_log_conf *const *)ld->logs;
    c->n_logs = ld->n_logs;
    c->text = resolved_text(ld);
}

/* The names of the files, for the result and for the conf. */
static void name_files(struct load *ld)
{
    struct str *names = arena_array(ld->temp, struct str, ld->n_sources);
    struct str *copies = load_array(ld, struct str, ld->n_sources);
    if (names == NULL)
        longjmp(ld->no_memory, 1);
    for (unsigned i = 0; i < ld->n_sources; i++) {
        names[i] = ld->sources[i].name;
        copies[i] = load_dup(ld, names[i]);
    }
    ld->out->files = names;
    ld->conf->files = copies;
    ld->conf->n_files = ld->out->n_files = ld->n_sources;
}

/* In a function of its own, so that nothing that is changed here is read after a longjmp. */
static void load(struct load *ld, struct str text, const char *path, const char *dir)
{
    ld->sources = arena_array(ld->temp, struct source, SOURCES_MAX);
    if (ld->sources == NULL)
        longjmp(ld->no_memory, 1);
    bool is_right;
    if (str_starts(text, STR(REPLAY_HEAD))) {
        is_right = replay_parse(ld, str_skip(text, sizeof REPLAY_HEAD - 1));
    } else {
        struct str name = load_dup(ld, str_c(path));
        source_add(ld, name, dir ? load_dup(ld, str_c(dir)) : dir_of(ld, name));
        bool is_read = text.p != NULL || load_file(ld, path, &text);
        if (!is_read)
            diag_add(ld, (struct where){ 0 }, false, "cannot read it: %s", strerror(errno));
        is_right = is_read && source_parse(ld, text);
    }
    if (is_right)
        include_all(ld);
    for (unsigned i = 0; i < ld->n_sources; i++)
        is_right &= ld->sources[i].text.p != NULL && config_error_text(&ld->sources[i].tree) == NULL;
    /* After a syntax error in any file the trees are not whole: names would seem missing that are not. */
    if (is_right)
        build(ld);
    name_files(ld);
}

static void no_memory(struct conf_result *out)
{
    static struct diagnostic said = { .text = { "out of memory", 13 } };
    static const struct str no_file = { "-", 1 };
    out->first = &said;
    out->n_errors = 1;
    out->files = &no_file;
    out->n_files = 1;
}

static void load_any(struct str text, const char *path, const char *dir, unsigned flags, struct conf_result *out)
{
    *out = (struct conf_result){ 0 };
    arena_init(&out->arena, NULL);
    struct load *ld = calloc(1, sizeof *ld);
    struct conf *c = calloc(1, sizeof *c);
    if (ld == NULL || c == NULL) {
        free(ld);
        free(c);
        no_memory(out);
        return;
    }
    arena_init(&c->arena, NULL);
    *ld = (struct load){ .out = out, .conf = c, .arena = &out->arena, .temp = &out->arena, .flags = flags };
    if (setjmp(ld->no_memory) == 0) {
        load(ld, text, path, dir);
        diag_sort(out);
    } else {
        no_memory(out);
    }
    for (unsigned i = 0; i < ld->n_sources; i++)
        config_destroy(&ld->sources[i].tree);
    out->conf = out->n_errors == 0 ? c : NULL;
    if (out->conf == NULL)
        conf_free(c);
    free(ld);
}

void conf_load(const char *path, struct conf_result *out)
{
    load_any(STR_NONE, path, NULL, 0, out);
}

void conf_load_text(struct str text, const char *name, const char *dir, struct conf_result *out)
{
    conf_load_flags(text, name, dir, 0, out);
}

void conf_load_flags(struct str text, const char *name, const char *dir, unsigned flags, struct conf_result *out)
{
    load_any(text.p != NULL ? text : STR(""), name, dir, flags, out);
}
