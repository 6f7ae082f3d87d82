/* SPDX-License-Identifier: MIT */
/*
 * weir ab: becomes the laboratory, which is a Python program (contrib/ab).
 *
 * A weir that was built in a source tree and not installed runs the laboratory of that tree: a folder above the program
 * holds contrib/ab/main.py. Any other one runs the installed one. WEIR_BIN tells the laboratory which weir asked, so
 * that it measures this one; a value that is set already stays.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

#define MAIN_PY "contrib/ab/main.py"

/* Cuts the last component off; false: there is none. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/* Of the tree that `program` was built in: out becomes the path of its laboratory. */
static bool find_in_tree(const char *program, char *out, size_t size)
{
    char folder[PATH_MAX];
    if ((size_t)snprintf(folder, sizeof folder, "%s", program) >= sizeof folder)
        return false;
    while (go_up(folder)) {
        int n = snprintf(out, size, "%s/" MAIN_PY, folder);
        if (n > 0 && (size_t)n < size && access(out, R_OK) == 0)
            return true;
    }
    return false;
}

int cli_ab(int argc, char **argv)
{
    static char python[] = "/usr/bin/python3";
    char program[PATH_MAX], lab[PATH_MAX] = WEIR_LIBEXECDIR "/ab/main.py";
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n > 0) {
        program[n] = '\0';
        char tree[PATH_MAX];
        if (find_in_tree(program, tree, sizeof tree))
            memcpy(lab, tree, sizeof lab);
        setenv("WEIR_BIN", program, 0);
    }
    char **args = calloc((size_t)argc + 2, sizeof *args);
    if (args == NULL) {
        fputs("weir: out of memory\n", stderr);
        return EXIT_FAILURE;
    }
    args[0] = python;
    args[1] = lab;
    for (int i = 1; i < argc; i++)
        args[i + 1] = argv[i];
    if (access(lab, R_OK) != 0)
        fprintf(stderr, "weir: the laboratory is not installed: %s: %s\n", lab, strerror(errno));
    else if (execv(python, args) != 0)
        fprintf(stderr, "weir: %s: %s\n", python, strerror(errno));
    free(args);
    return EXIT_FAILURE;
}
