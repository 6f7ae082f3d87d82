/* SPDX-License-Identifier: MIT */
/* Basic credentials: what is understood, and what is not. */
#include "http/credentials.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void says(const char *value, const char *user, const char *password)
{
    struct credentials c;
    assert_true(credentials_parse(str_c(value), &c));
    assert_string_equal(c.user.p, user);
    assert_string_equal(c.password.p, password);
    assert_int_equal(c.user.n, strlen(user));
    assert_int_equal(c.password.n, strlen(password));
}

static void understood(void **state)
{
    (void)state;
    says("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame");
    says("bASIC   dGVzdDoxMjPCow==", "test", "123\xc2\xa3"); /* RFC 7617 §2.1 */
    says("Basic YTpiOmM6", "a", "b:c:");
    says("Basic YTo=", "a", "");
    says("Basic YTovLz8/+/8=", "a", "//??\xfb\xff");
}

static void refused(void **state)
{
    static const char *const bad[] = { "", "Basic", "Basic ", "BasicYTpi", "Digest YTpi", "Basic YTp", "Basic YTpi=", "Basic =TpiYQ==",
                                       "Basic YTpiYQ=", "Basic YTpiY===", "Basic YT=i", "Basic YTpiYR==", /* bits beyond the text */
                                       "Basic YQ==", "Basic OmI=", "Basic YTpi YTpi", "Basic YT-i", "Basic YT_i", "Basic YToA" };
    struct credentials c;
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
        if (credentials_parse(str_c(bad[i]), &c))
            fail_msg("%s", bad[i]);
}

static void as_long_as_there_is_room(void **state)
{
    char text[6 + (CREDENTIALS_MAX + 3) / 3 * 4] = "Basic YTo6";
    struct credentials c;
    (void)state;
    memset(text + 10, 'Y', sizeof text - 10);
    assert_true(credentials_parse(str_of(text, 6 + CREDENTIALS_MAX / 3 * 4), &c));
    assert_int_equal(c.password.n, CREDENTIALS_MAX - 2);
    assert_false(credentials_parse(str_of(text, sizeof text), &c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(understood),
        cmocka_unit_test(refused),
        cmocka_unit_test(as_long_as_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
