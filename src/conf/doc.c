/* SPDX-License-Identifier: MIT */
/*
 * The pages generated from the settings tables: docs/settings.md and proxy.conf(5). What a page says about a setting
 * comes from its row alone; the text around the rows, about the file as a whole, stands here. After a change of the
 * tables both files are written anew (`weir help --settings-md`, `weir help --settings-man`); a test compares them.
 * Nothing here is called by a server.
 */
#include <stdio.h>
#include <stdlib.h>

#include "conf/print.h"
#include "conf/settings.h"

static void scope_letters(FILE *f, unsigned scopes)
{
    static const char letters[] = "TSLUV";
    bool is_first = true;
    for (unsigned i = 0; i < 5; i++) {
        if (!(scopes & (1u << i)))
            continue;
        fprintf(f, "%s%c", is_first ? "" : " ", letters[i]);
        is_first = false;
    }
}

static void words_of(FILE *f, enum word_set set, const char *before, const char *after)
{
    bool is_first = true;
    for (size_t i = 0; i < n_setting_words; i++) {
        if (setting_words[i].set != set)
            continue;
        fprintf(f, "%s%s%.*s%s", is_first ? "" : ", ", before, STR_ARG(setting_words[i].name), after);
        is_first = false;
    }
}

static enum word_set set_of(const struct setting *s)
{
    return s->type == TYPE_BUILTIN ? WORDS_builtin : s->words;
}

/* The words of a set that this version does not act on. */
static void unbuilt_words(FILE *f, enum word_set set, const char *before, const char *after, const char *stop)
{
    bool is_first = true;
    for (size_t i = 0; i < n_setting_words; i++) {
        if (setting_words[i].set != set || setting_words[i].state == BUILT)
            continue;
        fprintf(f, "%s%s%.*s%s", is_first ? "" : ", ", before, STR_ARG(setting_words[i].name), after);
        is_first = false;
    }
    if (!is_first)
        fprintf(f, " %s", stop);
}

static const char *state_text(enum setting_state state)
{
    return state == PLANNED   ? "Accepted and checked, without effect in this version yet."
           : state == REFUSED ? "Refused in this version: it is not available yet."
                              : "";
}

/* '|' would end a cell of the table. */
static void md_cell(FILE *f, const char *text)
{
    for (; *text != '\0'; text++)
        fprintf(f, *text == '|' ? "\\|" : "%c", *text);
}

static void md_row(FILE *f, const struct setting *s)
{
    fprintf(f, "| `%.*s` | ", STR_ARG(s->name));
    scope_letters(f, s->scopes);
    fputs(" | ", f);
    if (set_of(s) != WORDS_NONE)
        words_of(f, set_of(s), "`", "`");
    else
        md_cell(f, type_expected[s->type]);
    fputs(" | ", f);
    md_cell(f, s->value ? s->value : s->unset);
    fputs(" | ", f);
    md_cell(f, s->doc);
    if (s->state != BUILT)
        fprintf(f, ". *%s*", state_text(s->state));
    if (set_of(s) != WORDS_NONE) {
        static const char unbuilt[] = "without effect in this version yet";
        bool has_any = false;
        for (size_t i = 0; i < n_setting_words; i++)
            has_any |= setting_words[i].set == set_of(s) && setting_words[i].state != BUILT;
        if (has_any) {
            fputs(". *", f);
            unbuilt_words(f, set_of(s), "", "", unbuilt);
            fputs(".*", f);
        }
    }
    fputs(" |\n", f);
}

static const char md_head[] = "# Settings\n\n"
                              "Generated from `src/conf/settings/*.def`; do not edit.\n\n"
                              "Scope: T top, S site, L location, U upstream, V server of an upstream. A value is "
                              "inherited from the top to the site to the\n"
                              "location, and the nearest wins (L, U, S, T); header rules and lists of types merge by "
                              "name. One value may stand for a list of one.\n"
                              "A group in the heading (`timeouts = { ... }`) is where its settings stand. The rules of "
                              "the file are in proxy.conf(5).\n";

static void md(FILE *f)
{
    fputs(md_head, f);
    for (size_t a = 0; a < AREA_COUNT; a++) {
        fprintf(f, "\n## %s", areas[a].doc);
        if (areas[a].kind == GROUP)
            fprintf(f, ": `%.*s = { ... }`", STR_ARG(areas[a].key));
        fputs("\n\n| setting | scope | value | default | |\n|---|---|---|---|---|\n", f);
        for (size_t i = 0; i < SET_COUNT; i++)
            if (settings[i].area == a)
                md_row(f, &settings[i]);
    }
}

/* roff: a backslash, and a dot or quote at the beginning of a line, mean something; '-' is a hyphen unless it is
 * escaped. */
static void man_text(FILE *f, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", f);
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            fputs("\\e", f);
        else if (*text == '-')
            fputs("\\-", f);
        else if (*text != '`')
            fputc(*text, f);
    }
}

