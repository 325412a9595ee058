/* Listings against a model: names are sorted and grouped by hand, and every page size must give
 * the same sequence.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <stdlib.h>

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What the listing must be; caller frees. */
static char *model(const char **names, size_t count, const char *prefix, const char *delimiter)
{
    struct str out = {0}, last = {0};

    qsort(names, count, sizeof(names[0]), by_bytes);
    for (size_t i = 0; i < count; i++) {
        const char *at;

        if (!str_starts(names[i], prefix))
            continue;
        at = *delimiter ? strstr(names[i] + strlen(prefix), delimiter) : NULL;
        if (!at) {
            str_addf(&out, "%s\n", names[i]);
            continue;
        }
        auto_free char *group = xstrndup(names[i], (size_t)(at - names[i]) + strlen(delimiter));
        if (strcmp(str_text(&last), group) == 0)
            continue;
        str_truncate(&last, 0);
        str_add(&last, group);
        str_addf(&out, "[%s]\n", group);
    }
    str_done(&last);
    return str_take(&out);
}

static void compare(struct scene *s, const char **names, size_t count)
{
    static const char *const prefixes[] = {"",   "a",  "a/",    "a/b", "b",  "a//", "/",
                                           "zz", "..", "a/../", ".",   "a.", "\xc3"};
    static const char *const delimiters[] = {"", "/", "b", "//", "."};
    static const size_t pages[] = {1, 2, 3, 7, 5000};

    for (size_t p = 0; p < ARRAY_SIZE(prefixes); p++) {
        for (size_t d = 0; d < ARRAY_SIZE(delimiters); d++) {
            auto_free char *want = model(names, count, prefixes[p], delimiters[d]);

            for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
                auto_free char *got = list_all(s, prefixes[p], delimiters[d], pages[i], false);

                if (strcmp(got, want) != 0)
                    fail_msg("prefix \"%s\" delimiter \"%s\" page %zu:\n%s-- not --\n%s",
                             prefixes[p], delimiters[d], pages[i], got, want);
            }
        }
    }
}

static void names_of_every_kind_come_in_byte_order_at_every_page_size(void **state)
{
    struct scene *s = *state;
    const char *names[] = {
        "a",       "a.b",  "a/b",   "a/c/d",  "a0",         "a/b.c",    "b/a",     "b/a/c",
        "a//b",    "/a",   "a/",    "..",     "../x",       "a/../b",   ".",       "./a",
        "b",       "b/",   "a/b/c", "A",      "\xc3\xa9/x", "\xc3\xa9", "a\nb",    "a b",
        "a%2Fb",   "a\\b", "~",     "bb/b/b", "bb/bb",      "x/y/z/1",  "x/y/z/2", "x/y.z",
        "x/y/z.1", "-",    "a-b/c", "a/b-/c",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        put_text(s, names[i], names[i]);
    compare(s, names, ARRAY_SIZE(names));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_text(s, names[i], names[i]);
    assert_sound(s);
    /* The other way round: other ones are odd now. */
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_int_equal(delete_name(s, names[i]), 0);
    for (size_t i = ARRAY_SIZE(names); i-- > 0;)
        put_text(s, names[i], names[i]);
    compare(s, names, ARRAY_SIZE(names));
    assert_sound(s);
}

static char *random_name(void)
{
    static const char *const parts[] = {"a", "b",  "c",  "ab", "a.b", "",
                                        ".", "..", "b-", "0",  "z"};
    struct str name = {0};
    int segments = 1 + rand() % 4;

    for (int i = 0; i < segments; i++) {
        if (i > 0)
            str_add_char(&name, '/');
        str_add(&name, parts[(size_t)rand() % ARRAY_SIZE(parts)]);
    }
    if (name.len == 0)
        str_add(&name, "/");
    return str_take(&name);
}

static bool remove_name(char **names, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(names[i], name) == 0) {
            free(names[i]);
            names[i] = names[--*count];
            return true;
        }
    }
    return false;
}

static void puts_and_deletes_in_any_order_agree_with_the_model(void **state)
{
    struct scene *s = *state;
    char *names[400];
    size_t count = 0;

    srand(7);
    for (int i = 0; i < 300; i++) {
        char *name = random_name();
        bool was_there = remove_name(names, &count, name);

        if (rand() % 3 == 0) {
            assert_int_equal(delete_name(s, name), was_there ? 0 : -1);
            free(name);
        } else {
            put_text(s, name, name);
            names[count++] = name;
        }
    }
    for (size_t i = 0; i < count; i++)
        assert_text(s, names[i], names[i]);
    compare(s, (const char **)names, count);
    assert_sound(s);
    while (count > 0) {
        assert_int_equal(delete_name(s, names[count - 1]), 0);
        free(names[--count]);
    }
    compare(s, (const char **)names, 0);
    /* Nothing stays behind, not even folders. */
    auto_free char *tree = scene_path(s, "tree"), *odd = scene_path(s, "odd");
    assert_int_equal(rmdir(tree), 0);
    assert_int_equal(rmdir(odd), 0);
}

