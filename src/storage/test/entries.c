/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "storage/entries.h"

struct place {
    char path[64];
    int fd;
    struct entries_cache *cache;
};

static int setup(void **state)
{
    struct place *p = xcalloc(1, sizeof(*p));

    snprintf(p->path, sizeof(p->path), "/tmp/entries-test-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY);
    p->cache = entries_cache_new(1 << 20);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    entries_cache_free(p->cache);
    close(p->fd);
    nftw(p->path, scene_remove, 16, FTW_DEPTH | FTW_PHYS);
    free(p);
    return 0;
}

static void make(struct place *p, const char *name)
{
    size_t len = strlen(name);
    auto_free char *path = xstrndup(name, name[len - 1] == '/' ? len - 1 : len);

    if (name[len - 1] == '/')
        assert_int_equal(mkdirat(p->fd, path, 0777), 0);
    else
        close(openat(p->fd, path, O_CREAT | O_WRONLY, 0666));
}

static void folders_stand_where_their_name_and_slash_do(void **state)
{
    /* In order. */
    static const char *const names[] = {"common-",
                                        "common-a!",
                                        "common-a.b",
                                        "common-a/",
                                        "common-a0",
                                        "common-ab/",
                                        "common-ac",
                                        "common-longer-than-eight-a",
                                        "common-longer-than-eight-b"};
    struct place *p = *state;
    const struct entries *entries;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        make(p, names[(i * 5 + 3) % ARRAY_SIZE(names)]);
    assert_int_equal(entries_take(p->cache, p->fd, &entries, NULL), 0);
    assert_int_equal(entries->count, ARRAY_SIZE(names));
    for (size_t i = 0; i < entries->count; i++) {
        auto_free char *got =
            xasprintf("%s%s", entry_name(entries, i), entries->items[i].is_folder ? "/" : "");

        assert_string_equal(got, names[i]);
        assert_int_equal(entries_from(entries, names[i]), i);
        assert_int_equal(entries_after(entries, names[i]), i + 1);
    }
    assert_int_equal(entries_from(entries, ""), 0);
    assert_int_equal(entries_after(entries, "common-a/x"), 4);
    assert_int_equal(entries_from(entries, "z"), entries->count);
    entries_drop(p->cache, entries);
}

static void a_snapshot_is_kept_until_the_folder_changes(void **state)
{
    struct place *p = *state;
    const struct entries *young, *first, *second, *third;

    make(p, "a");
    assert_int_equal(entries_take(p->cache, p->fd, &young, NULL), 0);
    entries_drop(p->cache, young); /* too young to be kept */
    usleep(100000);
    assert_int_equal(entries_take(p->cache, p->fd, &first, NULL), 0);
    assert_int_equal(entries_take(p->cache, p->fd, &second, NULL), 0);
    assert_ptr_equal(first, second);
    make(p, "b");
    assert_int_equal(entries_take(p->cache, p->fd, &third, NULL), 0);
    assert_int_equal(third->count, 2);
    assert_int_equal(first->count, 1); /* still readable by who has it */
    entries_drop(p->cache, first);
    entries_drop(p->cache, second);
    entries_drop(p->cache, third);
}

static void what_does_not_fit_is_not_kept(void **state)
{
    struct place *p = *state;
    struct entries_cache *tiny = entries_cache_new(100);
    const struct entries *first, *second;

    make(p, "a");
    usleep(100000);
    assert_int_equal(entries_take(tiny, p->fd, &first, NULL), 0);
    assert_int_equal(entries_take(tiny, p->fd, &second, NULL), 0);
    assert_ptr_not_equal(first, second);
    entries_drop(tiny, first);
    entries_drop(tiny, second);
    entries_cache_free(tiny);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(folders_stand_where_their_name_and_slash_do),
        TEST(a_snapshot_is_kept_until_the_folder_changes),
        TEST(what_does_not_fit_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
