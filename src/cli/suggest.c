/* SPDX-License-Identifier: MIT */
/*
 * weir suggest --app FOLDER [--log access.log]... [--listen ADDRESS] [--to ADDRESS]
 *
 * Which files of an app could be answered without the app? Looks at the places where frameworks put them, and at the
 * URLs that were asked for: a logged GET or HEAD answered 200, 206 or 304 whose path is a file there would be taken off
 * the app. Prints a configuration, with the shares as comments.
 *
 * A place is asked exactly as the server would ask it (the same manifest, the same opening beneath a root), in the
 * order the printed configuration asks in. A folder that may hold the app's own code too (dist or build without an
 * index.html) is never offered whole: only those of its entries that clients were already given.
 *
 * The text goes through the loader before it is shown: what is printed passes `weir check`.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "cli/cli.h"
#include "cli/suggest_log.h"
#include "handler/file_path.h"
#include "handler/meteor_bundle.h"
#include "handler/root.h"
#include "http/target.h"

enum {
    WORDS = 64,
    PLACES = 8,
    ENTRIES_SHOWN = 20,
    ABSENT_MAX = 200 * 1000, /* paths that are no file, remembered to save looking again */
};

struct tally {
    uint64_t requests, bytes;
};

enum place_kind { PLACE_UNDER, PLACE_BUNDLE, PLACE_ROOT };

/* One entry of a root: a folder ("assets/") or a file. */
struct entry {
    struct entry *next;
    struct str name;
    struct tally taken;
};

struct place {
    enum place_kind kind;
    struct str folder; /* absolute, NUL-terminated */
    struct str name;   /* as the user knows it: "dist" */
    struct str prefix; /* PLACE_UNDER: of the URLs */
    bool whole;        /* may be offered as it is */
    bool hashed;       /* every name in it has a hash of the content */
    uint64_t n_files;  /* on disk */
    uint64_t disk_bytes;
    struct tally alone, taken; /* if there were no other; as the configuration shares them out */
    struct entry *entries;
    struct root *root;
};

/* What is known of one path. */
struct known {
    struct known *next;
    struct str path;
    unsigned places; /* a bit for each that has it */
    struct tally asked;
};

struct suggest {
    const char *app, *listen, *to;
    const char *logs[WORDS];
    unsigned n_logs;
    struct arena arena, line;
    struct place places[PLACES];
    unsigned n_places;
    struct meteor_view *view;
    struct roots roots;
    struct map by_path;
    struct known *files;
    uint64_t n_absent, n_lines, n_unread;
    struct tally all; /* every request of the logs */
    const struct place *main; /* the root of "/" */
};

/* ---- places ---- */

