/* SPDX-License-Identifier: MIT */
/* Every type of value: what it takes, and what it says about the rest. */
#include "conf_test.h"

#include "conf/settings.h"

/* `line` at the top, before a complete site. */
static struct loaded load_line(const char *line)
{
    char text[1000];
    snprintf(text, sizeof text, "%s\n" SITE, line);
    return load(text);
}

static void refuses_line(const char *line, const char *what)
{
    char text[1000], said[1000];
    snprintf(text, sizeof text, "%s\n" SITE, line);
    snprintf(said, sizeof said, "t.conf:1: %s\n", what);
    refuses(text, said);
}

static void defaults(void **state)
{
    (void)state;
    struct loaded l = load(SITE);
    const struct conf *c = l.c;
    assert_int_equal(c->workers, 1); /* of "auto", when no file may be read */
    assert_int_equal(c->n_cpu_affinity, 0);
    assert_int_equal(c->user.n + c->pid_file.n + c->control.n, 0);
    assert_str(c->error_log, "stderr");
    assert_int_equal(c->log_level, LOG_NOTICE);
    assert_int_equal(c->timeouts.header, 30000);
    assert_int_equal(c->timeouts.keepalive, 75000);
    assert_int_equal(c->timeouts.shutdown, 30000);
    assert_int_equal(c->timeouts.lame_duck, 2000);
    assert_int_equal(c->limits.header_size, 32 << 10);
    assert_int_equal(c->limits.header_count, 128);
    assert_int_equal(c->limits.uri_size, 16 << 10);
    assert_int_equal(c->limits.response_header_size, 64 << 10);
    assert_int_equal(c->limits.clients, 0);
    assert_int_equal(c->file_cache.entries, 10000);
    assert_int_equal(c->file_cache.small, 32 << 10);
    assert_int_equal(c->file_cache.valid, 1000);
    const struct scope_conf *s = c->s;
    assert_int_equal(s->timeouts.body, 60000);
    assert_int_equal(s->timeouts.send, 60000);
    assert_int_equal(s->timeouts.connect, 3000);
    assert_int_equal(s->timeouts.queue, 10000);
    assert_int_equal(s->timeouts.server, 60000);
    assert_int_equal(s->timeouts.tunnel, 3600000);
    assert_int_equal(s->limits.body_size, 0);
    assert_str(s->access_log->path, "stdout");
    assert_int_equal(s->access_log->format, LOG_FORMAT_COMBINED);
    assert_int_equal(s->n_index, 1);
    assert_str(s->index[0], "index.html");
    assert_false(s->dotfiles);
    assert_true(s->precompressed);
    assert_true(s->via);
    assert_false(s->gzip.on);
    assert_int_equal(s->gzip.level, 6);
    assert_int_equal(s->expires.kind, EXPIRES_OFF);
    assert_false(s->has_allow);
    assert_int_equal(c->listens[0].backlog, 4096);
    assert_true(c->listens[0].defer);
    assert_int_equal(c->n_logs, 1);
    unload(&l);
}

static void numbers(void **state)
{
    (void)state;
    struct loaded l = load_line("workers = \"12\"; limits = { header_count = \"100\"; clients = false; };");
    assert_int_equal(l.c->workers, 12);
    assert_int_equal(l.c->limits.header_count, 100);
    unload(&l);
    refuses_line("workers = \"many\";", "workers: found \"many\"; expected a whole number from 1 to 256, or \"auto\"");
    refuses_line("workers = 0;", "workers: 0 is out of range; expected a whole number from 1 to 256, or \"auto\"");
    refuses_line("workers = 1.5;",
                 "workers: found a number with a fraction; expected a whole number from 1 to 256, or \"auto\"");
    refuses_line("workers = true;", "workers: found true; expected a whole number from 1 to 256, or \"auto\"");
    refuses_line("limits = { header_count = -1; };",
                 "limits.header_count: -1 is out of range; expected a whole number from 1 to 10000");
    refuses_line("limits = { header_count = \"4294967296\"; };",
                 "limits.header_count: 4294967296 is out of range; expected a whole number from 1 to 10000");
    refuses_line("limits = { header_count = false; };",
                 "limits.header_count: found false; expected a whole number from 1 to 10000");
    refuses_line("limits = { header_count = ( 1, 2 ); };",
                 "limits.header_count: found a list; expected a whole number from 1 to 10000");
}

