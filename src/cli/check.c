/* SPDX-License-Identifier: MIT */
/* weir check [-c FILE]: loads the configuration and says what is wrong with it; touches nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

int cli_check(int argc, char **argv)
{
    const char *path;
    struct conf_result r;
    if (!cli_only_conf(argc, argv, &path)) {
        fputs("usage: weir check [-c proxy.conf]\n", stderr);
        return CLI_USAGE;
    }
    int status = cli_load_conf(path, &r);
    if (status == EXIT_SUCCESS)
        printf("%.*s: ok\n", STR_ARG(r.files[0]));
    else if (r.n_errors > 0)
        fprintf(stderr, "%.*s: %u error%s\n", STR_ARG(r.files[0]), r.n_errors, r.n_errors == 1 ? "" : "s");
    conf_free(r.conf);
    conf_result_free(&r);
    return status;
}
