/* SPDX-License-Identifier: MIT */
/*
 * The supervisor's state as text: a first line with the format's version and the link's, then a word and its values on
 * each line, tab-separated (no path in a configuration can hold a control character). Pure: descriptors are numbers
 * here, and whether they are open is the caller's business. Words that are not known are passed over, so that a newer
 * version may add some; a different version in the first line is refused.
 */
#include "proc/sup_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { FORMAT = 1, VALUES = 8 };

void sup_state_init(struct sup_state *s)
{
    *s = (struct sup_state){ .text_fd = -1, .orders_fd = -1, .control.fd = -1, .pid_file.fd = -1 };
}

static void file_free(struct sup_file *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    free(f->path);
}

void sup_server_close(struct sup_server *v)
{
    if (v->link >= 0)
        (void)close(v->link);
    if (v->calls >= 0)
        (void)close(v->calls);
    v->link = v->calls = -1;
}

void sup_state_free(struct sup_state *s)
{
    free(s->name);
    free(s->path);
    free(s->error_log);
    if (s->text_fd >= 0)
        (void)close(s->text_fd);
    if (s->orders_fd >= 0)
        (void)close(s->orders_fd);
    file_free(&s->control);
    file_free(&s->pid_file);
    listeners_close(&s->listeners);
    for (unsigned i = 0; i < s->n_servers; i++)
        sup_server_close(&s->servers[i]);
    sup_state_init(s);
}

void sup_state_each_fd(const struct sup_state *s, void (*act)(int fd))
{
    const int some[] = { s->text_fd, s->orders_fd, s->control.fd, s->pid_file.fd };
    for (size_t i = 0; i < ARRAY_LEN(some); i++)
        if (some[i] >= 0)
            act(some[i]);
    for (unsigned i = 0; i < s->listeners.n; i++)
        for (unsigned j = 0; j < s->listeners.all[i]->n; j++)
            act(s->listeners.all[i]->fds[j]);
    for (unsigned i = 0; i < s->n_servers; i++) {
        if (s->servers[i].link >= 0)
            act(s->servers[i].link);
        if (s->servers[i].calls >= 0)
            act(s->servers[i].calls);
    }
}

/* --- printing --- */

static void print_text(FILE *f, const char *word, const char *text)
{
    if (text != NULL)
        fprintf(f, "%s\t%s\n", word, text);
}

static void print_file(FILE *f, const char *word, const struct sup_file *file)
{
    if (file->path != NULL)
        fprintf(f, "%s\t%s\t%d\t%ju\t%ju\n", word, file->path, file->fd, (uintmax_t)file->dev, (uintmax_t)file->ino);
}

bool sup_state_print(FILE *f, const struct sup_state *s)
{
    fprintf(f, "weir-state\t%d\t%d\n", FORMAT, LINK_VERSION);
    print_text(f, "name", s->name);
    print_text(f, "path", s->path);
    print_text(f, "error_log", s->error_log);
    fprintf(f, "error_style\t%d\n", (int)s->error_style);
    fprintf(f, "text\t%" PRIu64 "\t%d\n", s->generation, s->text_fd);
    if (s->orders_fd >= 0)
        fprintf(f, "orders\t%d\n", s->orders_fd);
    print_file(f, "control", &s->control);
    print_file(f, "pid_file", &s->pid_file);
    for (unsigned i = 0; i < s->listeners.n; i++) {
        const struct sockets *k = s->listeners.all[i];
        fprintf(f, "listen\t%s\t%d\t%ju\t%ju\t%ld\n", k->text, k->given, (uintmax_t)k->dev, (uintmax_t)k->ino,
                (long)k->user);
        for (unsigned j = 0; j < k->n; j++)
            fprintf(f, "socket\t%d\n", k->fds[j]);
    }
    for (unsigned i = 0; i < s->n_servers; i++)
        fprintf(f, "server\t%ld\t%d\t%d\t%d\t%d\n", (long)s->servers[i].pid, s->servers[i].link,
                s->servers[i].calls, s->servers[i].ready, s->servers[i].leaving);
    if (s->upgrade_asked)
        fputs("asked\n", f);
    return fflush(f) == 0 && !ferror(f);
}

/* --- parsing --- */

struct row {
    struct str word;
    struct str text;          /* the first value */
    uint64_t v[VALUES];       /* all values that are numbers, by place; UINT64_MAX: it is none */
    unsigned n;               /* values */
};

