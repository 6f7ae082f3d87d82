/* SPDX-License-Identifier: MIT */
/*
 * weir status | reload | stop | reopen | upgrade | server: one command over the control socket of the running server
 * (proc/control.h), its answer for people, or as it came with --json.
 *
 * The socket is where the configuration says (-c FILE, or the file that `run` would take), else at the default place. Only the line with
 * `control` is looked for: a configuration that is broken right now must not keep anyone from asking.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli.h"
#include "proc/control.h"

struct options {
    const char *conf;
    const char *socket;
    const char *words[3]; /* server: which, and what is wanted of it */
    unsigned n_words;
    bool json, now;
};

static bool parse_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        struct str word = str_c(argv[i]);
        if (str_eq(word, STR("-c")) && i + 1 < argc)
            o->conf = argv[++i];
        else if (str_eq(word, STR("--socket")) && i + 1 < argc)
            o->socket = argv[++i];
        else if (str_eq(word, STR("--json")))
            o->json = true;
        else if (str_eq(word, STR("--now")) && strcmp(argv[0], "stop") == 0)
            o->now = true;
        else if (argv[i][0] != '-' && strcmp(argv[0], "server") == 0 && o->n_words < ARRAY_LEN(o->words))
            o->words[o->n_words++] = argv[i];
        else
            return false;
    }
    return strcmp(argv[0], "server") != 0 || o->n_words >= 2;
}

/* `text` begins behind the word `control`: the text between the quotes if = "..." follows. */
static struct str value_behind(struct str text)
{
    text = str_trim(text);
    if (text.n == 0 || (text.p[0] != '=' && text.p[0] != ':'))
        return STR_NONE;
    text = str_trim(str_skip(text, 1));
    ptrdiff_t end = str_chr(text, '"', 1);
    return text.n > 1 && text.p[0] == '"' && end > 0 ? str_of(text.p + 1, (size_t)end - 1) : STR_NONE;
}

static struct str control_of_line(struct str line)
{
    for (size_t i = 0; i < line.n && line.p[i] != '#'; i++) {
        bool is_word = i == 0 || line.p[i - 1] == ' ' || line.p[i - 1] == '\t' || line.p[i - 1] == ';';
        struct str rest = str_skip(line, i);
        if (is_word && str_starts(rest, STR("control")) && value_behind(str_skip(rest, 7)).n > 0)
            return value_behind(str_skip(rest, 7));
    }
    return STR_NONE;
}

/* Relative to the folder of the file. */
static bool resolve(const char *file, struct str path, char *out, size_t cap)
{
    const char *slash = strrchr(file, '/');
    int folder = slash == NULL || path.p[0] == '/' ? 0 : (int)(slash - file + 1);
    int n = snprintf(out, cap, "%.*s%.*s", folder, file, STR_ARG(path));
    return n > 0 && (size_t)n < cap;
}

static bool path_in_file(const char *file, char *out, size_t cap)
{
    FILE *f = fopen(file, "re");
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    bool found = false;
    if (f == NULL)
        return false;
    while (!found && (n = getline(&line, &size, f)) > 0) {
        struct str path = control_of_line(str_of(line, (size_t)n));
        found = path.n > 0 && resolve(file, path, out, cap);
    }
    free(line);
    fclose(f);
    return found;
}

static bool find_socket(const struct options *o, char *out, size_t cap)
{
    if (o->socket != NULL)
        return resolve("", str_c(o->socket), out, cap);
    const char *file = find_conf(o->conf);
    return (file != NULL && path_in_file(file, out, cap)) || control_default_path(out, cap);
}

enum { ANSWER_S = 10 };

/* These are answered at once; the others when it is known what became of them. */
static bool is_quick(const char *verb)
{
    return strcmp(verb, "status") == 0 || strcmp(verb, "server") == 0 || strcmp(verb, "reopen") == 0;
}

static int connect_to(const char *path, bool is_bounded)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    const struct timeval longest = { .tv_sec = is_bounded ? ANSWER_S : 0 };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest); /* of connect, too */
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    }
    if (fd < 0 || strlen(path) >= sizeof(a.sun_path)) {
        errno = fd < 0 ? errno : ENAMETOOLONG;
        return -1;
    }
    memcpy(a.sun_path, path, strlen(path) + 1);
    if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Sends the command; the answer's line without its newline, malloc'ed. NULL: the server said nothing. The stream stays open in *stream. */
static char *ask(int fd, const char *command, FILE **stream)
{
    char *line = NULL;
    size_t size = 0;
    *stream = fdopen(fd, "r");
    if (*stream == NULL || dprintf(fd, "%s\n", command) < 0)
        return NULL;
    ssize_t n = getline(&line, &size, *stream);
    if (n <= 0) {
        free(line);
        return NULL;
    }
    line[n - 1] = '\0';
    return line;
}

static const char *text_of(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s != NULL ? s : "";
}

static long long number_of(const json_t *o, const char *name)
{
    return (long long)json_integer_value(json_object_get(o, name));
}