static void durations(void **state)
{
    (void)state;
    struct loaded l =
        load_line("timeouts = { header = \"500ms\"; keepalive = \"2m\"; server = 0; tunnel = false; body = \"0\"; "
                  "send = \"30d\"; };");
    assert_int_equal(l.c->timeouts.header, 500);
    assert_int_equal(l.c->timeouts.keepalive, 120000);
    assert_int_equal(l.c->s->timeouts.server, 0);
    assert_int_equal(l.c->s->timeouts.tunnel, 0);
    assert_int_equal(l.c->s->timeouts.body, 0);
    assert_int_equal(l.c->s->timeouts.send, 30ull * 24 * 3600 * 1000);
    unload(&l);
    refuses_line("timeouts = { connect = 30; };",
                 "timeouts.connect: 30 has no unit; expected \"30s\" or another duration (units ms, s, m, h, d)");
    refuses_line("timeouts = { connect = \"30\"; };",
                 "timeouts.connect: 30 has no unit; expected \"30s\" or another duration (units ms, s, m, h, d)");
    refuses_line("timeouts = { connect = -1; };",
                 "timeouts.connect: -1 is negative; expected a duration such as \"30s\" "
                 "(units ms, s, m, h, d), or 0 for none");
    refuses_line(
        "timeouts = { connect = \"5 s\"; };",
        "timeouts.connect: found \"5 s\"; expected a duration such as \"30s\" (units ms, s, m, h, d), or 0 for "
        "none: a duration's unit is one of ms, s, m, h, d");
    refuses_line("timeouts = { connect = true; };", "timeouts.connect: found true; expected a duration such as \"30s\" "
                                                    "(units ms, s, m, h, d), or 0 for none");
    refuses_line("timeouts = { connect = \"99999999d\"; };",
                 "timeouts.connect: \"99999999d\" is too long; expected at most \"36500d\"");
    refuses_line("timeouts = \"30s\";", "timeouts: found \"30s\"; expected a group { ... }");
}

static void sizes(void **state)
{
    (void)state;
    struct loaded l = load_line("limits = { body_size = \"5g\"; header_size = \"1m\"; uri_size = \"512b\"; };");
    assert_int_equal(l.c->s->limits.body_size, 5ull << 30);
    assert_int_equal(l.c->limits.header_size, 1 << 20);
    assert_int_equal(l.c->limits.uri_size, 512);
    unload(&l);
    refuses_line(
        "limits = { body_size = 1000; };",
        "limits.body_size: 1000 has no unit; expected \"1000b\" for bytes, or a size such as \"64k\" (units b, k, "
        "m, g), or 0 for none");
    refuses_line("limits = { body_size = \"5x\"; };",
                 "limits.body_size: found \"5x\"; expected a size such as \"64k\" (units b, k, m, g), or 0 for none: a "
                 "size's unit is one of b, k, m, g");
    refuses_line("limits = { header_size = 0; };",
                 "limits.header_size: 0 is out of range; expected a size from \"1k\" to \"1m\"");
    refuses_line("limits = { header_size = \"5g\"; };",
                 "limits.header_size: \"5g\" is out of range; expected a size from \"1k\" to \"1m\"");
    refuses_line(
        "limits = { body_size = \"99999999999999999999g\"; };",
        "limits.body_size: found \"99999999999999999999g\"; expected a size such as \"64k\" (units b, k, m, g), or "
        "0 for none: the number is too large");
}

