/* SPDX-License-Identifier: MIT */
/* The list of field lines, the names weir knows, and lists inside values. */
#include "http/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "http/chars.h"

static const char *const known[F_COUNT] = {
#define X(id, name) [F_##id] = name,
    FIELD_IDS(X)
#undef X
};

static void test_ids(void **state)
{
    (void)state;
    for (unsigned id = F_OTHER + 1; id < F_COUNT; id++) {
        char name[64];
        struct str canonical = str_c(known[id]);
        assert_true(str_eq(field_name_of((enum field_id)id), canonical));
        assert_int_equal(field_id_of(canonical), id);
        for (int upper = 0; upper < 2; upper++) {
            for (size_t i = 0; i < canonical.n; i++) {
                char c = ascii_lower(canonical.p[i]);
                name[i] = upper && c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
            }
            assert_int_equal(field_id_of(str_of(name, canonical.n)), id);
        }
        /* One byte changed, anywhere, by any bit: another name. */
        for (size_t i = 0; i < canonical.n; i++)
            for (unsigned bit = 0; bit < 8; bit++) {
                memcpy(name, canonical.p, canonical.n);
                name[i] = (char)(name[i] ^ 1 << bit);
                if (!str_eq_nocase(str_of(name, canonical.n), canonical))
                    assert_int_not_equal(field_id_of(str_of(name, canonical.n)), id);
            }
        assert_int_equal(field_id_of(str_take(canonical, canonical.n - 1)), F_OTHER);
    }
    assert_int_equal(field_id_of(STR("")), F_OTHER);
    assert_int_equal(field_id_of(STR("X-Anything")), F_OTHER);
    assert_int_equal(field_id_of(STR("Content_Length")), F_OTHER);
    assert_int_equal(field_id_of(STR("Keep\rAlive")), F_OTHER);
}

static void add(struct fields *f, struct arena *a, const char *name, const char *value)
{
    assert_true(fields_add(f, a, str_c(name), str_c(value), field_id_of(str_c(name))));
}