static void print_server(const json_t *server)
{
    printf("    %-28s %-10s in flight %lld", text_of(server, "address"), text_of(server, "state"),
           number_of(server, "in_flight"));
    if (number_of(server, "maxconn") > 0)
        printf(" of %lld", number_of(server, "maxconn"));
    printf(", idle %lld, requests %lld, failures %lld", number_of(server, "idle"), number_of(server, "requests"),
           number_of(server, "failures"));
    if (text_of(server, "cause")[0] != '\0')
        printf(": %s", text_of(server, "cause"));
    putchar('\n');
}

static void print_status(const json_t *o)
{
    long long up = number_of(o, "uptime_s");
    size_t i, j;
    json_t *upstream, *server;
    printf("weir %s, %s for %lldd %02lld:%02lld:%02lld, pid %lld, %lld loops\n", text_of(o, "version"), text_of(o, "state"),
           up / 86400, up / 3600 % 24, up / 60 % 60, up % 60, number_of(o, "pid"), number_of(o, "loops"));
    printf("configuration %s, generation %lld", text_of(o, "configuration"), number_of(o, "generation"));
    if (json_is_true(json_object_get(o, "disk_differs")))
        printf("; the file differs: %s%s", text_of(o, "disk_changes"), text_of(o, "disk_error"));
    printf("\nclients %lld of %lld, tunnels %lld, requests %lld, log lines dropped %lld\n", number_of(o, "clients"),
           number_of(o, "clients_max"), number_of(o, "tunnels"), number_of(o, "requests"),
           number_of(o, "log_lines_dropped"));
    json_array_foreach(json_object_get(o, "upstreams"), i, upstream)
    {
        printf("upstream %s", text_of(upstream, "name"));
        if (number_of(upstream, "waiting") > 0)
            printf(", %lld requests wait", number_of(upstream, "waiting"));
        putchar('\n');
        json_array_foreach(json_object_get(upstream, "servers"), j, server) print_server(server);
    }
}

static void print_findings(const json_t *o)
{
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(o, "findings"), i, line) fprintf(stderr, "%s\n", json_string_value(line));
}

/* The answer for people. The exit code. */
static int print_answer(const char *verb, const json_t *o)
{
    bool ok = json_is_true(json_object_get(o, "ok"));
    print_findings(o);
    if (!ok) {
        fprintf(stderr, "weir: %s: %s\n", verb, text_of(o, "error"));
        return strcmp(verb, "reload") == 0 ? CLI_RELOAD_REFUSED : EXIT_FAILURE;
    }
    if (strcmp(verb, "status") == 0)
        print_status(o);
    else if (strcmp(verb, "reload") == 0)
        printf("generation %lld: %s, %lld connections kept\n", number_of(o, "generation"), text_of(o, "changes"),
               number_of(o, "connections_kept"));
    return EXIT_SUCCESS;
}

static int answer(const char *verb, const struct options *o, const char *line)
{
    json_error_t error;
    json_t *root = json_loads(line, 0, &error);
    if (!json_is_object(root)) {
        fprintf(stderr, "weir: %s: not understood: %s\n", verb, line);
        json_decref(root);
        return EXIT_FAILURE;
    }
    int status = EXIT_SUCCESS;
    if (o->json) {
        puts(line);
        status = json_is_true(json_object_get(root, "ok")) ? EXIT_SUCCESS
                 : strcmp(verb, "reload") == 0             ? CLI_RELOAD_REFUSED
                                                           : EXIT_FAILURE;
    } else {
        status = print_answer(verb, root);
    }
    json_decref(root);
    return status;
}

int cli_control(int argc, char **argv)
{
    struct options o = { 0 };
    const char *verb = argv[0];
    char path[4096];
    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "usage: weir %s%s [-c proxy.conf] [--socket PATH] [--json]%s\n", verb,
                strcmp(verb, "server") == 0 ? " UPSTREAM/ADDRESS up|down|drain|weight N" : "",
                strcmp(verb, "stop") == 0 ? " [--now]" : "");
        return CLI_USAGE;
    }
    if (!find_socket(&o, path, sizeof(path))) {
        fprintf(stderr, "weir: %s: no control socket is known; expected --socket PATH, or -c FILE with `control`\n", verb);
        return EXIT_FAILURE;
    }
    int fd = connect_to(path, is_quick(verb));
    if (fd < 0) {
        fprintf(stderr, "weir: %s: no server answers at %s: %s\n", verb, path, strerror(errno));
        return EXIT_FAILURE;
    }
    FILE *stream;
    char command[512];
    snprintf(command, sizeof(command), "%s%s", verb, o.now ? " now" : "");
    for (unsigned i = 0; i < o.n_words; i++) {
        size_t n = strlen(command);
        snprintf(command + n, sizeof(command) - n, " %s", o.words[i]);
    }
    errno = 0;
    char *line = ask(fd, command, &stream);
    int status = EXIT_FAILURE;
    if (line != NULL)
        status = answer(verb, &o, line);
    else if (errno == EAGAIN)
        fprintf(stderr, "weir: %s: no answer within %d s: the server hangs, or was stopped (SIGSTOP)\n", verb, ANSWER_S);
    else
        fprintf(stderr, "weir: %s: the server closed the connection without an answer\n", verb);
    free(line);
    if (status == EXIT_SUCCESS && strcmp(verb, "stop") == 0 && !o.now)
        while (fgetc(stream) != EOF) /* the server closes it last */
            ;
    if (stream != NULL)
        fclose(stream);
    else
        close(fd);
    return status;
}
