/* SPDX-License-Identifier: Apache-2.0 */
#include "share-yard.h"

#include <stdint.h>

static void a_file_is_zeros_until_ranges_are_put(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *text = NULL;
    autoptr(file) made = NULL;
    autoptr(file) written = NULL;
    struct err e = {0};

    assert_ok(try_create(yard, "a.bin", 6, NULL, &e), &e);
    made = find(yard, "a.bin");
    assert_int_equal(made->size_bytes, 6);
    assert_string_equal(made->attributes, "Archive");
    assert_ok(try_write(yard, "a.bin", 2, "xy", &e), &e);
    written = find(yard, "a.bin");
    assert_string_not_equal(written->etag, made->etag);
    assert_true(written->written_ns > made->written_ns);
    text = read_file(yard, "a.bin");
    assert_memory_equal(text, "\0\0xy\0\0", 6);
}

static void every_put_range_gives_a_new_etag(void **state)
{
    struct share_yard *yard = *state;
    char last[24] = "";

    make_file(yard, "x", "....");
    for (int i = 0; i < 50; i++) {
        const struct file_address a = at("x");
        autoptr(file) put = NULL;
        autoptr(file) found = NULL;
        struct err e = {0};

        assert_ok(files_put_range(yard->files, &a, 0, "b", 1, i % 2, NULL, &put, &e), &e);
        found = find(yard, "x");
        assert_string_equal(put->etag, found->etag);
        assert_string_not_equal(put->etag, last);
        snprintf(last, sizeof(last), "%s", put->etag);
    }
}

static void ranges_beyond_the_end_are_refused(void **state)
{
    static const struct {
        int64_t offset, len;
    } rows[] = {{0, 5}, {4, 1}, {3, 2}, {-1, 1}, {INT64_MAX, 1}, {1, INT64_MAX}, {0, 0}};
    struct share_yard *yard = *state;
    const struct file_address a = at("x");

    make_file(yard, "x", "1234");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(file) file = NULL;
        auto_free char *text = NULL;
        struct err e = {0};

        assert_refused(files_put_range(yard->files, &a, rows[i].offset, NULL, rows[i].len,
                                       false, NULL, &file, &e),
                       &e, "InvalidRange");
        text = read_file(yard, "x");
        assert_string_equal(text, "1234");
    }
}

static void add_range(int64_t first, int64_t last, void *context)
{
    str_addf(context, "%lld-%lld ", (long long)first, (long long)last);
}

static void cleared_ranges_are_holes(void **state)
{
    struct share_yard *yard = *state;
    const struct file_address a = at("big");
    auto_free char *block = xcalloc(1, 65536);
    autoptr(file) put = NULL;
    autoptr(file) cleared = NULL;
    autoptr(file) listed = NULL;
    autoptr(file) part = NULL;
    auto_str ranges = {0}, some = {0};
    struct err e = {0};

    memset(block, 'x', 65536);
    assert_ok(try_create(yard, "big", 4 * 65536, NULL, &e), &e);
    assert_ok(files_put_range(yard->files, &a, 0, block, 65536, false, NULL, &put, &e), &e);
    file_free(put);
    put = NULL;
    assert_ok(files_put_range(yard->files, &a, 2 * 65536, block, 65536, false, NULL, &put, &e),
              &e);
    assert_ok(files_put_range(yard->files, &a, 0, NULL, 65536, false, NULL, &cleared, &e), &e);
    assert_ok(files_list_ranges(yard->files, &a, 0, INT64_MAX, add_range, &ranges, &listed, &e),
              &e);
    assert_string_equal(str_text(&ranges), "131072-196607 ");
    assert_ok(files_list_ranges(yard->files, &a, 140000, 150000, add_range, &some, &part, &e),
              &e);
    assert_string_equal(str_text(&some), "140000-150000 ");
}

