/* SPDX-License-Identifier: MIT */
/*
 * weir explain [-c FILE] [METHOD] URL [-H 'Name: value']...
 *
 * Answers "which rule matched, and why": builds a worker without sockets from the configuration, runs the real request path over the
 * memory client with a trace, and prints what the trace noted. No backend is contacted; files are looked up.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "http/status.h"
#include "registry.h"
#include "serve/client_memory.h"
#include "serve/route.h"
#include "upstream/upstream.h"

struct note {
    const char *what;
    struct str text;
    struct where where;
};

struct notes {
    struct trace trace;
    struct arena arena;
    struct note v[256];
    unsigned n;
};

struct question {
    struct str method, authority, target;
    struct str headers; /* "Name: value\r\n" lines */
    struct str name;    /* of the site: of Host, else of the URL; lower case, empty: not named */
    bool has_host, is_port_named;
    uint16_t port; /* 0: not named */
};

static void on_note(struct trace *t, const char *what, struct str text, struct where where)
{
    struct notes *notes = container_of(t, struct notes, trace);
    if (notes->n < ARRAY_LEN(notes->v))
        notes->v[notes->n++] = (struct note){ what, arena_dup(&notes->arena, text), where };
}

static void print_line(struct arena *a, const struct conf *conf, const char *what, struct str text, struct where where)
{
    struct str at = where.line > 0 ? where_print(a, conf, where) : STR_NONE;
    if (at.n > 0)
        printf("%-12s %-58.*s  %.*s\n", what, STR_ARG(text), STR_ARG(at));
    else
        printf("%-12s %.*s\n", what, STR_ARG(text));
}

/* The line of the configuration that this line of the answer comes from, if a note names one. */
static struct where where_of_field(const struct notes *notes, struct str line)
{
    for (unsigned i = 0; i < notes->n; i++)
        if (strcmp(notes->v[i].what, "field") == 0 && str_eq_nocase(notes->v[i].text, line))
            return notes->v[i].where;
    return (struct where){ 0 };
}

static void print_block(struct str block)
{
    while (block.n > 0) {
        ptrdiff_t end = str_chr(block, '\r', 0);
        struct str line = end < 0 ? block : str_take(block, (size_t)end);
        printf("%-12s %.*s\n", "", STR_ARG(line));
        block = end < 0 ? STR_NONE : str_skip(block, (size_t)end + 2);
    }
}

static void print_answer(struct arena *a, const struct conf *conf, const struct notes *notes,
                         const struct memory_answer *answer)
{
    struct str reason = status_reason(answer->status);
    bool is_proxied = false;
    for (unsigned i = 0; i < notes->n; i++)
        is_proxied |= strcmp(notes->v[i].what, "upstream") == 0;
    is_proxied &= answer->fail == FAIL_NONE;
    for (unsigned i = 0; i < notes->n; i++) {
        const struct note *n = &notes->v[i];
        /* A field of an answer that is known stands in the answer, below. Of a backend's, whether it would be
         * compressed is not known. */
        if (strcmp(n->what, is_proxied ? "gzip" : "field") != 0)
            print_line(a, conf, n->what, n->text, n->where);
    }
    if (is_proxied)
        return; /* what the backend would say is not known */
    printf("%-12s %u %.*s\n", "answer", answer->status, STR_ARG(reason));
    if (answer->fail != FAIL_NONE)
        printf("%-12s %s: %s\n", "because", fail_row(answer->fail)->symbol, fail_row(answer->fail)->text);
    print_block(answer->block);
    for (unsigned i = 0; i < answer->fields.n; i++) {
        const struct field *f = &answer->fields.v[i];
        struct str line = arena_printf(a, "%.*s: %.*s", STR_ARG(f->name), STR_ARG(f->value));
        print_line(a, conf, "", line, where_of_field(notes, line));
    }
    if (answer->has_length)
        printf("%-12s Content-Length: %llu\n", "", (unsigned long long)answer->length);
}

