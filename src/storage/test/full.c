/* A full disk: what does not fit is refused and leaves nothing behind, what is there stays, and
 * room that comes back is used.
 *
 * Needs the right to mount a small file system of its own; else it is skipped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

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

/* Not a byte is left, for the database neither if it is there. */
static void take_the_rest(struct scene *s)
{
    auto_free char *path = xasprintf("%s/small/filler", s->folder);
    char bytes[4096] = {0};
    int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0666);

    while (fd >= 0 && write(fd, bytes, sizeof(bytes)) > 0)
        continue;
    mem_close_fd(&fd);
}

static void fill_and_empty(const char *options, bool database)
{
    struct scene *s = small_scene(options, database);
    auto_free char *tmp = NULL, *small = NULL;
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
    blobs_free(take_ptr(&s->blobs));
    small = xasprintf("%s/small", s->folder);
    assert_int_equal(umount(small), 0);
    scene_teardown((void **)&s);
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
