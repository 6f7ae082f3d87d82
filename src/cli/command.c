/* SPDX-License-Identifier: MIT */
/*
 * Finding the verb of a command line and helping with it. What people type from habit works too: -t, -v, -s and -c
 * without a verb as nginx has them, --help and --version anywhere they are usual. Help that was asked for goes to
 * stdout with exit 0, misuse to stderr with exit 2.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "conf/print.h"
#include "conf/settings.h"

struct table {
    const struct command *rows;
    size_t n;
};

static const struct command *find(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->rows[i].name, name) == 0)
            return &t->rows[i];
    return NULL;
}

static void usage(const struct table *t, FILE *f)
{
    fputs("usage: weir COMMAND [ARGUMENTS]\n\n", f);
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].run != NULL)
            fprintf(f, "  %-9s %s\n", t->rows[i].name, t->rows[i].summary);
    fputs("\nweir help COMMAND says more. Settings: proxy.conf(5).\n", f);
}

static int unknown(const struct table *t, const char *name)
{
    struct nearest nearest;
    nearest_init(&nearest, str_c(name));
    for (size_t i = 0; i < t->n; i++)
        nearest_offer(&nearest, str_c(t->rows[i].name));
    if (nearest.best.n > 0)
        fprintf(stderr, "weir: no command `%s`; did you mean `%.*s`?\n", name, STR_ARG(nearest.best));
    else
        fprintf(stderr, "weir: no command `%s`; weir help lists them\n", name);
    return CLI_USAGE;
}

static int help_one(const struct command *c)
{
    printf("usage: weir %s%s%s\n\n%s\n", c->name, *c->args ? " " : "", c->args, c->summary);
    if (c->help != NULL)
        printf("\n%s", c->help);
    if (c->run == NULL)
        puts("\nNot available in this version.");
    return EXIT_SUCCESS;
}

/* Pages that `make` and a test ask for; not listed. */
static bool print_page(const char *name)
{
    struct arena a;
    struct str page = STR_NONE;
    arena_init(&a, NULL);
    if (strcmp(name, "--settings-md") == 0)
        page = conf_settings_md(&a);
    else if (strcmp(name, "--settings-man") == 0)
        page = conf_settings_man(&a);
    bool is_page = page.p != NULL;
    if (is_page)
        fwrite(page.p, 1, page.n, stdout);
    arena_reset(&a);
    return is_page;
}

static int help(const struct table *t, int argc, char **argv)
{
    if (argc < 2) {
        usage(t, stdout);
        return EXIT_SUCCESS;
    }
    if (print_page(argv[1]))
        return EXIT_SUCCESS;
    const struct command *c = find(t, argv[1]);
    return c != NULL ? help_one(c) : unknown(t, argv[1]);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run(const struct command *c, int argc, char **argv)
{
    if (argc > 1 && is_help(argv[1]))
        return help_one(c);
    if (c->run != NULL)
        return c->run(argc, argv);
    fprintf(stderr, "weir: `%s` is not available in this version\n", c->name);
    return EXIT_FAILURE;
}

/* nginx's way: options only. argv[0] becomes the verb, and the option that named it goes. */
static int run_options(const struct table *t, int argc, char **argv)
{
    static char check[] = "check", version[] = "version", serve[] = "run", stop[] = "stop";
    char *verb = serve;
    int n = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-t") == 0) {
            verb = check;
        } else if (strcmp(argv[i], "-v") == 0 || strcmp(argv[i], "-V") == 0 || strcmp(argv[i], "--version") == 0) {
            verb = version;
        } else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc) {
            verb = argv[++i];
            if (strcmp(verb, "quit") == 0)
                verb = stop; /* it drains */
        } else {
            argv[n++] = argv[i];
        }
    }
    argv[0] = verb;
    argv[n] = NULL;
    const struct command *c = find(t, verb);
    return c != NULL ? run(c, n, argv) : unknown(t, verb);
}

int command_main(const struct command *rows, size_t n_rows, int argc, char **argv)
{
    const struct table t = { rows, n_rows };
    if (argc < 2) {
        usage(&t, stderr);
        return CLI_USAGE;
    }
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0)
        return help(&t, argc - 1, argv + 1);
    if (argv[1][0] == '-')
        return run_options(&t, argc, argv);
    const struct command *c = find(&t, argv[1]);
    return c != NULL ? run(c, argc - 1, argv + 1) : unknown(&t, argv[1]);
}
