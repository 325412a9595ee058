/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

static void which_names_are_paths(void **state)
{
    static const struct {
        const char *name;
        bool is_path;
    } table[] = {
        {"a", true},    {"a/b", true},   {"a.b", true},   {"...", true},   {".a", true},
        {"a..", true},  {"a b\n", true}, {"a\\b", true},  {"", false},     {"/", false},
        {"/a", false},  {"a/", false},   {"a//b", false}, {".", false},    {"..", false},
        {"./a", false}, {"a/.", false},  {"a/..", false}, {"../a", false}, {"a/../b", false},
    };
    char segment[300];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (name_is_path(table[i].name) != table[i].is_path)
            fail_msg("\"%s\"", table[i].name);
    }
    memset(segment, 'x', sizeof(segment));
    segment[256] = '\0';
    assert_false(name_is_path(segment));
    segment[255] = '\0';
    assert_true(name_is_path(segment));
}

static void a_blob_and_one_below_it_live_together_in_any_order(void **state)
{
    static const char *const orders[][3] = {
        {"a", "a/b", "a/b/c"}, {"a/b/c", "a/b", "a"}, {"a/b", "a", "a/b/c"},
        {"a", "a/b/c", "a/b"}, {"a/b/c", "a", "a/b"}, {"a/b", "a/b/c", "a"},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(orders); k++) {
            for (int n = 0; n < 3; n++)
                put_text(s, orders[i][n], orders[i][n]);
            for (int n = 0; n < 3; n++) {
                /* The rest is there after each delete, and can be written again. */
                assert_int_equal(delete_name(s, orders[k][n]), 0);
                assert_text(s, orders[k][n], NULL);
                for (int m = n + 1; m < 3; m++) {
                    assert_text(s, orders[k][m], orders[k][m]);
                    put_text(s, orders[k][m], orders[k][m]);
                }
            }
            assert_false(is_there(s, "tree/a"));
        }
    }
    assert_sound(s);
}

static void a_name_comes_back_to_the_tree_when_its_path_is_free(void **state)
{
    struct scene *s = *state;

    put_text(s, "a", "file");
    put_text(s, "a/b", "odd");
    assert_false(is_there(s, "tree/a/b"));
    assert_int_equal(delete_name(s, "a"), 0);
    put_text(s, "a/b", "in the tree");
    assert_true(is_there(s, "tree/a/b"));
    assert_text(s, "a/b", "in the tree");
    assert_int_equal(delete_name(s, "a/b"), 0);
    assert_text(s, "a/b", NULL); /* the odd one does not come up again */
}

static void deleting_removes_empty_folders_but_no_other(void **state)
{
    struct scene *s = *state;

    put_text(s, "a/b/c/d", "1");
    put_text(s, "a/x", "2");
    assert_int_equal(delete_name(s, "a/b/c/d"), 0);
    assert_false(is_there(s, "tree/a/b"));
    assert_true(is_there(s, "tree/a/x"));
    assert_int_equal(delete_name(s, "a/x"), 0);
    assert_false(is_there(s, "tree/a"));
    assert_true(is_there(s, "tree"));
}

static void planted_things_are_no_blobs_and_do_not_block(void **state)
{
    struct scene *s = *state;
    auto_free char *pipe = scene_path(s, "tree/pipe"), *link = scene_path(s, "tree/link");
    auto_free char *up = scene_path(s, "tree/up"), *sock = scene_path(s, "tree/sock");
    auto_free char *outside = xasprintf("%s/outside", s->folder);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_int_equal(mkfifo(pipe, 0666), 0);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    assert_int_equal(mkdir(outside, 0777), 0);
    assert_int_equal(symlink(outside, up), 0);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", sock);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    close(fd);
    assert_text(s, "pipe", NULL);
    assert_text(s, "link", NULL);
    assert_text(s, "sock", NULL);
    assert_text(s, "up/x", NULL);
    assert_refused(s, delete_name(s, "link"), "BlobNotFound");
    /* A put takes the place of the thing itself, never of what it points to. */
    put_text(s, "link", "mine");
    put_text(s, "pipe", "mine");
    put_text(s, "up/x", "beside");
    assert_text(s, "link", "mine");
    assert_text(s, "pipe", "mine");
    assert_text(s, "up/x", "beside");
    assert_int_equal(rmdir(outside), 0); /* is empty */
}

