/* SPDX-License-Identifier: MIT */
/* What is wrong with the text itself: the exact findings, with line, caret and likely cause. */
#include "conf_test.h"

static void good_syntax(void **state)
{
    (void)state;
    const char *const texts[] = {
        SITE,
        "\tsites\t:\t(\t{\tlisten\t=\t\"80\",\trespond\t=\t200\t}\t)\t",
        "sites = ( { listen = \"80\"; respond = 200; } );\r\nworkers = 1;\r\n",
        "# one\n// two\n/* three\n */ workers /* four */ = 1; " SITE "# no newline at the end",
        "workers = 0x1; " SITE,
        "workers = 1L; " SITE,
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct loaded l = load(texts[i]);
        assert_int_equal(l.c->n_sites, 1);
        unload(&l);
    }
}

static void caret_and_cause(void **state)
{
    (void)state;
    refuses("sites = ( { listen \"80\"; } );\n", "t.conf:1: missing = after `listen`\n"
                                                 "    sites = ( { listen \"80\"; } );\n"
                                                 "                      ^\n");
    refuses("workers = ;\n", "t.conf:1: missing value after `workers =`\n"
                             "    workers = ;\n"
                             "              ^\n");
    refuses("sites = (\n  { listen = \"80\"; respond = 200; },\n);\n",
            "t.conf:3: trailing comma: an item was expected before the )\n"
            "    );\n"
            "    ^\n");
    refuses("sites = (\n  { listen = \"80\"; respond = 200; }\n  { listen = \"81\"; respond = 200; } );\n",
            "t.conf:2: missing comma between list items\n"
            "      { listen = \"80\"; respond = 200; }\n"
            "                                       ^\n");
    refuses("workers = 1\n" SITE, "t.conf:1: missing ; after the value of `workers`\n"
                                  "    workers = 1\n"
                                  "               ^\n");
    refuses(SITE "log_level = info;\n", "t.conf:2: log_level: unquoted word `info`; expected \"info\"\n"
                                        "    log_level = info;\n"
                                        "                ^\n");
    refuses("sites = ( { listen = \"80\"; via = off; } );\n",
            "t.conf:1: sites[0].via: unquoted word `off`; expected false\n"
            "    sites = ( { listen = \"80\"; via = off; } );\n"
            "                                     ^\n");
    refuses("timeouts = {\n\theader = 30s; };\n", "t.conf:2: timeouts.header: unquoted word `30s`; expected \"30s\"\n"
                                                  "    \theader = 30s; };\n"
                                                  "    \t         ^\n");
    refuses("user = 'www';\n", "t.conf:1: user: a single quote; expected a text in double quotes\n"
                               "    user = 'www';\n"
                               "           ^\n");
    refuses("upstreams = { my.app = { }; };\n",
            "t.conf:1: `my.app` cannot be a name; a name begins with a letter and has only letters, digits, - and _\n"
            "    upstreams = { my.app = { }; };\n"
            "                  ^\n");
    refuses("\"workers\" = 1;\n",
            "t.conf:1: a quoted text where a setting's name was expected; names stand without quotes\n"
            "    \"workers\" = 1;\n"
            "    ^\n");
    refuses("@include \"x\"\n", "t.conf:1: @include is libconfig's; expected include = \"sites.d/*.conf\"; at the top\n"
                                "    @include \"x\"\n"
                                "    ^\n");
}

/* What an editor, or a habit from a shell, makes of names and values. */
static void odd_words(void **state)
{
    (void)state;
    refuses("w\xc3\xb6rkers = 1;\n",
            "t.conf:1: `w\xc3\xb6rkers` cannot be a name; it has the byte 0xc3, expected only ASCII\n"
            "    w\xc3\xb6rkers = 1;\n"
            "    ^\n");
    refuses("workers\xc2\xa0= 1;\n", /* a no-break space */
            "t.conf:1: `workers\xc2\xa0` cannot be a name; it has the byte 0xc2, expected only ASCII\n"
            "    workers\xc2\xa0= 1;\n"
            "    ^\n");
    refuses("user = \xe2\x80\x9cw\xe2\x80\x9d;\n", "t.conf:1: user: a typographic quote; expected the plain \"\n"
                                                   "    user = \xe2\x80\x9cw\xe2\x80\x9d;\n"
                                                   "           ^\n");
    refuses("user = ${NAME};\n", "t.conf:1: user: unquoted word `${NAME}`; expected \"${NAME}\"\n"
                                 "    user = ${NAME};\n"
                                 "           ^\n");
    refuses("user = ${NAME;\n}", "t.conf:1: user: unquoted word `${NAME`; expected \"${NAME\"\n"
                                 "    user = ${NAME;\n"
                                 "           ^\n");
    refuses("user = ${", "t.conf:1: user: unquoted word `$`; expected \"$\"\n"
                         "    user = ${\n"
                         "           ^\n");
}

