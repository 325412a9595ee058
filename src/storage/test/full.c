/* A full disk: what does not fit is refused and leaves nothing behind, what is there stays, and
 * room that comes back is used.
 *
 * Needs the right to mount a small file system of its own; else it is skipped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <limits.h>
#include <sched.h>
#include <sys/mount.h>

enum {
    PIECE = 20000,
    MOST = 400,
};

/* A scene on a file system of its own; database: there too? */
static struct scene *small_scene(const char *options, bool database)
{
    struct scene *s = scene_new();
    auto_free char *small = xasprintf("%s/small", s->folder);

    if (mkdir(small, 0777) < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("small", small, "tmpfs", 0, options) < 0) {
        scene_teardown((void **)&s);
        return NULL;
    }
    free(s->root);
    s->root = xasprintf("%s/storage", small);
    if (database) {
        free(s->db);
        s->db = xasprintf("%s/storage.db", small);
    }
    scene_open(s);
    assert_int_equal(blobs_create_container(s->blobs, ACCOUNT, CONTAINER, NULL, NULL, &s->e),
                     0);
    return s;
}

static int put_piece(struct scene *s, int number)
{
    const struct blob_put put = {0};
    auto_free char *name = xasprintf("d%d/piece%d", number % 3, number);
    const struct blob_address at = at_name(name);
    autoptr(upload) upload = NULL;
    char bytes[PIECE];

    memset(bytes, 'a' + number % 26, sizeof(bytes));
    if (upload_begin(s->blobs, ACCOUNT, CONTAINER, &upload, &s->e) < 0 ||
        upload_write(upload, bytes, sizeof(bytes), &s->e) < 0)
        return -1;
    return blobs_put(s->blobs, &at, upload, &put, NULL, NULL, &s->e);
}

static void check_pieces(struct scene *s, int count)
{
    for (int i = 0; i < count; i++) {
        auto_free char *name = xasprintf("d%d/piece%d", i % 3, i);
        auto_free char *text = get_text(s, name);

        assert_non_null(text);
        assert_int_equal(strlen(text), PIECE);
        assert_int_equal(text[PIECE - 1], 'a' + i % 26);
    }
}

static void take_room(struct scene *s, int most)
{
    auto_free char *path = xasprintf("%s/small/filler", s->folder);
    char bytes[4096] = {0};
    int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0666);

    for (int i = 0; i < most && fd >= 0 && write(fd, bytes, sizeof(bytes)) > 0; i++)
        continue;
    mem_close_fd(&fd);
}

/* Not a byte is left, for the database neither if it is there. */
static void take_the_rest(struct scene *s)
{
    take_room(s, INT_MAX);
}

static void unmount(struct scene *s)
{
    auto_free char *small = xasprintf("%s/small", s->folder);

    blobs_free(take_ptr(&s->blobs));
    assert_int_equal(umount(small), 0);
    scene_teardown((void **)&s);
}

static void fill_and_empty(const char *options, bool database)
{
    struct scene *s = small_scene(options, database);
    auto_free char *tmp = NULL;
    int count = 0;

    if (!s)
        skip();
    while (count < MOST && put_piece(s, count) == 0)
        count++;
    assert_true(count > 5 && count < MOST);
    assert_int_equal(s->e.code, ERR_NO_SPACE);
    assert_string_equal(err_reason_of(&s->e), "InsufficientStorage");
    assert_int_equal(put_piece(s, count), -1);
    check_pieces(s, count);
    tmp = scene_path(s, "tmp");
    assert_int_equal(rmdir(tmp), 0); /* nothing half-written is left */
    assert_int_equal(mkdir(tmp, 0777), 0);
    take_the_rest(s);
    /* Room comes back: the store goes on by itself. */
    for (int i = count - 4; i < count; i++) {
        auto_free char *name = xasprintf("d%d/piece%d", i % 3, i);

        assert_int_equal(delete_name(s, name), 0);
    }
    assert_int_equal(put_piece(s, count - 4), 0);
    check_pieces(s, count - 3);
    scene_reopen(s);
    check_pieces(s, count - 3);
    assert_sound(s);
    unmount(s);
}

static void give_room(struct scene *s)
{
    auto_free char *path = xasprintf("%s/small/filler", s->folder);

    assert_int_equal(unlink(path), 0);
}

