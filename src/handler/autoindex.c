/* SPDX-License-Identifier: MIT */
/*
 * Listings of folders. Shows what a request would be answered with: regular files and folders, links among them if
 * they lead to a place that is served, names with a leading dot only where those are served. Folders come first, then
 * bytewise by name.
 *
 * A folder is read in one go on the loop's thread, so no more than AUTOINDEX_MAX of its entries are, whichever the
 * file system names first; that some are missing is said in the page and in a field. Nothing is kept: a listing is
 * made anew for each request, and no cache is told to keep it.
 *
 * Names are foreign bytes. In a reference they are percent-encoded behind "./", so that none looks like a scheme or a
 * host; in HTML what could be markup becomes an entity and what is not UTF-8 a replacement character; JSON is that of
 * nginx's autoindex_format.
 */
#include "handler/autoindex.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/utf8.h"
#include "http/accept.h"
#include "http/date.h"
#include "http/target.h"
#include "serve/respond.h"

struct entry {
    struct str name;
    bool is_folder;
    int64_t size, mtime; /* seconds */
};

struct listing {
    struct entry *v;
    unsigned n;
    bool is_cut;
};

/* ---- reading ---- */

/* False: not something a request could get. A link is looked at by the rules of the root. */
static bool look(struct file_cache *c, const struct file_want *want, int dir, struct entry *e, struct arena *a)
{
    struct stat st;
    if (fstatat(dir, e->name.p, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISLNK(st.st_mode)) {
        struct file_want to = *want;
        bool is_top = str_eq(want->path, STR("."));
        to.path = arena_printf(a, "%.*s%.*s", is_top ? 0 : (int)want->path.n, want->path.p, STR_ARG(e->name));
        int fd = to.path.p ? file_cache_open(c, &to, O_PATH) : -1;
        bool is_there = fd >= 0 && fstat(fd, &st) == 0;
        if (fd >= 0)
            close(fd);
        if (!is_there)
            return false;
    }
    e->is_folder = S_ISDIR(st.st_mode);
    e->size = st.st_size;
    e->mtime = st.st_mtim.tv_sec;
    return e->is_folder || S_ISREG(st.st_mode);
}

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->is_folder != y->is_folder)
        return x->is_folder ? -1 : 1;
    return strcmp(x->name.p, y->name.p);
}

/* 0 or an errno. The names lie in the arena. */
static int read_folder(struct request *r, struct file_cache *c, const struct file_want *want, struct listing *out)
{
    int fd = file_cache_open(c, want, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd < 0)
        return errno;
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        int error = errno;
        close(fd);
        return error;
    }
    unsigned cap = 0, seen = 0;
    int error = 0;
    for (struct dirent *it; (errno = 0, it = readdir(d)) != NULL;) {
        struct str name = str_c(it->d_name);
        if (str_eq(name, STR(".")) || str_eq(name, STR("..")) || (name.p[0] == '.' && !r->s->dotfiles))
            continue;
        if (seen++ == AUTOINDEX_MAX) {
            out->is_cut = true;
            break;
        }
        if (out->n == cap) {
            struct entry *grown = arena_array(&r->arena, struct entry, cap = cap ? 2 * cap : 64);
            if (grown == NULL) {
                error = ENOMEM;
                break;
            }
            if (out->n > 0)
                memcpy(grown, out->v, out->n * sizeof(*grown));
            out->v = grown;
        }
        struct entry *e = &out->v[out->n];
        e->name = arena_dup(&r->arena, name);
        if (e->name.p == NULL) {
            error = ENOMEM;
            break;
        }
        out->n += look(c, want, fd, e, &r->arena);
    }
    if (errno != 0 && error == 0 && !out->is_cut)
        error = errno;
    closedir(d);
    if (error == 0 && out->n > 1)
        qsort(out->v, out->n, sizeof(*out->v), by_name);
    return error;
}

/* ---- writing ---- */

static void put(FILE *f, struct str s)
{
    if (s.n > 0)
        (void)fwrite(s.p, 1, s.n, f); /* an error stays and is found by fclose */
}