static void open_ends(void **state)
{
    (void)state;
    refuses("sites = ( { listen = \"80\";\n", "t.conf:1: this { is never closed; expected }\n"
                                              "    sites = ( { listen = \"80\";\n"
                                              "              ^\n");
    refuses("sites = ( \"a\"", "t.conf:1: this ( is never closed; expected )\n"
                               "    sites = ( \"a\"\n"
                               "            ^\n");
    refuses("sites = ( { listen = \"80\" );\n", "t.conf:1: found `)`, but the { of line 1 is still open; expected }\n"
                                                "    sites = ( { listen = \"80\" );\n"
                                                "                              ^\n");
    refuses("workers = 1; }\n", "t.conf:1: found `}` where a setting's name was expected\n"
                                "    workers = 1; }\n"
                                "                 ^\n");
    refuses("user = \"a;\n", "t.conf:1: this string is never closed; expected a closing quote\n"
                             "    user = \"a;\n"
                             "           ^\n");
    refuses("user = \"a;\nerror_log = \"b\";\n",
            "t.conf:1: a string begins here and ends in a later line; probably its closing quote is missing\n"
            "    user = \"a;\n"
            "           ^\n");
    refuses("workers = 1; /* x\n", "t.conf:1: this comment is never closed; expected */\n"
                                   "    workers = 1; /* x\n"
                                   "                 ^\n");
}

/* What libconfig would silently take for something else. */
static void silent_misreadings(void **state)
{
    (void)state;
    refuses("workers = 4294967297;\n" SITE,
            "t.conf:1: workers: 4294967297 does not fit into 32 bits; expected a number in quotes, or a size with a "
            "unit such as \"5g\"\n"
            "    workers = 4294967297;\n"
            "              ^\n");
    refuses("workers = -2147483648;\n" SITE,
            "t.conf:1: workers: -2147483648 does not fit into 32 bits; expected a number in quotes, or a size with a "
            "unit such as \"5g\"\n"
            "    workers = -2147483648;\n"
            "              ^\n");
    refuses("workers = 0x80000000;\n" SITE,
            "t.conf:1: workers: 0x80000000 does not fit into 32 bits; expected a number in quotes, or a size with a "
            "unit such as \"5g\"\n"
            "    workers = 0x80000000;\n"
            "              ^\n");
    refuses("sites = ( { listen = ( \"80\" \"81\" ); respond = 200; } );\n",
            "t.conf:1: sites[0].listen[0]: two strings side by side would become one; expected a comma or ; between "
            "them\n"
            "    sites = ( { listen = ( \"80\" \"81\" ); respond = 200; } );\n"
            "                                ^\n");
    refuses("sites = ( { listen = [ \"80\", 81 ]; respond = 200; } );\n",
            "t.conf:1: sites[0].listen: [ ] holds plain values of one type only; expected ( ... )\n"
            "    sites = ( { listen = [ \"80\", 81 ]; respond = 200; } );\n"
            "                                 ^\n");
    refuses("\xef\xbb\xbf" SITE,
            "t.conf:1: the file begins with a byte order mark (EF BB BF); expected plain UTF-8 without it\n");
    refuses("\xff\xfes\n", "t.conf:1: the file is UTF-16; expected UTF-8\n"
                           "    \n"
                           "    ^\n");
    refuses_bytes("workers = 1;\n\0" SITE, 13 + 1 + strlen(SITE), "t.conf:2: a NUL byte; expected a text file\n");
    refuses("user = \"a\\x00b\";\n" SITE, "t.conf:1: the control character \\x00 cannot stand in a text\n"
                                          "    user = \"a\\x00b\";\n"
                                          "             ^\n");
    refuses("user = \"a\x02\";\n" SITE, "t.conf:1: the control character 0x02 cannot stand in a text\n"
                                        "    user = \"a?\";\n"
                                        "             ^\n");
}

static void second_of_two(void **state)
{
    (void)state;
    refuses("workers = 1;\n" SITE "workers = \"many\";\n", "t.conf:3: second `workers`; the first is in line 1\n"
                                                           "    workers = \"many\";\n"
                                                           "    ^\n");
    refuses("upstreams = { a = { servers = \"b:1\"; }; a = { }; };\nsites = { listen = \"80\"; proxy = \"a\"; };\n",
            "t.conf:1: upstreams: second `a`; the first is in line 1\n"
            "    upstreams = { a = { servers = \"b:1\"; }; a = { }; };\n"
            "                                            ^\n");
}

/* Every problem of a file whose structure can be read, the mild ones of the text among them. */
static void goes_on_after_mild_ones(void **state)
{
    (void)state;
    refuses(
        "workers = 4294967297\n"
        "log_level = \"loud\";\n"
        "sites = ( { listen = \"80\"; respond = 200; }, );\n",
        "t.conf:1: workers: 4294967297 does not fit into 32 bits; expected a number in quotes, or a size with a "
        "unit such as \"5g\"\n"
        "    workers = 4294967297\n"
        "              ^\n"
        "t.conf:1: missing ; after the value of `workers`\n"
        "    workers = 4294967297\n"
        "                        ^\n"
        "t.conf:2: log_level: found \"loud\"; expected one of \"emerg\", \"error\", \"warn\", \"notice\", \"info\", "
        "\"debug\"\n"
        "t.conf:3: trailing comma: an item was expected before the )\n"
        "    sites = ( { listen = \"80\"; respond = 200; }, );\n"
        "                                                 ^\n");
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    char text[4096] = "x = ";
    memset(text + 4, '(', 2000);
    struct loaded l = load_bytes(text, 2004);
    assert_non_null(strstr(l.said, "nested too deeply"));
    unload(&l);
}

