/* What others do at the same time: jobs with a mount, other requests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "share-yard.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    TRIES = 10000, /* as many as the threat list asks for */
    THREADS = 4,
    ROUNDS = 60,
};

static void links_lead_nowhere(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *secret = xasprintf("%s/secret", yard->folder);
    auto_free char *file = yard_path(yard, "file"), *folder = yard_path(yard, "folder");
    auto_free char *up = yard_path(yard, "up"), *text = NULL;
    struct err e = {0};
    FILE *out = fopen(secret, "w");

    assert_non_null(out);
    fputs("canary", out);
    fclose(out);
    assert_int_equal(symlink(secret, file), 0);
    assert_int_equal(symlink(yard->folder, folder), 0);
    assert_int_equal(symlink("../../../../..", up), 0);
    assert_missing(yard, "file", "ResourceNotFound");
    assert_missing(yard, "folder", "ResourceNotFound");
    assert_missing(yard, "folder/secret", "ParentNotFound");
    assert_missing(yard, "up/secret", "ParentNotFound");
    assert_refused(try_write(yard, "file", 0, "x", &e), &e, "ResourceNotFound");
    assert_refused(try_create(yard, "folder/new", 1, NULL, &e), &e, "ParentNotFound");
    /* A new file takes the place of the link and leaves what the link led to. */
    make_file(yard, "file", "mine");
    text = read_file(yard, "file");
    assert_string_equal(text, "mine");
    out = fopen(secret, "r");
    assert_int_equal(fgetc(out), 'c');
    fclose(out);
}

static void a_pipe_is_not_waited_for(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *fifo = yard_path(yard, "fifo");
    struct err e = {0};

    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_missing(yard, "fifo", "ResourceNotFound");
    assert_refused(try_write(yard, "fifo", 0, "x", &e), &e, "ResourceNotFound");
}

/* --- a job that swaps a folder for a link, over and over --- */

struct swapper {
    char *real, *link, *spare, *canary;
    atomic_bool stop;
};

static void *swap(void *arg)
{
    struct swapper *s = arg;

    while (!s->stop) {
        renameat2(AT_FDCWD, s->real, AT_FDCWD, s->spare, 0);
        renameat2(AT_FDCWD, s->link, AT_FDCWD, s->real, 0);
        renameat2(AT_FDCWD, s->real, AT_FDCWD, s->link, 0);
        renameat2(AT_FDCWD, s->spare, AT_FDCWD, s->real, 0);
    }
    return NULL;
}

static void no_swap_of_folder_and_link_lets_anything_out(void **state)
{
    struct share_yard *yard = *state;
    const struct file_address a = at("d/file");
    auto_free char *outside = xasprintf("%s/outside", yard->folder);
    auto_free char *canary = xasprintf("%s/outside/file", yard->folder);
    auto_free char *real = yard_path(yard, "d"), *link = yard_path(yard, "link");
    auto_free char *spare = yard_path(yard, "spare");
    struct swapper s = {.real = real, .link = link, .spare = spare};
    size_t reached = 0;
    char text[8] = "";
    pthread_t thread;
    FILE *file;

    assert_int_equal(mkdir(outside, 0700), 0);
    file = fopen(canary, "w");
    fputs("canary", file);
    fclose(file);
    make_folder(yard, "d");
    make_file(yard, "d/file", "inside");
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
    for (int i = 0; i < TRIES; i++) {
        autoptr(file) found = NULL;
        auto_close int fd = -1;
        struct err e = {0};

        if (files_find(yard->files, &a, 0, &found, &fd, &e) == 0) {
            assert_int_equal(pread(fd, text, 6, 0), 6);
            assert_memory_equal(text, "inside", 6);
            reached++;
        }
        if (i % 50 == 0)
            try_write(yard, "d/file", 0, "inside", &e);
    }
    s.stop = true;
    pthread_join(thread, NULL);
    assert_true(reached > 0 && reached < TRIES); /* else nothing was tried */
    file = fopen(canary, "r");
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    assert_string_equal(text, "canary");
}

/* --- requests side by side --- */

struct worker {
    struct share_yard *yard;
    int number;
    int surprises; /* of a thread: only the test's own may fail it */
    pthread_t thread;
};

static void one_round(struct worker *w, int round)
{
    const struct file_address a = at("shared"), b = at("SHARED-2");
    struct file_change change = FILE_CHANGE_NONE;
    auto_json json_t *metadata = json_pack("{s:i}", "n", round);
    autoptr(file) file = NULL;
    struct err e = {0};

    change.metadata = metadata;
    switch ((round + w->number) % 6) {
    case 0:
        try_create(w->yard, "shared", 64, NULL, &e);
        break;
    case 1:
        try_write(w->yard, "shared", w->number, "x", &e);
        break;
    case 2:
        files_change(w->yard->files, &a, false, &change, NULL, &file, &e);
        break;
    case 3:
        files_rename(w->yard->files, &a, &b, &(struct file_move){.replaces = true}, &file, &e);
        break;
    case 4:
        files_rename(w->yard->files, &b, &a, &(struct file_move){.replaces = true}, &file, &e);
        break;
    default:
        files_delete(w->yard->files, &a, false, NULL, &e);
    }
    /* Nothing but what the others may have caused. */
    w->surprises += e.code != ERR_NONE && e.code != ERR_NOT_FOUND && e.code != ERR_CONFLICT;
}

static void *work(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < ROUNDS; i++)
        one_round(w, i);
    return NULL;
}

static void requests_side_by_side_leave_whole_files(void **state)
{
    struct share_yard *yard = *state;
    struct worker workers[THREADS];
    const struct file_address a = at("shared");
    autoptr(file) file = NULL;
    struct err e = {0};

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.yard = yard, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].surprises, 0);
    }
    if (files_find(yard->files, &a, 0, &file, NULL, &e) == 0)
        assert_int_equal(file->size_bytes, 64);
}

static void *make_same(void *arg)
{
    struct worker *w = arg;
    struct err e = {0};

    return (void *)(intptr_t)(try_mkdir(w->yard, "one", &e) == 0);
}

static void of_many_who_make_a_directory_one_does(void **state)
{
    struct share_yard *yard = *state;
    struct worker workers[THREADS];
    intptr_t made = 0;

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.yard = yard};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, make_same, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *ok;

        pthread_join(workers[i].thread, &ok);
        made += (intptr_t)ok;
    }
    assert_int_equal(made, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)
        TEST(links_lead_nowhere),
        TEST(a_pipe_is_not_waited_for),
        TEST(no_swap_of_folder_and_link_lets_anything_out),
        TEST(requests_side_by_side_leave_whole_files),
        TEST(of_many_who_make_a_directory_one_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