static void the_kind_of_a_thing_is_checked(void **state)
{
    struct share_yard *yard = *state;
    const struct file_address file = at("file"), folder = at("folder");
    autoptr(file) found = NULL;
    struct err e = {0};

    make_file(yard, "file", "x");
    make_folder(yard, "folder");
    assert_refused(files_find(yard->files, &file, 1, &found, NULL, &e), &e, "ResourceNotFound");
    assert_refused(files_find(yard->files, &folder, 0, &found, NULL, &e), &e,
                   "ResourceNotFound");
    assert_refused(try_create(yard, "folder", 1, NULL, &e), &e, "ResourceTypeMismatch");
    assert_refused(try_mkdir(yard, "file", &e), &e, "ResourceTypeMismatch");
    assert_refused(try_mkdir(yard, "folder", &e), &e, "ResourceAlreadyExists");
    assert_refused(try_write(yard, "folder", 0, "x", &e), &e, "ResourceTypeMismatch");
    assert_refused(files_delete(yard->files, &folder, false, NULL, &e), &e,
                   "ResourceTypeMismatch");
    assert_refused(try_create(yard, "file/below", 1, NULL, &e), &e, "ParentNotFound");
    assert_refused(try_create(yard, "none/below", 1, NULL, &e), &e, "ParentNotFound");
    assert_refused(try_mkdir(yard, "none/below", &e), &e, "ParentNotFound");
    assert_missing(yard, "none/x", "ParentNotFound");
    assert_missing(yard, "none", "ResourceNotFound");
}

static void only_an_empty_directory_is_removed(void **state)
{
    struct share_yard *yard = *state;
    const struct file_address folder = at("d"), file = at("d/x"), root = at("");
    struct err e = {0};

    make_folder(yard, "d");
    make_file(yard, "d/x", "");
    assert_refused(files_delete(yard->files, &folder, true, NULL, &e), &e, "DirectoryNotEmpty");
    assert_ok(files_delete(yard->files, &file, false, NULL, &e), &e);
    assert_ok(files_delete(yard->files, &folder, true, NULL, &e), &e);
    assert_missing(yard, "d", "ResourceNotFound");
    assert_refused(files_delete(yard->files, &root, true, NULL, &e), &e,
                   "CannotDeleteFileOrDirectory");
}

/* --- facts --- */

static struct file *put_with_facts(struct share_yard *yard, const char *path)
{
    struct file_put put = {
        .headers = {.content_type = (char *)"text/x", .content_md5 = (char *)"MD5"},
        .attributes = "Hidden",
        .created = {FILE_TIME_SET, -1},
        .written = {FILE_TIME_SET, 1500000000123456700},
    };
    auto_json json_t *metadata = json_pack("{s:s}", "k", "v");
    struct err e = {0};

    put.metadata = metadata;
    assert_ok(try_create(yard, path, 4, &put, &e), &e);
    return find(yard, path);
}

static void facts_and_times_come_back_as_they_were_set(void **state)
{
    struct share_yard *yard = *state;
    autoptr(file) file = put_with_facts(yard, "x");

    assert_string_equal(file->headers.content_type, "text/x");
    assert_string_equal(file->headers.content_md5, "MD5");
    assert_string_equal(file->attributes, "Hidden");
    assert_string_equal(json_string_value(json_object_get(file->metadata, "k")), "v");
    assert_int_equal(file->created_ns, -1);
    assert_int_equal(file->written_ns, 1500000000123456700);
    assert_true(file->modified_ms > 1500000001000);
}

static void a_change_touches_only_what_it_names(void **state)
{
    struct share_yard *yard = *state;
    const struct file_address a = at("x");
    struct file_change size = FILE_CHANGE_NONE, headers = FILE_CHANGE_NONE;
    const struct blob_headers labels = {.cache_control = (char *)"no"};
    autoptr(file) before = put_with_facts(yard, "x");
    autoptr(file) sized = NULL;
    autoptr(file) labelled = NULL;
    struct err e = {0};

    size.size = 9;
    assert_ok(files_change(yard->files, &a, false, &size, NULL, &sized, &e), &e);
    assert_int_equal(sized->size_bytes, 9);
    assert_int_equal(sized->written_ns, before->written_ns);
    assert_string_equal(sized->headers.content_type, "text/x");
    assert_null(sized->headers.content_md5);
    assert_string_not_equal(sized->etag, before->etag);
    headers.headers = &labels;
    headers.attributes = "None";
    headers.written.how = FILE_TIME_NOW;
    assert_ok(files_change(yard->files, &a, false, &headers, NULL, &labelled, &e), &e);
    assert_null(labelled->headers.content_type);
    assert_string_equal(labelled->headers.cache_control, "no");
    assert_string_equal(labelled->attributes, "None");
    assert_true(labelled->written_ns > before->written_ns);
    assert_int_equal(json_object_size(labelled->metadata), 1);
}

