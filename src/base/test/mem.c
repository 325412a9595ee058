/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void allocators_never_give_null(void **state)
{
    void *all[] = {
        xmalloc(0), xcalloc(0, 8), xcalloc(8, 0), xrealloc(NULL, 0), xreallocarray(NULL, 0, 0),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        assert_non_null(all[i]);
        free(all[i]);
    }
}

static void copies_and_formats_are_the_callers(void **state)
{
    auto_free char *dup = xstrdup("abc");
    auto_free char *part = xstrndup("abcdef", 3);
    auto_free char *text = xasprintf("%s-%d", "n", 7);

    (void)state;
    assert_string_equal(dup, "abc");
    assert_string_equal(part, "abc");
    assert_string_equal(text, "n-7");
}

static void take_leaves_nothing_behind(void **state)
{
    auto_free char *text = xstrdup("kept");
    char *kept = take_ptr(&text);
    int fd = 5;

    (void)state;
    assert_null(text);
    assert_string_equal(kept, "kept");
    free(kept);
    assert_int_equal(take_fd(&fd), 5);
    assert_int_equal(fd, -1);
}

static int open_in_a_scope(void)
{
    auto_close int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void a_descriptor_closes_with_its_scope(void **state)
{
    int none = -1;
    int was = open_in_a_scope();

    (void)state;
    assert_int_equal(fcntl(was, F_GETFD), -1);
    mem_close_fd(&none);
}

static void arena_memory_is_zeroed_aligned_and_apart(void **state)
{
    static const size_t sizes[] = {1, 7, 16, 100, 3999, 4000, 4001, 1 << 20, 1, 3};
    autoptr(arena) arena = arena_new();
    unsigned char *blocks[ARRAY_SIZE(sizes)];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        blocks[i] = arena_alloc(arena, sizes[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(blocks[i][k], i + 1);
    }
}

static void arena_strings_live_as_long_as_the_arena(void **state)
{
    autoptr(arena) arena = arena_new();
    char *first = arena_strdup(arena, "first");
    char *part = arena_strndup(arena, "partial", 4);
    char *made = arena_printf(arena, "%s/%05d", "x", 42);

    (void)state;
    for (int i = 0; i < 10000; i++)
        assert_int_equal(strlen(arena_printf(arena, "%05d", i)), 5);
    assert_string_equal(first, "first");
    assert_string_equal(part, "part");
    assert_string_equal(made, "x/00042");
    assert_string_equal(arena_strdup(arena, ""), "");
}

static char order[4];

static void note(void *p)
{
    size_t len = strlen(order);

    order[len] = *(const char *)p;
    order[len + 1] = '\0';
}

static void deferred_calls_run_once_newest_first(void **state)
{
    struct arena *arena = arena_new();

    (void)state;
    order[0] = '\0';
    arena_defer(arena, note, arena_strdup(arena, "a"));
    arena_defer(arena, note, arena_strdup(arena, "b"));
    arena_defer(arena, note, arena_strdup(arena, "c"));
    assert_string_equal(order, "");
    arena_free(arena);
    assert_string_equal(order, "cba");
    arena_free(NULL);
}

struct pair {
    int first;
    int second;
};

static void container_of_finds_the_outer_struct(void **state)
{
    struct pair pair = {1, 2};

    (void)state;
    assert_ptr_equal(container_of(&pair.second, struct pair, second), &pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocators_never_give_null),
        cmocka_unit_test(copies_and_formats_are_the_callers),
        cmocka_unit_test(take_leaves_nothing_behind),
        cmocka_unit_test(a_descriptor_closes_with_its_scope),
        cmocka_unit_test(arena_memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(arena_strings_live_as_long_as_the_arena),
        cmocka_unit_test(deferred_calls_run_once_newest_first),
        cmocka_unit_test(container_of_finds_the_outer_struct),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