static void booleans(void **state)
{
    (void)state;
    static const char *const yes[] = { "true", "TRUE", "\"true\"", "\"on\"", "\"Yes\"" };
    static const char *const no[] = { "false", "\"off\"", "\"no\"", "\"False\"" };
    char line[100];
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        snprintf(line, sizeof line, "via = %s;", yes[i]);
        struct loaded l = load_line(line);
        assert_true(l.c->s->via);
        unload(&l);
    }
    for (size_t i = 0; i < ARRAY_LEN(no); i++) {
        snprintf(line, sizeof line, "via = %s;", no[i]);
        struct loaded l = load_line(line);
        assert_false(l.c->s->via);
        unload(&l);
    }
    refuses_line("via = 1;", "via: found 1; expected true or false");
    refuses_line("via = \"maybe\";", "via: found \"maybe\"; expected true or false");
}

static void words(void **state)
{
    (void)state;
    static const char *const spellings[] = { "round-robin", "round_robin", "RoundRobin", "ROUND--ROBIN" };
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "upstreams = { a = { balance = \"%s\"; servers = \"b:1\"; }; }; sites = { listen = \"1\"; proxy = "
                 "\"a\"; };",
                 spellings[i]);
        struct loaded l = load(text);
        assert_int_equal(l.c->upstreams[0]->balance, BALANCE_ROUND_ROBIN);
        unload(&l);
    }
    refuses_line("log_level = \"warning\";", "log_level: found \"warning\"; did you mean \"warn\"?");
    refuses_line("log_level = \"loud\";",
                 "log_level: found \"loud\"; expected one of \"emerg\", \"error\", \"warn\", \"notice\", \"info\", "
                 "\"debug\"");
    refuses_line("log_level = \"notce\";", "log_level: found \"notce\"; did you mean \"notice\"?");
    refuses_line("log_level = 3;", "log_level: found 3; expected one of \"emerg\", \"error\", \"warn\", \"notice\", "
                                   "\"info\", \"debug\"");
}

static void one_value_is_a_list_of_one(void **state)
{
    (void)state;
    struct loaded l =
        load("cpu_affinity = 0; allow = \"10.0.0.0/8\"; deny = [ \"10.1.0.0/16\", \"unix\" ];\n"
             "sites = { listen = ( \"80\" ); names = \"A.example\"; index = [ \"a\", \"b\" ]; root = \"x\"; };");
    assert_int_equal(l.c->n_cpu_affinity, 1);
    assert_int_equal(l.c->s->n_allow, 1);
    assert_true(l.c->s->has_allow);
    assert_int_equal(l.c->s->n_deny, 2);
    assert_true(l.c->s->deny[1].unix_peers);
    assert_int_equal(l.c->sites[0]->s->n_index, 2);
    unload(&l);
    refuses_line(
        "allow = \"10.1.2.3/8\";",
        "allow: found \"10.1.2.3/8\"; expected zero bits after the prefix (\"10.0.0.0/8\", not \"10.1.2.3/8\")");
    refuses_line("deny = ( \"10.0.0.0/8\", 7 );",
                 "deny[1]: found 7; expected addresses, networks (\"10.0.0.0/8\") or \"unix\"");
    refuses_line("cpu_affinity = ( 0, 5000 );",
                 "cpu_affinity[1]: 5000 is out of range; expected CPU numbers from 0 to 1023");
}

static void an_empty_allow_refuses_everyone(void **state)
{
    (void)state;
    struct loaded l = load_line("allow = ();");
    assert_true(l.c->s->has_allow);
    assert_int_equal(l.c->s->n_allow, 0);
    unload(&l);
}

static void paths(void **state)
{
    (void)state;
    struct loaded l = load_line("error_log = \"../log//./weir.log\"; access_log = \"/var/log/a\";");
    assert_str(l.c->error_log, "/etc/weir/../log/weir.log");
    assert_str(l.c->s->access_log->path, "/var/log/a");
    unload(&l);
    l = load(
        "sites = { listen = \"unix:run/a.sock\"; root = \"./public/\"; locations = ( { match = \"/d\"; root = \"/\"; "
        "follow = ( \"x\", \"/y/\" ); }, { match = \"/m\"; root = \"$$x/$y\"; } ); };");
    assert_str(l.c->listens[0].text, "unix:/etc/weir/run/a.sock");
    const struct site_conf *site = l.c->sites[0];
    assert_str(site->all[0]->actions[0]->u.file.root, "/");
    assert_str(site->all[0]->s.follow[0], "/etc/weir/x");
    assert_str(site->all[0]->s.follow[1], "/y");
    assert_str(site->all[1]->actions[0]->u.file.root, "/etc/weir/$x/$y");
    assert_str(site->all[2]->actions[0]->u.file.root, "/etc/weir/public");
    assert_int_equal(site->all[2]->actions[0]->u.file.root_hash, hash_bytes(STR("/etc/weir/public")));
    unload(&l);
    refuses_line("error_log = \"\";", "error_log: found \"\"; expected a path, \"stderr\", or a group { path, format }");
}

