/* SPDX-License-Identifier: MIT */
/* The pool of compressors: the bound on those in use, reuse that leaves nothing behind, and giving memory back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filter/deflate_pool.h"

static struct loop *loop;

static int set_up(void **state)
{
    (void)state;
    loop = loop_new(0);
    return loop == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static size_t compress_with(struct deflater *d, const char *text, char *out, size_t cap)
{
    d->z.next_in = (z_const Bytef *)(uintptr_t)text;
    d->z.avail_in = (uInt)strlen(text);
    d->z.next_out = (Bytef *)out;
    d->z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&d->z, Z_FINISH), Z_STREAM_END);
    return cap - d->z.avail_out;
}

static void those_in_use_are_bounded(void **state)
{
    (void)state;
    struct deflate_pool p;
    deflate_pool_init(&p, loop, 1024 * 1024);
    struct deflater *v[8] = { NULL };
    unsigned n = 0;
    while (n < ARRAY_LEN(v) && (v[n] = deflate_take(&p, DEFLATE_ANY, 6)) != NULL)
        n++;
    assert_int_equal(n, 3); /* of some 262 KB each */
    struct deflater *small = deflate_take(&p, DEFLATE_4K, 6);
    assert_non_null(small);
    deflate_give(&p, small);
    deflate_give(&p, v[0]);
    v[0] = deflate_take(&p, DEFLATE_ANY, 1);
    assert_non_null(v[0]);
    for (unsigned i = 0; i < n; i++)
        deflate_give(&p, v[i]);
    assert_int_equal(p.used, 0);
    deflate_pool_free(&p);
}

/* One that was cut in the middle of a stream, at another level, compresses like a new one. */
static void a_used_one_is_like_a_new_one(void **state)
{
    (void)state;
    static const char text[] = "the quick brown fox, the quick brown fox, the lazy dog, the lazy dog";
    for (enum deflate_size size = 0; size < DEFLATE_SIZES; size++) {
        struct deflate_pool p;
        char want[256], got[256], cut[16];
        deflate_pool_init(&p, loop, DEFLATE_USED_MAX);
        struct deflater *fresh = deflate_take(&p, size, 9);
        size_t n = compress_with(fresh, text, want, sizeof want);
        struct deflater *d = deflate_take(&p, size, 1);
        d->z.next_in = (z_const Bytef *)(uintptr_t)text;
        d->z.avail_in = 40;
        d->z.next_out = (Bytef *)cut;
        d->z.avail_out = sizeof cut;
        assert_int_equal(deflate(&d->z, Z_SYNC_FLUSH), Z_OK);
        d->is_behind = true;
        deflate_give(&p, d);
        struct deflater *again = deflate_take(&p, size, 9);
        if (!WEIR_SANITIZER)
            assert_ptr_equal(again, d);
        assert_false(again->is_behind);
        assert_int_equal(compress_with(again, text, got, sizeof got), n);
        assert_memory_equal(got, want, n);
        deflate_give(&p, again);
        deflate_give(&p, fresh);
        deflate_pool_free(&p);
    }
}

static void what_nobody_needs_is_freed(void **state)
{
    (void)state;
    if (WEIR_SANITIZER)
        skip();
    struct deflate_pool p;
    deflate_pool_init(&p, loop, DEFLATE_USED_MAX);
    struct deflater *v[5];
    for (int i = 0; i < 5; i++)
        v[i] = deflate_take(&p, DEFLATE_4K, 6);
    for (int i = 0; i < 5; i++)
        deflate_give(&p, v[i]);
    assert_int_equal(p.v[DEFLATE_4K].n, 5);
    void (*look)(struct deadline *) = p.look.fire;
    look(&p.look); /* they were needed since the last look */
    assert_int_equal(p.v[DEFLATE_4K].n, 5);
    deflate_give(&p, deflate_take(&p, DEFLATE_4K, 6));
    look(&p.look); /* only one was */
    assert_int_equal(p.v[DEFLATE_4K].n, 1);
    look(&p.look);
    assert_int_equal(p.v[DEFLATE_4K].n, 0);
    deflate_pool_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_in_use_are_bounded),
        cmocka_unit_test(a_used_one_is_like_a_new_one),
        cmocka_unit_test(what_nobody_needs_is_freed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
