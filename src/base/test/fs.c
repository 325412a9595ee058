/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A temporary tree, the same for each test:
 *     root/file        "inside"
 *     root/dir/deep    "deep"
 *     root/link        -> file
 *     root/out         -> ..          (a way out, through a folder link)
 *     outside          "outside" */
struct tree {
    char top[32];
    int root_fd;
};

static char *at(struct tree *t, const char *name)
{
    return xasprintf("%s/%s", t->top, name);
}

static void put(struct tree *t, const char *name, const char *text)
{
    auto_free char *path = at(t, name);

    assert_int_equal(fs_write_durably(path, text, strlen(text), 0600, NULL), 0);
}

static void lay_link(struct tree *t, const char *target, const char *name)
{
    auto_free char *path = at(t, name);

    assert_int_equal(symlink(target, path), 0);
}

static int grow(void **state)
{
    struct tree *t = xcalloc(1, sizeof(*t));
    auto_free char *dir = NULL, *root = NULL;

    snprintf(t->top, sizeof(t->top), "/tmp/yard-fs-XXXXXX");
    assert_non_null(mkdtemp(t->top));
    dir = at(t, "root/dir");
    root = at(t, "root");
    assert_int_equal(fs_make_folders(dir, 0700, NULL), 0);
    put(t, "root/file", "inside");
    put(t, "root/dir/deep", "deep");
    put(t, "outside", "outside");
    lay_link(t, "file", "root/link");
    lay_link(t, "..", "root/out");
    t->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(t->root_fd >= 0);
    *state = t;
    return 0;
}

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int fell(void **state)
{
    struct tree *t = *state;

    close(t->root_fd);
    nftw(t->top, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
    free(t);
    return 0;
}

static void what_is_beneath_opens(void **state)
{
    static const struct {
        const char *path, *text;
    } table[] = {
        {"file", "inside"},    {"./file", "inside"},      {"dir/deep", "deep"},
        {"dir//deep", "deep"}, {"dir/../file", "inside"},
    };
    struct tree *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_close int fd = -1;
        struct err e = {0};
        char text[16] = "";

        if (fs_open_beneath(t->root_fd, table[i].path, O_RDONLY, 0, &fd, &e) < 0)
            fail_msg("%s", e.msg);
        assert_true(read(fd, text, sizeof(text) - 1) > 0);
        assert_string_equal(text, table[i].text);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    }
}

static void no_way_leads_out(void **state)
{
    static const struct {
        const char *path;
        enum err_code code;
    } table[] = {
        {"..", ERR_INVALID},
        {"../outside", ERR_INVALID},
        {"dir/../../outside", ERR_INVALID},
        {"dir/../../root/file", ERR_INVALID},
        {"/etc/passwd", ERR_INVALID},
        {"/", ERR_INVALID},
        {"link", ERR_INVALID}, /* a link is not followed even when it stays inside */
        {"out/outside", ERR_INVALID},
        {"out/root/file", ERR_INVALID},
        {"", ERR_NOT_FOUND},
        {"absent", ERR_NOT_FOUND},
        {"file/deeper", ERR_NOT_FOUND},
    };
    struct tree *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        int fd = 42;

        if (fs_open_beneath(t->root_fd, table[i].path, O_RDONLY, 0, &fd, &e) == 0)
            fail_msg("opened: %s", table[i].path);
        assert_int_equal(e.code, table[i].code);
        assert_int_equal(fd, 42);
    }
}

static void nothing_is_created_outside(void **state)
{
    static const char *const table[] = {"../new", "out/new", "dir/../../new"};
    struct tree *t = *state;
    auto_free char *path = at(t, "new");
    int fd = -1;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_int_equal(
            fs_open_beneath(t->root_fd, table[i], O_WRONLY | O_CREAT, 0600, &fd, NULL), -1);
        assert_int_equal(access(path, F_OK), -1);
    }
}

