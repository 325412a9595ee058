/* Threads put, commit, overwrite, delete, snapshot and list the same few names.
 *
 * Invariant: what is read is one of the versions that were written, whole, and its facts are of
 * that version; at the end rows and files agree.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    WRITERS = 4,
    READERS = 2,
    RUN_MS = 3000,
    LONGEST = 40000,
};

static const char *const names[] = {"a",   "a/b", "a/b/c", "d/e/f", "d/e/g", "x//y",
                                    "d/e", "h",   "i/j",   "..",    "k/l/m", "k/l"};

struct shared {
    struct scene *s;
    atomic_bool stop;
    atomic_int puts, gets, lists, misses;
    atomic_int faults;
    char fault[256];
};

struct worker {
    struct shared *shared;
    unsigned int seed;
};

/* A version is a letter, repeated as often as a number that the content type tells. */
static void make_version(unsigned int *seed, char *bytes, char type[32])
{
    size_t len = 1 + (size_t)rand_r(seed) % (LONGEST - 1);
    char letter = (char)('a' + rand_r(seed) % 26);

    memset(bytes, letter, len);
    bytes[len] = '\0';
    snprintf(type, 32, "%c/%zu", letter, len);
}

static void fault(struct shared *sh, const char *name, const char *what)
{
    if (sh->faults++ == 0)
        snprintf(sh->fault, sizeof(sh->fault), "%s: %s", name, what);
}

static void put_one(struct worker *w, const char *name, bool by_blocks)
{
    const struct blob_address at = at_name(name);
    const struct block_ref refs[] = {{"AQ==", BLOCK_LATEST}, {"BQ==", BLOCK_LATEST}};
    char type[32], *bytes = xmalloc(LONGEST + 1);
    struct blob_put put = {.headers = {.content_type = type}};
    struct err e = {0};

    make_version(&w->seed, bytes, type);
    if (by_blocks) {
        size_t half = strlen(bytes) / 2;

        for (int i = 0; i < 2; i++) {
            struct upload *upload = NULL;

            upload_begin(w->shared->s->blobs, ACCOUNT, CONTAINER, &upload, &e);
            upload_write(upload, i ? bytes + half : bytes, i ? strlen(bytes) - half : half, &e);
            if (blobs_stage_block(w->shared->s->blobs, &at, refs[i].id, upload, NULL, &e) < 0)
                fault(w->shared, name, e.msg);
            upload_free(upload);
        }
        /* Others stage and drop blocks of the same name: the list may fail, and the blob may be
         * of two versions' blocks; then its type does not tell, which is no fault of the store.
         */
        put.headers.content_type = (char *)"mixed";
        blobs_commit_blocks(w->shared->s->blobs, &at, refs, 2, &put, NULL, NULL, &e);
    } else {
        struct upload *upload = NULL;

        upload_begin(w->shared->s->blobs, ACCOUNT, CONTAINER, &upload, &e);
        upload_write(upload, bytes, strlen(bytes), &e);
        if (blobs_put(w->shared->s->blobs, &at, upload, &put, NULL, NULL, &e) < 0)
            fault(w->shared, name, e.msg);
        upload_free(upload);
    }
    w->shared->puts++;
    free(bytes);
}

static void *write_all_the_time(void *arg)
{
    struct worker *w = arg;

    while (!w->shared->stop) {
        const char *name = names[(size_t)rand_r(&w->seed) % ARRAY_SIZE(names)];
        struct blob_address at = at_name(name);
        struct err e = {0};

        switch (rand_r(&w->seed) % 8) {
        case 0:
        case 1:
            if (blobs_delete(w->shared->s->blobs, &at, SNAPSHOTS_INCLUDE, NULL, &e) < 0 &&
                e.code != ERR_NOT_FOUND)
                fault(w->shared, name, e.msg);
            break;
        case 2:
            put_one(w, name, true);
            break;
        case 3:
            if (blobs_snapshot(w->shared->s->blobs, &at, NULL, NULL, NULL, &e) < 0 &&
                e.code != ERR_NOT_FOUND)
                fault(w->shared, name, e.msg);
            break;
        default:
            put_one(w, name, false);
        }
    }
    return NULL;
}