static bool misuse(const char *what, struct str word)
{
    fprintf(stderr, "weir explain: %s \"%.*s\"\n", what, STR_ARG(word));
    return false;
}

/* The name that chooses a site, as serve/request.c takes it from a request; a malformed one chooses none. */
static void take_name(struct question *q, struct arena *a, struct str value)
{
    struct str name, copy;
    uint16_t ignored;
    if (!host_parse(str_trim(value), &name, &ignored) || (copy = arena_dup(a, name)).p == NULL)
        return;
    char *p = (char *)(uintptr_t)copy.p;
    for (size_t i = 0; i < copy.n; i++)
        p[i] = ascii_lower(p[i]);
    q->name = copy.n > 1 && str_ends(copy, STR(".")) ? str_take(copy, copy.n - 1) : copy;
}

/* "http://host:port/path", "host:port/path" is not taken: a path begins with '/'. */
static bool parse_url(struct question *q, struct arena *a, struct str url)
{
    if (str_starts(url, STR("http://")) || str_starts(url, STR("https://"))) {
        bool is_https = url.p[4] == 's';
        struct str rest = str_skip(url, is_https ? 8 : 7), name;
        ptrdiff_t slash = str_chr(rest, '/', 0);
        q->authority = slash < 0 ? rest : str_take(rest, (size_t)slash);
        q->target = slash < 0 ? STR("/") : str_skip(rest, (size_t)slash);
        if (!host_parse(q->authority, &name, &q->port))
            return misuse("malformed host in", url);
        if (!q->has_host)
            take_name(q, a, q->authority);
        q->is_port_named = q->port != 0;
        if (q->port == 0)
            q->port = is_https ? 443 : 80;
        return true;
    }
    q->target = url;
    return (url.n > 0 && (url.p[0] == '/' || str_eq(url, STR("*")))) || misuse("not a URL:", url);
}

static bool has_port(const struct listen_conf *listen, const struct question *q)
{
    return q->port > 0 && listen->endpoint.port == q->port;
}

static bool has_name(const struct listen_conf *listen, struct str name)
{
    return name.n > 0 &&
           (map_get(&listen->names, name) != NULL || route_site(listen, name) != listen->default_site);
}

/* The first with the port of the question, which counts more, and with its name. */
static const struct listen_conf *choose_listen(const struct conf *conf, const struct question *q)
{
    const struct listen_conf *best = &conf->listens[0];
    int best_score = 0;
    for (unsigned i = 0; i < conf->n_listens; i++) {
        const struct listen_conf *it = &conf->listens[i];
        int score = 2 * has_port(it, q) + has_name(it, q->name);
        if (score > best_score) {
            best = it;
            best_score = score;
        }
    }
    return best;
}

static struct str request_text(struct arena *a, const struct question *q, const struct listen_conf *listen)
{
    const struct site_conf *site = listen->default_site;
    struct str host = q->authority;
    if (host.n == 0)
        host = site->n_names > 0 && !site->names[0].wildcard ? site->names[0].name : STR("localhost");
    return arena_printf(a, "%.*s %.*s HTTP/1.1\r\n%s%.*s%s%.*s\r\n", STR_ARG(q->method), STR_ARG(q->target),
                        q->has_host ? "" : "Host: ", STR_ARG(q->has_host ? STR_NONE : host), q->has_host ? "" : "\r\n",
                        STR_ARG(q->headers));
}

static void keep_snapshot(struct snapshot *s)
{
    (void)s; /* on the caller's stack */
}