static void what_a_job_wrote_is_there_at_once(void **state)
{
    struct share_yard *yard = *state;
    autoptr(file) file = NULL;
    autoptr(file) again = NULL;
    auto_free char *text = NULL;
    struct err e = {0};

    write_behind(yard, "log.txt", "line\n");
    file = find(yard, "log.txt");
    assert_int_equal(file->size_bytes, 5);
    assert_string_equal(file->attributes, "Archive");
    assert_true(strncmp(file->etag, "0x8", 3) == 0);
    text = read_file(yard, "log.txt");
    assert_string_equal(text, "line\n");
    assert_ok(try_write(yard, "log.txt", 0, "LINE", &e), &e);
    again = find(yard, "log.txt");
    assert_string_not_equal(again->etag, file->etag);
}

static void a_change_behind_our_back_voids_md5_and_etag_only(void **state)
{
    struct share_yard *yard = *state;
    autoptr(file) before = put_with_facts(yard, "x");
    autoptr(file) ours = NULL;
    autoptr(file) theirs = NULL;
    struct err e = {0};

    /* A range that a client puts leaves the MD5 that the client gave. */
    assert_ok(try_write(yard, "x", 0, "ab", &e), &e);
    ours = find(yard, "x");
    assert_string_equal(ours->headers.content_md5, "MD5");
    assert_string_not_equal(ours->etag, before->etag);
    write_behind(yard, "x", "theirs");
    theirs = find(yard, "x");
    assert_null(theirs->headers.content_md5);
    assert_string_equal(theirs->headers.content_type, "text/x");
    assert_string_not_equal(theirs->etag, ours->etag);
}

static void facts_survive_a_restart_and_a_rename_by_a_job(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *from = yard_path(yard, "x"), *to = yard_path(yard, "y");
    autoptr(file) before = put_with_facts(yard, "x");
    autoptr(file) after = NULL;

    assert_int_equal(rename(from, to), 0);
    yard_close(yard);
    yard_open(yard);
    after = find(yard, "y");
    assert_string_equal(after->headers.content_md5, "MD5");
    assert_string_equal(after->etag, before->etag);
}

static void a_new_file_in_the_place_of_a_removed_one_has_no_old_facts(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *real = yard_path(yard, "x");

    for (int i = 0; i < 20; i++) {
        autoptr(file) after = NULL;

        file_free(put_with_facts(yard, "x"));
        unlink(real);
        write_behind(yard, "x", "1234");
        after = find(yard, "x");
        assert_null(after->headers.content_type);
        assert_int_equal(json_object_size(after->metadata), 0);
        unlink(real);
    }
}

static void a_read_only_file_is_not_written(void **state)
{
    struct share_yard *yard = *state;
    const struct file_put put = {.attributes = "ReadOnly|Archive"};
    const struct file_address a = at("x");
    struct err e = {0};

    assert_ok(try_create(yard, "x", 1, &put, &e), &e);
    assert_refused(try_write(yard, "x", 0, "y", &e), &e, "ReadOnlyAttribute");
    assert_refused(try_create(yard, "x", 1, NULL, &e), &e, "ReadOnlyAttribute");
    assert_refused(files_delete(yard->files, &a, false, NULL, &e), &e, "ReadOnlyAttribute");
}

/* --- copies, leases --- */