static void check_version(struct shared *sh, const struct blob *blob, int fd)
{
    auto_free char *bytes = xcalloc(1, LONGEST + 1);
    ssize_t got = pread(fd, bytes, LONGEST, 0);
    char type[32];

    if (got != blob->size_bytes)
        fault(sh, blob->name, "size of the file and of its facts differ");
    if (!blob->headers.content_type) {
        fault(sh, blob->name, "no facts");
        return;
    }
    if (strcmp(blob->headers.content_type, "mixed") == 0)
        return;
    snprintf(type, sizeof(type), "%c/%zd", bytes[0], got);
    if (strcmp(type, blob->headers.content_type) != 0)
        fault(sh, blob->name, "facts of another version");
    for (ssize_t i = 1; i < got; i++) {
        if (bytes[i] != bytes[0]) {
            fault(sh, blob->name, "mixed bytes");
            return;
        }
    }
}

static void check_listed(const struct blob *blob, void *context)
{
    if (!blob->headers.content_type)
        fault(context, blob->name, "listed without facts");
}

static void list_one(struct shared *sh)
{
    const struct blob_listing listing = {
        .prefix = "",
        .delimiter = "",
        .marker = "",
        .most = 5000,
        .snapshots = true,
        .blob = check_listed,
        .context = sh,
    };
    auto_free char *next = NULL;
    struct err e = {0};

    if (blobs_list(sh->s->blobs, ACCOUNT, CONTAINER, &listing, &next, &e) < 0)
        fault(sh, "list", e.msg);
    sh->lists++;
}

static void *read_all_the_time(void *arg)
{
    struct worker *w = arg;

    while (!w->shared->stop) {
        struct blob_address at = at_name(names[(size_t)rand_r(&w->seed) % ARRAY_SIZE(names)]);
        autoptr(blob) blob = NULL;
        auto_close int fd = -1;
        struct err e = {0};

        if (rand_r(&w->seed) % 10 == 0)
            list_one(w->shared);
        if (blobs_find(w->shared->s->blobs, &at, NULL, &blob, &fd, NULL, &e) == 0) {
            check_version(w->shared, blob, fd);
            w->shared->gets++;
        } else if (e.code == ERR_NOT_FOUND) {
            w->shared->misses++;
        } else {
            fault(w->shared, at.name, e.msg);
        }
    }
    return NULL;
}

static void readers_see_whole_versions_only(void **state)
{
    struct shared sh = {.s = *state};
    struct worker workers[WRITERS + READERS];
    pthread_t threads[WRITERS + READERS];
    int64_t until = clock_mono_ms() + RUN_MS;

    for (unsigned int i = 0; i < WRITERS + READERS; i++) {
        workers[i] = (struct worker){&sh, 17 * i + 1};
        pthread_create(&threads[i], NULL, i < WRITERS ? write_all_the_time : read_all_the_time,
                       &workers[i]);
    }
    while (clock_mono_ms() < until && sh.faults == 0)
        usleep(10000);
    sh.stop = true;
    for (size_t i = 0; i < WRITERS + READERS; i++)
        pthread_join(threads[i], NULL);
    print_message("%d puts, %d gets, %d lists, %d misses\n", sh.puts, sh.gets, sh.lists,
                  sh.misses);
    if (sh.faults > 0)
        fail_msg("%d faults, first: %s", sh.faults, sh.fault);
    assert_true(sh.puts > 0 && sh.gets > 0 && sh.lists > 0);
    assert_sound(sh.s);
    scene_reopen(sh.s);
    assert_sound(sh.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(readers_see_whole_versions_only, scene_setup,
                                        scene_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