static void expect_lines(const struct fields *f, const char *wanted)
{
    char text[1024];
    size_t n = 0;
    for (unsigned i = 0; i < f->n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s=%.*s ", STR_ARG(f->v[i].name), STR_ARG(f->v[i].value));
    text[n] = '\0';
    assert_string_equal(text, wanted);
}

static void test_list(void **state)
{
    (void)state;
    struct arena a;
    struct fields f = { 0 };
    arena_init(&a, NULL);
    assert_null(fields_get(&f, F_HOST));
    assert_null(fields_find(&f, STR("x")));
    add(&f, &a, "Host", "h");
    add(&f, &a, "X-One", "1");
    add(&f, &a, "set-cookie", "a");
    add(&f, &a, "x-one", "2");
    add(&f, &a, "X-Two", "3");
    add(&f, &a, "Set-Cookie", "b");
    assert_true(fields_add_id(&f, &a, F_VIA, STR("v")));
    expect_lines(&f, "Host=h X-One=1 set-cookie=a x-one=2 X-Two=3 Set-Cookie=b Via=v ");
    const struct field *it = fields_get(&f, F_SET_COOKIE);
    assert_true(str_eq(it->value, STR("a")));
    it = fields_next(&f, it);
    assert_true(str_eq(it->value, STR("b")));
    assert_null(fields_next(&f, it));
    it = fields_find(&f, STR("X-ONE"));
    assert_true(str_eq(it->value, STR("1")));
    it = fields_next(&f, it);
    assert_true(str_eq(it->value, STR("2")));
    assert_null(fields_next(&f, it));
    assert_int_equal(fields_count(&f, F_SET_COOKIE), 2);
    assert_int_equal(fields_count(&f, F_DATE), 0);

    fields_remove(&f, F_DATE);
    fields_remove(&f, F_OTHER);
    assert_int_equal(f.n, 7);
    fields_remove(&f, F_SET_COOKIE);
    assert_null(fields_get(&f, F_SET_COOKIE));
    expect_lines(&f, "Host=h X-One=1 x-one=2 X-Two=3 Via=v ");
    fields_remove_name(&f, STR("X-one"));
    expect_lines(&f, "Host=h X-Two=3 Via=v ");
    assert_non_null(fields_find(&f, STR("x-two")));
    fields_remove_name(&f, STR("x-two"));
    assert_null(fields_find(&f, STR("x-two")));
    fields_remove_name(&f, STR("HOST"));
    expect_lines(&f, "Via=v ");
    assert_true(fields_add_id(&f, &a, F_HOST, STR("again")));
    assert_true(str_eq(fields_get(&f, F_HOST)->value, STR("again")));
    arena_reset(&a);
}

static void test_growth(void **state)
{
    (void)state;
    struct arena a;
    struct fields f = { 0 };
    char names[200][16];
    arena_init(&a, NULL);
    assert_true(fields_reserve(&f, &a, 4));
    struct field *before = f.v;
    for (int i = 0; i < 200; i++) {
        snprintf(names[i], sizeof names[i], "N%d", i);
        add(&f, &a, names[i], names[i]);
        assert_true(i >= 4 || f.v == before);
    }
    assert_int_equal(f.n, 200);
    for (unsigned i = 0; i < 200; i++)
        assert_true(str_eq(f.v[i].value, str_c(names[i])));
    arena_reset(&a);
}

static void expect_members(const char *value, const char *wanted)
{
    char text[256];
    size_t n = 0;
    struct str member;
    for (size_t at = 0; list_next(str_c(value), &at, &member);)
        n += (size_t)snprintf(text + n, sizeof text - n, "<%.*s>", STR_ARG(member));
    text[n] = '\0';
    assert_string_equal(text, wanted);
}

static void test_members(void **state)
{
    (void)state;
    expect_members("", "");
    expect_members(" , ,\t,", "");
    expect_members("a", "<a>");
    expect_members(" a ,b,, c d\t", "<a><b><c d>");
    expect_members("a;x=\"1,2\", b", "<a;x=\"1,2\"><b>");
    expect_members("a;x=\"1\\\",2\", b", "<a;x=\"1\\\",2\"><b>");
    expect_members("a, \"b, c", "<a><\"b, c>");
    expect_members("\"\\", "<\"\\>");
}

static void test_tokens(void **state)
{
    (void)state;
    struct arena a;
    struct fields f = { 0 };
    arena_init(&a, NULL);
    add(&f, &a, "Connection", "keep-alive, Foo");
    add(&f, &a, "connection", "UPGRADE ; q=1");
    assert_true(fields_have_token(&f, F_CONNECTION, STR("upgrade")));
    assert_true(fields_have_token(&f, F_CONNECTION, STR("foo")));
    assert_true(fields_have_token(&f, F_CONNECTION, STR("Keep-Alive")));
    assert_false(fields_have_token(&f, F_CONNECTION, STR("keep")));
    assert_false(fields_have_token(&f, F_CONNECTION, STR("close")));
    assert_false(fields_have_token(&f, F_UPGRADE, STR("upgrade")));
    arena_reset(&a);
}

/* The table of byte classes against the grammars, spelled out another way. */
static void test_bytes(void **state)
{
    (void)state;
    static const char tchar[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char delims[] = "!$&'()*+,;=";
    static const char unreserved[] = "-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int i = 0; i < 256; i++) {
        char c = (char)i;
        bool is_vchar = i > 0x20 && i < 0x7f;
        bool is_value = is_vchar || i == ' ' || i == '\t' || i >= 0x80;
        bool is_name = i != 0 && (strchr(unreserved, i) != NULL || strchr(delims, i) != NULL);
        assert_int_equal(char_is(c, CHAR_TOKEN), i != 0 && strchr(tchar, i) != NULL);
        assert_int_equal(char_is(c, CHAR_VALUE), is_value);
        assert_int_equal(char_is(c, CHAR_TARGET), is_vchar && i != '#');
        assert_int_equal(char_is(c, CHAR_QUOTED), is_value && i != '"' && i != '\\');
        assert_int_equal(char_is(c, CHAR_HOST), is_name);
        assert_int_equal(char_is(c, CHAR_PATH), is_name || i == ':' || i == '@' || i == '/');
        assert_int_equal(is_token(str_of(&c, 1)), char_is(c, CHAR_TOKEN));
        assert_int_equal(is_field_value(str_of(&c, 1)), is_value);
    }
    assert_false(is_token(STR("")));
    assert_false(is_token(STR("a b")));
    assert_true(is_field_value(STR("")));
    assert_false(is_field_value(STR("a\r\nb")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
