/* SPDX-License-Identifier: MIT */
/* Spans, and the intrusive ring that lives next to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"
#include "base/str.h"

static void comparing(void **state)
{
    (void)state;
    assert_true(str_eq(STR_NONE, STR("")));
    assert_true(str_eq(STR("ab"), str_of("abc", 2)));
    assert_false(str_eq(STR("ab"), STR("aB")));
    assert_true(str_eq_nocase(STR("Host"), STR("hOST")));
    assert_false(str_eq_nocase(STR("[@"), STR("{`"))); /* 0x20 apart, but no letters */
    assert_true(str_starts(STR("abc"), STR("ab")));
    assert_true(str_starts(STR("abc"), STR_NONE));
    assert_false(str_starts(STR("a"), STR("ab")));
    assert_true(str_ends(STR("abc"), STR("bc")));
    assert_false(str_ends(STR("c"), STR("bc")));
}

static void cutting(void **state)
{
    (void)state;
    assert_true(str_eq(str_skip(STR("abc"), 1), STR("bc")));
    assert_int_equal(str_skip(STR("abc"), 4).n, 0);
    assert_int_equal(str_skip(STR_NONE, 1).n, 0);
    assert_true(str_eq(str_take(STR("abc"), 2), STR("ab")));
    assert_int_equal(str_take(STR("abc"), 9).n, 3);
    assert_true(str_eq(str_trim(STR(" \t a b\t ")), STR("a b")));
    assert_int_equal(str_trim(STR(" \t ")).n, 0);
    assert_true(str_eq(str_trim(STR("\nx")), STR("\nx"))); /* OWS is SP and HTAB only */
    assert_int_equal(str_chr(STR("a.b.c"), '.', 2), 3);
    assert_int_equal(str_chr(STR("a.b"), '.', 2), -1);
    assert_int_equal(str_chr(STR_NONE, '.', 0), -1);
}

static void numbers(void **state)
{
    (void)state;
    uint64_t v = 1;
    assert_true(str_to_u64(STR("18446744073709551615"), &v));
    assert_true(v == UINT64_MAX);
    assert_false(str_to_u64(STR("18446744073709551616"), &v));
    assert_false(str_to_u64(STR("99999999999999999999"), &v));
    assert_true(str_to_u64(STR("007"), &v));
    assert_int_equal(v, 7);
    assert_false(str_to_u64(STR(""), &v));
    assert_false(str_to_u64(STR("+1"), &v));
    assert_false(str_to_u64(STR("1 "), &v));
    assert_int_equal(hex_value('f'), 15);
    assert_int_equal(hex_value('F'), 15);
    assert_int_equal(hex_value('g'), -1);
    assert_int_equal(hex_value('/'), -1);
}

static void ring(void **state)
{
    (void)state;
    struct list head, a = { 0 }, b = { 0 }, c = { 0 };
    list_init(&head);
    assert_true(list_is_empty(&head));
    assert_false(list_is_linked(&a));
    list_remove(&a); /* harmless on one that is on no list */
    list_append(&head, &b);
    list_append(&head, &c);
    list_prepend(&head, &a);
    assert_ptr_equal(head.next, &a);
    assert_ptr_equal(head.prev, &c);
    int n = 0;
    list_each_safe(it, tmp, &head) {
        n++;
        if (it != &c)
            list_remove(it);
    }
    assert_int_equal(n, 3);
    assert_ptr_equal(head.next, &c);
    assert_false(list_is_linked(&a));
    list_remove(&c);
    list_remove(&c);
    assert_true(list_is_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing),
        cmocka_unit_test(cutting),
        cmocka_unit_test(numbers),
        cmocka_unit_test(ring),
    };
    return cmocka_run_group_tests_name("base/str", tests, NULL, NULL);
}
