/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-side.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/transfer-options.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
    char *folder;
    struct side *side;
    struct transfer_options options;
    struct port port;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int set_up(void **state)
{
    struct place *p = xcalloc(1, sizeof(*p));

    p->folder = xstrdup("/tmp/yard-local-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    assert_int_equal(side_new_local(p->folder, &p->side, NULL), 0);
    transfer_options_init(&p->options);
    assert_int_equal(
        port_open(p->side, &(struct port_config){.options = &p->options}, &p->port, NULL), 0);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    port_close(&p->port);
    side_free(p->side);
    nftw(p->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(p->folder);
    free(p);
    return 0;
}

static void write_file(const struct place *p, const char *path, const char *text)
{
    auto_free char *whole = xasprintf("%s/%s", p->folder, path);

    assert_int_equal(fs_write_durably(whole, text, strlen(text), 0600, NULL), 0);
}

static char *read_file(const struct place *p, const char *path)
{
    auto_free char *whole = xasprintf("%s/%s", p->folder, path);
    auto_str text = {0};

    return fs_read(whole, 1 << 20, &text, NULL) < 0 ? NULL : str_take(&text);
}

static void make_folder(const struct place *p, const char *path)
{
    auto_free char *whole = xasprintf("%s/%s", p->folder, path);

    assert_int_equal(mkdir(whole, 0700), 0);
}

struct seen {
    struct str names, passed;
};

static int see(void *context, const char *path, const struct facts *facts, struct err *e)
{
    struct seen *seen = context;

    (void)e;
    str_addf(&seen->names, "%s%s ", path, facts->is_folder ? "/" : "");
    return 0;
}

static void pass(void *context, const char *path, const char *why)
{
    struct seen *seen = context;

    (void)why;
    str_addf(&seen->passed, "%s ", path);
}

static void
expect_walk(struct place *p, struct side_walk walk, const char *names, const char *passed)
{
    struct seen seen = {0};

    walk.see = see;
    walk.pass = pass;
    walk.context = &seen;
    assert_int_equal(p->side->ops->walk(&p->port, &walk, NULL), 0);
    assert_string_equal(str_text(&seen.names), names);
    assert_string_equal(str_text(&seen.passed), passed);
    str_done(&seen.names);
    str_done(&seen.passed);
}

static void a_walk_tells_what_is_there(void **state)
{
    struct place *p = *state;
    auto_free char *link = xasprintf("%s/link", p->folder);
    auto_free char *nowhere = xasprintf("%s/nowhere", p->folder);
    auto_free char *fifo = xasprintf("%s/fifo", p->folder);
    auto_free char *bad = xasprintf("%s/\xff", p->folder);

    make_folder(p, "d");
    make_folder(p, "d/empty");
    write_file(p, "d/b", "2");
    write_file(p, "a", "1");
    write_file(p, ".a.yard-0123abcd", "unfinished");
    assert_int_equal(symlink("d", link), 0);
    assert_int_equal(symlink("gone", nowhere), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    close(open(bad, O_CREAT | O_WRONLY, 0600));
    expect_walk(p, (struct side_walk){.is_recursive = true}, "a d/ d/b d/empty/ ",
                "fifo link nowhere \xff ");
    expect_walk(p, (struct side_walk){0}, "a ", "fifo link nowhere \xff ");
    expect_walk(p, (struct side_walk){.is_recursive = true, .follows_links = true},
                "a d/ d/b d/empty/ link/ link/b link/empty/ ", "fifo nowhere \xff ");
    expect_walk(p, (struct side_walk){.is_recursive = true, .pattern = "[d]"},
                "d/ d/b d/empty/ ", "");
}

static void names_that_lead_out_are_refused(void **state)
{
    static const char *const names[] = {"..",    "../x", "a/../../x", "a/..", ".",
                                        "a/./b", "a//b", "/etc/x",    "a/",   ""};
    struct place *p = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        autoptr(item) item = item_new(ITEM_COPY, "x", names[i], NULL);
        struct parts parts = {.item = item, .piece_bytes = 1, .tag = "0"};

        if (p->side->ops->put(&p->port, item, "x", 1, false, NULL) == 0 ||
            p->side->ops->begin(&p->port, &parts, NULL) == 0)
            fail_msg("\"%s\" was written", names[i]);
    }
}

static void a_file_is_put_whole_with_its_folders(void **state)
{
    struct place *p = *state;
    autoptr(item) item = item_new(ITEM_COPY, "x", "a/b/c", NULL);
    auto_free char *text = NULL;

    assert_int_equal(p->side->ops->put(&p->port, item, "first", 5, false, NULL), 0);
    assert_int_equal(p->side->ops->put(&p->port, item, "second", 6, false, NULL), 0);
    text = read_file(p, "a/b/c");
    assert_string_equal(text, "second");
    assert_int_equal(p->side->ops->put(&p->port, item, "third", 5, true, NULL), -1);
    expect_walk(p, (struct side_walk){.is_recursive = true}, "a/ a/b/ a/b/c ", "");
}

static void pieces_come_in_any_order(void **state)
{
    struct place *p = *state;
    const struct facts facts = {.size_bytes = 5, .modified_ns = 3000000000};
    autoptr(item) item = item_new(ITEM_COPY, "x", "d/f", &facts);
    unsigned char done[3] = {1, 1, 1};
    struct parts parts = {
        .item = item, .piece_bytes = 2, .count = 3, .is_done = done, .tag = "00ff"};
    auto_free char *text = NULL, *whole = xasprintf("%s/d/f", p->folder);
    struct stat st;

    p->options.keeps_time = true;
    assert_int_equal(p->side->ops->begin(&p->port, &parts, NULL), 0);
    assert_int_equal(done[0] | done[1] | done[2], 0); /* the file was not there */
    assert_int_equal(p->side->ops->put_piece(&p->port, &parts, 2, "5", 1, NULL), 0);
    assert_int_equal(p->side->ops->put_piece(&p->port, &parts, 0, "12", 2, NULL), 0);
    done[0] = done[2] = 1;
    assert_int_equal(p->side->ops->begin(&p->port, &parts, NULL), 0);
    assert_int_equal(done[0] & done[2], 1);
    assert_null(read_file(p, "d/f"));
    assert_int_equal(p->side->ops->put_piece(&p->port, &parts, 1, "34", 2, NULL), 0);
    assert_int_equal(p->side->ops->hash(&p->port, &parts, false, NULL), 0);
    assert_string_equal(parts.md5, "gnzLDuqKcGxMNKFokfhOew==");
    assert_int_equal(p->side->ops->finish(&p->port, &parts, NULL), 0);
    text = read_file(p, "d/f");
    assert_string_equal(text, "12345");
    assert_int_equal(stat(whole, &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 3);
}

static void a_wrong_md5_keeps_the_file_away(void **state)
{
    struct place *p = *state;
    struct facts facts = {.size_bytes = 1, .md5 = "AAAAAAAAAAAAAAAAAAAAAA=="};
    autoptr(item) item = item_new(ITEM_COPY, "x", "f", &facts);
    unsigned char done[1] = {0};
    struct parts parts = {
        .item = item, .piece_bytes = 2, .count = 1, .is_done = done, .tag = "00ff"};

    assert_int_equal(p->side->ops->begin(&p->port, &parts, NULL), 0);
    assert_int_equal(p->side->ops->put_piece(&p->port, &parts, 0, "1", 1, NULL), 0);
    assert_int_equal(p->side->ops->hash(&p->port, &parts, false, NULL), 0);
    assert_int_equal(p->side->ops->finish(&p->port, &parts, NULL), -1);
    assert_null(read_file(p, "f"));
}

static void a_source_that_changes_is_noticed(void **state)
{
    struct place *p = *state;
    struct facts facts;
    bool found;
    char buf[8];

    write_file(p, "f", "12345");
    assert_int_equal(p->side->ops->look(&p->port, "f", &facts, &found, NULL), 0);
    assert_true(found);
    {
        autoptr(item) item = item_new(ITEM_COPY, "f", "f", &facts);

        assert_int_equal(p->side->ops->read(&p->port, item, 1, buf, 3, NULL), 0);
        assert_memory_equal(buf, "234", 3);
        write_file(p, "f", "123456");
        assert_int_equal(p->side->ops->read(&p->port, item, 1, buf, 3, NULL), -1);
        write_file(p, "f", "1");
        assert_int_equal(p->side->ops->read(&p->port, item, 1, buf, 3, NULL), -1);
    }
    assert_int_equal(p->side->ops->look(&p->port, "none", &facts, &found, NULL), 0);
    assert_false(found);
}

int main(void)
{
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_PLACE(a_walk_tells_what_is_there),
        IN_PLACE(names_that_lead_out_are_refused),
        IN_PLACE(a_file_is_put_whole_with_its_folders),
        IN_PLACE(pieces_come_in_any_order),
        IN_PLACE(a_wrong_md5_keeps_the_file_away),
        IN_PLACE(a_source_that_changes_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
