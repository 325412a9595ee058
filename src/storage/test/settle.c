/* A process dies at every named place of every operation; the next one finds the old blob or
 * the new one, whole, with its own facts, and nothing else.
 *
 * Needs a build with fault points.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <signal.h>
#include <sys/wait.h>

static void need_faults(void)
{
#ifndef YARD_FAULTS
    skip();
#endif
}

/* MD5 of "old" and of "new bytes", as the store reckons them. */
static const char *md5_of(const char *text)
{
    return strcmp(text, "old") == 0 ? "FJYD5sA1FjYqjaI/Yk25RQ==" : "g6+hq4GDcHMdoRV9J5VzBA==";
}

static int typed_put(struct scene *s, const char *name, const char *text)
{
    const struct blob_address at = at_name(name);
    const struct blob_put put = {.headers = {.content_type = (char *)text}};
    autoptr(upload) upload = upload_of(s, text);

    return blobs_put(s->blobs, &at, upload, &put, NULL, NULL, &s->e);
}

static int stage(struct scene *s, const char *name, const char *text)
{
    const struct blob_address at = at_name(name);
    autoptr(upload) upload = upload_of(s, text);

    return blobs_stage_block(s->blobs, &at, "AQ==", upload, NULL, &s->e);
}

static int overwrite(struct scene *s)
{
    return typed_put(s, "a/b", "new bytes");
}

static int overwrite_odd(struct scene *s)
{
    return typed_put(s, "a//b", "new bytes");
}

static int move_to_tree(struct scene *s)
{
    return typed_put(s, "way/b", "new bytes");
}

static int delete_one(struct scene *s)
{
    return delete_name(s, "a/b");
}

static int delete_odd(struct scene *s)
{
    return delete_name(s, "a//b");
}

static int commit(struct scene *s)
{
    const struct blob_address at = at_name("a/b");
    const struct block_ref refs[] = {{"AQ==", BLOCK_UNCOMMITTED}, {"AQ==", BLOCK_UNCOMMITTED}};
    const struct blob_put put = {.headers = {.content_type = (char *)"blocksblocks"}};

    return blobs_commit_blocks(s->blobs, &at, refs, 2, &put, NULL, NULL, &s->e);
}

static int commit_one(struct scene *s)
{
    const struct blob_address at = at_name("a/b");
    const struct block_ref refs[] = {{"AQ==", BLOCK_UNCOMMITTED}};
    const struct blob_put put = {.headers = {.content_type = (char *)"blocks"}};

    return blobs_commit_blocks(s->blobs, &at, refs, 1, &put, NULL, NULL, &s->e);
}

static int append_some(struct scene *s)
{
    const struct blob_address at = at_name("log");
    autoptr(upload) upload = upload_of(s, " and more");

    return blobs_append(s->blobs, &at, upload, -1, -1, NULL, NULL, NULL, &s->e);
}

static int take_snapshot(struct scene *s)
{
    const struct blob_address at = at_name("a/b");

    return blobs_snapshot(s->blobs, &at, NULL, NULL, NULL, &s->e);
}

/* What each name may be afterwards: before or after, "" = not there. */
static const struct operation {
    int (*run)(struct scene *s);
    const char *name, *before, *after;
} operations[] = {
    {overwrite, "a/b", "old", "new bytes"},
    {overwrite_odd, "a//b", "old", "new bytes"},
    {move_to_tree, "way/b", "old", "new bytes"},
    {delete_one, "a/b", "old", ""},
    {delete_odd, "a//b", "old", ""},
    {commit, "a/b", "old", "blocksblocks"},
    {commit_one, "a/b", "old", "blocks"},
    {append_some, "log", "some", "some and more"},
    {take_snapshot, "a/b", "old", "old"},
};

static const char *const faults[] = {
    "storage.after-file-sync", "storage.before-row",    "storage.after-row",
    "storage.before-rename",   "storage.after-rename",  "storage.after-swap",
    "storage.before-mark",     "storage.before-unlink", "storage.after-unlink",
    "storage.after-assembly",  "storage.before-append", "storage.after-append",
    "storage.before-snapshot", "writer.before-commit",  "writer.after-commit",
    "writer.after-telling",
};

static void prepare(struct scene *s)
{
    const struct blob_address log = at_name("log");
    const struct blob_put put = {0};
    autoptr(upload) upload = NULL;

    scene_open(s);
    assert_int_equal(blobs_create_container(s->blobs, ACCOUNT, CONTAINER, NULL, NULL, &s->e),
                     0);
    assert_int_equal(typed_put(s, "a/b", "old"), 0);
    assert_int_equal(typed_put(s, "a//b", "old"), 0);
    put_text(s, "way", "in the way");
    assert_int_equal(typed_put(s, "way/b", "old"), 0);
    assert_int_equal(delete_name(s, "way"), 0);
    assert_int_equal(stage(s, "a/b", "blocks"), 0);
    assert_int_equal(blobs_create(s->blobs, &log, BLOB_APPEND, 0, &put, NULL, NULL, &s->e), 0);
    upload = upload_of(s, "some");
    assert_int_equal(blobs_append(s->blobs, &log, upload, -1, -1, NULL, NULL, NULL, &s->e), 0);
    upload_free(take_ptr(&upload));
    blobs_free(take_ptr(&s->blobs));
}

