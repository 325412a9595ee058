/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "base/clock.h"
#include "base/json.h"

static void names_are_checked(void **state)
{
    static const struct {
        const char *name;
        bool is_good;
    } table[] = {
        {"abc", true},
        {"a-b", true},
        {"123", true},
        {"$root", true},
        {"ab", false},
        {"Abc", false},
        {"a--b", false},
        {"-ab", false},
        {"ab-", false},
        {"a.b", false},
        {"../x", false},
        {"a/b", false},
        {"", false},
        {"tmp.abc", false},
        {"012345678901234567890123456789012345678901234567890123456789012", true},
        {"0123456789012345678901234567890123456789012345678901234567890123", false},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        int rc = blobs_create_container(s->blobs, ACCOUNT, table[i].name, NULL, NULL, &s->e);

        assert_int_equal(rc, table[i].is_good ? 0 : -1);
        if (rc < 0)
            assert_string_equal(err_reason_of(&s->e), "InvalidResourceName");
    }
    assert_int_equal(blobs_create_container(s->blobs, "../up", "abc", NULL, NULL, &s->e), -1);
}

static void a_container_is_made_once_and_found_with_its_facts(void **state)
{
    struct scene *s = *state;
    auto_json json_t *metadata = json_pack("{ss}", "a", "b");
    autoptr(container) made = NULL, *found = NULL;

    assert_int_equal(blobs_create_container(s->blobs, ACCOUNT, "new", metadata, &made, &s->e),
                     0);
    assert_refused(s, blobs_create_container(s->blobs, ACCOUNT, "new", NULL, NULL, &s->e),
                   "ContainerAlreadyExists");
    scene_reopen(s);
    assert_int_equal(blobs_find_container(s->blobs, ACCOUNT, "new", &found, &s->e), 0);
    assert_string_equal(found->etag, made->etag);
    assert_int_equal(json_object_size(found->metadata), 1);
    assert_int_equal(json_array_size(found->policies), 0);
}

static void list_one(const struct container *container, void *context)
{
    str_addf(context, "%s ", container->name);
}

static void containers_are_listed_in_pages(void **state)
{
    struct scene *s = *state;
    auto_str out = {0};
    auto_free char *marker = xstrdup("");
    int pages = 0;

    for (int i = 0; i < 7; i++) {
        auto_free char *name = xasprintf("x%d%d", i, i);

        assert_int_equal(blobs_create_container(s->blobs, ACCOUNT, name, NULL, NULL, &s->e), 0);
        assert_int_equal(blobs_create_container(s->blobs, "other", name, NULL, NULL, &s->e), 0);
    }
    do {
        char *next = NULL;

        assert_int_equal(blobs_list_containers(s->blobs, ACCOUNT, "x", marker, 3, list_one,
                                               &out, &next, &s->e),
                         0);
        free(marker);
        marker = next;
        pages++;
    } while (*marker);
    assert_int_equal(pages, 3);
    assert_string_equal(str_text(&out), "x00 x11 x22 x33 x44 x55 x66 ");
}

static void a_deleted_container_takes_its_blobs_along_and_its_name_is_free(void **state)
{
    struct scene *s = *state;

    put_text(s, "a/b", "old");
    put_text(s, "odd//name", "old");
    assert_int_equal(blobs_delete_container(s->blobs, ACCOUNT, CONTAINER, NULL, &s->e), 0);
    assert_refused(s, blobs_delete_container(s->blobs, ACCOUNT, CONTAINER, NULL, &s->e),
                   "ContainerNotFound");
    assert_text(s, "a/b", NULL);
    assert_int_equal(blobs_create_container(s->blobs, ACCOUNT, CONTAINER, NULL, NULL, &s->e),
                     0);
    assert_text(s, "a/b", NULL);
    assert_text(s, "odd//name", NULL);
    put_text(s, "a/b", "new");
    scene_reopen(s);
    assert_text(s, "a/b", "new");
    assert_sound(s);
}