static void magic_links_of_proc_are_not_followed(void **state)
{
    auto_close int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct err e = {0};
    int fd = -1;

    (void)state;
    assert_int_equal(fs_open_beneath(proc, "root/etc", O_RDONLY, 0, &fd, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_int_equal(fs_open_beneath(proc, "fd/0", O_RDONLY, 0, &fd, &e), -1);
}

static void files_folders_and_nameless_files_are_made_with_their_mode(void **state)
{
    static const struct {
        const char *path;
        int flags;
        mode_t mode, expected;
    } table[] = {
        {"made", O_WRONLY | O_CREAT | O_EXCL, 0640, S_IFREG | 0640},
        {"dir", O_RDONLY | O_DIRECTORY, 0640, S_IFDIR | 0700}, /* the mode is not used */
        {"dir", O_WRONLY | O_TMPFILE, 0600, S_IFREG | 0600},
        {"file", O_RDONLY, 0640, S_IFREG | 0600},
    };
    struct tree *t = *state;
    mode_t mask = umask(0);

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_close int fd = -1;
        struct err e = {0};
        struct stat st;

        if (fs_open_beneath(t->root_fd, table[i].path, table[i].flags, table[i].mode, &fd, &e) <
            0)
            fail_msg("%s", e.msg);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_mode, table[i].expected);
    }
    umask(mask);
}

static void folders_are_made_with_their_parents(void **state)
{
    static const char *const table[] = {"a", "b/c/d", "b/c/d", "b//c/e", "f/g/"};
    struct tree *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_free char *path = at(t, table[i]);
        struct err e = {0};
        struct stat st;

        if (fs_make_folders(path, 0700, &e) < 0)
            fail_msg("%s", e.msg);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode, S_IFDIR | 0700);
    }
    assert_int_equal(fs_make_folders("/", 0700, NULL), 0);
}

