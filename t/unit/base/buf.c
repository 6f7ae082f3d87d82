/* SPDX-License-Identifier: MIT */
/* The output queue against a plain byte-array model, and the life of leases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/uio.h>

#include "base/buf.h"

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

static unsigned released;

static void release(void *arg)
{
    (void)arg;
    released++;
}

static struct chunk file_chunk(uint64_t off, uint64_t n)
{
    return (struct chunk){ .kind = CHUNK_FILE, .fd = 77, .off = off, .n = n, .lease = { .release = release } };
}

static void memory_in_is_memory_out(void **state)
{
    (void)state;
    struct block_pool pool;
    block_pool_init(&pool, 128, 8);
    struct buf b = { 0 };
    char model[4096], data[300];
    size_t head = 0, tail = 0;
    srand(1);
    for (int step = 0; step < 5000; step++) {
        size_t n = (size_t)rand() % sizeof data;
        if (tail + n <= sizeof model) {
            for (size_t i = 0; i < n; i++)
                data[i] = model[tail + i] = (char)rand();
            assert_true(buf_add(&b, &pool, str_of(data, n)));
            tail += n;
        }
        assert_int_equal(b.n, tail - head);
        struct iovec iov[64];
        int count = buf_iov(&b, iov, 64);
        size_t at = head;
        for (int i = 0; i < count; i++) {
            assert_true(iov[i].iov_len > 0);
            assert_memory_equal(iov[i].iov_base, model + at, iov[i].iov_len);
            at += iov[i].iov_len;
        }
        assert_int_equal(at, tail);
        assert_int_equal(buf_iov(&b, iov, 1), tail > head ? 1 : 0);
        size_t skip = tail > head ? (size_t)rand() % (tail - head + 1) : 0;
        buf_skip(&b, &pool, skip);
        head += skip;
        if (head == tail) {
            assert_null(b.first);
            assert_null(b.last);
            head = tail = 0;
        }
    }
    buf_clear(&b, &pool);
    assert_int_equal(b.n, 0);
    assert_null(b.first);
    block_pool_free(&pool);
}

static void small_pieces_share_a_block(void **state)
{
    (void)state;
    struct block_pool pool;
    block_pool_init(&pool, 1024, 8);
    struct buf b = { 0 };
    for (int i = 0; i < 10; i++)
        assert_true(buf_add(&b, &pool, STR("0123456789")));
    struct chunk c = buf_peek(&b);
    assert_int_equal(c.kind, CHUNK_MEMORY);
    assert_int_equal(c.n, 100);
    assert_memory_equal(c.p + 90, "0123456789", 10);
    buf_clear(&b, &pool);
    block_pool_free(&pool);
}

/* Pieces of any size are read once each, in order, while more is added behind. */
static void a_place_moves_over_what_stays(void **state)
{
    (void)state;
    struct block_pool pool;
    block_pool_init(&pool, 128, 8);
    struct buf b = { 0 };
    struct buf_at at = { 0 }, second;
    struct iovec iov[3];
    char model[3000];
    size_t added = 0, read = 0;
    assert_int_equal(buf_iov_from(&b, &at, iov, 3), 0);
    for (int round = 0; read < sizeof model; round++) {
        size_t more = (size_t)rand() % 150;
        more = more < sizeof model - added ? more : sizeof model - added;
        for (size_t i = 0; i < more; i++)
            model[added + i] = (char)rand();
        assert_true(buf_add(&b, &pool, str_of(model + added, more)));
        added += more;
        second = (struct buf_at){ 0 };
        assert_int_equal(buf_iov_from(&b, &second, iov, 1), added > 0);
        if (added > 0)
            assert_memory_equal(iov[0].iov_base, model, iov[0].iov_len);
        int n = round % 3 == 0 ? 0 : buf_iov_from(&b, &at, iov, 1 + rand() % 3);
        for (int i = 0; i < n; i++) {
            assert_true(iov[i].iov_len > 0);
            assert_memory_equal(iov[i].iov_base, model + read, iov[i].iov_len);
            read += iov[i].iov_len;
        }
        assert_true(read <= added);
    }
    assert_int_equal(buf_iov_from(&b, &at, iov, 3), 0);
    assert_int_equal(b.n, sizeof model);
    buf_skip(&b, &pool, 100); /* a new beginning */
    at = (struct buf_at){ 0 };
    assert_int_equal(buf_iov_from(&b, &at, iov, 1), 1);
    assert_memory_equal(iov[0].iov_base, model + 100, iov[0].iov_len);
    buf_clear(&b, &pool);
    block_pool_free(&pool);
}

