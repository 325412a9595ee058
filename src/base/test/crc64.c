/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc64.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void known_answers(void **state)
{
    static const struct {
        const char *text;
        uint64_t crc;
    } table[] = {
        {"", 0},
        {"123456789", 0xae8b14860a799888},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_true(crc64(0, table[i].text, strlen(table[i].text)) == table[i].crc);
}

/* A bit at a time, from the definition. */
static uint64_t slowly(const unsigned char *p, size_t len)
{
    uint64_t crc = ~0ull;

    for (; len > 0; len--, p++) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0x9a6c9329ac4bc9b5ull : 0);
    }
    return ~crc;
}

static void any_length_at_any_cut_agrees_with_the_definition(void **state)
{
    unsigned char bytes[100];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 37 + 11);
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        uint64_t want = slowly(bytes, len);

        for (size_t cut = 0; cut <= len; cut += 3)
            assert_true(crc64(crc64(0, bytes, cut), bytes + cut, len - cut) == want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(any_length_at_any_cut_agrees_with_the_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
