/* SPDX-License-Identifier: MIT */
/* The settings tables themselves, the words near a wrong one, and the pages generated from them. */
#include "conf_test.h"

#include "conf/print.h"
#include "conf/settings.h"

static void rows_are_sorted(void **state)
{
    (void)state;
    for (size_t i = 1; i < SET_COUNT; i++) {
        const struct setting *a = &settings[i - 1], *b = &settings[i];
        if (a->area == b->area)
            assert_true(strcmp(a->name.p, b->name.p) < 0);
        else
            assert_true(a->area < b->area); /* areas.def and settings.inc have the same order */
    }
}

static void rows_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct setting *s = &settings[i];
        assert_true(s->scopes != 0);
        assert_true(s->doc != NULL && *s->doc != '\0' && s->doc[strlen(s->doc) - 1] != '.');
        assert_true((s->value == NULL) != (s->unset == NULL));
        assert_true(s->lo <= s->hi);
        assert_true(s->type != TYPE_ENUM || s->words != WORDS_NONE);
    }
}

/* A name means one setting in one scope, or the hint for a wrong name could be wrong itself. */
static void names_are_unambiguous(void **state)
{
    (void)state;
    for (size_t i = 0; i < SET_COUNT; i++)
        for (size_t j = i + 1; j < SET_COUNT; j++) {
            const struct setting *a = &settings[i], *b = &settings[j];
            bool are_direct = areas[a->area].kind == DIRECT && areas[b->area].kind == DIRECT;
            assert_false((a->area == b->area || are_direct) && (a->scopes & b->scopes) && str_eq(a->name, b->name));
        }
}

static struct str nearest_of(const char *word)
{
    static const char *const words[] = { "locations", "location", "limits", "listen", "log_level", "root", "via" };
    struct nearest n;
    nearest_init(&n, str_c(word));
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        nearest_offer(&n, str_c(words[i]));
    return n.best;
}

static void nearest_words(void **state)
{
    (void)state;
    assert_str(nearest_of("locatoins"), "locations");
    assert_str(nearest_of("lisetn"), "listen");
    assert_str(nearest_of("lsten"), "listen");
    assert_str(nearest_of("Listen"), "listen");
    assert_str(nearest_of("loglevel"), "log_level");
    assert_str(nearest_of("rot"), "root");
    assert_str(nearest_of("vio"), "via");
    assert_str(nearest_of("quux"), "");
    assert_str(nearest_of("x"), "");
    assert_str(nearest_of(""), "");
    char longer[200] = "";
    memset(longer, 'l', sizeof longer - 1);
    assert_str(nearest_of(longer), "");
}

static void words_compare_loosely(void **state)
{
    (void)state;
    static const char *const same[] = { "least-conn", "least_conn", "leastconn", "LeastConn", "-least--conn_" };
    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        assert_int_equal(word_find(WORDS_balance, str_c(same[i]))->value, BALANCE_LEAST_CONN);
    assert_int_equal(word_find(WORDS_balance, STR("source"))->value, BALANCE_IP_HASH);
    assert_null(word_find(WORDS_balance, STR("least")));
    assert_null(word_find(WORDS_balance, STR("info")));
    assert_null(word_find(WORDS_balance, STR("")));
}

static struct str file_text(struct arena *a, const char *name)
{
    const char *dir = getenv("srcdir");
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", dir ? dir : ".", name);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        fail_msg("cannot open %s", path);
    enum { CAP = 1 << 20 };
    char *text = arena_alloc(a, CAP);
    size_t n = fread(text, 1, CAP, f);
    fclose(f);
    return str_of(text, n);
}

/* After a change of the tables: src/weir help --settings-md >docs/settings.md; src/weir help --settings-man
 * >docs/man/proxy.conf.5 */
static void pages_are_up_to_date(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL);
    bool is_md = str_eq(file_text(&a, "docs/settings.md"), conf_settings_md(&a));
    bool is_man = str_eq(file_text(&a, "docs/man/proxy.conf.5"), conf_settings_man(&a));
    arena_reset(&a);
    if (!is_md)
        fail_msg("docs/settings.md is not what `weir help --settings-md` prints");
    if (!is_man)
        fail_msg("docs/man/proxy.conf.5 is not what `weir help --settings-man` prints");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_sorted),       cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(names_are_unambiguous), cmocka_unit_test(nearest_words),
        cmocka_unit_test(words_compare_loosely), cmocka_unit_test(pages_are_up_to_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