static bool is_there(const char *path, bool folder)
{
    struct stat st;
    return stat(path, &st) == 0 && (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

static struct str join(struct suggest *s, const char *name)
{
    bool is_itself = *name == '\0';
    return arena_printf(&s->arena, "%s%s%s", s->app, is_itself || s->app[1] == '\0' ? "" : "/", name);
}

static struct place *add_place(struct suggest *s, enum place_kind kind, const char *name, const char *prefix)
{
    struct str folder = join(s, name);
    if (folder.p == NULL || s->n_places == PLACES || !is_there(folder.p, true))
        return NULL;
    struct place *p = &s->places[s->n_places++];
    *p = (struct place){ .kind = kind, .folder = folder, .name = *name ? str_c(name) : folder,
                         .prefix = str_c(prefix), .whole = true };
    return p;
}

/* For nftw, which has no argument for its callback. */
static struct place *walked;

static int on_walk(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    if (type != FTW_F || !S_ISREG(st->st_mode))
        return 0;
    walked->n_files++;
    walked->disk_bytes += (uint64_t)st->st_size;
    walked->hashed &= file_path_has_hash(str_c(path + ftw->base));
    return 0;
}

static bool find_bundle(struct suggest *s)
{
    static const char *const where[] = { "", "bundle", ".meteor/local/build" };
    for (size_t i = 0; i < ARRAY_LEN(where); i++) {
        struct str program = join(s, *where[i] ? where[i] : "programs");
        program = arena_printf(&s->arena, "%.*s%s/web.browser/program.json", STR_ARG(program),
                               *where[i] ? "/programs" : "");
        if (program.p == NULL || !is_there(program.p, false))
            continue;
        struct place *p = add_place(s, PLACE_BUNDLE, where[i], "");
        s->view = p ? meteor_view_open(p->folder, hash_bytes(p->folder)) : NULL;
        return s->view != NULL && meteor_view_get(s->view) != NULL;
    }
    return false;
}

static void find_roots(struct suggest *s)
{
    static const char *const builds[][2] = { { "dist", "dist/client" }, { "build", "build/client" } };
    (void)add_place(s, PLACE_ROOT, "public", "");
    for (size_t i = 0; i < ARRAY_LEN(builds); i++) {
        if (add_place(s, PLACE_ROOT, builds[i][1], "") != NULL)
            continue;
        struct place *p = add_place(s, PLACE_ROOT, builds[i][0], "");
        struct str index = p ? arena_printf(&s->arena, "%.*s/index.html", STR_ARG(p->folder)) : STR_NONE;
        if (p != NULL)
            p->whole = index.p != NULL && is_there(index.p, false);
    }
}

static void find_places(struct suggest *s)
{
    (void)add_place(s, PLACE_UNDER, ".next/static", "/_next/static/");
    if (!find_bundle(s) && s->view != NULL) {
        meteor_view_close(s->view); /* unreadable: said in the log */
        s->view = NULL;
        s->n_places--;
    }
    find_roots(s);
    for (unsigned i = 0; i < s->n_places; i++) {
        struct place *p = &s->places[i];
        p->root = root_get(&s->roots, p->folder, hash_bytes(p->folder), 1);
        p->hashed = true;
        walked = p;
        if (p->kind != PLACE_BUNDLE)
            (void)nftw(p->folder.p, on_walk, 16, FTW_PHYS);
        p->hashed &= p->n_files > 0;
    }
}

/* ---- asking ---- */

static bool is_file(struct suggest *s, struct root *root, struct str below)
{
    struct stat st;
    struct root *via;
    char path[PATH_MAX];
    if (root == NULL || root->fd < 0 || below.n == 0 || below.n >= sizeof path || file_path_is_hidden(below, true))
        return false;
    memcpy(path, below.p, below.n);
    path[below.n] = '\0';
    int fd = root_open(&s->roots, root, str_of(path, below.n), O_RDONLY | O_NONBLOCK | O_NOCTTY,
                       (struct root_follow){ 0 }, 1, &via);
    bool is_regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (fd >= 0)
        close(fd);
    return is_regular;
}

static bool has(struct suggest *s, const struct place *p, const struct target *t)
{
    const struct meteor_entry *e;
    switch (p->kind) {
    case PLACE_BUNDLE:
        return meteor_manifest_find(meteor_view_get(s->view), t->path, t->raw_path, &e) == METEOR_FILE;
    case PLACE_UNDER:
        return str_starts(t->path, p->prefix) && is_file(s, p->root, str_skip(t->path, p->prefix.n));
    case PLACE_ROOT:
        return is_file(s, p->root, str_skip(t->path, 1));
    }
    return false;
}

/* NULL: no file anywhere (or no memory). */
static struct known *look_up(struct suggest *s, const struct target *t)
{
    static struct known absent;
    struct known *k = map_get(&s->by_path, t->path);
    if (k != NULL)
        return k == &absent ? NULL : k;
    unsigned places = 0;
    for (unsigned i = 0; i < s->n_places; i++)
        if (has(s, &s->places[i], t))
            places |= 1u << i;
    if (places == 0 && s->n_absent++ >= ABSENT_MAX)
        return NULL;
    struct str path = arena_dup(&s->arena, t->path);
    k = places ? arena_new(&s->arena, struct known) : &absent;
    if (k == NULL || path.p == NULL || !map_put(&s->by_path, path, k) || places == 0)
        return NULL;
    *k = (struct known){ .next = s->files, .path = path, .places = places };
    s->files = k;
    return k;
}

static void add_to(struct tally *t, struct tally what)
{
    t->requests += what.requests;
    t->bytes += what.bytes;
}

static void count_line(struct suggest *s, struct str line)
{
    struct logged l;
    struct target t;
    s->n_lines++;
    if (!suggest_log_line(&s->line, line, &l)) {
        s->n_unread++;
        return;
    }
    struct tally one = { 1, l.bytes };
    add_to(&s->all, one);
    if (!(str_eq(l.method, STR("GET")) || str_eq(l.method, STR("HEAD"))) ||
        !(l.status == 200 || l.status == 206 || l.status == 304) ||
        target_parse(&t, l.target, METHOD_GET, &s->line) != TARGET_OK || t.path.n == 0)
        return;
    struct known *k = look_up(s, &t);
    if (k != NULL)
        add_to(&k->asked, one);
}

static bool read_log(struct suggest *s, const char *path)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    if (f == NULL) {
        fprintf(stderr, "weir suggest: %s: %s\n", path, strerror(errno));
        return false;
    }
    while ((n = getline(&line, &cap, f)) > 0) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            n--;
        if (n > 0)
            count_line(s, str_of(line, (size_t)n));
        arena_reset(&s->line);
    }
    bool is_read = !ferror(f);
    if (!is_read)
        fprintf(stderr, "weir suggest: %s: %s\n", path, strerror(errno));
    free(line);
    if (f != stdin)
        fclose(f);
    return is_read;
}