static void ranges_and_memory_keep_their_order(void **state)
{
    (void)state;
    struct block_pool pool;
    block_pool_init(&pool, 256, 8);
    struct buf b = { 0 };
    released = 0;
    assert_true(buf_add(&b, &pool, STR("head")));
    assert_true(buf_add_file(&b, &pool, file_chunk(1000, 50)));
    assert_true(buf_add(&b, &pool, STR("tail")));
    assert_int_equal(b.n, 58);
    struct iovec iov[4];
    assert_int_equal(buf_iov(&b, iov, 4), 1); /* stops at the range */
    assert_int_equal(iov[0].iov_len, 4);

    buf_skip(&b, &pool, 14);
    struct chunk c = buf_peek(&b);
    assert_int_equal(c.kind, CHUNK_FILE);
    assert_int_equal(c.fd, 77);
    assert_int_equal(c.off, 1010);
    assert_int_equal(c.n, 40);
    assert_int_equal(buf_iov(&b, iov, 4), 0);
    assert_int_equal(released, 0);

    buf_skip(&b, &pool, 40);
    assert_int_equal(released, 1);
    c = buf_peek(&b);
    assert_true(str_eq(str_of(c.p, (size_t)c.n), STR("tail")));
    buf_clear(&b, &pool);
    assert_int_equal(released, 1);
    c = buf_peek(&b);
    assert_int_equal(c.n, 0);
    block_pool_free(&pool);
}

static void a_lease_ends_once_however_it_ends(void **state)
{
    (void)state;
    struct block_pool pool;
    block_pool_init(&pool, 256, 8);
    struct buf b = { 0 };
    released = 0;
    assert_true(buf_add_file(&b, &pool, file_chunk(0, 0))); /* nothing to keep */
    assert_int_equal(released, 1);
    assert_null(b.first);
    assert_true(buf_add_file(&b, &pool, file_chunk(0, 10)));
    assert_true(buf_add_file(&b, &pool, file_chunk(10, 10)));
    buf_skip(&b, &pool, 15);
    assert_int_equal(released, 2);
    buf_clear(&b, &pool);
    assert_int_equal(released, 3);
    buf_clear(&b, &pool);
    assert_int_equal(released, 3);
    struct chunk without = { .kind = CHUNK_FILE, .fd = 1, .n = 5 };
    assert_true(buf_add_file(&b, &pool, without));
    buf_clear(&b, &pool);
    block_pool_free(&pool);
}

static void blocks_go_back_to_the_pool(void **state)
{
    (void)state;
    if (WEIR_SANITIZER)
        skip();
    struct block_pool pool;
    block_pool_init(&pool, 4096, 8);
    struct buf b = { 0 };
    static const char zeros[10000];
    assert_true(buf_add(&b, &pool, str_of(zeros, sizeof zeros)));
    buf_skip(&b, &pool, 9000);
    assert_int_equal(pool.n_free, 2);
    buf_skip(&b, &pool, 1000);
    assert_int_equal(pool.n_free, 3);
    block_pool_free(&pool);
}

static void out_of_memory_adds_nothing(void **state)
{
    (void)state;
    struct block_pool pool;
    block_pool_init(&pool, 256, 0);
    struct buf b = { 0 };
    released = 0;
    assert_true(buf_add(&b, &pool, STR("before")));
    static const char data[2000];
    allocations_left = 3; /* of the nine blocks it would take */
    assert_false(buf_add(&b, &pool, str_of(data, sizeof data)));
    assert_int_equal(b.n, 6);
    allocations_left = 0;
    assert_false(buf_add_file(&b, &pool, file_chunk(0, 10)));
    assert_int_equal(released, 1); /* the lease is not lost */
    assert_int_equal(b.n, 6);
    assert_true(buf_add(&b, &pool, STR(", after"))); /* fits into the block that is there */
    allocations_left = -1;
    struct chunk c = buf_peek(&b);
    assert_true(str_eq(str_of(c.p, (size_t)c.n), STR("before, after")));
    buf_clear(&b, &pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_in_is_memory_out),
        cmocka_unit_test(small_pieces_share_a_block),
        cmocka_unit_test(ranges_and_memory_keep_their_order),
        cmocka_unit_test(a_lease_ends_once_however_it_ends),
        cmocka_unit_test(blocks_go_back_to_the_pool),
        cmocka_unit_test(a_place_moves_over_what_stays),
        cmocka_unit_test(out_of_memory_adds_nothing),
    };
    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
