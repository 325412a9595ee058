/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-user.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ED25519                                                                                \
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9pG5Yz1kq0i3z4k6kQ5QeXW3uDqj5p3i1gWm2nQ8aB"

static void what_is_no_key_is_refused(void **state)
{
    static const struct row {
        const char *text;
        bool is_key;
    } rows[] = {
        {ED25519, true},
        {ED25519 " me@here", true},
        {ED25519 "\n", true},
        {"ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAA", false}, /* says two kinds */
        {"ssh-rsa", false},
        {"ssh-rsa !!!", false},
        {"/no/such/file", false},
        {"", false},
        {ED25519 "\n" ED25519, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_str key = {0};
        struct err e;

        if ((batchai_read_key(rows[i].text, &key, &e) == 0) != rows[i].is_key)
            fail_msg("%s", rows[i].text);
        assert_true(key.len == 0 || key.data[key.len - 1] != '\n');
    }
}

static void keys_are_made_once_and_mended(void **state)
{
    char folder[] = "/tmp/yard-keys-XXXXXX";
    auto_free char *ssh = NULL, *own = NULL, *public = NULL;
    auto_str first = {0}, again = {0}, key = {0};
    bool is_made;
    struct err e;
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(folder));
    ssh = xasprintf("%s/.ssh", folder);
    own = xasprintf("%s/id_rsa", ssh);
    public = xasprintf("%s/id_rsa.pub", ssh);
    assert_int_equal(batchai_make_keys(ssh, &is_made, &e), 0);
    assert_true(is_made);
    assert_int_equal(stat(own, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(batchai_read_key(public, &key, &e), 0);
    assert_true(str_starts(str_text(&key), "ssh-rsa AAAAB3NzaC1yc2E"));
    assert_int_equal(fs_read(public, 10000, &first, &e), 0);
    assert_int_equal(batchai_make_keys(ssh, &is_made, &e), 0);
    assert_false(is_made);

    /* The public half is made again from the private one. */
    unlink(public);
    assert_int_equal(batchai_make_keys(ssh, &is_made, &e), 0);
    assert_int_equal(fs_read(public, 10000, &again, &e), 0);
    assert_string_equal(str_text(&again), str_text(&first));

    /* What is no private key is not thrown away. */
    unlink(public);
    assert_int_equal(fs_write_durably(own, "junk", 4, 0600, &e), 0);
    assert_int_equal(batchai_make_keys(ssh, &is_made, &e), -1);
    assert_int_equal(e.code, ERR_CONFLICT);
    unlink(own);
    rmdir(ssh);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_key_is_refused),
        cmocka_unit_test(keys_are_made_once_and_mended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
