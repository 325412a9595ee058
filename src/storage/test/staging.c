/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "storage/blocks.h"

enum {
    NAMES = 5000, /* several in each bucket */
};

static void hash_of(int number, char hash[NAME_HASH_BYTES])
{
    char name[16];

    snprintf(name, sizeof(name), "name%d", number);
    name_hash(name, hash);
}

static void names_are_counted_apart(void **state)
{
    struct staging *staging = staging_new();
    struct staged_count known = {0};
    char hash[NAME_HASH_BYTES];

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < NAMES; i++) {
            const struct staged_count none = {0};

            hash_of(i, hash);
            staging_begin(staging, i % 2, hash, &none); /* counts the first time only */
            staging_add(staging, i % 2, hash, (size_t)i);
        }
    }
    for (int i = 0; i < NAMES; i++) {
        hash_of(i, hash);
        assert_false(staging_find(staging, 7, hash, &known));
        assert_true(staging_find(staging, i % 2, hash, &known));
        assert_int_equal(known.count, 3);
        assert_int_equal(known.id_len, i);
        staging_forget(staging, i % 2, hash);
        assert_false(staging_find(staging, i % 2, hash, &known));
    }
    staging_free(staging);
}

static void too_many_names_are_forgotten_not_kept(void **state)
{
    struct staging *staging = staging_new();
    const struct staged_count one = {1, 4};
    struct staged_count known;
    char hash[NAME_HASH_BYTES];
    int left = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        hash_of(i, hash);
        staging_begin(staging, 1, hash, &one);
    }
    for (int i = 0; i < 20000; i++) {
        hash_of(i, hash);
        left += staging_find(staging, 1, hash, &known);
    }
    assert_true(left > 0 && left <= 16384);
    staging_free(staging);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_counted_apart),
        cmocka_unit_test(too_many_names_are_forgotten_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
