/* SPDX-License-Identifier: MIT */
/* Conditional requests: each row is a set of fields and what becomes of the answer (RFC 9110 §13). */
#include "http/cond.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SAME "Sun, 06 Nov 1994 08:49:37 GMT"
#define LATER "Sun, 06 Nov 1994 08:49:38 GMT"
#define EARLIER "Sun, 06 Nov 1994 08:49:36 GMT"

static const struct validators strong = { .etag = { "\"e,1\"", 5 }, .last_modified = 784111777 };
static const struct validators weak = { .etag = { "W/\"e,1\"", 7 }, .last_modified = 784111777 };
static const struct validators none = { .last_modified = -1 };

struct line {
    enum field_id id;
    const char *value;
};

static void collect(struct fields *f, struct arena *a, const struct line *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lines[i].value != NULL)
            assert_true(fields_add_id(f, a, lines[i].id, str_c(lines[i].value)));
}

struct row {
    const struct validators *v;
    enum cond_result wanted;
    struct line lines[3];
};

static void test_results(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { &strong, COND_PASS, { { F_HOST, "h" } } },
        /* If-None-Match: weak comparison, lists, several lines, "*". */
        { &strong, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "\"e,1\"" } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "W/\"e,1\"" } } },
        { &weak, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "\"e,1\"" } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "\"a\", \"b,c\" , \"e,1\", \"d\"" } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, ",, \"a\",\t,W/\"e,1\"" } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "\"a\"" }, { F_IF_NONE_MATCH, "\"e,1\"" } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "*" } } },
        { &none, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "*" } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "\"x\"" } } },
        { &none, COND_PASS, { { F_IF_NONE_MATCH, "\"e,1\"" } } },
        { &none, COND_PASS, { { F_IF_NONE_MATCH, "\"\"" } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "e,1" } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "\"e,1" } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "w/\"e,1\"" } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "\"a\" \"e,1\"" } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "\"a\", oops, \"e,1\"" } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "\"E,1\"" } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "" } } },
        /* A backslash escapes nothing in a tag. */
        { &strong, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "\"a\\\", \"e,1\"" } } },
        /* If-Modified-Since, and that If-None-Match makes it void. */
        { &strong, COND_NOT_MODIFIED, { { F_IF_MODIFIED_SINCE, SAME } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_MODIFIED_SINCE, LATER } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_MODIFIED_SINCE, "Sunday, 06-Nov-94 08:49:37 GMT" } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_MODIFIED_SINCE, "Sun Nov  6 08:49:37 1994" } } },
        { &strong, COND_PASS, { { F_IF_MODIFIED_SINCE, EARLIER } } },
        { &strong, COND_PASS, { { F_IF_MODIFIED_SINCE, "not a date" } } },
        { &strong, COND_PASS, { { F_IF_MODIFIED_SINCE, SAME }, { F_IF_MODIFIED_SINCE, SAME } } },
        { &none, COND_PASS, { { F_IF_MODIFIED_SINCE, LATER } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "\"x\"" }, { F_IF_MODIFIED_SINCE, LATER } } },
        { &strong, COND_PASS, { { F_IF_NONE_MATCH, "junk" }, { F_IF_MODIFIED_SINCE, LATER } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "\"e,1\"" }, { F_IF_MODIFIED_SINCE, EARLIER } } },
        /* If-Match: strong comparison. */
        { &strong, COND_PASS, { { F_IF_MATCH, "\"e,1\"" } } },
        { &strong, COND_PASS, { { F_IF_MATCH, "\"a\", \"e,1\"" } } },
        { &strong, COND_PASS, { { F_IF_MATCH, "*" } } },
        { &none, COND_PASS, { { F_IF_MATCH, "*" } } },
        { &strong, COND_FAILED, { { F_IF_MATCH, "\"x\"" } } },
        { &strong, COND_FAILED, { { F_IF_MATCH, "W/\"e,1\"" } } },
        { &weak, COND_FAILED, { { F_IF_MATCH, "W/\"e,1\"" } } },
        { &none, COND_FAILED, { { F_IF_MATCH, "\"e,1\"" } } },
        { &strong, COND_FAILED, { { F_IF_MATCH, "e,1" } } },
        /* If-Unmodified-Since, and that If-Match makes it void. */
        { &strong, COND_PASS, { { F_IF_UNMODIFIED_SINCE, SAME } } },
        { &strong, COND_FAILED, { { F_IF_UNMODIFIED_SINCE, EARLIER } } },
        { &strong, COND_PASS, { { F_IF_UNMODIFIED_SINCE, "xyz" } } },
        { &none, COND_PASS, { { F_IF_UNMODIFIED_SINCE, EARLIER } } },
        { &strong, COND_PASS, { { F_IF_MATCH, "\"e,1\"" }, { F_IF_UNMODIFIED_SINCE, EARLIER } } },
        /* The order of the steps. */
        { &strong, COND_FAILED, { { F_IF_NONE_MATCH, "\"e,1\"" }, { F_IF_MATCH, "\"x\"" } } },
        { &strong, COND_NOT_MODIFIED, { { F_IF_NONE_MATCH, "\"e,1\"" }, { F_IF_MATCH, "\"e,1\"" } } },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena a;
        struct fields f = { 0 };
        arena_init(&a, NULL);
        collect(&f, &a, rows[i].lines, ARRAY_LEN(rows[i].lines));
        enum cond_result got = cond_check(&f, rows[i].v, 1795000000);
        if (got != rows[i].wanted)
            fail_msg("row %zu (%s): %d, not %d", i, rows[i].lines[0].value, got, rows[i].wanted);
        arena_reset(&a);
    }
}

