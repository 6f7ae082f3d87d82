/* SPDX-License-Identifier: MIT */
/* Texts with $variables. */
#include "conf_test.h"

/* The template of `redirect = TEXT` in a regex location with one group. */
static struct loaded load_template(const char *text, const struct template **t)
{
    char whole[1000];
    snprintf(whole, sizeof whole,
             "sites = { listen = \"80\"; locations = { match = \"~ (a)\"; redirect = \"%s\"; }; };", text);
    struct loaded l = load_bytes(whole, strlen(whole));
    *t = l.c ? &l.c->sites[0]->all[0]->actions[0]->u.redirect.to : NULL;
    return l;
}

static void pieces(void **state)
{
    (void)state;
    const struct template *t;
    struct loaded l =
        load_template("https://$host$request_uri?x=$$5&a=$arg_Foo&c=$cookie_A_b&h=$http_X_Real_ip$1.", &t);
    static const struct {
        enum var_id var;
        const char *text;
    } expected[] = {
        { VAR_LITERAL, "https://" }, { VAR_HOST, "" },        { VAR_REQUEST_URI, "" },   { VAR_LITERAL, "?x=" },
        { VAR_LITERAL, "$" },        { VAR_LITERAL, "5&a=" }, { VAR_ARG, "Foo" },        { VAR_LITERAL, "&c=" },
        { VAR_COOKIE, "A_b" },       { VAR_LITERAL, "&h=" },  { VAR_HTTP, "x-real-ip" }, { VAR_CAPTURE, "1" },
        { VAR_LITERAL, "." },
    };
    assert_non_null(t);
    assert_int_equal(t->n, ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        assert_int_equal(t->pieces[i].var, expected[i].var);
        assert_str(t->pieces[i].text, expected[i].text);
    }
    assert_str(t->source, "https://$host$request_uri?x=$$5&a=$arg_Foo&c=$cookie_A_b&h=$http_X_Real_ip$1.");
    unload(&l);
}

static void refused(const char *text, const char *what)
{
    const struct template *t;
    struct loaded l = load_template(text, &t);
    char said[300];
    snprintf(said, sizeof said, "t.conf:1: sites.locations.redirect: %s\n", what);
    assert_null(t);
    assert_string_equal(l.said, said);
    unload(&l);
}

static void errors(void **state)
{
    (void)state;
    refused("/$hots", "no variable $hots; did you mean $host?");
    refused("/$colour_of_money",
            "no variable $colour_of_money; expected one of those in proxy.conf(5), or $$ for a dollar");
    refused("/a$", "a $ without a name; expected a variable such as $host, or $$ for a dollar");
    refused("/$-", "a $ without a name; expected a variable such as $host, or $$ for a dollar");
    refused("/$0", "no variable $0; expected one of those in proxy.conf(5), or $$ for a dollar");
    refused("", "no place to go; expected a URL such as \"https://$host$request_uri\"");
    refused("/a\\r\\nX: y", "a line break or control character in it; expected a single line");
    refused("/$hots$uri$ur", "no variable $hots; did you mean $host?\n"
                             "t.conf:1: sites.locations.redirect: no variable $ur; did you mean $uri?");
    /* A family needs a name. */
    refused("/$arg_", "no variable $arg_; did you mean $args?");
}

static void captures(void **state)
{
    (void)state;
    const struct template *t;
    struct loaded l = load_template("/$2", &t);
    assert_string_equal(
        l.said, "t.conf:1: sites.locations: redirect names $2, but the match has only 1 group in parentheses\n");
    unload(&l);
    refuses("sites = { listen = \"80\"; redirect = \"/$1\"; };",
            "t.conf:1: sites: redirect names $1, but only a match by regular expression captures anything\n");
    refuses(
        "sites = { listen = \"80\"; response_headers = { A = \"$1\"; }; locations = { match = \"/a/\"; respond = 200;\n"
        "request_headers = { B = ( \"b\", \"$1\" ); }; }; };",
        "t.conf:1: sites.locations: request_headers.B names $1, but only a match by regular expression captures "
        "anything\n");
}

static void bounded(void **state)
{
    (void)state;
    char text[600] = "";
    for (size_t i = 0; i < 129; i++)
        memcpy(text + 4 * i, "$uri", 5);
    refused(text, "too many variables; expected at most 128");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),
        cmocka_unit_test(errors),
        cmocka_unit_test(captures),
        cmocka_unit_test(bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
