/* SPDX-License-Identifier: MIT */
/*
 * weir proxy --listen ADDRESS --to ADDRESS ... [--root FOLDER] [--print]
 * Serves without a configuration file: writes the text that the options stand for and loads it as any other. What the
 * user typed stands in that text as data (quoted), so every check and message of the loader holds for it too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "conf/print.h"

enum { WORDS_MAX = 64 };

struct words {
    const char *v[WORDS_MAX];
    unsigned n;
};

struct options {
    struct words listen, to;
    const char *root;
    bool print;
};

void cli_quote(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(f, "\\%c", *text);
        else if (*text == '$')
            fputs("$$", f);
        else
            fputc(*text, f);
    }
    fputc('"', f);
}

static void list(FILE *f, const struct words *words)
{
    fputs("( ", f);
    for (unsigned i = 0; i < words->n; i++) {
        fputs(i > 0 ? ", " : "", f);
        cli_quote(f, words->v[i]);
    }
    fputs(" )", f);
}

static void write_conf(FILE *f, const struct options *o)
{
    if (o->to.n > 1) {
        fputs("upstreams = { app = { servers = ", f);
        list(f, &o->to);
        fputs("; }; };\n", f);
    }
    fputs("sites = ( { listen = ", f);
    list(f, &o->listen);
    if (o->root != NULL) {
        fputs("; root = ", f);
        cli_quote(f, o->root);
    }
    if (o->to.n > 0) {
        fputs("; proxy = ", f);
        cli_quote(f, o->to.n > 1 ? "app" : o->to.v[0]);
    }
    fputs("; } );\n", f);
}

const char *cli_option_value(const char *name, int argc, char **argv, int *i)
{
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n) != 0)
        return NULL;
    if (argv[*i][n] == '=')
        return argv[*i] + n + 1;
    if (argv[*i][n] != '\0' || *i + 1 >= argc)
        return NULL;
    return argv[++*i];
}

static bool add(struct words *words, const char *word)
{
    if (words->n == WORDS_MAX)
        return false;
    words->v[words->n++] = word;
    return true;
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value;
        bool is_right = true;
        if (strcmp(argv[i], "--print") == 0)
            o->print = true;
        else if ((value = cli_option_value("--listen", argc, argv, &i)) != NULL)
            is_right = add(&o->listen, value);
        else if ((value = cli_option_value("--to", argc, argv, &i)) != NULL)
            is_right = add(&o->to, value);
        else if ((value = cli_option_value("--root", argc, argv, &i)) != NULL)
            o->root = value;
        else
            is_right = false;
        if (!is_right)
            return false;
    }
    return o->listen.n > 0 && (o->to.n > 0 || o->root != NULL);
}

/* The text in memory of its own; NULL: out of memory. */
static char *conf_text(const struct options *o, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    if (f == NULL)
        return NULL;
    write_conf(f, o);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

static int print_conf(const struct conf_result *r)
{
    struct arena a;
    arena_init(&a, NULL);
    struct str text = conf_print(&a, r->conf);
    bool is_printed = text.p != NULL && fwrite(text.p, 1, text.n, stdout) == text.n && fflush(stdout) == 0;
    arena_reset(&a);
    return is_printed ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cli_proxy(int argc, char **argv)
{
    struct options o = { 0 };
    struct conf_result r;
    size_t n = 0;
    if (!parse(argc, argv, &o)) {
        fputs("usage: weir proxy --listen 8080 --to 127.0.0.1:3000 [--to ...] [--root public] [--print]\n", stderr);
        return CLI_USAGE;
    }
    char *text = conf_text(&o, &n), *dir = getcwd(NULL, 0);
    if (text == NULL || dir == NULL) {
        perror("weir");
        free(text);
        free(dir);
        return EXIT_FAILURE;
    }
    conf_load_text(str_of(text, n), "weir proxy", dir, &r);
    free(text);
    free(dir);
    cli_print_findings(&r);
    int status = r.conf == NULL ? EXIT_FAILURE : o.print ? print_conf(&r) : cli_run_conf(&r, "weir proxy");
    if (o.print)
        conf_free(r.conf);
    conf_result_free(&r);
    return status;
}
