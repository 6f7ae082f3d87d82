/* SPDX-License-Identifier: MIT */
/* The verbs of the command line, and what they share. A verb gets argv from its own name on and returns the exit code.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include "conf/conf.h"

enum { CLI_USAGE = 2, CLI_RELOAD_REFUSED = 75 };

typedef int command_fn(int argc, char **argv);

/* A row of main.c's table. */
struct command {
    const char *name;
    const char *args;    /* after the name, in a usage line */
    const char *summary; /* one line */
    const char *help;    /* more lines for `weir help NAME`; may be NULL */
    command_fn *run;     /* NULL: not available in this version */
};

/* Finds the verb (also nginx's -t, -v, -s) and runs it. */
int command_main(const struct command *table, size_t n, int argc, char **argv);

int cli_ab(int argc, char **argv);
int cli_check(int argc, char **argv);
/* status, reload, stop, reopen, upgrade, server: argv[0] says which. */
int cli_control(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_proxy(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_suggest(int argc, char **argv);
int cli_version(int argc, char **argv);

/* The file to load: `given`, else $WEIR_CONF, else ./proxy.conf for an ordinary user at a terminal, else
 * /etc/weir/proxy.conf. NULL: none of them is there. */
const char *find_conf(const char *given);
/* Finds and loads; prints all findings to stderr. 0 and out->conf is the caller's to free, or an exit code and it is
 * NULL. The result is the caller's to free in any case. */
int cli_load_conf(const char *given, struct conf_result *out);
/* Prints all findings to stderr, in colours on a terminal. */
void cli_print_findings(const struct conf_result *r);
/* May colours go there? Not without a terminal, never with NO_COLOR. */
bool cli_has_colours(int fd);
/* Writes a text as a quoted value of a configuration. */
void cli_quote(FILE *f, const char *text);
/* The value of "--name VALUE" or "--name=VALUE"; NULL: this is another option, or the value is missing. */
const char *cli_option_value(const char *name, int argc, char **argv, int *i);
/* Takes `-c FILE` out of the arguments; false: anything else is there. */
bool cli_only_conf(int argc, char **argv, const char **path);

/* Serves a configuration that stands in no file; takes r->conf over. (run.c) */
int cli_run_conf(struct conf_result *r, const char *name);

#endif