static void a_copy_is_a_file_of_its_own(void **state)
{
    struct share_yard *yard = *state;
    const struct file_address from = at("x"), to = at("y");
    autoptr(file) opened = NULL;
    autoptr(file) copied = NULL;
    auto_free char *text = NULL;
    auto_close int fd = -1;
    struct file_copy copy = {.source_url = "http://x/y"};
    struct err e = {0};

    file_free(put_with_facts(yard, "x"));
    assert_ok(try_write(yard, "x", 0, "copy", &e), &e);
    assert_ok(files_find(yard->files, &from, 0, &opened, &fd, &e), &e);
    copy.fd = fd;
    assert_ok(files_copy(yard->files, &copy, &to, &(struct file_put){0}, &copied, &e), &e);
    assert_string_equal(copied->copy_source, "http://x/y");
    assert_non_null(copied->copy_id);
    assert_ok(try_write(yard, "x", 0, "gone", &e), &e);
    text = read_file(yard, "y");
    assert_string_equal(text, "copy");
}

static void a_lease_keeps_others_from_writing(void **state)
{
    static const char id[] = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    struct share_yard *yard = *state;
    const struct lease_request acquire = {
        .action = LEASE_ACQUIRE, .id = id, .duration_s = -1, .break_s = -1};
    const struct lease_request release = {.action = LEASE_RELEASE, .id = id, .break_s = -1};
    struct file_change change = FILE_CHANGE_NONE;
    const struct file_address a = at("x"), b = at("b");
    autoptr(file) leased = NULL;
    autoptr(file) file = NULL;
    autoptr(file) released = NULL;
    autoptr(file) before = NULL;
    struct err e = {0};

    make_file(yard, "x", "12");
    make_file(yard, "b", "1");
    before = find(yard, "x");
    assert_ok(files_lease(yard->files, &a, &acquire, &leased, &e), &e);
    assert_string_equal(leased->etag, before->etag);
    assert_refused(try_write(yard, "x", 0, "y", &e), &e, "LeaseIdMissing");
    assert_refused(try_create(yard, "x", 1, NULL, &e), &e, "LeaseIdMissing");
    change.size = 1;
    assert_refused(files_change(yard->files, &a, false, &change, NULL, &file, &e), &e,
                   "LeaseIdMissing");
    assert_refused(files_delete(yard->files, &a, false, NULL, &e), &e, "LeaseIdMissing");
    assert_refused(files_rename(yard->files, &a, &b, &(struct file_move){0}, &file, &e), &e,
                   "LeaseIdMissing");
    assert_refused(
        files_rename(yard->files, &b, &a, &(struct file_move){.replaces = true}, &file, &e), &e,
        "LeaseIdMissing");
    assert_refused(files_lease(yard->files, &a,
                               &(struct lease_request){
                                   .action = LEASE_ACQUIRE, .duration_s = -1, .break_s = -1},
                               &file, &e),
                   &e, "LeaseAlreadyPresent");
    assert_ok(files_put_range(yard->files, &a, 0, "y", 1, false, id, &file, &e), &e);
    assert_ok(files_lease(yard->files, &a, &release, &released, &e), &e);
    assert_ok(files_delete(yard->files, &a, false, NULL, &e), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)
        TEST(a_file_is_zeros_until_ranges_are_put),
        TEST(every_put_range_gives_a_new_etag),
        TEST(ranges_beyond_the_end_are_refused),
        TEST(cleared_ranges_are_holes),
        TEST(the_kind_of_a_thing_is_checked),
        TEST(only_an_empty_directory_is_removed),
        TEST(facts_and_times_come_back_as_they_were_set),
        TEST(a_change_touches_only_what_it_names),
        TEST(what_a_job_wrote_is_there_at_once),
        TEST(a_change_behind_our_back_voids_md5_and_etag_only),
        TEST(facts_survive_a_restart_and_a_rename_by_a_job),
        TEST(a_new_file_in_the_place_of_a_removed_one_has_no_old_facts),
        TEST(a_read_only_file_is_not_written),
        TEST(a_copy_is_a_file_of_its_own),
        TEST(a_lease_keeps_others_from_writing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