/* ---- sharing out ---- */

static void count_entry(struct suggest *s, struct place *p, const struct known *k)
{
    ptrdiff_t slash = str_chr(k->path, '/', 1);
    struct str name = str_skip(str_take(k->path, slash < 0 ? k->path.n : (size_t)slash + 1), 1);
    struct entry *e = p->entries;
    while (e != NULL && !str_eq(e->name, name))
        e = e->next;
    if (e == NULL) {
        e = arena_new(&s->arena, struct entry);
        if (e == NULL)
            return;
        e->name = name;
        e->next = p->entries;
        p->entries = e;
    }
    add_to(&e->taken, k->asked);
}

/* The folder that answers for "/": of those that may be offered whole the one with the most requests. */
static void choose_main(struct suggest *s)
{
    for (const struct known *k = s->files; k != NULL; k = k->next)
        for (unsigned i = 0; i < s->n_places; i++)
            if (k->places & 1u << i)
                add_to(&s->places[i].alone, k->asked);
    for (unsigned i = 0; i < s->n_places; i++) {
        const struct place *p = &s->places[i];
        if (p->kind != PLACE_ROOT || !p->whole || p->n_files == 0)
            continue;
        if (s->main == NULL || p->alone.requests > s->main->alone.requests)
            s->main = p;
    }
}

static struct place *owner_of(struct suggest *s, const struct known *k)
{
    struct place *first = NULL;
    for (unsigned i = 0; i < s->n_places; i++) {
        struct place *p = &s->places[i];
        if (!(k->places & 1u << i))
            continue;
        if (p->kind != PLACE_ROOT || p == s->main)
            return p;
        if (first == NULL)
            first = p;
    }
    return first;
}

static bool has_entry(struct str path, struct str name)
{
    path = str_skip(path, 1);
    return name.p[name.n - 1] == '/' ? str_starts(path, name) : str_eq(path, name);
}

/* A location for an entry would keep the site's own folder and bundle from what they have below that name. */
static void drop_shared_entries(struct suggest *s)
{
    for (const struct known *k = s->files; k != NULL; k = k->next) {
        const struct place *owner = owner_of(s, k);
        bool is_sites = owner->kind == PLACE_BUNDLE || owner == s->main;
        for (unsigned i = 0; i < s->n_places && is_sites; i++)
            for (struct entry *e = s->places[i].entries; e != NULL; e = e->next)
                if (has_entry(k->path, e->name)) {
                    s->places[i].taken.requests -= e->taken.requests;
                    s->places[i].taken.bytes -= e->taken.bytes;
                    e->taken = (struct tally){ 0, 0 };
                }
    }
}

static void share_out(struct suggest *s)
{
    choose_main(s);
    for (const struct known *k = s->files; k != NULL; k = k->next) {
        struct place *p = owner_of(s, k);
        add_to(&p->taken, k->asked);
        if (p->kind == PLACE_ROOT && p != s->main)
            count_entry(s, p, k);
    }
    drop_shared_entries(s);
}

/* ---- printing ---- */

