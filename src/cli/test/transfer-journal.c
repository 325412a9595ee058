/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-journal.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/transfer-side.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int make_home(void **state)
{
    char *home = xstrdup("/tmp/yard-journal-XXXXXX");

    assert_non_null(mkdtemp(home));
    *state = home;
    return 0;
}

static int drop_home(void **state)
{
    nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return 0;
}

static json_t *asked(const char *source)
{
    return json_pack("{s:s}", "source", source);
}

static struct journal *begin(const char *home, const char *source)
{
    auto_json json_t *what = asked(source);
    struct journal *journal = NULL;
    struct err e;

    if (journal_begin(home, what, &journal, &e) < 0)
        fail_msg("%s", e.msg);
    return journal;
}

static const struct facts small = {.size_bytes = 5, .modified_ns = 7, .etag = "\"0x1\""};
static const struct facts other = {.size_bytes = 5, .modified_ns = 8, .etag = "\"0x1\""};

static void what_was_done_is_known_to_the_same_command(void **state)
{
    autoptr(journal) first = begin(*state, "a");
    auto_free char *id = xstrdup(journal_id(first));
    autoptr(journal) again = NULL;
    autoptr(journal) different = NULL;

    assert_false(journal_is_resumed(first));
    journal_note_done(first, "x y\n%/ü", &small);
    journal_free(take_ptr(&first)); /* as if killed: nothing was ended */
    again = begin(*state, "a");
    assert_true(journal_is_resumed(again));
    assert_string_equal(journal_id(again), id);
    assert_true(journal_is_done(again, "x y\n%/ü", &small));
    assert_false(journal_is_done(again, "x y\n%/ü", &other));
    assert_false(journal_is_done(again, "x", &small));
    different = begin(*state, "b");
    assert_false(journal_is_resumed(different));
    assert_int_equal(journal_done_count(different), 0);
}

static void a_line_that_was_cut_off_counts_for_nothing(void **state)
{
    autoptr(journal) journal = begin(*state, "a");
    auto_free char *log = xasprintf("%s/cli/jobs/%s/log", (char *)*state, journal_id(journal));
    int fd;

    journal_note_done(journal, "whole", &small);
    fd = open(log, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "D 5 7 - cu", 10), 10);
    close(fd);
    journal_free(take_ptr(&journal));
    journal = begin(*state, "a");
    assert_int_equal(journal_done_count(journal), 1);
    journal_note_done(journal, "after", &small);
    journal_free(take_ptr(&journal));
    journal = begin(*state, "a");
    assert_true(journal_is_done(journal, "whole", &small));
    assert_true(journal_is_done(journal, "after", &small));
}

static void pieces_are_remembered_by_their_tag(void **state)
{
    autoptr(journal) journal = begin(*state, "a");
    unsigned char pieces[4] = {0};

    journal_note_piece(journal, "0123456789abcdef", 1);
    journal_note_piece(journal, "0123456789abcdef", 3);
    journal_note_piece(journal, "0123456789abcdef", 99999999);
    journal_free(take_ptr(&journal));
    journal = begin(*state, "a");
    journal_pieces(journal, "fedcba9876543210", pieces, 4);
    assert_int_equal(pieces[1], 0);
    journal_pieces(journal, "0123456789abcdef", pieces, 4);
    assert_int_equal(pieces[0], 0);
    assert_int_equal(pieces[1], 1);
    assert_int_equal(pieces[2], 0);
    assert_int_equal(pieces[3], 1);
}

static void pieces_do_not_outlive_the_machine(void **state)
{
    autoptr(journal) journal = begin(*state, "a");
    auto_free char *path =
        xasprintf("%s/cli/jobs/%s/job.json", (char *)*state, journal_id(journal));
    unsigned char pieces[4] = {0};
    auto_json json_t *job = NULL;
    auto_str text = {0}, changed = {0};

    journal_note_piece(journal, "0123456789abcdef", 1);
    journal_note_done(journal, "whole", &small);
    journal_free(take_ptr(&journal));
    assert_int_equal(fs_read(path, 100000, &text, NULL), 0);
    assert_int_equal(json_parse(str_text(&text), text.len, &job, NULL), 0);
    json_object_set_new(job, "bootId", json_string("another"));
    json_write(&changed, job);
    assert_int_equal(fs_write_durably(path, str_text(&changed), changed.len, 0600, NULL), 0);
    journal = begin(*state, "a");
    journal_pieces(journal, "0123456789abcdef", pieces, 4);
    assert_int_equal(pieces[1], 0);
    assert_true(journal_is_done(journal, "whole", &small));
}