static void put_html(FILE *f, struct str s)
{
    while (s.n > 0) {
        size_t n = utf8_length(s);
        char c = s.p[0];
        if (n == 0 || (unsigned char)c < 0x20 || c == 0x7f)
            put(f, STR("&#xfffd;"));
        else if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
            (void)fprintf(f, "&#%d;", c);
        else
            put(f, str_take(s, n));
        s = str_skip(s, n > 0 ? n : 1);
    }
}

static void put_json(FILE *f, struct str s)
{
    while (s.n > 0) {
        size_t n = utf8_length(s);
        unsigned char c = (unsigned char)s.p[0];
        if (n == 0 || c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
            (void)fprintf(f, "\\u%04x", c);
        else
            put(f, str_take(s, n));
        s = str_skip(s, n > 0 ? n : 1);
    }
}

static void print_html(FILE *f, struct request *r, const struct listing *l)
{
    put(f, STR("<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">"
               "<meta name=color-scheme content=\"light dark\"><title>"));
    put_html(f, r->target.path);
    put(f, STR("</title>\n<style>body{font-family:sans-serif;margin:2em}td{padding:.1em 1.5em .1em 0}"
               "td+td{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}</style>\n<h1>"));
    put_html(f, r->target.path);
    put(f, STR("</h1>\n<table>\n"));
    if (r->target.path.n > 1)
        put(f, STR("<tr><td><a href=\"../\">../</a><td><td>\n"));
    for (unsigned i = 0; i < l->n; i++) {
        const struct entry *e = &l->v[i];
        struct str slash = e->is_folder ? STR("/") : STR_NONE;
        time_t at = (time_t)e->mtime;
        struct tm tm;
        char date[32] = "";
        if (gmtime_r(&at, &tm) == NULL || strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm) == 0)
            date[0] = '\0';
        put(f, STR("<tr><td><a href=\"./"));
        put_html(f, path_encode(&r->arena, e->name)); /* an apostrophe and an ampersand may stand in a path */
        put(f, slash);
        put(f, STR("\">"));
        put_html(f, e->name);
        put(f, slash);
        (void)fprintf(f, "</a><td>%s<td>", date);
        if (!e->is_folder)
            (void)fprintf(f, "%lld", (long long)e->size);
        put(f, STR("\n"));
    }
    put(f, STR("</table>\n"));
    if (l->is_cut)
        (void)fprintf(f, "<p>There are more: only %d entries of this folder are shown.\n", AUTOINDEX_MAX);
}

static void print_json(FILE *f, const struct listing *l)
{
    put(f, STR("["));
    for (unsigned i = 0; i < l->n; i++) {
        const struct entry *e = &l->v[i];
        char date[HTTP_DATE];
        date_print(date, e->mtime);
        put(f, i > 0 ? STR(",\n{\"name\":\"") : STR("\n{\"name\":\""));
        put_json(f, e->name);
        (void)fprintf(f, "\",\"type\":\"%s\",\"mtime\":\"%.*s\"", e->is_folder ? "directory" : "file", HTTP_DATE, date);
        if (!e->is_folder)
            (void)fprintf(f, ",\"size\":%lld", (long long)e->size);
        put(f, STR("}"));
    }
    put(f, STR("\n]\n"));
}

int autoindex_serve(struct request *r, struct file_cache *c, const struct file_want *want)
{
    struct listing l = { 0 };
    int error = read_folder(r, c, want, &l);
    if (error)
        return error;
    bool is_json = r->s->autoindex == AUTOINDEX_JSON;
    if (r->s->autoindex == AUTOINDEX_AUTO) {
        is_json = accept_type_q(&r->head->fields, STR("application/json")) >
                  accept_type_q(&r->head->fields, STR("text/html"));
        respond_field(r, F_VARY, STR("Accept"));
    }
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (f != NULL && is_json)
        print_json(f, &l);
    else if (f != NULL)
        print_html(f, r, &l);
    if (f == NULL || fclose(f) != 0) {
        free(text);
        return ENOMEM;
    }
    if (l.is_cut && !fields_add(&r->resp.fields, &r->arena, STR("X-Autoindex-Cut"), STR("true"), F_OTHER))
        request_log(r, LOG_ERROR, 0, "out of memory for a response field");
    respond_field(r, F_CACHE_CONTROL, STR("no-cache"));
    respond_simple(r, 200, is_json ? STR("application/json") : STR("text/html; charset=utf-8"), str_of(text, n));
    free(text);
    return 0;
}