static void environment(void **state)
{
    (void)state;
    setenv("T_PORT", "8080", 1);
    setenv("T_EMPTY", "", 1);
    setenv("T_ODD", "a\"b\\c$host\n;", 1);
    unsetenv("T_NONE");
    struct loaded l = load("workers = \"${T_NONE:-3}\";\n"
                           "sites = ( { listen = \"${T_PORT}\";\n"
                           "  respond = { body = \"${T_ODD}|${T_EMPTY}|${T_EMPTY:-d}|$${T_PORT}\"; }; } );\n");
    assert_int_equal(l.c->workers, 3);
    assert_str(l.c->listens[0].text, "*:8080");
    assert_str(l.c->sites[0]->all[0]->actions[0]->u.respond.body, "a\"b\\c$host\n;||d|${T_PORT}");
    unload(&l);
}

static void environment_in_templates(void **state)
{
    (void)state;
    setenv("T_ODD", "a$host", 1);
    struct loaded l = load("sites = ( { listen = \"81\"; redirect = \"/${T_ODD}$host\"; } );\n");
    const struct template *to = &l.c->sites[0]->all[0]->actions[0]->u.redirect.to;
    /* The dollar of the environment is text, that of the file a variable. */
    assert_int_equal(to->pieces[to->n - 1].var, VAR_HOST);
    for (unsigned i = 0; i + 1 < to->n; i++)
        assert_int_equal(to->pieces[i].var, VAR_LITERAL);
    unload(&l);
}

static void environment_errors(void **state)
{
    (void)state;
    unsetenv("T_NONE");
    refuses("user = \"${T_NONE}\";\n" SITE,
            "t.conf:1: user: T_NONE is not set; expected a value in the environment, or ${NAME:-default}\n"
            "    user = \"${T_NONE}\";\n"
            "            ^\n");
    refuses("workers = \"${T_NONE:?say how many}\";\n" SITE, "t.conf:1: workers: T_NONE is not set; say how many\n"
                                                             "    workers = \"${T_NONE:?say how many}\";\n"
                                                             "               ^\n");
    refuses("sites = ( { listen = \"80\"; redirect = \"https://${host}/\"; } );\n",
            "t.conf:1: sites[0].redirect: ${host} is no variable of the environment (those are in capitals); expected "
            "$host\n"
            "    sites = ( { listen = \"80\"; redirect = \"https://${host}/\"; } );\n"
            "                                                   ^\n");
    refuses("user = \"${T_NONE:-a\";\n" SITE,
            "t.conf:1: user: a ${ that is not complete; expected ${NAME}, ${NAME:-default} or ${NAME:?message} ($$ is "
            "a dollar)\n"
            "    user = \"${T_NONE:-a\";\n"
            "            ^\n");
}

/* Regular expressions paste in as they are. */
static void backslashes(void **state)
{
    (void)state;
    static const struct {
        const char *written, *regex;
    } rows[] = {
        { "\\.(css|js)$", "\\.(css|js)$" },
        { "\\d\\w\\b\\s\\(x\\)", "\\d\\w\\b\\s\\(x\\)" },
        { "a\\\\.b", "a\\.b" },
        { "\\a\\v?", "\\a\\v?" },
        { "x\\xg?", "x\\xg?" },
        { "\\x41", "A" },
        { "a\\\"b", "a\"b" },
        { "a\\\\\\\\b", "a\\\\b" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[200];
        snprintf(text, sizeof text, "sites = { listen = \"80\"; locations = { match = \"~ %s\"; respond = 200; }; };",
                 rows[i].written);
        struct loaded l = load_bytes(text, strlen(text));
        assert_non_null(l.c);
        assert_str(l.c->sites[0]->regex[0]->pattern, rows[i].regex);
        unload(&l);
    }
}

static void lines_stay_exact(void **state)
{
    (void)state;
    setenv("T_ODD", "a\nb\nc", 1);
    refuses("user = \"${T_ODD}\"; /*\n\n*/\nerror_log = \"x\" \"y\n\";\nwokers = 1;\n" SITE,
            "t.conf:4: error_log: two strings side by side would become one; expected a comma or ; between them\n"
            "    error_log = \"x\" \"y\n"
            "                    ^\n"
            "t.conf:6: wokers: no such setting; did you mean `workers`?\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_syntax),
        cmocka_unit_test(caret_and_cause),
        cmocka_unit_test(odd_words),
        cmocka_unit_test(open_ends),
        cmocka_unit_test(silent_misreadings),
        cmocka_unit_test(second_of_two),
        cmocka_unit_test(goes_on_after_mild_ones),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(environment),
        cmocka_unit_test(environment_in_templates),
        cmocka_unit_test(environment_errors),
        cmocka_unit_test(backslashes),
        cmocka_unit_test(lines_stay_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