static void long_unix_paths(void **state)
{
    (void)state;
    char text[400], path[108 + 1];
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    snprintf(text, sizeof text, "sites = { listen = \"unix:%s\"; respond = 200; };", path);
    struct loaded l = load_bytes(text, strlen(text));
    assert_non_null(strstr(l.said, "expected a shorter path: a unix socket's has at most 107 bytes"));
    unload(&l);
    path[107] = '\0';
    snprintf(text, sizeof text, "sites = { listen = \"unix:%s\"; respond = 200; };", path);
    l = load(text);
    unload(&l);
}

/* What would be malformed in every request or redirect made from it. */
static void urls(void **state)
{
    (void)state;
    refuses_line("rewrite = \"/a b/$uri\";", "rewrite: the byte 0x20 cannot stand there in a URL; expected %20");
    refuses_line("rewrite = \"$uri#x\";", "rewrite: the byte 0x23 cannot stand there in a URL; expected %23");
#define APP(health) "upstreams = { u = { servers = \"a:1\"; " health " }; };\nsites = { listen = \"80\"; proxy = \"u\"; };"
    refuses(APP("health = \"/\xc3\xa9\";"),
            "t.conf:1: upstreams.u.health: the byte 0xc3 cannot stand there in a URL; expected %C3\n");
    refuses(APP("health = { path = \"/a b\"; interval = 0; };"),
            "t.conf:1: upstreams.u.health.path: the byte 0x20 cannot stand there in a URL; expected %20\n"
            "t.conf:1: upstreams.u.health.interval: 0 is too short; expected at least \"10ms\" (health = false checks "
            "nothing)\n");
#undef APP
    static const char *const not_resolved[] = { "/a?b", "/../a", "/a//b", "/a/.", "/.." };
    for (size_t i = 0; i < ARRAY_LEN(not_resolved); i++) {
        char line[100], what[200];
        snprintf(line, sizeof line, "sites = { listen = \"81\"; root = \"/\"; fallback = \"%s\"; };", not_resolved[i]);
        snprintf(what, sizeof what,
                 "t.conf:1: sites.fallback: found \"%s\"; expected a path without query, dot segments and //\n",
                 not_resolved[i]);
        refuses(line, what);
    }
    refuses("sites = { listen = \"81\"; redirect = \"/a b\"; };",
            "t.conf:1: sites.redirect: the byte 0x20 cannot stand there in a URL; expected %20\n");
    refuses("sites = { listen = \"81\"; redirect = \"www.example.com/$uri\"; };",
            "t.conf:1: sites.redirect: found \"www.example.com/$uri\"; expected a URL (\"https://...\") or a path that "
            "begins with \"/\"\n");
    static const char *const right[] = { "/a#b", "?x", "app:x", "$scheme://h", "https://h/$1", "//h/", "#" };
    for (size_t i = 0; i < ARRAY_LEN(right); i++) {
        char text[200];
        int n = snprintf(text, sizeof text, "sites = { listen = \"81\"; locations = { match = \"~ (a)\"; redirect = \"%s\"; }; };",
                         right[i]);
        struct loaded l = load_bytes(text, (size_t)n);
        assert_string_equal(l.said, "");
        unload(&l);
    }
}

