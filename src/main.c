/* SPDX-License-Identifier: MIT */
/*
 * The command table; nothing else.
 *
 * Each row is a verb of the command line: its name, its arguments, one line about it, more lines for `weir help NAME`,
 * and the function in src/cli/ that does it. A row without a function is a verb that this version does not have yet: it
 * says so and fails. The order is that of the usage page.
 */
#include "cli/cli.h"

#define CONTROL_ARGS "[-c proxy.conf] [--socket PATH] [--json]"

static const struct command commands[] = {
    { "run", "[-c proxy.conf]", "serve in the foreground",
      "Without -c: $WEIR_CONF, else ./proxy.conf for an ordinary user at a terminal, else /etc/weir/proxy.conf.\n"
      "Signals: HUP reloads, USR1 reopens the logs, TERM and QUIT drain (a second one ends it at once), INT stops.\n",
      cli_run },
    { "check", "[-c proxy.conf]", "say what is wrong with a configuration",
      "Exit code 0, or 1 with file:line for each problem. -t does the same.\n", cli_check },
    { "explain", "[-c proxy.conf] [METHOD] URL [-H 'Name: value']...",
      "say which site and location would answer, and why", NULL, cli_explain },
    { "reload", CONTROL_ARGS, "load the configuration of the running server again",
      "Waits for the outcome. Exit code 75: refused, the old configuration still serves. HUP does the same, into the log.\n",
      cli_control },
    { "stop", CONTROL_ARGS " [--now]", "drain the running server and wait, or end it at once",
      "TERM drains, INT ends it at once.\n", cli_control },
    { "reopen", CONTROL_ARGS, "reopen the logs of the running server", "USR1 does the same.\n", cli_control },
    { "upgrade", CONTROL_ARGS, "replace the running program", NULL, cli_control },
    { "status", CONTROL_ARGS, "say what the running server is doing", NULL, cli_control },
    { "server", "UPSTREAM/ADDRESS up|down|drain|weight N " CONTROL_ARGS, "change a server of the running server's upstreams",
      "drain and down: it gets no more requests, and finishes what it has; up takes them back, and ends an ejection. weight\n"
      "holds until a reload brings another one. All of it ends with the process.\n",
      cli_control },
    { "proxy", "--listen 8080 --to 127.0.0.1:3000 [--to ...] [--root public] [--print]",
      "serve without a configuration file",
      "Several --to share the requests. With --root, files that are there are answered from that folder. --print shows "
      "the\n"
      "proxy.conf that the options stand for, and serves nothing.\n",
      cli_proxy },
    { "ab", "A.conf B.conf ... [--url /image.jpg] [--load 'ab -n 100000 -c 100']",
      "measure configurations against each other",
      "weir ab --list shows the set-ups that are there, weir ab ARM --help all options. Exit code 3: something is slower;\n"
      "4: inconclusive; 1: nothing could be measured, or failures make it void.\n",
      cli_ab },
    { "suggest", "--app FOLDER [--log access.log]... [--listen 8080] [--to 127.0.0.1:3000]",
      "say which files of an app need not trouble the app",
      "Looks at public, dist, build, .next/static and a Meteor bundle in the app's folder, and prints a configuration "
      "that\n"
      "answers from them. With --log (combined or JSON, - for stdin) it says what share of the logged requests and bytes\n"
      "each of them would take off the app, and leaves out what takes nothing.\n",
      cli_suggest },
    { "version", "", "say which version this is", NULL, cli_version },
};

int main(int argc, char **argv)
{
    return command_main(commands, ARRAY_LEN(commands), argc, argv);
}
