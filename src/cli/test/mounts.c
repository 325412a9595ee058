/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mounts.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_mounts_of_ours_are_found_among_all(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", "[]"},
        {"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n", "[]"},
        {"30 22 0:50 / /mnt/a ro,nosuid,nodev - fuse.yardfs http://h:1/acct/con ro\n"
         "31 22 0:51 / /mnt/b rw - fuse.sshfs host:/ rw\n"
         "32 22 0:52 / /mnt/with\\040blank rw,nosuid shared:2 master:1 - fuse.yardfs u rw",
         "[{\"folder\":\"/mnt/a\",\"source\":\"http://h:1/acct/con\",\"readOnly\":true,"
         "\"type\":\"yardfs\"},{\"folder\":\"/mnt/with blank\",\"source\":\"u\","
         "\"readOnly\":false,\"type\":\"yardfs\"}]"},
        {"40 22 8:1 /yard/storage/acct/blob/con/tree/a\\040b /mnt/a ro - ext4 /dev/sda1 rw\n"
         "41 22 8:1 /storage/storage/acct/file/sh/tree /mnt/b rw - ext4 /dev/sda1 rw\n"
         "42 22 8:1 /yard/storage/acct/blob/con/trees /mnt/c rw - ext4 /dev/sda1 rw\n"
         "43 22 8:1 /yard/storage/acct/queue/con/tree /mnt/d rw - ext4 /dev/sda1 rw\n"
         "44 22 8:1 /yard/storage/acct/blob//tree /mnt/e rw - ext4 /dev/sda1 rw\n",
         "[{\"folder\":\"/mnt/a\",\"source\":\"/yard/storage/acct/blob/con/tree/a b\","
         "\"readOnly\":true,\"type\":\"bind\"},{\"folder\":\"/mnt/b\","
         "\"source\":\"/storage/storage/acct/file/sh/tree\",\"readOnly\":false,"
         "\"type\":\"bind\"}]"},
        {"nonsense\n\n33 22", "[]"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_json json_t *found = mounts_parse(rows[i].text);
        auto_str text = {0};

        json_write(&text, found);
        assert_string_equal(str_text(&text), rows[i].want);
    }
}

static void a_folder_without_a_mount_is_none(void **state)
{
    (void)state;
    assert_false(mounts_find("/", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mounts_of_ours_are_found_among_all),
        cmocka_unit_test(a_folder_without_a_mount_is_none),
    };

    return cmocka_run_group_tests_name("cli/mounts", tests, NULL, NULL);
}
