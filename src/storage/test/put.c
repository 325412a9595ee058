/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "base/json.h"

#include <pthread.h>

static void what_was_put_is_found_with_its_facts(void **state)
{
    struct scene *s = *state;
    auto_json json_t *metadata = json_pack("{ss}", "kind", "cat");
    const struct blob_put put = {.headers = {.content_type = (char *)"text/plain"},
                                 .metadata = metadata,
                                 .tier = "Cool"};
    const struct blob_address at = at_name("dir/a.txt");
    autoptr(blob) blob = NULL, *again = NULL;
    autoptr(upload) upload = upload_of(s, "hello");

    assert_int_equal(blobs_put(s->blobs, &at, upload, &put, NULL, &blob, &s->e), 0);
    assert_text(s, "dir/a.txt", "hello");
    again = find(s, "dir/a.txt");
    assert_string_equal(again->etag, blob->etag);
    assert_string_equal(again->headers.content_type, "text/plain");
    assert_string_equal(again->headers.content_md5, "XUFAKrxLKna5cZ2REBfFkg==");
    assert_string_equal(json_string_value(json_object_get(again->metadata, "kind")), "cat");
    assert_string_equal(again->tier, "Cool");
    assert_int_equal(again->size_bytes, 5);
    assert_true(is_there(s, "tree/dir/a.txt"));
}

static void an_etag_is_0x_and_upper_hex(void **state)
{
    struct scene *s = *state;
    autoptr(blob) with_row = NULL, *without = NULL;

    put_text(s, "a", "1");
    plant(s, "tree/b", "1");
    with_row = find(s, "a");
    without = find(s, "b");
    for (int i = 0; i < 2; i++) {
        const char *etag = i ? with_row->etag : without->etag;

        assert_true(str_starts(etag, "0x8"));
        assert_true(strlen(etag) >= 17);
        assert_int_equal(strspn(etag + 2, "0123456789ABCDEF"), strlen(etag + 2));
    }
}

static void everything_survives_a_restart(void **state)
{
    struct scene *s = *state;
    autoptr(blob) before = NULL, *after = NULL;

    put_text(s, "a/b", "1");
    put_text(s, "a/b", "22");
    put_text(s, "x//y", "odd");
    before = find(s, "a/b");
    scene_reopen(s);
    after = find(s, "a/b");
    assert_string_equal(before->etag, after->etag);
    assert_text(s, "a/b", "22");
    assert_text(s, "x//y", "odd");
    assert_sound(s);
}

static void a_file_written_through_a_mount_is_a_blob_at_once(void **state)
{
    struct scene *s = *state;
    autoptr(blob) blob = NULL;

    plant(s, "tree/log.txt", "by hand");
    assert_text(s, "log.txt", "by hand");
    blob = find(s, "log.txt");
    assert_int_equal(blob->type, BLOB_BLOCK);
    assert_null(blob->headers.content_md5);
    assert_int_equal(json_object_size(blob->metadata), 0);
    assert_true(blob->modified_ms > 0 && blob->created_ms > 0);
}

static void a_file_replaced_through_a_mount_has_none_of_the_old_facts(void **state)
{
    struct scene *s = *state;
    auto_free char *from = scene_path(s, "tree/new"), *to = scene_path(s, "tree/a");
    autoptr(blob) before = NULL, *after = NULL;

    put_text(s, "a", "12345");
    before = find(s, "a");
    plant(s, "tree/new", "67890");
    assert_int_equal(rename(from, to), 0);
    after = find(s, "a");
    assert_null(after->headers.content_md5);
    assert_string_not_equal(before->etag, after->etag);
}

