/* SPDX-License-Identifier: MIT */
/*
 * weir check [-c FILE]: loads the configuration and says what is wrong with it; touches nothing.
 *
 * weir check --upgrade VERSION FD is what a running supervisor asks the program that is to take its place: whether it
 * understands what it would be handed, and likes the configuration in force, whose text that descriptor has.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "proc/running_text.h"
#include "proc/supervisor.h"

static int check_upgrade(const char *version, const char *fd, struct conf_result *r)
{
    uint64_t n;
    *r = (struct conf_result){ 0 };
    if (!supervisor_understands(version) || !str_to_u64(str_c(fd), &n) || n > INT32_MAX) {
        fputs("weir " WEIR_VERSION " cannot take over from this version: restart the server instead\n", stderr);
        return EXIT_FAILURE;
    }
    running_text_load((int)n, r);
    cli_print_findings(r);
    return r->conf != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cli_check(int argc, char **argv)
{
    const char *path;
    struct conf_result r;
    int status;
    if (argc == 4 && strcmp(argv[1], "--upgrade") == 0) {
        status = check_upgrade(argv[2], argv[3], &r);
    } else if (cli_only_conf(argc, argv, &path)) {
        status = cli_load_conf(path, &r);
    } else {
        fputs("usage: weir check [-c proxy.conf]\n", stderr);
        return CLI_USAGE;
    }
    if (status == EXIT_SUCCESS)
        printf("%.*s: ok\n", STR_ARG(r.files[0]));
    else if (r.n_errors > 0)
        fprintf(stderr, "%.*s: %u error%s\n", STR_ARG(r.files[0]), r.n_errors, r.n_errors == 1 ? "" : "s");
    conf_free(r.conf);
    conf_result_free(&r);
    return status;
}
