/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#define SIZE 65536

static int disk_setup(void **state)
{
    const struct blob_address at = at_name("disk");
    const struct blob_put put = {0};
    struct scene *s;

    scene_setup(state);
    s = *state;
    return blobs_create(s->blobs, &at, BLOB_PAGE, SIZE, &put, NULL, NULL, &s->e);
}

static int write_at(struct scene *s, int64_t offset, int64_t len)
{
    const struct blob_address at = at_name("disk");
    auto_free char *bytes = xcalloc(1, (size_t)len + 1);
    autoptr(upload) upload = NULL;

    memset(bytes, 'x', (size_t)len);
    upload = upload_of(s, bytes);
    return blobs_put_pages(s->blobs, &at, offset, len, upload, NULL, NULL, &s->e);
}

static int clear_at(struct scene *s, int64_t offset, int64_t len)
{
    const struct blob_address at = at_name("disk");

    return blobs_put_pages(s->blobs, &at, offset, len, NULL, NULL, NULL, &s->e);
}

static void note_span(int64_t first, int64_t last, void *context)
{
    str_addf(context, "%d-%d ", (int)first, (int)last);
}

static void assert_spans(struct scene *s, const char *want)
{
    const struct blob_address at = at_name("disk");
    auto_str spans = {0};
    autoptr(blob) blob = NULL;

    assert_int_equal(blobs_list_pages(s->blobs, &at, note_span, &spans, &blob, &s->e), 0);
    assert_string_equal(str_text(&spans), want);
    assert_int_equal(blob->size_bytes, SIZE);
}

static void spans_are_those_that_were_written_and_not_cleared(void **state)
{
    struct scene *s = *state;

    assert_spans(s, "");
    assert_int_equal(write_at(s, 512, 512), 0);
    assert_spans(s, "512-1023 ");
    assert_int_equal(write_at(s, 8192, 16384), 0);
    assert_int_equal(write_at(s, 1024, 512), 0);
    assert_spans(s, "512-1535 8192-24575 ");
    assert_int_equal(clear_at(s, 12288, 4096), 0);
    assert_spans(s, "512-1535 8192-12287 16384-24575 ");
    assert_int_equal(write_at(s, SIZE - 512, 512), 0);
    assert_spans(s, "512-1535 8192-12287 16384-24575 65024-65535 ");
    assert_int_equal(clear_at(s, 0, SIZE), 0);
    assert_spans(s, "");
}

static void pages_are_whole_and_within_the_blob(void **state)
{
    static const struct {
        int64_t offset, len;
    } table[] = {{1, 512}, {0, 511}, {SIZE, 512}, {SIZE - 512, 1024}, {-512, 512}, {0, 0}};
    struct scene *s = *state;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_refused(s, clear_at(s, table[i].offset, table[i].len), "InvalidPageRange");
        assert_int_equal(err_info(s->e.code)->http_status, 416);
    }
}

static void pages_survive_a_restart_with_a_new_etag(void **state)
{
    struct scene *s = *state;
    autoptr(blob) before = find(s, "disk"), *after = NULL, *again = NULL;

    assert_int_equal(write_at(s, 0, 512), 0);
    after = find(s, "disk");
    assert_string_not_equal(before->etag, after->etag);
    scene_reopen(s);
    again = find(s, "disk");
    assert_string_equal(after->etag, again->etag);
    assert_spans(s, "0-511 ");
    assert_sound(s);
}

static void only_page_blobs_have_pages(void **state)
{
    struct scene *s = *state;
    const struct blob_address at = at_name("a");
    struct blob *blob = NULL;
    auto_str spans = {0};

    put_text(s, "a", "1");
    assert_refused(s, blobs_put_pages(s->blobs, &at, 0, 512, NULL, NULL, NULL, &s->e),
                   "InvalidBlobType");
    assert_refused(s, blobs_list_pages(s->blobs, &at, note_span, &spans, &blob, &s->e),
                   "InvalidBlobType");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, disk_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(spans_are_those_that_were_written_and_not_cleared),
        TEST(pages_are_whole_and_within_the_blob),
        TEST(pages_survive_a_restart_with_a_new_etag),
        TEST(only_page_blobs_have_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