static void an_upload_into_a_deleted_container_fails(void **state)
{
    struct scene *s = *state;
    const struct blob_address at = at_name("a");
    const struct blob_put put = {0};
    autoptr(upload) upload = upload_of(s, "late");

    assert_int_equal(blobs_delete_container(s->blobs, ACCOUNT, CONTAINER, NULL, &s->e), 0);
    assert_int_equal(blobs_create_container(s->blobs, ACCOUNT, CONTAINER, NULL, NULL, &s->e),
                     0);
    assert_refused(s, blobs_put(s->blobs, &at, upload, &put, NULL, NULL, &s->e),
                   "ContainerNotFound");
    assert_text(s, "a", NULL);
}

static void a_lease_guards_against_deletion(void **state)
{
    struct scene *s = *state;
    const struct lease_request acquire = {.action = LEASE_ACQUIRE, .duration_s = -1};
    autoptr(container) leased = NULL;
    struct conditions mine = {0};

    assert_int_equal(blobs_lease_container(s->blobs, ACCOUNT, CONTAINER, &acquire, NULL,
                                           &leased, NULL, &s->e),
                     0);
    assert_true(lease_is_locked(&leased->lease, clock_wall_ms()));
    assert_refused(s, blobs_delete_container(s->blobs, ACCOUNT, CONTAINER, NULL, &s->e),
                   "LeaseIdMissing");
    mine.lease_id = "bbbbbbbb-0000-4000-8000-000000000000";
    assert_refused(s, blobs_delete_container(s->blobs, ACCOUNT, CONTAINER, &mine, &s->e),
                   "LeaseIdMismatchWithContainerOperation");
    put_text(s, "a", "blobs are not bound by it");
    mine.lease_id = leased->lease.id;
    assert_int_equal(blobs_delete_container(s->blobs, ACCOUNT, CONTAINER, &mine, &s->e), 0);
}

static void metadata_and_policies_change_apart(void **state)
{
    struct scene *s = *state;
    auto_json json_t *metadata = json_pack("{ss}", "a", "b");
    auto_json json_t *policies = json_pack("[{ss}]", "id", "p1");
    autoptr(container) before = NULL, *after = NULL;

    assert_int_equal(blobs_update_container(s->blobs, ACCOUNT, CONTAINER, metadata, NULL, NULL,
                                            &before, &s->e),
                     0);
    assert_int_equal(blobs_update_container(s->blobs, ACCOUNT, CONTAINER, NULL, policies, NULL,
                                            &after, &s->e),
                     0);
    assert_int_equal(json_object_size(after->metadata), 1);
    assert_int_equal(json_array_size(after->policies), 1);
    assert_string_not_equal(before->etag, after->etag);
}

static void a_folder_without_a_row_becomes_a_container_again(void **state)
{
    struct scene *s = *state;

    put_text(s, "a/b", "bytes");
    blobs_free(s->blobs);
    assert_int_equal(unlink(s->db), 0); /* storage.db is lost */
    scene_open(s);
    assert_text(s, "a/b", "bytes");
    assert_sound(s);
}

static void an_account_goes_with_all_it_has(void **state)
{
    struct scene *s = *state;
    auto_str names = {0};
    auto_free char *next = NULL;

    put_text(s, "a", "1");
    assert_int_equal(blobs_create_container(s->blobs, "other", CONTAINER, NULL, NULL, &s->e),
                     0);
    assert_int_equal(blobs_remove_account(s->blobs, ACCOUNT, &s->e), 0);
    assert_text(s, "a", NULL);
    assert_int_equal(
        blobs_list_containers(s->blobs, "other", "", "", 10, list_one, &names, &next, &s->e),
        0);
    assert_string_equal(str_text(&names), "con ");
    assert_int_equal(blobs_create_container(s->blobs, ACCOUNT, CONTAINER, NULL, NULL, &s->e),
                     0);
    assert_text(s, "a", NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(names_are_checked),
        TEST(a_container_is_made_once_and_found_with_its_facts),
        TEST(containers_are_listed_in_pages),
        TEST(a_deleted_container_takes_its_blobs_along_and_its_name_is_free),
        TEST(an_upload_into_a_deleted_container_fails),
        TEST(a_lease_guards_against_deletion),
        TEST(metadata_and_policies_change_apart),
        TEST(a_folder_without_a_row_becomes_a_container_again),
        TEST(an_account_goes_with_all_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
