/* SPDX-License-Identifier: MIT */
/* Arenas and block pools: alignment, reuse of blocks, big pieces, a reset that gives everything back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

/* The linker sends every malloc of the code under test here; it can run out of memory. */
static int allocations_left = -1; /* -1: no limit */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    if (allocations_left == 0)
        return NULL;
    if (allocations_left > 0)
        allocations_left--;
    return __real_malloc(size);
}

static void pieces_are_aligned_and_apart(void **state)
{
    (void)state;
    struct block_pool pool;
    block_pool_init(&pool, 500, 4); /* no multiple of 16 on purpose */
    struct arena a;
    arena_init(&a, &pool);
    unsigned char *p[200];
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        p[i] = arena_alloc(&a, i + 1);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        memset(p[i], (int)i, i + 1);
    }
    for (size_t n = 478; n <= 486; n++) { /* what just fits into a block, and what just does not */
        char *full = arena_alloc(&a, n), *next = arena_alloc(&a, 1);
        memset(full, 0xff, n);
        *next = 1;
        assert_true(next < full || next > full + 500 || next + 1 <= full + 484);
    }
    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        for (size_t j = 0; j <= i; j++)
            assert_int_equal(p[i][j], i);
    arena_reset(&a);
    assert_true(pool.n_free <= 4);
    block_pool_free(&pool);
}

static void empty_arena_holds_nothing(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL);
    assert_null(a.blocks);
    arena_reset(&a);
    char *p = arena_zalloc(&a, 100);
    assert_non_null(p);
    for (int i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    arena_reset(&a);
    assert_null(a.blocks);
    assert_null(a.at);
}

static void steady_state_reuses_blocks(void **state)
{
    (void)state;
    if (WEIR_SANITIZER)
        skip();
    struct block_pool pool;
    block_pool_init(&pool, ARENA_BLOCK, 2);
    struct arena a;
    arena_init(&a, &pool);
    void *first = arena_alloc(&a, 10);
    void *second = arena_alloc(&a, 10);
    assert_ptr_equal((char *)second, (char *)first + 16);
    arena_reset(&a);
    assert_int_equal(pool.n_free, 1);
    assert_ptr_equal(arena_alloc(&a, 3000), first);
    assert_int_equal(pool.n_free, 0);
    assert_non_null(arena_alloc(&a, 3000));
    assert_non_null(arena_alloc(&a, 3000));
    arena_reset(&a);
    assert_int_equal(pool.n_free, 2); /* the third went back to malloc */
    block_pool_free(&pool);
    assert_int_equal(pool.n_free, 0);
}

static void a_big_piece_leaves_the_current_block_in_use(void **state)
{
    (void)state;
    if (WEIR_SANITIZER)
        skip();
    struct arena a;
    arena_init(&a, NULL);
    char *big_first = arena_alloc(&a, 100000);
    memset(big_first, 1, 100000);
    char *small = arena_alloc(&a, 16);
    char *big = arena_alloc(&a, 100000);
    memset(big, 2, 100000);
    assert_ptr_equal(arena_alloc(&a, 16), small + 16);
    arena_reset(&a);
}

static void exactly_one_block(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL);
    char *p = arena_alloc(&a, ARENA_BLOCK - 16);
    memset(p, 7, ARENA_BLOCK - 16);
    char *q = arena_alloc(&a, ARENA_BLOCK - 15);
    memset(q, 8, ARENA_BLOCK - 15);
    assert_int_equal(p[ARENA_BLOCK - 17], 7);
    arena_reset(&a);
}

static void impossible_sizes_fail(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL);
    volatile size_t huge = SIZE_MAX - 3;
    assert_null(arena_alloc(&a, huge));
    assert_null(arena_dup(&a, str_of("x", huge + 3)).p);
    arena_reset(&a);
}

static void dup_and_printf(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL);
    struct str s = arena_dup(&a, str_of("a\0b", 3));
    assert_int_equal(s.n, 3);
    assert_memory_equal(s.p, "a\0b", 4);
    struct str none = arena_dup(&a, STR_NONE);
    assert_non_null(none.p);
    assert_int_equal(none.n, 0);
    assert_int_equal(none.p[0], 0);
    s = arena_printf(&a, "%s-%d", "x", 42);
    assert_true(str_eq(s, STR("x-42")));
    assert_int_equal(s.p[s.n], 0);
    for (int width = 254; width <= 258; width++) { /* both sides of the small buffer */
        s = arena_printf(&a, "%*d", width, 5);
        assert_int_equal(s.n, width);
        assert_int_equal(s.p[width - 1], '5');
        assert_int_equal(s.p[width], 0);
    }
    arena_reset(&a);
}

static void out_of_memory(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL);
    char *p = arena_alloc(&a, 4000);
    memset(p, 1, 4000);
    allocations_left = 0;
    assert_null(arena_alloc(&a, 200));
    assert_null(arena_zalloc(&a, 5000));
    assert_null(arena_dup(&a, str_of(p, 200)).p);
    assert_null(arena_printf(&a, "%200d", 1).p);
    assert_null(arena_printf(&a, "%300d", 1).p);
    allocations_left = -1;
    assert_non_null(arena_alloc(&a, 200)); /* and goes on when there is some again */
    assert_int_equal(p[3999], 1);
    arena_reset(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(empty_arena_holds_nothing),
        cmocka_unit_test(steady_state_reuses_blocks),
        cmocka_unit_test(a_big_piece_leaves_the_current_block_in_use),
        cmocka_unit_test(exactly_one_block),
        cmocka_unit_test(impossible_sizes_fail),
        cmocka_unit_test(dup_and_printf),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests_name("base/arena", tests, NULL, NULL);
}