static void expires(void **state)
{
    (void)state;
    struct loaded l = load_line("expires = \"30d\";");
    assert_int_equal(l.c->s->expires.kind, EXPIRES_AFTER);
    assert_int_equal(l.c->s->expires.ms, 30ull * 24 * 3600 * 1000);
    unload(&l);
    l = load_line("expires = \"epoch\";");
    assert_int_equal(l.c->s->expires.kind, EXPIRES_EPOCH);
    unload(&l);
    l = load_line("expires = \"off\";");
    assert_int_equal(l.c->s->expires.kind, EXPIRES_OFF);
    unload(&l);
    refuses_line("expires = 30;",
                 "expires: 30 has no unit; expected \"30s\" or another duration (units ms, s, m, h, d)");
    refuses_line("expires = \"max\";", "expires: found \"max\"; expected a duration such as \"365d\"");
    refuses_line("expires = \"soon\";",
                 "expires: found \"soon\"; expected a duration such as \"30d\", \"epoch\", or false");
}

static void access_logs(void **state)
{
    (void)state;
    struct loaded l =
        load("access_log = \"a.log\"; sites = ( { listen = \"80\"; respond = 200; access_log = false; },\n"
             "{ listen = \"81\"; respond = 200; access_log = { path = \"a.log\"; format = \"combined\"; }; },\n"
             "{ listen = \"82\"; respond = 200; access_log = \"b.log\"; } );");
    assert_int_equal(l.c->n_logs, 2);
    assert_null(l.c->sites[0]->s->access_log);
    assert_ptr_equal(l.c->sites[1]->s->access_log, l.c->s->access_log);
    assert_str(l.c->sites[2]->s->access_log->path, "/etc/weir/b.log");
    assert_ptr_equal(l.c->logs[l.c->sites[2]->s->access_log->index], l.c->sites[2]->s->access_log);
    unload(&l);
    l = load("sites = ( { listen = \"80\"; respond = 200; access_log = { path = \"c\"; format = \"JSON\"; }; },\n"
             "{ listen = \"81\"; respond = 200; access_log = { format = \"$host $status\"; }; } );");
    assert_int_equal(l.c->sites[0]->s->access_log->format, LOG_FORMAT_JSON);
    assert_int_equal(l.c->sites[1]->s->access_log->format, LOG_FORMAT_OWN);
    assert_int_equal(l.c->sites[1]->s->access_log->own.n, 3);
    assert_str(l.c->sites[1]->s->access_log->path, "stdout");
    unload(&l);
    refuses_line("access_log = { path = \"a\"; format = \"jsn\"; };",
                 "access_log.format: found \"jsn\"; did you mean \"json\"?");
    refuses_line("access_log = { path = \"a\"; format = \"$hosst\"; };",
                 "access_log.format: no variable $hosst; did you mean $host?");
    refuses_line("access_log = { file = \"a\"; };", "access_log.file: no such setting; expected one of format, path");
}

/* A value that is right for the row, and not "off"; NULL: the row needs more than a value to be complete. */
static const char *sample_of(const struct setting *s)
{
    switch (s->type) {
    case TYPE_BOOL:
    case TYPE_GZIP:
    case TYPE_STRIP_PREFIX:
        return "true";
    case TYPE_UINT:
        return "9";
    case TYPE_DURATION:
        return "\"9s\"";
    case TYPE_SIZE:
        return "\"9k\"";
    case TYPE_PATH:
        return "\"x\"";
    case TYPE_TEMPLATE:
        return "\"/$host\"";
    case TYPE_HEADERS:
    case TYPE_ADD_HEADERS:
        return "{ X-A = \"a\"; }";
    case TYPE_ERROR_PAGES:
        return "{ status = 502; file = \"x\"; }";
    default:
        return NULL;
    }
}

/* What the load of a text says, with the key and the name that the finding has to begin with. */
static void says_state(const char *text, enum setting_state state, const char *key, const char *what)
{
    char said[400] = "";
    if (state == PLANNED)
        snprintf(said, sizeof said, "t.conf:1: warning: %s: %s has no effect in this version yet\n", key, what);
    else if (state == REFUSED)
        snprintf(said, sizeof said,
                 "t.conf:1: %s: %s is not available in this version yet; expected the file without it\n", key, what);
    struct loaded l = load_bytes(text, strlen(text));
    assert_string_equal(l.said, said);
    assert_int_equal(l.c == NULL, state == REFUSED);
    unload(&l);
}