static int run_question(const struct conf *conf, struct snapshot *snapshot, const struct question *q)
{
    struct notes notes = { .trace = { on_note } };
    struct memory_answer answer;
    struct server_shared shared = { .clients_max = 1 };
    const struct listen_conf *listen = choose_listen(conf, q);
    struct ip peer;
    if (!ip_parse(STR("127.0.0.1"), &peer))
        return EXIT_FAILURE;
    arena_init(&notes.arena, NULL);
    struct worker *w = worker_new(0, &shared, snapshot, registry_handlers);
    if (w == NULL || !worker_filter(w, registry_filters)) {
        worker_free(w);
        fprintf(stderr, "weir: cannot set up the request path\n");
        return EXIT_FAILURE;
    }
    struct str text = request_text(&notes.arena, q, listen);
    printf("%-12s %.*s %.*s\n", "request", STR_ARG(q->method), STR_ARG(q->target));
    if (q->is_port_named && !has_port(listen, q))
        printf("%-12s nothing listens on port %u; answered as on another address\n", "note", q->port);
    print_line(&notes.arena, conf, "listen", listen->text, listen->where);
    if (!client_memory_run(w, listen, text, &peer, &notes.trace, &answer))
        printf("%-12s the head of this request is refused\n", "note");
    print_answer(&notes.arena, conf, &notes, &answer);
    memory_answer_free(&answer);
    worker_free(w);
    arena_reset(&notes.arena);
    return EXIT_SUCCESS;
}

static int explain(struct conf *conf, const struct question *q)
{
    struct upstream_table *table = upstream_table_new();
    struct upstream **by_index = calloc(conf->n_upstreams + 1, sizeof(struct upstream *));
    int status = EXIT_FAILURE;
    if (table && by_index && upstream_table_apply(table, conf, by_index)) {
        struct snapshot snapshot = { .conf = conf, .generation = 1, .upstreams = by_index, .free_fn = keep_snapshot };
        atomic_init(&snapshot.loops, 1);
        status = run_question(conf, &snapshot, q);
    }
    free(by_index);
    upstream_table_free(table);
    return status;
}

static bool add_header(struct question *q, struct arena *a, struct str line)
{
    ptrdiff_t colon = str_chr(line, ':', 0);
    if (colon <= 0 || !is_token(str_take(line, (size_t)colon)) || !is_field_value(line))
        return misuse("not a header field:", line);
    if (str_eq_nocase(str_take(line, (size_t)colon), STR("host"))) {
        q->has_host = true;
        take_name(q, a, str_skip(line, (size_t)colon + 1));
    }
    q->headers = arena_printf(a, "%.*s%.*s\r\n", STR_ARG(q->headers), STR_ARG(line));
    return true;
}

/* Everything after the options the caller has taken: [METHOD] URL and -H pairs in any order. */
static bool parse_question(int argc, char **argv, struct question *q, struct arena *a, const char **conf_path)
{
    struct str words[2];
    unsigned n = 0;
    for (int i = 1; i < argc; i++) {
        struct str word = str_c(argv[i]);
        bool has_value = i + 1 < argc;
        if (str_eq(word, STR("-c")) && has_value)
            *conf_path = argv[++i];
        else if (str_eq(word, STR("-H")) && has_value) {
            if (!add_header(q, a, str_c(argv[++i])))
                return false;
        } else if (n < 2 && word.n > 0 && word.p[0] != '-')
            words[n++] = word;
        else
            return misuse(word.n > 0 && word.p[0] == '-' ? "unknown option, or nothing behind it:" : "one word too many:", word);
    }
    if (n == 0)
        return false;
    q->method = n == 2 ? words[0] : STR("GET");
    return (is_token(q->method) || misuse("not a method:", q->method)) && parse_url(q, a, words[n - 1]);
}

int cli_explain(int argc, char **argv)
{
    struct arena a;
    struct question q = { 0 };
    const char *path = NULL;
    arena_init(&a, NULL);
    if (!parse_question(argc, argv, &q, &a, &path)) {
        fprintf(stderr, "usage: weir explain [-c proxy.conf] [METHOD] URL [-H 'Name: value']...\n"
                        "URL is a path that begins with '/', or http://host[:port]/path\n");
        arena_reset(&a);
        return CLI_USAGE;
    }
    log_set_level(LOG_WARN);
    struct conf_result result;
    int status = cli_load_conf(path, &result);
    if (status == EXIT_SUCCESS) {
        status = explain(result.conf, &q);
        conf_free(result.conf);
    }
    conf_result_free(&result);
    arena_reset(&a);
    return status;
}