static void a_change_between_pages_is_seen(void **state)
{
    struct scene *s = *state;
    auto_free char *before = NULL, *after = NULL;

    for (int i = 0; i < 50; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%02d", i);
        plant(s, "tree/x", "");
        put_text(s, name, "");
    }
    before = list_all(s, "n", "", 7, false);
    usleep(100000); /* now the folder's snapshot is kept ... */
    free(before);
    before = list_all(s, "n", "", 7, false);
    put_text(s, "n25a", "");
    after = list_all(s, "n", "", 7, false);
    assert_null(strstr(before, "n25a"));
    assert_non_null(strstr(after, "n25\nn25a\nn26\n")); /* ... and not believed any more */
}

static void planted_links_pipes_and_empty_folders_are_not_listed(void **state)
{
    struct scene *s = *state;
    auto_free char *link = scene_path(s, "tree/link"), *pipe = scene_path(s, "tree/pipe");
    auto_free char *empty = scene_path(s, "tree/empty"), *up = scene_path(s, "tree/up");
    auto_free char *bad = scene_path(s, "tree/bad\xff"),
                   *deep = scene_path(s, "tree/empty/deep");
    auto_free char *flat = NULL, *grouped = NULL;
    int fd;

    assert_int_equal(symlink("/etc/passwd", link), 0);
    assert_int_equal(symlink("/etc", up), 0);
    assert_int_equal(mkfifo(pipe, 0666), 0);
    assert_int_equal(mkdir(empty, 0777), 0);
    assert_int_equal(mkdir(deep, 0777), 0);
    fd = open(bad, O_CREAT | O_WRONLY, 0666);
    assert_true(fd >= 0);
    close(fd);
    put_text(s, "good", "");
    flat = list_all(s, "", "", 10, false);
    grouped = list_all(s, "", "/", 10, false);
    assert_string_equal(flat, "good\n");
    assert_string_equal(grouped, "good\n");
    assert_text(s, "link", NULL);
    assert_text(s, "up/passwd", NULL);
    assert_text(s, "pipe", NULL);
    assert_text(s, "empty", NULL);
}

struct facts_seen {
    int count;
    char etag[24], type[32], md5[32];
};

static void note_facts(const struct blob *blob, void *context)
{
    struct facts_seen *seen = context;

    seen->count++;
    snprintf(seen->etag, sizeof(seen->etag), "%s", blob->etag);
    snprintf(seen->type, sizeof(seen->type), "%s",
             blob->headers.content_type ? blob->headers.content_type : "");
    snprintf(seen->md5, sizeof(seen->md5), "%s",
             blob->headers.content_md5 ? blob->headers.content_md5 : "");
}

static void a_listing_tells_the_same_facts_as_a_look(void **state)
{
    struct scene *s = *state;
    const char *names[] = {"plain", "x//odd", "by-mount", "a/deep"};

    put_text(s, "plain", "1");
    put_text(s, "plain", "2");
    put_text(s, "x//odd", "3");
    put_text(s, "a/deep", "4");
    plant(s, "tree/by-mount", "5");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct facts_seen seen = {0};
        struct blob_listing listing = {
            .prefix = names[i],
            .delimiter = "",
            .marker = "",
            .most = 10,
            .blob = note_facts,
            .context = &seen,
        };
        autoptr(blob) blob = find(s, names[i]);
        auto_free char *next = NULL;

        assert_int_equal(blobs_list(s->blobs, ACCOUNT, CONTAINER, &listing, &next, &s->e), 0);
        assert_int_equal(seen.count, 1);
        assert_string_equal(seen.etag, blob->etag);
        assert_string_equal(seen.md5,
                            blob->headers.content_md5 ? blob->headers.content_md5 : "");
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(names_of_every_kind_come_in_byte_order_at_every_page_size),
        TEST(puts_and_deletes_in_any_order_agree_with_the_model),
        TEST(a_change_between_pages_is_seen),
        TEST(planted_links_pipes_and_empty_folders_are_not_listed),
        TEST(a_listing_tells_the_same_facts_as_a_look),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
