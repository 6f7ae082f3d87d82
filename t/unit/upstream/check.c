/* SPDX-License-Identifier: MIT */
/* What one result more of a check means: up after `rise` good ones in a row, down after `fall` bad ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "upstream/check.h"

/* results: + and -; wanted: what each changes, "." for nothing, U and D. */
static void run(struct check_run *r, unsigned rise, unsigned fall, const char *results, const char *wanted)
{
    const struct health_conf health = { .rise = rise, .fall = fall };
    static const char letters[] = { [CHECK_SAME] = '.', [CHECK_UP] = 'U', [CHECK_DOWN] = 'D' };
    for (unsigned i = 0; results[i] != '\0'; i++) {
        enum check_change change = check_count(r, results[i] == '+', &health);
        if (letters[change] != wanted[i])
            fail_msg("%s at %u: %c, not %c", results, i, letters[change], wanted[i]);
    }
}

static void down_and_up(void **state)
{
    (void)state;
    run(&(struct check_run){ 0 }, 2, 3, "++++++", "......");
    run(&(struct check_run){ 0 }, 2, 3, "---", "..D");
    run(&(struct check_run){ 0 }, 2, 3, "--+--+---", "........D");
    run(&(struct check_run){ 0 }, 2, 3, "-----", "..D..");
    run(&(struct check_run){ 0 }, 2, 3, "---+-+-++++", "..D.....U..");
    run(&(struct check_run){ 0 }, 1, 1, "-+-+", "DUDU");
    run(&(struct check_run){ 0 }, 1, 1, "--++--", "D.U.D.");
}

/* A reload changes the numbers and keeps what is known. */
static void other_numbers(void **state)
{
    (void)state;
    struct check_run r = { 0 };
    run(&r, 2, 5, "---", "...");
    run(&r, 2, 2, "+", ".");
    run(&r, 2, 2, "--", ".D");
    run(&r, 5, 2, "++++", "....");
    run(&r, 1, 2, "+", "U");
    run(&r, 1, 2, "--", ".D");
    assert_true(r.is_down);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(down_and_up),
        cmocka_unit_test(other_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