static struct row row_of(struct str line)
{
    struct row r = { .word = line };
    ptrdiff_t tab = str_chr(line, '\t', 0);
    if (tab < 0)
        return r;
    r.word = str_take(line, (size_t)tab);
    for (bool more = true; more && r.n < VALUES;) {
        line = str_skip(line, (size_t)tab + 1);
        tab = str_chr(line, '\t', 0);
        more = tab >= 0;
        struct str value = more ? str_take(line, (size_t)tab) : line;
        if (r.n == 0)
            r.text = value;
        if (!str_to_u64(value, &r.v[r.n]))
            r.v[r.n] = UINT64_MAX;
        r.n++;
    }
    return r;
}

static int fd_of(uint64_t v)
{
    return v <= INT32_MAX ? (int)v : -1;
}

static bool take_text(char **out, const struct row *r)
{
    free(*out);
    *out = strndup(r->text.p, r->text.n);
    return *out != NULL;
}

static bool take_file(struct sup_file *f, const struct row *r)
{
    f->fd = fd_of(r->v[1]);
    f->dev = (dev_t)r->v[2];
    f->ino = (ino_t)r->v[3];
    return take_text(&f->path, r);
}

static bool take_listen(struct sup_state *s, const struct row *r)
{
    struct sockets *k = listeners_add(&s->listeners, r->text);
    if (k == NULL)
        return false;
    k->given = r->v[1] == 1;
    k->dev = (dev_t)r->v[2];
    k->ino = (ino_t)r->v[3];
    k->user = r->n >= 5 && r->v[4] <= INT32_MAX ? (pid_t)r->v[4] : 0;
    return true;
}

static bool take_socket(struct sup_state *s, const struct row *r)
{
    int fd = fd_of(r->v[0]);
    return fd >= 0 && s->listeners.n > 0 && sockets_take(s->listeners.all[s->listeners.n - 1], &fd, 1);
}

static bool take_server(struct sup_state *s, const struct row *r)
{
    if (s->n_servers == SUP_SERVERS || r->v[0] > INT32_MAX)
        return false;
    s->servers[s->n_servers++] = (struct sup_server){
        .pid = (pid_t)r->v[0],
        .link = fd_of(r->v[1]),
        .calls = fd_of(r->v[2]),
        .ready = r->v[3] == 1,
        .leaving = r->v[4] == 1,
    };
    return true;
}

static bool take(struct sup_state *s, const struct row *r)
{
    if (str_eq(r->word, STR("name")))
        return take_text(&s->name, r);
    if (str_eq(r->word, STR("path")))
        return take_text(&s->path, r);
    if (str_eq(r->word, STR("error_log")))
        return take_text(&s->error_log, r);
    if (str_eq(r->word, STR("control")))
        return r->n >= 4 && take_file(&s->control, r);
    if (str_eq(r->word, STR("pid_file")))
        return r->n >= 4 && take_file(&s->pid_file, r);
    if (str_eq(r->word, STR("listen")))
        return r->n >= 4 && take_listen(s, r);
    if (str_eq(r->word, STR("socket")))
        return r->n >= 1 && take_socket(s, r);
    if (str_eq(r->word, STR("server")))
        return r->n >= 5 && take_server(s, r);
    if (str_eq(r->word, STR("text"))) {
        s->generation = r->v[0];
        s->text_fd = r->n >= 2 ? fd_of(r->v[1]) : -1;
    }
    if (str_eq(r->word, STR("orders")))
        s->orders_fd = fd_of(r->v[0]);
    if (str_eq(r->word, STR("error_style")))
        s->error_style = r->v[0] == LOG_STYLE_JSON ? LOG_STYLE_JSON : LOG_STYLE_TEXT;
    s->upgrade_asked |= str_eq(r->word, STR("asked"));
    return true;
}

bool sup_state_parse(struct sup_state *s, struct str text, const char **why)
{
    bool is_first = true;
    *why = "it is damaged";
    while (text.n > 0) {
        ptrdiff_t eol = str_chr(text, '\n', 0);
        if (eol < 0)
            return false;
        struct row r = row_of(str_take(text, (size_t)eol));
        text = str_skip(text, (size_t)eol + 1);
        if (is_first && (!str_eq(r.word, STR("weir-state")) || r.v[0] != FORMAT || r.v[1] != LINK_VERSION)) {
            *why = "it is of another version";
            return false;
        }
        if (!is_first && !take(s, &r))
            return false;
        is_first = false;
    }
    return s->name != NULL && s->error_log != NULL && s->text_fd >= 0 && s->n_servers > 0;
}
