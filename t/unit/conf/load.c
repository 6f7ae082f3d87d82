/* SPDX-License-Identifier: MIT */
/* Files: reading, include, paths beside the file, what must exist, the resolved text. On a folder of its own. */
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf_test.h"

static char dir[PATH_MAX];

static void put(const char *name, const char *text)
{
    char path[PATH_MAX + 100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void make_dir(const char *name)
{
    char path[PATH_MAX + 100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/weir-conf-XXXXXX");
    return mkdtemp(dir) == NULL || chdir(dir) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    return chdir("/") != 0 || nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0;
}

static struct loaded load_file(const char *name)
{
    struct loaded l;
    conf_load(name, &l.r);
    l.c = l.r.conf;
    l.said = said_by(&l.r);
    return l;
}

/* All findings; "@" stands for the folder. */
static void says(struct loaded l, const char *expected)
{
    char text[8192];
    size_t n = 0;
    for (const char *p = expected; *p != '\0' && n < sizeof text - PATH_MAX; p++)
        n += (size_t)(*p == '@' ? snprintf(text + n, sizeof text - n, "%s", dir)
                                : snprintf(text + n, sizeof text - n, "%c", *p));
    text[n] = '\0';
    assert_string_equal(l.said, text);
    unload(&l);
}

static void unreadable(void **state)
{
    (void)state;
    says(load_file("none.conf"), "none.conf: cannot read it: No such file or directory\n");
    says(load_file("/"), "/: cannot read it: Is a directory\n");
}

static void include(void **state)
{
    (void)state;
    make_dir("sites.d");
    make_dir("sites.d/www");
    put("proxy.conf", "workers = 2;\ninclude = ( \"sites.d/*.conf\", \"sites.d/none*.conf\" );\n"
                      "upstreams = { a = { servers = \"a:1\"; }; };\nsites = { listen = \"80\"; proxy = \"a\"; };\n");
    put("sites.d/1.conf", "sites = { listen = \"81\"; root = \"www\"; };\n");
    put("sites.d/2.conf",
        "# two\nupstreams = { b = { servers = \"b:1\"; }; };\nsites = ( { listen = \"82\"; proxy = \"b\"; } );\n");
    put("sites.d/3.other", "workers = 9;\n");
    struct loaded l = load_file("proxy.conf");
    assert_string_equal(l.said, "");
    assert_int_equal(l.c->n_sites, 3);
    assert_int_equal(l.c->n_upstreams, 2);
    assert_int_equal(l.c->n_files, 3);
    char www[PATH_MAX + 100], file[PATH_MAX + 100];
    snprintf(www, sizeof www, "%s/sites.d/www", dir);
    snprintf(file, sizeof file, "%s/sites.d/2.conf", dir);
    assert_str(l.c->sites[1]->all[0]->actions[0]->u.file.root, www);
    assert_int_equal(l.c->sites[2]->where.file, 2);
    assert_int_equal(l.c->sites[2]->where.line, 3);
    assert_str(l.c->files[2], file);
    unload(&l);
}

static void errors_across_files(void **state)
{
    (void)state;
    put("sites.d/2.conf", "upstreams = { a = { servers = \"b:1\"; }; };\n"
                          "sites = ( { listen = \"80\"; names = \"x\"; proxy = \"a\"; } );\nworkers = 3;\n");
    put("proxy.conf",
        "include = \"sites.d/2.conf\";\n"
        "upstreams = { a = { servers = \"a:1\"; }; };\nsites = { listen = \"80\"; names = \"x\"; proxy = \"a\"; };\n");
    says(load_file("proxy.conf"),
         "@/sites.d/2.conf:1: upstreams.a: second upstream of that name; the first is in proxy.conf:2\n"
         "@/sites.d/2.conf:2: name \"x\" on *:80 is also that of the site in proxy.conf:3; expected it once for an "
         "address\n"
         "@/sites.d/2.conf:3: workers: cannot stand in an included file; expected only sites and upstreams there\n");
    put("proxy.conf", "include = ( \"none.conf\", \"nodir/*.conf\" );\n" SITE);
    says(load_file("proxy.conf"), "proxy.conf:1: include[0]: cannot read \"@/none.conf\": no such file\n"
                                  "proxy.conf:1: include[1]: cannot read the folder of \"@/nodir/*.conf\"\n");
    put("sites.d/2.conf", "sites = ( { listen = \"80\"; root = on; } );\n");
    put("proxy.conf", "include = \"sites.d/2.conf\";\nworkers = \"x\";\n" SITE);
    says(load_file("proxy.conf"), "@/sites.d/2.conf:1: sites[0].root: unquoted word `on`; expected true\n"
                                  "    sites = ( { listen = \"80\"; root = on; } );\n"
                                  "                                      ^\n");
}

static void things_that_must_exist(void **state)
{
    (void)state;
    put("file", "x");
    make_dir("www");
    put("proxy.conf", "access_log = \"nolog/a.log\";\nerror_log = \"file/e.log\";\n"
                      "sites = { listen = \"80\"; locations = (\n{ match = \"/a\"; root = \"none\"; },\n{ match = "
                      "\"/b\"; root = \"file\"; },\n"
                      "{ match = \"/c\"; alias = \"file\"; },\n{ match = \"/d\"; alias = \"none\"; },\n{ match = "
                      "\"/e\"; root = \"www\"; access_log = \"www\"; } ); };\n");
    says(load_file("proxy.conf"),
         "proxy.conf:1: access_log: \"@/nolog\": No such file or directory; expected an existing folder for the file\n"
         "proxy.conf:2: error_log: \"@/file\": Not a directory; expected an existing folder for the file\n"
         "proxy.conf:4: sites.locations[0].root: \"@/none\": No such file or directory; expected a folder that can be "
         "read\n"
         "proxy.conf:5: sites.locations[1].root: \"@/file\": Not a directory; expected a folder that can be read\n"
         "proxy.conf:7: sites.locations[3].alias: \"@/none\": No such file or directory; expected a file or folder "
         "that can "
         "be read\n"
         "proxy.conf:8: sites.locations[4].access_log: \"@/www\": Is a directory; expected a file, not a folder\n");
}

/* What a restarted server loads: the same, whatever became of the files, the environment and the folders. */
static void resolved_text(void **state)
{
    (void)state;
    setenv("T_PORT", "8081", 1);
    make_dir("gone");
    put("proxy.conf", "include = \"sites.d/2.conf\";\n" SITE);
    put("sites.d/2.conf", "\n\nsites = ( { listen = \"${T_PORT}\"; root = \"../gone\"; locations = { match = \"~ "
                          "\\.(a|$$b)$\"; respond = \"$${X}\"; }; } );");
    struct loaded first = load_file("proxy.conf");
    assert_string_equal(first.said, "");
    setenv("T_PORT", "9999", 1);
    put("proxy.conf", "broken");
    put("sites.d/2.conf", "broken");
    assert_int_equal(rmdir("gone"), 0);
    struct conf_result r;
    conf_load_text(first.c->text, "ignored", "/", &r);
    char *said = said_by(&r);
    /* The path is resolved from the folder of its file, ".." and all. */
    assert_non_null(strstr(said, "/sites.d/../gone\": No such file or directory"));
    assert_int_equal(r.n_errors, 0);
    assert_int_equal(r.n_warnings, 1);
    assert_int_equal(r.conf->n_sites, 2);
    assert_str(r.conf->listens[1].text, "*:8081");
    const struct site_conf *site = r.conf->sites[1];
    assert_str(site->regex[0]->pattern, "\\.(a|$b)$");
    assert_str(site->regex[0]->actions[0]->u.respond.body, "${X}");
    assert_int_equal(site->where.line, 3);
    assert_str(r.conf->files[site->where.file], first.c->files[1].p);
    free(said);
    conf_free(r.conf);
    conf_result_free(&r);
    unload(&first);
}

static void damaged_resolved_text(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "#weir-resolved 1\n",
        "#weir-resolved 1\nx",
        "#weir-resolved 1\n#weir-file 999\ta\t/\nworkers = 1;\n",
        "#weir-resolved 1\n#weir-file 3\ta\nab",
        "#weir-resolved 1\n#weir-file 1\ta\t/\n\n\nrest",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct loaded l = load_bytes(texts[i], strlen(texts[i]));
        assert_null(l.c);
        assert_non_null(strstr(l.said, "the resolved text is damaged; expected one that weir wrote"));
        unload(&l);
    }
}

static void no_files_means_none(void **state)
{
    (void)state;
    struct loaded l =
        load("include = \"/etc/*\"; access_log = \"/none/x\"; sites = { listen = \"1\"; root = \"/none\"; };");
    assert_int_equal(l.c->n_files, 1);
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unreadable),          cmocka_unit_test(include),
        cmocka_unit_test(errors_across_files), cmocka_unit_test(things_that_must_exist),
        cmocka_unit_test(resolved_text),       cmocka_unit_test(damaged_resolved_text),
        cmocka_unit_test(no_files_means_none),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
