/* SPDX-License-Identifier: MIT */
/*
 * Which proxy.conf is meant, loading it for a verb, and showing what is wrong with it. The order is that of the manual:
 * -c, $WEIR_CONF, ./proxy.conf, /etc/weir/proxy.conf. The third is for people only: what root or a service runs must
 * not depend on the folder it happens to stand in. Findings go to stderr, one line each, as the loader worded them;
 * colours are added here, and only for a terminal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

static const char here[] = "./proxy.conf", system_wide[] = "/etc/weir/proxy.conf";

const char *find_conf(const char *given)
{
    const char *from_env = getenv("WEIR_CONF");
    if (given != NULL)
        return given;
    if (from_env != NULL && *from_env != '\0')
        return from_env;
    /* Not for root and not for services: what they run must not depend on where they stand. */
    if (geteuid() != 0 && isatty(STDIN_FILENO) && access(here, F_OK) == 0)
        return here;
    return access(system_wide, F_OK) == 0 ? system_wide : NULL;
}

bool cli_has_colours(int fd)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fd) && (no_colour == NULL || *no_colour == '\0') && (term == NULL || strcmp(term, "dumb") != 0);
}

/* "file:line:" bold, the caret and errors' mark red. */
static void print_coloured(struct str text)
{
    size_t n = 0;
    while (n + 1 < text.n && !(text.p[n] == ':' && text.p[n + 1] == ' '))
        n++;
    ptrdiff_t caret = str_chr(text, '\n', 0);
    fprintf(stderr, "\033[1m%.*s\033[0m", (int)n, text.p);
    size_t first = caret < 0 ? text.n : (size_t)caret;
    fprintf(stderr, "%.*s", (int)(first - n), text.p + n);
    fprintf(stderr, "\033[31m%.*s\033[0m", (int)(text.n - first), text.p + first);
}

void cli_print_findings(const struct conf_result *r)
{
    struct arena a;
    bool has_colours = cli_has_colours(STDERR_FILENO);
    arena_init(&a, NULL);
    for (const struct diagnostic *d = r->first; d != NULL; d = d->next) {
        struct str text = diagnostic_print(&a, r, d);
        if (has_colours)
            print_coloured(text);
        else
            fprintf(stderr, "%.*s", STR_ARG(text));
    }
    arena_reset(&a);
}

int cli_load_conf(const char *given, struct conf_result *out)
{
    const char *path = find_conf(given);
    *out = (struct conf_result){ 0 };
    if (path == NULL) {
        fputs("weir: no proxy.conf in . or /etc/weir; try: weir proxy --listen 8080 --to 127.0.0.1:3000\n", stderr);
        return EXIT_FAILURE;
    }
    conf_load(path, out);
    cli_print_findings(out);
    return out->conf != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool cli_only_conf(int argc, char **argv, const char **path)
{
    *path = NULL;
    for (int i = 1; i < argc; i++) {
        struct str word = str_c(argv[i]);
        if (str_eq(word, STR("-c")) && i + 1 < argc)
            *path = argv[++i];
        else if (str_starts(word, STR("-c")) && word.n > 2)
            *path = argv[i] + 2;
        else
            return false;
    }
    return true;
}
