/* SPDX-License-Identifier: MIT */
/* The hash map against a plain array: long runs of adding, replacing and removing, with probe chains that wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"

enum { KEYS = 300 };

/* The linker sends every calloc of the code under test here; it can run out of memory. */
static int allocations_left = -1; /* -1: no limit */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    if (allocations_left == 0)
        return NULL;
    if (allocations_left > 0)
        allocations_left--;
    return __real_calloc(n, size);
}

static char names[KEYS][16];

static struct str key(size_t i)
{
    return str_c(names[i]);
}

static void agrees_with_an_array(void **state)
{
    (void)state;
    for (size_t i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof names[i], "key%zu", i);
    struct map m = { 0 };
    int values[KEYS];
    int *model[KEYS] = { 0 };
    size_t n = 0;
    srand(7);
    for (int step = 0; step < 200000; step++) {
        /* The share of removals swings, so that the table fills up and empties many times. */
        size_t i = (size_t)rand() % KEYS;
        bool add = rand() % 100 < ((step / 2000) % 2 ? 30 : 70);
        if (add) {
            int *v = &values[(size_t)rand() % KEYS];
            n += model[i] == NULL;
            model[i] = v;
            assert_true(map_put(&m, key(i), v));
        } else {
            assert_ptr_equal(map_remove(&m, key(i)), model[i]);
            n -= model[i] != NULL;
            model[i] = NULL;
        }
        assert_int_equal(m.n, n);
        assert_true(m.n * 4 <= m.cap * 3);
        if (step % 50 == 0)
            for (size_t k = 0; k < KEYS; k++)
                assert_ptr_equal(map_get(&m, key(k)), model[k]);
    }
    assert_true(m.cap <= 512); /* churn does not make it grow */
    map_free(&m);
    assert_int_equal(m.n, 0);
    assert_null(map_get(&m, key(0)));
}

static void an_empty_map_has_nothing(void **state)
{
    (void)state;
    struct map m = { 0 };
    assert_null(map_get(&m, STR("a")));
    assert_null(map_remove(&m, STR("a")));
    int v = 1;
    assert_true(map_put(&m, STR_NONE, &v));
    assert_ptr_equal(map_get(&m, STR("")), &v);
    assert_null(map_get(&m, str_of("\0", 1)));
    map_free(&m);
}

/* Keys usually live inside their value: after a replacement the old value, with its key, may be freed. */
static void replacing_takes_the_new_key(void **state)
{
    (void)state;
    struct map m = { 0 };
    int v1 = 1, v2 = 2;
    char *k1 = strdup("same"), *k2 = strdup("same");
    assert_true(map_put(&m, str_c(k1), &v1));
    assert_true(map_put(&m, str_c(k2), &v2));
    memset(k1, 'x', 4);
    free(k1);
    assert_ptr_equal(map_get(&m, STR("same")), &v2);
    assert_int_equal(m.n, 1);
    map_free(&m);
    free(k2);
}

static void out_of_memory(void **state)
{
    (void)state;
    struct map m = { 0 };
    int v = 1, w = 2;
    allocations_left = 0;
    assert_false(map_put(&m, key(0), &v));
    allocations_left = 1;
    size_t n = 0;
    while (n < KEYS && map_put(&m, key(n), &v))
        n++;
    assert_int_equal(n, 12); /* three quarters of 16, then it would have to grow */
    assert_int_equal(m.n, n);
    assert_true(map_put(&m, key(3), &w)); /* replacing needs no memory */
    allocations_left = -1;
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(map_get(&m, key(i)), i == 3 ? &w : &v);
    assert_true(map_put(&m, key(n), &v));
    map_free(&m);
}

static void the_plain_hash_is_the_same_everywhere(void **state)
{
    (void)state;
    /* The values of XXH3 with seed 0 are fixed by its specification. */
    assert_true(hash_bytes(STR_NONE) == 0x2d06800538d394c2ULL);
    assert_true(hash_bytes(STR("a")) != hash_bytes(STR("b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_an_array),
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(replacing_takes_the_new_key),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(the_plain_hash_is_the_same_everywhere),
    };
    return cmocka_run_group_tests_name("base/map", tests, NULL, NULL);
}
