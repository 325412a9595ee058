/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void the_check_value_of_the_standard_comes_out(void **state)
{
    (void)state;
    assert_int_equal(crc64(0, "123456789", 9), 0xae8b14860a799888);
    assert_int_equal(crc64(0, "", 0), 0);
}

static void parts_in_a_row_are_the_whole(void **state)
{
    unsigned char bytes[1000];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 31 + i / 7);
    for (size_t cut = 0; cut < 40; cut++)
        assert_int_equal(crc64(crc64(0, bytes, cut), bytes + cut, sizeof(bytes) - cut),
                         crc64(0, bytes, sizeof(bytes)));
    bytes[500] ^= 1;
    assert_int_not_equal(crc64(0, bytes, 500), crc64(0, bytes, sizeof(bytes)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_check_value_of_the_standard_comes_out),
        cmocka_unit_test(parts_in_a_row_are_the_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
