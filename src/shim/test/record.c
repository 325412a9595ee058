/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/record.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "shim/folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct shim_record seven = {.code = 7,
                                         .signal = 0,
                                         .out_of_memory = true,
                                         .was_stopped = false,
                                         .started_ms = 1000,
                                         .ended_ms = 2000,
                                         .pid = 42};
/* Frozen: a newer program must read what an older one wrote. */
static const char seven_text[] = "yard-exit 1 code=7 signal=0 oom=1 stopped=0 started=1000 "
                                 "ended=2000 pid=42 crc=1e9b384e28a81238\n";

struct scene {
    char folder[64];
    int fd;
};

static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));

    snprintf(scene->folder, sizeof(scene->folder), "/tmp/yard-record-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    *state = scene;
    return shim_folder_open(scene->folder, &scene->fd, NULL);
}

static int teardown(void **state)
{
    static const char *const names[] = {"exit", "exit.new", "shim", "started", "error"};
    struct scene *scene = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        unlinkat(scene->fd, names[i], 0);
    close(scene->fd);
    rmdir(scene->folder);
    free(scene);
    return 0;
}

static enum shim_state look(const struct scene *scene)
{
    struct shim_record record;
    enum shim_state state;
    pid_t pid;

    assert_int_equal(shim_look(scene->folder, &state, &record, &pid, NULL), 0);
    return state;
}

static void put(const struct scene *scene, const char *name, const char *text)
{
    assert_int_equal(shim_folder_put(scene->fd, name, text, strlen(text), NULL), 0);
}

/* --- the text --- */

static void the_text_is_the_frozen_one(void **state)
{
    auto_str text = {0};
    struct shim_record read;

    (void)state;
    shim_record_format(&seven, &text);
    assert_string_equal(str_text(&text), seven_text);
    assert_int_equal(shim_record_parse(seven_text, &read, NULL), 0);
    assert_int_equal(read.code, 7);
    assert_true(read.out_of_memory);
    assert_int_equal(read.pid, 42);
}

static void every_cut_and_every_changed_byte_is_seen(void **state)
{
    struct shim_record read;
    size_t len = strlen(seven_text);

    (void)state;
    for (size_t i = 0; i < len; i++) {
        auto_free char *text = xstrdup(seven_text);

        text[i] ^= 1;
        assert_int_equal(shim_record_parse(text, &read, NULL), -1);
        text[i] = '\0';
        assert_int_equal(shim_record_parse(text, &read, NULL), -1);
    }
}

/* The checksum alone is not trusted: what cannot be is refused. */
static void what_cannot_be_is_refused(void **state)
{
    static const struct shim_record rows[] = {
        {.code = 256, .pid = 1},
        {.code = -2, .pid = 1},
        {.code = 0, .signal = 9, .pid = 1},
        {.code = -1, .signal = 65, .pid = 1},
        {.code = 0, .started_ms = 2, .ended_ms = 1, .pid = 1},
        {.code = 0, .pid = 0},
    };
    struct shim_record read;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_str text = {0};

        shim_record_format(&rows[i], &text);
        assert_int_equal(shim_record_parse(str_text(&text), &read, NULL), -1);
    }
}

/* --- the look --- */

static void an_empty_or_missing_folder_is_absent(void **state)
{
    enum shim_state found;

    assert_int_equal(look(*state), SHIM_ABSENT);
    assert_int_equal(shim_look("/tmp/yard-no-such-folder", &found, NULL, NULL, NULL), 0);
    assert_int_equal(found, SHIM_ABSENT);
}

static void a_record_is_the_end(void **state)
{
    struct scene *scene = *state;
    struct shim_record record = {0};
    enum shim_state found;

    assert_int_equal(shim_record_reserve(scene->fd, NULL), 0);
    assert_int_equal(look(scene), SHIM_ABSENT);
    assert_int_equal(shim_record_write(scene->fd, &seven, NULL), 0);
    assert_int_equal(shim_look(scene->folder, &found, &record, NULL, NULL), 0);
    assert_int_equal(found, SHIM_ENDED);
    assert_int_equal(record.code, 7);
    assert_int_equal(shim_record_write(scene->fd, &seven, NULL), 0); /* can be repeated */
    assert_int_equal(look(scene), SHIM_ENDED);
}