static void print_bytes(FILE *f, uint64_t n)
{
    static const char *const units[] = { "bytes", "KB", "MB", "GB", "TB" };
    double v = (double)n;
    unsigned u = 0;
    while (v >= 1000 && u + 1 < ARRAY_LEN(units)) {
        v /= 1000;
        u++;
    }
    fprintf(f, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
}

static double percent(uint64_t part, uint64_t of)
{
    return of > 0 ? 100.0 * (double)part / (double)of : 0.0;
}

/* A name in a comment: on one line whatever it holds. */
static void print_name(FILE *f, struct str name)
{
    char text[600];
    fprintf(f, "%.*s", (int)log_escape(text, sizeof text, name), text);
}

static void print_share(FILE *f, const struct suggest *s, struct tally t)
{
    fprintf(f, "%llu request%s (%.1f %%), ", (unsigned long long)t.requests, t.requests == 1 ? "" : "s",
            percent(t.requests, s->all.requests));
    print_bytes(f, t.bytes);
    fprintf(f, " (%.1f %%)\n", percent(t.bytes, s->all.bytes));
}

static void print_comment(FILE *f, const struct suggest *s, const char *indent, const struct place *p)
{
    fprintf(f, "%s# ", indent);
    print_name(f, p->name);
    fputs(": ", f);
    if (s->n_logs > 0) {
        print_share(f, s, p->taken);
    } else if (p->kind == PLACE_BUNDLE) {
        fputs("a Meteor bundle\n", f);
    } else {
        fprintf(f, "%llu file%s, ", (unsigned long long)p->n_files, p->n_files == 1 ? "" : "s");
        print_bytes(f, p->disk_bytes);
        fputs("\n", f);
    }
}

/* Is it worth a line? */
static bool is_wanted(const struct suggest *s, const struct place *p)
{
    if (s->n_logs > 0)
        return p->taken.requests > 0;
    return p->kind == PLACE_BUNDLE || (p->n_files > 0 && (p->kind == PLACE_UNDER || (p == s->main && !s->view)));
}

static void print_location(FILE *f, struct suggest *s, const char *match, struct str path, const char *action,
                           const struct place *p, bool hashed)
{
    struct str whole = arena_printf(&s->line, "%s%.*s", match, STR_ARG(path));
    fputs("      { match = ", f);
    cli_quote(f, whole.p ? whole.p : "/");
    fprintf(f, "; %s = ", action);
    cli_quote(f, p->folder.p);
    fputs("; proxy = ", f);
    cli_quote(f, s->to);
    fputs(hashed ? "; expires = \"365d\"; }" : "; }", f);
}

static void separate(FILE *f, unsigned *n)
{
    fputs((*n)++ == 0 ? "    locations = (\n" : ",\n", f);
}

/* The entries of a root that is not offered whole, the busiest first. */
static void print_entries(FILE *f, struct suggest *s, const struct place *p, unsigned *n)
{
    for (unsigned shown = 0; shown < ENTRIES_SHOWN; shown++) {
        struct entry *best = NULL;
        for (struct entry *e = p->entries; e != NULL; e = e->next)
            if (e->taken.requests > 0 && (best == NULL || e->taken.requests > best->taken.requests))
                best = e;
        if (best == NULL)
            return;
        bool is_folder = best->name.p[best->name.n - 1] == '/';
        separate(f, n);
        fputs("      # ", f);
        print_name(f, p->name);
        fputs("/", f);
        print_name(f, best->name);
        fputs(": ", f);
        print_share(f, s, best->taken);
        print_location(f, s, is_folder ? "^~ /" : "= /", best->name, "root", p, false);
        best->taken.requests = 0; /* shown */
    }
}

static void print_locations(FILE *f, struct suggest *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_places; i++) {
        const struct place *p = &s->places[i];
        if (p->kind == PLACE_UNDER && is_wanted(s, p)) {
            separate(f, &n);
            print_comment(f, s, "      ", p);
            print_location(f, s, "^~ ", p->prefix, "alias", p, p->hashed);
        } else if (p->kind == PLACE_ROOT && p != s->main && is_wanted(s, p)) {
            print_entries(f, s, p, &n);
        }
    }
    if (n > 0)
        fputs(" );\n", f);
}

static void print_site(FILE *f, struct suggest *s)
{
    fputs("sites = (\n  { listen = ", f);
    cli_quote(f, s->listen);
    fputs(";\n", f);
    for (unsigned i = 0; i < s->n_places; i++) {
        const struct place *p = &s->places[i];
        if (!is_wanted(s, p) || (p->kind != PLACE_BUNDLE && p != s->main))
            continue;
        print_comment(f, s, "    ", p);
        fputs(p->kind == PLACE_BUNDLE ? "    meteor_bundle = " : "    root = ", f);
        cli_quote(f, p->folder.p);
        fputs(";\n", f);
    }
    fputs("    # everything else\n    proxy = ", f);
    cli_quote(f, s->to);
    fputs(";\n", f);
    print_locations(f, s);
    fputs("  }\n);\n", f);
}

