/* SPDX-License-Identifier: MIT */
/* Files of media types: both forms, what they mean for file names, and what is said about those that are neither. */
#include "conf_test.h"

#include <string.h>
#include <unistd.h>

#include "http/mime.h"

static char path[] = "/tmp/weir-mime-XXXXXX";

static struct loaded load_with(const char *types)
{
    struct loaded l;
    char text[256];
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, types, strlen(types)) == (ssize_t)strlen(types));
    close(fd);
    snprintf(text, sizeof text, "mime_types = \"%s\"; sites = { listen = \"1\"; respond = 200; };", path);
    conf_load_flags(str_c(text), "t.conf", "/tmp", 0, &l.r);
    l.c = l.r.conf;
    l.said = said_by(&l.r);
    unlink(path);
    memcpy(path + strlen(path) - 6, "XXXXXX", 6);
    return l;
}

static void means(const char *types, const char *name, const char *type)
{
    struct loaded l = load_with(types);
    assert_string_equal(l.said, "");
    assert_non_null(l.c);
    assert_true(l.c->mime_hash != 0);
    assert_str(mime_find(&l.c->mime, str_c(name)), type);
    unload(&l);
}

static void both_forms(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "types {\n    text/x-own  own OWNX; # said twice\n application/x-b\n   b\n  bb;\n}\n",
        "# a comment\n\ntext/x-own own OWNX\napplication/x-none\napplication/x-b b bb\n",
        "text/x-own own ownx\r\napplication/x-b\tb\tbb",
        "\n\n# nginx's\ntypes{text/x-own own ownx;application/x-b b bb;}",
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        means(forms[i], "a.own", "text/x-own; charset=utf-8");
        means(forms[i], "dir.b/x.OwnX", "text/x-own; charset=utf-8");
        means(forms[i], "x.b", "application/x-b");
        means(forms[i], "x.bb", "application/x-b");
        means(forms[i], "x.png", "image/png"); /* built in */
        means(forms[i], "x.none", "application/octet-stream");
        means(forms[i], "own", "application/octet-stream");
        means(forms[i], ".own", "text/x-own; charset=utf-8");
        means(forms[i], "a.own/", "application/octet-stream");
    }
    means("", "x.css", "text/css; charset=utf-8");
    means("text/a css\ntext/b css\n", "x.css", "text/b; charset=utf-8");
    means("application/long averyverylongextensionindeed", "x.averyverylongextensionindeed", "application/long");
}

static void what_is_neither(void **state)
{
    (void)state;
    static const struct {
        const char *types, *said;
    } rows[] = {
        { "types { text/a a; ", ":1: no `}`" },          { "types { text/a a; } text/b b;", ":1: more after `}`" },
        { "types {\n text/a a\n}", ":3: found `}`" },     { "html text/html", ":1: found `html`" },
        { "text/html html\n<html>\n", ":2: found `<html>`" }, { "text/a a }", ":1: found `}`" },
        { "types types {", ":1: found `types`" },         { "/x y", ":1: found `/x`" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct loaded l = load_with(rows[i].types);
        assert_null(l.c);
        if (strstr(l.said, rows[i].said) == NULL)
            fail_msg("%s: %s", rows[i].types, l.said);
        unload(&l);
    }
}

static void a_file_that_is_not_there(void **state)
{
    (void)state;
    struct loaded l;
    conf_load_flags(STR("mime_types = \"/nowhere/types\"; sites = { listen = \"1\"; respond = 200; };"), "t.conf", "/",
                    0, &l.r);
    l.c = l.r.conf;
    l.said = said_by(&l.r);
    assert_null(l.c);
    assert_non_null(strstr(l.said, "t.conf:1: mime_types: \"/nowhere/types\": No such file or directory"));
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms),
        cmocka_unit_test(what_is_neither),
        cmocka_unit_test(a_file_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