static void a_torn_record_is_lost(void **state)
{
    static const char *const rows[] = {"", "yard-exit 1 code=0", "yard-exit 1 code=0 signal=0",
                                       "code=0\n"};
    char zeros[128] = {0}, large[2048];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        put(*state, "exit", rows[i]);
        assert_int_equal(look(*state), SHIM_LOST);
    }
    /* A disk that lost the bytes and kept the length; more behind a good line; too much. */
    snprintf(zeros, sizeof(zeros), "%s", seven_text);
    shim_folder_put(((struct scene *)*state)->fd, "exit", zeros, sizeof(zeros), NULL);
    assert_int_equal(look(*state), SHIM_LOST);
    memset(large, 'x', sizeof(large));
    shim_folder_put(((struct scene *)*state)->fd, "exit", large, sizeof(large), NULL);
    assert_int_equal(look(*state), SHIM_LOST);
}

static void a_living_shim_is_alive_whatever_else(void **state)
{
    struct scene *scene = *state;
    struct shim_identity self;
    enum shim_state found;
    pid_t pid = 0;

    assert_int_equal(shim_identity_read(getpid(), &self, NULL), 0);
    assert_int_equal(shim_folder_put_shim(scene->fd, &self, NULL), 0);
    assert_int_equal(shim_look(scene->folder, &found, NULL, &pid, NULL), 0);
    assert_int_equal(found, SHIM_ALIVE);
    assert_int_equal(pid, getpid());
    assert_int_equal(shim_folder_put_started(scene->fd, &self, 5, NULL), 0);
    assert_int_equal(look(scene), SHIM_ALIVE);
}

/* The number lives, but it is another process, or of another boot. */
static void a_number_used_again_is_no_shim(void **state)
{
    struct scene *scene = *state;
    struct shim_identity self, other;

    assert_int_equal(shim_identity_read(getpid(), &self, NULL), 0);
    other = self;
    other.start++;
    assert_int_equal(shim_folder_put_shim(scene->fd, &other, NULL), 0);
    assert_int_equal(look(scene), SHIM_ABSENT);
    other = self;
    other.boot_id[0] ^= 1;
    assert_int_equal(shim_folder_put_shim(scene->fd, &other, NULL), 0);
    assert_int_equal(look(scene), SHIM_ABSENT);
    assert_int_equal(shim_folder_put_started(scene->fd, &other, 5, NULL), 0);
    assert_int_equal(look(scene), SHIM_LOST);
}

static void a_zombie_is_no_shim(void **state)
{
    struct scene *scene = *state;
    struct shim_identity child;
    siginfo_t info;
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(shim_identity_read(pid, &child, NULL), 0);
    assert_int_equal(shim_folder_put_shim(scene->fd, &child, NULL), 0);
    assert_int_equal(look(scene), SHIM_ALIVE);
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(look(scene), SHIM_ABSENT);
    waitpid(pid, NULL, 0);
}

static void torn_names_of_processes_are_nobody(void **state)
{
    static const char *const rows[] = {"", "1", "1 2", "1 2 boot", "x 2 boot\n", "-1 2 boot\n"};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        put(*state, "shim", rows[i]);
        assert_int_equal(look(*state), SHIM_ABSENT);
    }
}

static void started_reads_back(void **state)
{
    struct scene *scene = *state;
    struct shim_identity self, read;
    int64_t wall_ms;

    assert_int_equal(shim_identity_read(getpid(), &self, NULL), 0);
    assert_int_equal(shim_folder_put_started(scene->fd, &self, 123, NULL), 0);
    assert_int_equal(shim_folder_get_started(scene->fd, &read, &wall_ms, NULL), 0);
    assert_int_equal(wall_ms, 123);
    assert_int_equal(read.pid, getpid());
    assert_string_equal(read.boot_id, self.boot_id);
    /* There is one start for ever. */
    assert_int_equal(shim_folder_put_started(scene->fd, &self, 124, NULL), -1);
}

static void the_error_is_one_line(void **state)
{
    struct scene *scene = *state;
    char text[16];

    shim_folder_get_error(scene->fd, text, sizeof(text));
    assert_string_equal(text, "");
    put(scene, "error", "could not\n");
    shim_folder_get_error(scene->fd, text, sizeof(text));
    assert_string_equal(text, "could not");
}

#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_the_frozen_one),
        cmocka_unit_test(every_cut_and_every_changed_byte_is_seen),
        cmocka_unit_test(what_cannot_be_is_refused),
        SCENE(an_empty_or_missing_folder_is_absent),
        SCENE(a_record_is_the_end),
        SCENE(a_torn_record_is_lost),
        SCENE(a_living_shim_is_alive_whatever_else),
        SCENE(a_number_used_again_is_no_shim),
        SCENE(a_zombie_is_no_shim),
        SCENE(torn_names_of_processes_are_nobody),
        SCENE(started_reads_back),
        SCENE(the_error_is_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