static void print_head(FILE *f, const struct suggest *s)
{
    struct tally taken = { 0, 0 };
    for (unsigned i = 0; i < s->n_places; i++)
        add_to(&taken, s->places[i].taken);
    fputs("# ", f);
    print_name(f, str_c(s->app));
    if (s->n_logs == 0) {
        fputs(": what lies there; with --log also what it would save\n", f);
        return;
    }
    fprintf(f, ": of %llu requests the files below take ", (unsigned long long)s->all.requests);
    print_share(f, s, taken);
}

/* ---- the verb ---- */

static bool is_anything_wanted(const struct suggest *s)
{
    for (unsigned i = 0; i < s->n_places; i++)
        if (is_wanted(s, &s->places[i]))
            return true;
    return false;
}

static int print_checked(struct suggest *s)
{
    char *text = NULL;
    size_t n = 0;
    struct conf_result r;
    FILE *f = open_memstream(&text, &n);
    if (f == NULL)
        return EXIT_FAILURE;
    print_head(f, s);
    print_site(f, s);
    if (fclose(f) != 0) {
        free(text);
        return EXIT_FAILURE;
    }
    conf_load_text(str_of(text, n), "weir suggest", "/", &r);
    bool is_right = r.conf != NULL;
    if (is_right)
        fwrite(text, 1, n, stdout);
    else
        cli_print_findings(&r);
    conf_free(r.conf);
    conf_result_free(&r);
    free(text);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int suggest(struct suggest *s)
{
    find_places(s);
    for (unsigned i = 0; i < s->n_logs; i++)
        if (!read_log(s, s->logs[i]))
            return EXIT_FAILURE;
    if (s->n_unread > 0)
        fprintf(stderr, "weir suggest: %llu of %llu lines are neither combined nor JSON\n",
                (unsigned long long)s->n_unread, (unsigned long long)s->n_lines);
    share_out(s);
    if (is_anything_wanted(s))
        return print_checked(s);
    if (s->n_places == 0)
        fprintf(stderr, "weir suggest: no public, dist, build, .next/static or Meteor bundle in %s\n", s->app);
    else if (s->n_logs > 0)
        fprintf(stderr, "weir suggest: none of the %llu logged requests was for a file in %s\n",
                (unsigned long long)s->all.requests, s->app);
    else
        fprintf(stderr, "weir suggest: no files for clients in %s, as far as can be told without --log\n", s->app);
    return EXIT_FAILURE;
}

static bool parse(int argc, char **argv, struct suggest *s)
{
    for (int i = 1; i < argc; i++) {
        const char *value;
        if ((value = cli_option_value("--app", argc, argv, &i)) != NULL)
            s->app = value;
        else if ((value = cli_option_value("--to", argc, argv, &i)) != NULL)
            s->to = value;
        else if ((value = cli_option_value("--listen", argc, argv, &i)) != NULL)
            s->listen = value;
        else if ((value = cli_option_value("--log", argc, argv, &i)) != NULL && s->n_logs < WORDS)
            s->logs[s->n_logs++] = value;
        else
            return false;
    }
    return s->app != NULL;
}

int cli_suggest(int argc, char **argv)
{
    struct suggest s = { .listen = "8080", .to = "127.0.0.1:3000" };
    char app[PATH_MAX];
    if (!parse(argc, argv, &s)) {
        fputs("usage: weir suggest --app FOLDER [--log access.log]... [--listen 8080] [--to 127.0.0.1:3000]\n", stderr);
        return CLI_USAGE;
    }
    bool is_real = realpath(s.app, app) != NULL;
    if (!is_real || !is_there(app, true)) {
        fprintf(stderr, "weir suggest: %s: %s\n", s.app, strerror(is_real ? ENOTDIR : errno));
        return EXIT_FAILURE;
    }
    s.app = app;
    arena_init(&s.arena, NULL);
    arena_init(&s.line, NULL);
    log_set_level(LOG_WARN);
    meteor_bundles_enter();
    int code = suggest(&s);
    if (s.view != NULL)
        meteor_view_close(s.view);
    meteor_bundles_leave();
    roots_close(&s.roots);
    map_free(&s.by_path);
    arena_reset(&s.line);
    arena_reset(&s.arena);
    return code;
}
