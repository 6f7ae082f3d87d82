/* SPDX-License-Identifier: MIT */
/*
 * weir run [-c FILE]: serves in the foreground until a signal ends it.
 *
 * Loads the configuration and hands it to the supervisor. Here is also the way in for a configuration that stands in no
 * file (`weir proxy`), which therefore cannot be loaded again, and for the new program of an upgrade, which is executed
 * as `weir run` and finds everything it needs in what the old one has left.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "proc/supervisor.h"
#include "registry.h"

/* A program started without stdin, stdout or stderr would get a listening socket in their place, and log into it. */
static bool open_standard_fds(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

/* path is what a reload loads again; NULL: nothing. Takes conf over. */
static int serve(struct conf *conf, const char *name, const char *path)
{
    if (!open_standard_fds()) {
        conf_free(conf);
        return EXIT_FAILURE;
    }
    const struct supervisor_options options = {
        .conf = conf,
        .name = name,
        .path = path,
        .handlers = registry_handlers,
        .filters = registry_filters,
    };
    return supervisor_run(&options);
}

int cli_run_conf(struct conf_result *r, const char *name)
{
    struct conf *conf = r->conf;
    r->conf = NULL;
    return serve(conf, name, NULL);
}

int cli_run(int argc, char **argv)
{
    const char *path;
    if (!cli_only_conf(argc, argv, &path)) {
        fputs("usage: weir run [-c proxy.conf]\n", stderr);
        return CLI_USAGE;
    }
    if (supervisor_is_upgrade())
        return supervisor_resume(registry_handlers, registry_filters);
    struct conf_result r;
    int status = cli_load_conf(path, &r);
    /* Which file it was, even if it was looked for. */
    char *found = status == EXIT_SUCCESS ? strndup(r.files[0].p, r.files[0].n) : NULL;
    struct conf *conf = r.conf;
    conf_result_free(&r);
    if (status == EXIT_SUCCESS)
        status = found != NULL ? serve(conf, found, found) : EXIT_FAILURE;
    free(found);
    return status;
}