/* --- a job that swaps a folder for a link while requests run --- */

enum {
    TRIES = 10000,
};

struct swapper {
    char *folder, *aside, *link;
    atomic_bool stop;
};

static void *swap_all_the_time(void *arg)
{
    struct swapper *w = arg;

    while (!w->stop) {
        rename(w->folder, w->aside);
        rename(w->link, w->folder);
        rename(w->folder, w->link);
        rename(w->aside, w->folder);
    }
    return NULL;
}

static void no_request_follows_a_link_swapped_in(void **state)
{
    struct scene *s = *state;
    auto_free char *outside = xasprintf("%s/outside", s->folder);
    auto_free char *canary = xasprintf("%s/secret", outside);
    struct swapper w = {.folder = scene_path(s, "tree/dir"),
                        .aside = scene_path(s, "tree/aside"),
                        .link = scene_path(s, "tree/link")};
    auto_free char *content = NULL;
    pthread_t thread;
    int seen = 0;

    assert_int_equal(mkdir(outside, 0777), 0);
    FILE *f = fopen(canary, "w");
    fputs("secret", f);
    fclose(f);
    put_text(s, "dir/secret", "public");
    assert_int_equal(symlink(outside, w.link), 0);
    pthread_create(&thread, NULL, swap_all_the_time, &w);
    for (int i = 0; i < TRIES; i++) {
        auto_free char *text = get_text(s, "dir/secret");

        if (text) {
            assert_string_equal(text, "public");
            seen++;
        }
        if (i % 50 == 0) {
            auto_free char *list = list_all(s, "dir/", "", 100, false);

            put_if(s, "dir/other", "x", NULL, NULL);
            delete_name(s, "dir/other");
            delete_name(s, "dir/secret2");
            assert_true(strlen(list) < 100);
        }
    }
    w.stop = true;
    pthread_join(thread, NULL);
    assert_true(seen > 0);
    content = xcalloc(1, 16);
    f = fopen(canary, "r");
    assert_non_null(f);
    assert_int_equal(fread(content, 1, 15, f), 6);
    fclose(f);
    assert_string_equal(content, "secret");
    assert_int_equal(unlink(canary), 0);
    assert_int_equal(rmdir(outside), 0); /* nothing was put there */
    free(w.folder);
    free(w.aside);
    free(w.link);
}

/* --- puts against deletes that prune their folders --- */

struct worker {
    struct scene *s;
    const char *name;
    int failures;
};

static void *put_and_delete(void *arg)
{
    struct worker *w = arg;
    const struct blob_address at = at_name(w->name);
    const struct blob_put put = {0};

    for (int i = 0; i < 60; i++) {
        struct upload *upload = NULL;
        struct err e = {0};

        upload_begin(w->s->blobs, ACCOUNT, CONTAINER, &upload, &e);
        w->failures += blobs_put(w->s->blobs, &at, upload, &put, NULL, NULL, &e) < 0;
        upload_free(upload);
        w->failures += blobs_delete(w->s->blobs, &at, SNAPSHOTS_REFUSE, NULL, &e) < 0;
    }
    return NULL;
}

static void puts_and_pruning_deletes_do_not_disturb_each_other(void **state)
{
    static const char *const names[] = {"p/q/a", "p/q/b", "p/c", "p"};
    struct scene *s = *state;
    struct worker workers[ARRAY_SIZE(names)];
    pthread_t threads[ARRAY_SIZE(names)];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        workers[i] = (struct worker){s, names[i], 0};
        pthread_create(&threads[i], NULL, put_and_delete, &workers[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_sound(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_names_are_paths),
        TEST(a_blob_and_one_below_it_live_together_in_any_order),
        TEST(a_name_comes_back_to_the_tree_when_its_path_is_free),
        TEST(deleting_removes_empty_folders_but_no_other),
        TEST(planted_things_are_no_blobs_and_do_not_block),
        TEST(no_request_follows_a_link_swapped_in),
        TEST(puts_and_pruning_deletes_do_not_disturb_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
