/* SPDX-License-Identifier: MIT */
/*
 * weir run [-c FILE]: serves in the foreground until a signal ends it.
 *
 * Loads the configuration, opens the listening sockets and hands both to the server: binding and serving are apart, so
 * that whoever may bind can become a process of its own. Owns the sockets until the server has returned. Here is also
 * the way in for a configuration that stands in no file (`weir proxy`), which therefore cannot be loaded again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "proc/server.h"
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
    struct listeners listeners;
    server_catch_signals(); /* from the first connection that could be made on */
    if (!open_standard_fds() || !listeners_open(&listeners, conf)) {
        conf_free(conf);
        return EXIT_FAILURE;
    }
    const struct server_options options = {
        .conf = conf,
        .listeners = &listeners,
        .name = name,
        .path = path,
        .handlers = registry_handlers,
        .filters = registry_filters,
    };
    int status = server_run(&options);
    listeners_close(&listeners);
    return status;
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
    struct conf_result r;
    int status = cli_load_conf(path, &r);
    if (status == EXIT_SUCCESS) {
        /* Which file it was, even if it was looked for. */
        char *found = strndup(r.files[0].p, r.files[0].n);
        struct conf *conf = r.conf;
        if (found == NULL) {
            conf_free(conf);
            status = EXIT_FAILURE;
        } else {
            status = serve(conf, found, found);
        }
        free(found);
    }
    conf_result_free(&r);
    return status;
}
