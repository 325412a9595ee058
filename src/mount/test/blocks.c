/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct block *add(struct blocks *blocks, struct block_owner *owner, int64_t index)
{
    struct block *block = blocks_add(blocks, owner, 1, index, BLOCK_BYTES);

    block->state = BLOCK_READY;
    blocks_unpin(blocks, block);
    return block;
}

static void a_block_is_found_by_owner_version_and_place(void **state)
{
    autoptr(blocks) blocks = blocks_new(16 * BLOCK_BYTES);
    struct block_owner one = {0}, two = {0};
    struct block *block = add(blocks, &one, 7);

    (void)state;
    assert_ptr_equal(blocks_find(blocks, &one, 1, 7), block);
    assert_null(blocks_find(blocks, &one, 2, 7));
    assert_null(blocks_find(blocks, &one, 1, 8));
    assert_null(blocks_find(blocks, &two, 1, 7));
}

static void the_longest_unused_goes_first(void **state)
{
    autoptr(blocks) blocks = blocks_new(4 * BLOCK_BYTES);
    struct block_owner owner = {0};

    (void)state;
    for (int64_t i = 0; i < 4; i++)
        add(blocks, &owner, i);
    blocks_touch(blocks, blocks_find(blocks, &owner, 1, 0));
    add(blocks, &owner, 4);
    assert_non_null(blocks_find(blocks, &owner, 1, 0));
    assert_null(blocks_find(blocks, &owner, 1, 1));
    assert_int_equal(blocks_bytes(blocks), 4 * BLOCK_BYTES);
}

static void what_is_pinned_stays(void **state)
{
    autoptr(blocks) blocks = blocks_new(2 * BLOCK_BYTES);
    struct block_owner owner = {0};
    struct block *held = add(blocks, &owner, 0);

    (void)state;
    block_pin(held);
    for (int64_t i = 1; i < 6; i++)
        add(blocks, &owner, i);
    assert_ptr_equal(blocks_find(blocks, &owner, 1, 0), held);
    assert_true(blocks_bytes(blocks) <= 2 * BLOCK_BYTES);
    blocks_unpin(blocks, held);
}

static void a_dropped_block_lives_until_it_is_unpinned(void **state)
{
    autoptr(blocks) blocks = blocks_new(4 * BLOCK_BYTES);
    struct block_owner owner = {0};
    struct block *held = blocks_add(blocks, &owner, 1, 0, 100);

    (void)state;
    add(blocks, &owner, 1);
    blocks_drop_all(blocks, &owner);
    assert_null(owner.first);
    assert_int_equal(blocks_bytes(blocks), 0);
    held->data[99] = 'x';
    blocks_unpin(blocks, held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_found_by_owner_version_and_place),
        cmocka_unit_test(the_longest_unused_goes_first),
        cmocka_unit_test(what_is_pinned_stays),
        cmocka_unit_test(a_dropped_block_lives_until_it_is_unpinned),
    };

    return cmocka_run_group_tests_name("mount/blocks", tests, NULL, NULL);
}