/* What is not built yet warns; what would be unsafe to ignore is an error; what is switched off is neither. */
static void states_of_rows(void **state)
{
    (void)state;
    unsigned n_seen = 0;
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct setting *s = &settings[i];
        const char *sample = sample_of(s);
        enum area_kind kind = areas[s->area].kind;
        if (!(s->scopes & SCOPE_TOP) || sample == NULL || kind == MEMBER)
            continue;
        char text[400], key[100], what[100];
        struct str group = areas[s->area].key;
        snprintf(key, sizeof key, "%.*s%s%.*s", STR_ARG(group), kind == GROUP ? "." : "", STR_ARG(s->name));
        snprintf(what, sizeof what, "`%.*s`", STR_ARG(s->name));
        const char *const values[] = { sample, "false" };
        bool can_be_off = s->type == TYPE_BOOL || s->type == TYPE_GZIP || s->type == TYPE_STRIP_PREFIX ||
                          s->type == TYPE_DURATION || (s->lo == 0 && (s->type == TYPE_UINT || s->type == TYPE_SIZE));
        for (size_t k = 0; k < (can_be_off ? 2 : 1); k++) {
            if (kind == GROUP)
                snprintf(text, sizeof text, "%.*s = { %.*s = %s; };\n" SITE, STR_ARG(group), STR_ARG(s->name),
                         values[k]);
            else
                snprintf(text, sizeof text, "%.*s = %s;\n" SITE, STR_ARG(s->name), values[k]);
            says_state(text, k == 0 ? s->state : BUILT, key, what);
        }
        n_seen++;
    }
    assert_true(n_seen > 20);
}

static void states_of_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_setting_words; i++) {
        const struct word *w = &setting_words[i];
        char text[400], what[100];
        snprintf(what, sizeof what, "\"%.*s\"", STR_ARG(w->name));
        if (w->set == WORDS_balance) {
            snprintf(text, sizeof text,
                     "upstreams = { a = { balance = %s; hash = \"$uri\"; servers = \"b:1\"; }; };"
                     "sites = { listen = \"1\"; proxy = \"a\"; };",
                     what);
            says_state(text, w->state, "upstreams.a.balance", what);
        } else if (w->set == WORDS_builtin) {
            snprintf(text, sizeof text, "sites = { listen = \"1\"; builtin = %s; };", what);
            says_state(text, w->state, "sites.builtin", what);
        } else if (w->set == WORDS_log_level) {
            snprintf(text, sizeof text, "log_level = %s;\n" SITE, what);
            says_state(text, w->state, "log_level", what);
        }
    }
}

/* Ignored, this one would take a foreign header for requests. */
static void proxy_protocol_is_never_ignored(void **state)
{
    (void)state;
    const struct setting *s = &settings[SET_listen_proxy_protocol];
    assert_int_not_equal(s->state, PLANNED);
    says_state("sites = { listen = { address = \"80\"; proxy_protocol = true; }; respond = 200; };", s->state,
               "sites.listen.proxy_protocol", "`proxy_protocol`");
    says_state("sites = { listen = { address = \"80\"; proxy_protocol = false; }; respond = 200; };", BUILT, "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(numbers),
        cmocka_unit_test(durations),
        cmocka_unit_test(sizes),
        cmocka_unit_test(booleans),
        cmocka_unit_test(words),
        cmocka_unit_test(one_value_is_a_list_of_one),
        cmocka_unit_test(an_empty_allow_refuses_everyone),
        cmocka_unit_test(paths),
        cmocka_unit_test(long_unix_paths),
        cmocka_unit_test(urls), cmocka_unit_test(expires),
        cmocka_unit_test(access_logs),
        cmocka_unit_test(states_of_rows),
        cmocka_unit_test(states_of_words),
        cmocka_unit_test(proxy_protocol_is_never_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