static bool is_kept(void *context, const char *target, int64_t size_bytes)
{
    (void)context;
    return str_equal(target, "kept") && size_bytes == 5;
}

static void what_is_gone_is_not_done(void **state)
{
    autoptr(journal) journal = begin(*state, "a");

    journal_note_done(journal, "kept", &small);
    journal_note_done(journal, "gone", &small);
    journal_free(take_ptr(&journal));
    journal = begin(*state, "a");
    assert_int_equal(journal_done_count(journal), 2);
    journal_confirm(journal, is_kept, NULL);
    assert_true(journal_is_done(journal, "kept", &small));
    assert_false(journal_is_done(journal, "gone", &small));
}

static void one_works_on_a_job_at_a_time(void **state)
{
    autoptr(journal) first = begin(*state, "a");
    auto_json json_t *what = asked("a");
    struct journal *second = NULL;
    struct err e;

    assert_int_equal(journal_begin(*state, what, &second, &e), -1);
    assert_int_equal(e.code, ERR_BUSY);
}

static void a_job_that_ended_well_is_not_gone_on_with(void **state)
{
    autoptr(journal) journal = begin(*state, "a");
    auto_json json_t *totals = json_pack("{s:i}", "files", 3), *jobs = NULL, *found = NULL;
    struct err e;

    journal_note_done(journal, "x", &small);
    assert_int_equal(journal_end(journal, "CompletedWithErrors", totals, NULL), 0);
    journal_free(take_ptr(&journal));
    journal = begin(*state, "a");
    assert_true(journal_is_resumed(journal));
    assert_int_equal(journal_end(journal, "Completed", totals, NULL), 0);
    journal_free(take_ptr(&journal));
    journal = begin(*state, "a");
    assert_false(journal_is_resumed(journal));
    assert_int_equal(journal_list(*state, &jobs, NULL), 0);
    assert_int_equal(json_array_size(jobs), 2);
    assert_int_equal(journal_find(*state, "zz", &found, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(journal_find(*state, "", &found, &e), -1);
    assert_int_equal(journal_find(*state, journal_id(journal), &found, &e), 0);
    assert_string_equal(json_string_value(json_object_get(found, "state")), "InProgress");
}

static void change_start(const char *home, const char *id, const char *when)
{
    auto_free char *path = xasprintf("%s/cli/jobs/%s/job.json", home, id);
    auto_json json_t *job = NULL;
    auto_str text = {0}, changed = {0};

    assert_int_equal(fs_read(path, 100000, &text, NULL), 0);
    assert_int_equal(json_parse(str_text(&text), text.len, &job, NULL), 0);
    json_object_set_new(job, "startedAt", json_string(when));
    json_write(&changed, job);
    assert_int_equal(fs_write_durably(path, str_text(&changed), changed.len, 0600, NULL), 0);
}

static void old_jobs_are_forgotten(void **state)
{
    autoptr(journal) journal = begin(*state, "a");
    auto_free char *id = xstrdup(journal_id(journal));
    auto_json json_t *totals = json_object(), *jobs = NULL;

    journal_free(take_ptr(&journal));
    change_start(*state, id, "2001-01-01T00:00:00Z");
    for (int i = 0; i < 55; i++) {
        journal = begin(*state, "b");
        assert_int_equal(journal_end(journal, "Completed", totals, NULL), 0);
        journal_free(take_ptr(&journal));
    }
    journal = begin(*state, "c");
    assert_int_equal(journal_list(*state, &jobs, NULL), 0);
    assert_int_equal(json_array_size(jobs), 51);
    journal_free(take_ptr(&journal));
    journal = begin(*state, "a");
    assert_false(journal_is_resumed(journal));
}

int main(void)
{
#define WITH_HOME(test) cmocka_unit_test_setup_teardown(test, make_home, drop_home)
    const struct CMUnitTest tests[] = {
        WITH_HOME(what_was_done_is_known_to_the_same_command),
        WITH_HOME(a_line_that_was_cut_off_counts_for_nothing),
        WITH_HOME(pieces_are_remembered_by_their_tag),
        WITH_HOME(pieces_do_not_outlive_the_machine),
        WITH_HOME(what_is_gone_is_not_done),
        WITH_HOME(one_works_on_a_job_at_a_time),
        WITH_HOME(a_job_that_ended_well_is_not_gone_on_with),
        WITH_HOME(old_jobs_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