static void a_file_changed_in_place_keeps_type_and_metadata_but_not_md5_and_etag(void **state)
{
    struct scene *s = *state;
    auto_json json_t *metadata = json_pack("{ss}", "kind", "cat");
    const struct blob_put put = {.headers = {.content_type = (char *)"text/plain"},
                                 .metadata = metadata};
    const struct blob_address at = at_name("a");
    autoptr(upload) upload = upload_of(s, "hello");
    autoptr(blob) before = NULL, *after = NULL;

    assert_int_equal(blobs_put(s->blobs, &at, upload, &put, NULL, &before, &s->e), 0);
    plant(s, "tree/a", "other bytes");
    after = find(s, "a");
    assert_string_equal(after->headers.content_type, "text/plain");
    assert_int_equal(json_object_size(after->metadata), 1);
    assert_null(after->headers.content_md5);
    assert_string_not_equal(before->etag, after->etag);
    assert_int_equal(after->size_bytes, 11);
    assert_text(s, "a", "other bytes");
}

static void a_restored_copy_has_its_facts_again(void **state)
{
    struct scene *s = *state;
    const struct blob_put put = {.headers = {.content_type = (char *)"text/plain"}};
    const struct blob_address at = at_name("a");
    auto_free char *file = scene_path(s, "tree/a"), *copy = scene_path(s, "tree/copy");
    autoptr(upload) upload = upload_of(s, "hello");
    autoptr(blob) before = NULL, *after = NULL;
    struct stat st;

    assert_int_equal(blobs_put(s->blobs, &at, upload, &put, NULL, &before, &s->e), 0);
    assert_int_equal(stat(file, &st), 0);
    const struct timespec times[] = {st.st_atim, st.st_mtim};
    plant(s, "tree/copy", "hello");
    assert_int_equal(utimensat(AT_FDCWD, copy, times, 0), 0);
    assert_int_equal(rename(copy, file), 0); /* another inode, else the same */
    after = find(s, "a");
    assert_string_equal(after->etag, before->etag);
    assert_string_equal(after->headers.content_type, "text/plain");
    assert_sound(s);
}

static void half_an_upload_is_invisible_and_leaves_nothing(void **state)
{
    struct scene *s = *state;
    struct upload *upload = upload_of(s, "half");
    auto_free char *names = NULL, *tmp = scene_path(s, "tmp");

    names = list_all(s, "", "", 10, false);
    assert_string_equal(names, "");
    upload_free(upload);
    assert_int_equal(rmdir(tmp), 0); /* is empty */
    assert_int_equal(mkdir(tmp, 0777), 0);
}

static void only_one_of_many_wins_if_none_match(void **state);

enum {
    RACERS = 8,
    ROUNDS = 10,
};

struct racer {
    struct scene *s;
    char name[16];
    int number, rc;
    struct err e;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    const struct conditions only_new = {.if_none_match = "*"};
    const struct blob_address at = at_name(r->name);
    const struct blob_put put = {0};
    struct upload *upload = NULL;

    if (upload_begin(r->s->blobs, ACCOUNT, CONTAINER, &upload, &r->e) < 0)
        return NULL;
    upload_write(upload, "x", 1, &r->e);
    r->rc = blobs_put(r->s->blobs, &at, upload, &put, &only_new, NULL, &r->e);
    upload_free(upload);
    return NULL;
}

static void only_one_of_many_wins_if_none_match(void **state)
{
    struct scene *s = *state;

    for (int round = 0; round < ROUNDS; round++) {
        struct racer racers[RACERS];
        pthread_t threads[RACERS];
        int won = 0;

        for (int i = 0; i < RACERS; i++) {
            racers[i] = (struct racer){.s = s, .number = i, .rc = -2};
            snprintf(racers[i].name, sizeof(racers[i].name), "race%d", round);
            pthread_create(&threads[i], NULL, race, &racers[i]);
        }
        for (int i = 0; i < RACERS; i++) {
            pthread_join(threads[i], NULL);
            won += racers[i].rc == 0;
            if (racers[i].rc != 0)
                assert_string_equal(err_reason_of(&racers[i].e), "BlobAlreadyExists");
        }
        assert_int_equal(won, 1);
    }
}