static void a_file_in_the_way_of_a_folder_is_an_error(void **state)
{
    static const char *const table[] = {"outside", "outside/below", "outside/"};
    struct tree *t = *state;
    struct err e = {0};

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_free char *path = at(t, table[i]);

        assert_int_equal(fs_make_folders(path, 0700, &e), -1);
        assert_non_null(strstr(e.msg, "could not make the folder"));
    }
    assert_int_equal(fs_make_folders("", 0700, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
}

static void a_whole_file_is_appended(void **state)
{
    struct tree *t = *state;
    auto_free char *path = at(t, "big"), *big = xmalloc(100000);
    auto_str out = {0};

    memset(big, 'b', 100000);
    assert_int_equal(fs_write_durably(path, big, 100000, 0600, NULL), 0);
    str_add(&out, ">");
    assert_int_equal(fs_read(path, 100000, &out, NULL), 0);
    assert_int_equal(out.len, 100001);
    assert_memory_equal(out.data + 1, big, 100000);
    assert_int_equal(out.data[out.len], '\0');
}

static void a_failed_read_adds_nothing(void **state)
{
    struct tree *t = *state;
    static const struct {
        const char *name;
        size_t most;
        enum err_code code;
    } table[] = {
        {"outside", 6, ERR_TOO_LARGE},
        {"absent", 100, ERR_NOT_FOUND},
        {"root", 100, ERR_INTERNAL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_free char *path = at(t, table[i].name);
        auto_str out = {0};
        struct err e = {0};

        assert_int_equal(fs_read(path, table[i].most, &out, &e), -1);
        assert_int_equal(e.code, table[i].code);
        assert_non_null(strstr(e.msg, path));
        assert_string_equal(str_text(&out), "");
    }
}

static size_t entries(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

static void a_durable_write_replaces_and_leaves_no_other_file(void **state)
{
    struct tree *t = *state;
    auto_free char *path = at(t, "root/file"), *root = at(t, "root");
    size_t before = entries(root);
    auto_str out = {0};
    struct stat st;

    assert_int_equal(fs_write_durably(path, "new\0bytes", 9, 0644, NULL), 0);
    assert_int_equal(fs_read(path, 100, &out, NULL), 0);
    assert_int_equal(out.len, 9);
    assert_memory_equal(out.data, "new\0bytes", 9);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(entries(root), before);
    assert_int_equal(fs_write_durably(path, "", 0, 0600, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 0);
}

static void a_failed_durable_write_leaves_no_other_file(void **state)
{
    struct tree *t = *state;
    auto_free char *folder = at(t, "root/dir"), *root = at(t, "root");
    auto_free char *nowhere = at(t, "absent/file");
    size_t before = entries(root);
    struct err e = {0};

    assert_int_equal(fs_write_durably(folder, "x", 1, 0600, &e), -1);
    assert_non_null(strstr(e.msg, "root/dir"));
    assert_int_equal(entries(root), before);
    assert_int_equal(fs_write_durably(nowhere, "x", 1, 0600, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void a_full_disk_is_said(void **state)
{
    auto_close int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct err e = {0};

    (void)state;
    assert_int_equal(fs_write_all(full, "x", 1, &e), -1);
    assert_int_equal(e.code, ERR_NO_SPACE);
}

static void interrupted(int number)
{
    (void)number;
}

/* A child reads slowly while a timer interrupts the writer; every byte must arrive. */
static void interruptions_lose_nothing(void **state)
{
    enum { MANY = 1 << 20 };
    struct sigaction action = {.sa_handler = interrupted};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    auto_free char *bytes = xcalloc(1, MANY);
    int ends[2], status = 0;
    pid_t child;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    if (child == 0) {
        size_t total = 0;
        ssize_t got;

        close(ends[1]);
        while ((got = read(ends[0], bytes, 4096)) > 0)
            total += (size_t)got;
        _exit(total == MANY ? 0 : 1);
    }
    close(ends[0]);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    assert_int_equal(fs_write_all(ends[1], bytes, MANY, NULL), 0);
    setitimer(ITIMER_REAL, &never, NULL);
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void removing_what_is_not_there_is_fine(void **state)
{
    struct tree *t = *state;
    auto_free char *path = at(t, "outside"), *folder = at(t, "root");

    assert_int_equal(fs_remove(path, NULL), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(fs_remove(path, NULL), 0);
    assert_int_equal(fs_remove(folder, NULL), -1);
}

static void a_durable_rename_replaces_what_is_there(void **state)
{
    struct tree *t = *state;
    auto_free char *from = at(t, "root/file"), *to = at(t, "root/dir/deep");
    auto_free char *nowhere = at(t, "root/nowhere/file");
    auto_str text = {0};
    struct err e = {0};

    assert_int_equal(fs_rename_durably(from, to, NULL), 0);
    assert_int_equal(fs_read(to, 100, &text, NULL), 0);
    assert_string_equal(str_text(&text), "inside");
    assert_int_equal(access(from, F_OK), -1);
    assert_int_equal(fs_rename_durably(to, nowhere, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(access(to, F_OK), 0);
}

#define in_tree(test) cmocka_unit_test_setup_teardown(test, grow, fell)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_tree(what_is_beneath_opens),
        in_tree(no_way_leads_out),
        in_tree(nothing_is_created_outside),
        in_tree(magic_links_of_proc_are_not_followed),
        in_tree(files_folders_and_nameless_files_are_made_with_their_mode),
        in_tree(folders_are_made_with_their_parents),
        in_tree(a_file_in_the_way_of_a_folder_is_an_error),
        in_tree(a_whole_file_is_appended),
        in_tree(a_failed_read_adds_nothing),
        in_tree(a_durable_write_replaces_and_leaves_no_other_file),
        in_tree(a_failed_durable_write_leaves_no_other_file),
        in_tree(a_full_disk_is_said),
        in_tree(interruptions_lose_nothing),
        in_tree(a_durable_rename_replaces_what_is_there),
        in_tree(removing_what_is_not_there_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