static const char man_head[] = ".\\\" Generated from src/conf/settings/*.def; do not edit.\n"
                               ".TH PROXY.CONF 5 \"\" \"weir\" \"File formats\"\n"
                               ".SH NAME\n"
                               "proxy.conf \\- configuration of weir\n"
                               ".SH SYNOPSIS\n"
                               ".nf\n"
                               "sites = ( { listen = \"8080\"; root = \"public\"; proxy = \"127.0.0.1:3000\"; } );\n"
                               ".fi\n"
                               ".SH DESCRIPTION\n"
                               "The syntax is libconfig\\(aqs: settings end with a semicolon, groups stand in { }, "
                               "lists in ( ), texts in double quotes;\n"
                               "comments begin with # or //, or stand between /* and */.\n"
                               ".B weir check\n"
                               "names everything that is wrong in a file, with its line.\n"
                               ".PP\n"
                               "One value may stand for a list of one. A list in [ ] holds values of one type only.\n"
                               ".PP\n"
                               "A duration or size has a unit: \"500ms\", \"30s\", \"5m\", \"1h\", \"30d\"; \"512b\", "
                               "\"64k\", \"1m\", \"5g\". 0 and false mean none.\n"
                               "A text that spells a number, or true or false, serves where one is expected. Words "
                               "compare without \\- and _ and in any case.\n"
                               ".PP\n"
                               "Relative paths are relative to the file they stand in.\n"
                               ".B include\n"
                               "appends the sites and upstreams of whole files.\n"
                               ".PP\n"
                               "A setting is inherited from the top to the site to the location; the nearest wins. "
                               "Timeouts of an upstream stand between\n"
                               "location and site. Header rules and lists of types merge by name. Actions (root, "
                               "alias, proxy, redirect, respond, builtin)\n"
                               "are not inherited by a location that has one of its own; root or alias together with "
                               "proxy means the file if it is there,\n"
                               "otherwise the backend.\n"
                               ".PP\n"
                               "A location\\(aqs\n"
                               ".B match\n"
                               "has nginx\\(aqs meanings and precedence. A regular expression is written as it is, "
                               "without quotes of its own; write \\e\\e for a\n"
                               "backslash before t n r f x \" or another backslash.\n"
                               ".PP\n"
                               "A site is chosen by the exact name in Host, then by the longest *. name, then the one "
                               "marked default on that address, else the\n"
                               "first.\n"
                               ".SH ENVIRONMENT\n"
                               "In a text, ${NAME}, ${NAME:\\-default} and ${NAME:?message} stand for the environment "
                               "when the file is loaded. Names are in\n"
                               "capitals. $$ is a dollar.\n";

static void man_row(FILE *f, const struct setting *s)
{
    fprintf(f, ".TP\n.BR %.*s \" (", STR_ARG(s->name));
    scope_letters(f, s->scopes);
    fputs(")\"\n", f);
    man_text(f, s->doc);
    fputs(".\nValue: ", f);
    if (set_of(s) != WORDS_NONE)
        words_of(f, set_of(s), "", "");
    else
        man_text(f, type_expected[s->type]);
    fputs(".\nDefault: ", f);
    man_text(f, s->value ? s->value : s->unset);
    fputs(".\n", f);
    if (s->state != BUILT)
        fprintf(f, "%s\n", state_text(s->state));
}

struct var_row {
    const char *name, *doc;
};

static void man(FILE *f)
{
    static const struct var_row vars[] = {
#define VAR(id, name, doc) { name, doc },
#include "conf/vars.def"
#undef VAR
    };
    fputs(man_head, f);
    fputs(".SH SETTINGS\n"
          "Where a setting may stand is said in parentheses: T top, S site, L location, U upstream, V server of an "
          "upstream.\n",
          f);
    for (size_t a = 0; a < AREA_COUNT; a++) {
        fprintf(f, ".SS %s", areas[a].doc);
        if (areas[a].kind == GROUP)
            fprintf(f, ": %.*s = { ... }", STR_ARG(areas[a].key));
        fputc('\n', f);
        for (size_t i = 0; i < SET_COUNT; i++)
            if (settings[i].area == a)
                man_row(f, &settings[i]);
    }
    fputs(".SH VARIABLES\nIn settings that take a text with $variables:\n", f);
    for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
        bool is_family = vars[i].name[strlen(vars[i].name) - 1] == '_';
        fprintf(f, ".TP\n.B $%s%s\n", vars[i].name, is_family ? "NAME" : "");
        man_text(f, vars[i].doc);
        fputc('\n', f);
    }
    fputs(".SH FILES\n.TP\n.I /etc/weir/proxy.conf\nread when neither -c nor $WEIR_CONF says otherwise; an ordinary "
          "user at a terminal "
          "gets\n.I ./proxy.conf\nfirst.\n.SH SEE ALSO\n.BR weir (8)\n",
          f);
}

static struct str page(struct arena *a, void (*print)(FILE *f))
{
    char *text = NULL;
    size_t n = 0;
    struct str copy = STR_NONE;
    FILE *f = open_memstream(&text, &n);
    if (f == NULL)
        return copy;
    print(f);
    if (fclose(f) == 0)
        copy = arena_dup(a, str_of(text, n));
    free(text);
    return copy;
}

struct str conf_settings_md(struct arena *a)
{
    return page(a, md);
}

struct str conf_settings_man(struct arena *a)
{
    return page(a, man);
}