static void a_name_too_long_or_deep_is_refused(void **state)
{
    struct scene *s = *state;
    char name[1100];

    memset(name, 'x', sizeof(name));
    name[1025] = '\0';
    assert_refused(s, put_if(s, name, "1", NULL, NULL), "OutOfRangeInput");
    name[1024] = '\0';
    put_text(s, name, "long");
    assert_text(s, name, "long");
    for (int i = 0; i < 255; i++)
        memcpy(name + 2 * i, "a/", 2);
    memcpy(name + 510, "b", 2);
    assert_refused(s, put_if(s, name, "1", NULL, NULL), "OutOfRangeInput");
    memmove(name, name + 4, 508);
    put_text(s, name, "deep");
    assert_text(s, name, "deep");
    assert_refused(s, put_if(s, "\xff", "1", NULL, NULL), "InvalidUri");
    assert_refused(s, put_if(s, "", "1", NULL, NULL), "OutOfRangeInput");
}

static void a_missing_container_is_told(void **state)
{
    struct scene *s = *state;
    struct upload *upload = NULL;
    const struct blob_address at = {ACCOUNT, "nowhere", "a", NULL};
    struct blob *blob = NULL;

    assert_refused(s, upload_begin(s->blobs, ACCOUNT, "nowhere", &upload, &s->e),
                   "ContainerNotFound");
    assert_refused(s, blobs_find(s->blobs, &at, NULL, &blob, NULL, NULL, &s->e),
                   "ContainerNotFound");
}

static void append_and_page_blobs_begin_empty_and_of_zeros(void **state)
{
    struct scene *s = *state;
    const struct blob_put put = {0};
    const struct blob_address log = at_name("log"), disk = at_name("disk");
    autoptr(blob) a = NULL, *p = NULL;

    assert_int_equal(blobs_create(s->blobs, &log, BLOB_APPEND, 0, &put, NULL, &a, &s->e), 0);
    assert_int_equal(blobs_create(s->blobs, &disk, BLOB_PAGE, 1024, &put, NULL, &p, &s->e), 0);
    assert_int_equal(a->type, BLOB_APPEND);
    assert_int_equal(p->size_bytes, 1024);
    assert_text(s, "log", "");
    assert_refused(s, blobs_create(s->blobs, &disk, BLOB_PAGE, 1000, &put, NULL, NULL, &s->e),
                   "InvalidHeaderValue");
}

static void numbered_names_do_not_wait_for_each_other(void **state)
{
    struct scene *s = *state;
    auto_folder f = {s->blobs, NULL};
    pthread_mutex_t *locks[64];
    int shared = 0;

    assert_int_equal(folder_take(s->blobs, ACCOUNT, CONTAINER, &f.folder, &s->e), 0);
    for (size_t i = 0; i < ARRAY_SIZE(locks); i++) {
        auto_free char *name = xasprintf("train/image-%06zu.jpg", i);

        locks[i] = name_lock(s->blobs, f.folder, name);
        pthread_mutex_unlock(locks[i]);
        for (size_t j = 0; j < i; j++)
            shared += locks[j] == locks[i];
    }
    assert_true(shared < 8); /* by chance it is one in 4096 of 2016 pairs */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_was_put_is_found_with_its_facts),
        TEST(an_etag_is_0x_and_upper_hex),
        TEST(everything_survives_a_restart),
        TEST(a_file_written_through_a_mount_is_a_blob_at_once),
        TEST(a_file_replaced_through_a_mount_has_none_of_the_old_facts),
        TEST(a_file_changed_in_place_keeps_type_and_metadata_but_not_md5_and_etag),
        TEST(a_restored_copy_has_its_facts_again),
        TEST(half_an_upload_is_invisible_and_leaves_nothing),
        TEST(only_one_of_many_wins_if_none_match),
        TEST(a_name_too_long_or_deep_is_refused),
        TEST(a_missing_container_is_told),
        TEST(append_and_page_blobs_begin_empty_and_of_zeros),
        TEST(numbered_names_do_not_wait_for_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