/* Run it in a process that dies at the fault; says whether it was acknowledged. */
static bool
run_and_die(struct scene *s, const struct operation *op, const char *fault, int pass)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        auto_free char *at = xasprintf("%s:%d", fault, pass);

        setenv("YARD_FAULT", at, 1);
        if (blobs_open(s->root, s->db, &s->blobs, &s->e) < 0)
            _exit(2);
        _exit(op->run(s) < 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        assert_int_equal(WEXITSTATUS(status), 0);
    else
        assert_int_equal(WTERMSIG(status), SIGKILL);
    return WIFEXITED(status);
}

static void check_facts(struct scene *s, const char *name, const char *text)
{
    autoptr(blob) blob = find(s, name);

    if (strcmp(name, "log") == 0)
        return;
    assert_string_equal(blob->headers.content_type, text);
    if (!str_starts(text, "blocks"))
        assert_string_equal(blob->headers.content_md5, md5_of(text));
}

static void check(struct scene *s, const struct operation *op, bool is_acknowledged)
{
    auto_free char *text = NULL;

    scene_open(s);
    text = get_text(s, op->name);
    if (!text)
        text = xstrdup("");
    if (strcmp(text, op->after) != 0 && (is_acknowledged || strcmp(text, op->before) != 0))
        fail_msg("%s is \"%s\"", op->name, text);
    if (*text)
        check_facts(s, op->name, text);
    assert_sound(s);
    /* Everything still works on what was left. */
    assert_int_equal(typed_put(s, op->name, "new bytes"), 0);
    assert_text(s, op->name, "new bytes");
    assert_int_equal(delete_name(s, "a//b") < 0 && strcmp(op->name, "a//b") == 0, 0);
    blobs_free(take_ptr(&s->blobs));
}

static void a_death_anywhere_leaves_the_old_or_the_new(void **state)
{
    int deaths = 0;

    (void)state;
    need_faults();
    for (size_t o = 0; o < ARRAY_SIZE(operations); o++) {
        for (size_t f = 0; f < ARRAY_SIZE(faults); f++) {
            /* The database's own places are passed once in opening. */
            int first = str_starts(faults[f], "writer") ? 2 : 1;
            int last = str_starts(faults[f], "writer") ? 3 : 1;

            for (int pass = first; pass <= last; pass++) {
                struct scene *s = scene_new();
                bool is_acknowledged;

                prepare(s);
                is_acknowledged = run_and_die(s, &operations[o], faults[f], pass);
                deaths += !is_acknowledged;
                check(s, &operations[o], is_acknowledged);
                scene_teardown((void **)&s);
            }
        }
    }
    assert_true(deaths > 60);
    print_message("%d deaths\n", deaths);
}

/* --- containers --- */

static int create_container(struct scene *s)
{
    return blobs_create_container(s->blobs, ACCOUNT, "other", NULL, NULL, &s->e);
}

static int delete_container(struct scene *s)
{
    return blobs_delete_container(s->blobs, ACCOUNT, CONTAINER, NULL, &s->e);
}

static void a_container_is_made_or_deleted_as_a_whole(void **state)
{
    static const char *const places[] = {"storage.before-container", "storage.after-container",
                                         "writer.before-commit", "writer.after-commit"};
    const struct operation both[] = {{.run = create_container}, {.run = delete_container}};

    (void)state;
    need_faults();
    for (size_t f = 0; f < ARRAY_SIZE(places); f++) {
        for (int pass = 1; pass <= 3; pass++) {
            for (size_t o = 0; o < ARRAY_SIZE(both); o++) {
                struct scene *s = scene_new();
                autoptr(container) container = NULL;
                bool is_acknowledged, is_there_now;

                prepare(s);
                is_acknowledged = run_and_die(s, &both[o], places[f], pass);
                scene_open(s);
                is_there_now = blobs_find_container(s->blobs, ACCOUNT, o ? CONTAINER : "other",
                                                    &container, &s->e) == 0;
                if (is_acknowledged)
                    assert_int_equal(is_there_now, o == 0);
                if (o == 1 && is_there_now)
                    assert_text(s, "a/b", "old");
                assert_sound(s);
                /* Making it (again) works, and what was deleted is not in it. */
                if (!is_there_now) {
                    assert_int_equal(blobs_create_container(s->blobs, ACCOUNT,
                                                            o ? CONTAINER : "other", NULL, NULL,
                                                            &s->e),
                                     0);
                    assert_text(s, o ? "a/b" : "none", NULL);
                }
                scene_teardown((void **)&s);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_anywhere_leaves_the_old_or_the_new),
        cmocka_unit_test(a_container_is_made_or_deleted_as_a_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