static char *snapshot_of(struct scene *s, const char *name)
{
    const struct blob_address at = at_name(name);
    autoptr(blob) blob = NULL;

    if (blobs_snapshot(s->blobs, &at, NULL, NULL, &blob, &s->e) < 0)
        fail_msg("%s", s->e.msg);
    return xstrdup(blob->snapshot);
}

static void a_delete_without_room_for_its_mark_leaves_no_row(void **state)
{
    struct scene *s = small_scene("size=3m", true);
    auto_free char *time = NULL;
    struct blob_address snapshot = at_name("folder/with-snapshot");
    int count = 0;

    (void)state;
    if (!s)
        skip();
    take_room(s, 128);
    put_text(s, "odd//name", "1");
    put_text(s, "folder/with-snapshot", "2");
    put_text(s, "stays", "3");
    time = snapshot_of(s, "folder/with-snapshot");
    snapshot.snapshot = time;
    while (count < MOST && put_piece(s, count) == 0)
        count++;
    take_the_rest(s);
    assert_int_equal(delete_name(s, "odd//name"), 0);
    take_the_rest(s);
    assert_int_equal(blobs_delete(s->blobs, &snapshot, SNAPSHOTS_REFUSE, NULL, &s->e), 0);
    take_the_rest(s);
    assert_int_equal(delete_name(s, "folder/with-snapshot"), 0);
    assert_false(is_there(s, "tree/folder"));
    take_the_rest(s);
    blobs_free(take_ptr(&s->blobs)); /* nothing can be written now */
    assert_true(is_there(s, "unmarked"));
    scene_open(s); /* nor yet */
    assert_text(s, "odd//name", NULL);
    give_room(s);
    scene_reopen(s);
    assert_sound(s);
    assert_false(is_there(s, "unmarked"));
    assert_text(s, "folder/with-snapshot", NULL);
    assert_text(s, "stays", "3");
    check_pieces(s, count);
    unmount(s);
}

static void pages_without_room_change_nothing(void **state)
{
    struct scene *s = small_scene("size=3m", true);
    const struct blob_address at = at_name("pages");
    const struct blob_put put = {0};
    autoptr(upload) upload = NULL;
    autoptr(upload) more = NULL;
    autoptr(blob) before = NULL;
    autoptr(blob) after = NULL;
    auto_free char *text = NULL;
    char bytes[8192];

    (void)state;
    if (!s)
        skip();
    memset(bytes, 'p', sizeof(bytes));
    assert_int_equal(blobs_create(s->blobs, &at, BLOB_PAGE, 1 << 20, &put, NULL, NULL, &s->e),
                     0);
    upload = upload_of(s, "");
    more = upload_of(s, "");
    assert_int_equal(upload_write(upload, bytes, sizeof(bytes), &s->e), 0);
    assert_int_equal(upload_write(more, bytes, sizeof(bytes), &s->e), 0);
    assert_int_equal(
        blobs_put_pages(s->blobs, &at, 0, sizeof(bytes), upload, NULL, NULL, &s->e), 0);
    before = find(s, "pages");
    take_the_rest(s);
    assert_int_equal(
        blobs_put_pages(s->blobs, &at, 65536, sizeof(bytes), more, NULL, NULL, &s->e), -1);
    assert_int_equal(s->e.code, ERR_NO_SPACE);
    after = find(s, "pages");
    assert_string_equal(after->etag, before->etag);
    text = get_text(s, "pages");
    assert_int_equal(strlen(text), sizeof(bytes)); /* zeros from there on */
    upload_free(take_ptr(&upload));
    upload_free(take_ptr(&more));
    unmount(s);
}

static void no_room_for_bytes(void **state)
{
    (void)state;
    fill_and_empty("size=1m", false);
}

static void no_room_for_files(void **state)
{
    (void)state;
    fill_and_empty("nr_inodes=60,size=16m", false);
}

static void no_room_for_bytes_nor_rows(void **state)
{
    (void)state;
    fill_and_empty("size=3m", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_room_for_bytes),
        cmocka_unit_test(no_room_for_files),
        cmocka_unit_test(no_room_for_bytes_nor_rows),
        cmocka_unit_test(a_delete_without_room_for_its_mark_leaves_no_row),
        cmocka_unit_test(pages_without_room_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