static bool if_range(const struct validators *v, const char *value, const char *second)
{
    struct arena a;
    struct fields f = { 0 };
    arena_init(&a, NULL);
    const struct line lines[] = { { F_IF_RANGE, value }, { F_IF_RANGE, second } };
    collect(&f, &a, lines, 2);
    bool result = cond_if_range(&f, v, 1795000000);
    arena_reset(&a);
    return result;
}

static void test_if_range(void **state)
{
    (void)state;
    assert_true(if_range(&strong, NULL, NULL));
    assert_true(if_range(&strong, "\"e,1\"", NULL));
    assert_false(if_range(&strong, "\"x\"", NULL));
    assert_false(if_range(&strong, "W/\"e,1\"", NULL));
    assert_false(if_range(&weak, "W/\"e,1\"", NULL));
    assert_false(if_range(&weak, "\"e,1\"", NULL));
    assert_false(if_range(&strong, "\"e,1\"", "\"e,1\""));
    assert_false(if_range(&strong, "*", NULL));
    assert_true(if_range(&strong, SAME, NULL));
    assert_false(if_range(&strong, LATER, NULL));
    assert_false(if_range(&strong, EARLIER, NULL));
    assert_false(if_range(&none, SAME, NULL));
    assert_false(if_range(&none, "\"\"", NULL));
}

static void test_tags(void **state)
{
    (void)state;
    assert_true(etag_weak_eq(STR("\"a\""), STR("W/\"a\"")));
    assert_true(etag_weak_eq(STR("W/\"a\""), STR("W/\"a\"")));
    assert_false(etag_weak_eq(STR("\"a\""), STR("\"b\"")));
    assert_false(etag_weak_eq(STR(""), STR("")));
    assert_true(etag_strong_eq(STR("\"a\""), STR("\"a\"")));
    assert_false(etag_strong_eq(STR("W/\"a\""), STR("W/\"a\"")));
    assert_false(etag_strong_eq(STR("\"a\""), STR("W/\"a\"")));
    assert_false(etag_strong_eq(STR(""), STR("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_if_range),
        cmocka_unit_test(test_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
