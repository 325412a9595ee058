/* The process is killed again and again while threads put, overwrite, commit, append and
 * delete. After each death every name is what was last acknowledged, or what was on its way:
 * whole, with its own facts.
 *
 * Each thread has names of its own, so that it is known what was acknowledged.  The knowledge
 * lies in shared memory, which outlives the process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    ROUNDS = 25,
    WRITERS = 4,
    NAMES = 6, /* of each writer; the last one is an append blob */
    LOG = NAMES - 1,
    GONE = 0, /* a version; others are numbers from 1, and their bytes follow from them */
    LONGEST = 30000,
};

/* For the log: how many records.  Version and size follow from it. */
struct promise {
    int acknowledged, on_its_way;
};

struct ledger {
    struct promise promises[WRITERS][NAMES];
    int next_version;
};

struct worker {
    struct scene *s;
    struct ledger *ledger;
    int number;
    unsigned int seed;
};

static size_t size_of(int version)
{
    return 1 + (size_t)version * 7919 % LONGEST;
}

static void fill(char *bytes, int version)
{
    for (size_t i = 0; i < size_of(version); i++)
        bytes[i] = (char)('a' + (version + (int)(i % 251)) % 26);
}

static void name_of(int writer, int n, char name[64])
{
    static const char *const forms[][2] = {{"top", ""}, {"w", "/a"},        {"w", "/a/b"},
                                           {"w//", ""}, {"deep/w", "/x/y"}, {"logs/w", ""}};

    snprintf(name, 64, "%s%d%s", forms[n][0], writer, forms[n][1]);
}

static int
put_version(struct worker *w, const struct blob_address *at, int version, bool by_blocks)
{
    const struct block_ref refs[] = {{"AQ==", BLOCK_LATEST}, {"BQ==", BLOCK_LATEST}};
    char bytes[LONGEST + 1], type[32];
    struct blob_put put = {.headers = {.content_type = type}};
    size_t size = size_of(version), half = by_blocks ? size / 2 : size;
    int rc = 0;

    fill(bytes, version);
    snprintf(type, sizeof(type), "%d", version);
    for (int i = 0; i < (by_blocks ? 2 : 1) && rc == 0; i++) {
        autoptr(upload) upload = NULL;

        rc = upload_begin(w->s->blobs, ACCOUNT, CONTAINER, &upload, NULL);
        if (rc == 0)
            rc = upload_write(upload, i ? bytes + half : bytes, i ? size - half : half, NULL);
        if (rc == 0)
            rc = by_blocks ? blobs_stage_block(w->s->blobs, at, refs[i].id, upload, NULL, NULL)
                           : blobs_put(w->s->blobs, at, upload, &put, NULL, NULL, NULL);
    }
    if (rc == 0 && by_blocks)
        rc = blobs_commit_blocks(w->s->blobs, at, refs, 2, &put, NULL, NULL, NULL);
    return rc;
}

static int append_record(struct worker *w, const struct blob_address *at, int record)
{
    const struct blob_put put = {0};
    autoptr(upload) upload = NULL;
    char bytes[LONGEST + 1];

    if (record == 1)
        return blobs_create(w->s->blobs, at, BLOB_APPEND, 0, &put, NULL, NULL, NULL);
    fill(bytes, record);
    if (upload_begin(w->s->blobs, ACCOUNT, CONTAINER, &upload, NULL) < 0 ||
        upload_write(upload, bytes, size_of(record), NULL) < 0)
        return -1;
    return blobs_append(w->s->blobs, at, upload, -1, -1, NULL, NULL, NULL, NULL);
}

static void *work(void *arg)
{
    struct worker *w = arg;

    for (;;) {
        int n = rand_r(&w->seed) % NAMES, what = rand_r(&w->seed) % 10;
        struct promise *p = &w->ledger->promises[w->number][n];
        char name[64];
        struct blob_address at;
        int version, rc;

        name_of(w->number, n, name);
        at = at_name(name);
        if (n == LOG)
            version = p->acknowledged + 1;
        else if (what < 2)
            version = GONE;
        else
            version = __atomic_add_fetch(&w->ledger->next_version, 1, __ATOMIC_SEQ_CST);
        __atomic_store_n(&p->on_its_way, version, __ATOMIC_SEQ_CST);
        if (n == LOG)
            rc = append_record(w, &at, version);
        else if (version == GONE)
            rc = blobs_delete(w->s->blobs, &at, SNAPSHOTS_REFUSE, NULL, NULL) < 0 &&
                         p->acknowledged != GONE
                     ? -1
                     : 0;
        else
            rc = put_version(w, &at, version, what < 5);
        if (rc < 0)
            abort();
        __atomic_store_n(&p->acknowledged, version, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void live(struct scene *s, struct ledger *ledger, int round)
{
    struct worker workers[WRITERS];
    pthread_t thread;

    if (blobs_open(s->root, s->db, &s->blobs, &s->e) < 0)
        _exit(3);
    for (int i = 0; i < WRITERS; i++) {
        workers[i] = (struct worker){s, ledger, i, (unsigned int)(round * 100 + i)};
        pthread_create(&thread, NULL, work, &workers[i]);
    }
    for (;;)
        pause();
}

static void check_log(const char *text, size_t size, const char *name, struct promise *p)
{
    char bytes[LONGEST + 1];
    size_t at = 0;
    int records = 1;

    while (at < size) {
        records++;
        fill(bytes, records);
        if (size - at < size_of(records) || memcmp(text + at, bytes, size_of(records)) != 0)
            fail_msg("%s: record %d is torn", name, records);
        at += size_of(records);
    }
    if (records != p->acknowledged && records != p->on_its_way)
        fail_msg("%s: %d records, acknowledged %d", name, records, p->acknowledged);
    p->acknowledged = records;
}

static void check_name(struct scene *s, int writer, int n, struct promise *p)
{
    char name[64], bytes[LONGEST + 1];
    struct blob_address at;
    autoptr(blob) blob = NULL;
    auto_free char *text = NULL;
    auto_close int fd = -1;
    int version = GONE;

    name_of(writer, n, name);
    at = at_name(name);
    if (blobs_find(s->blobs, &at, NULL, &blob, &fd, NULL, &s->e) < 0) {
        if (p->acknowledged != GONE && p->on_its_way != GONE)
            fail_msg("%s: version %d is lost", name, p->acknowledged);
        p->acknowledged = GONE;
        return;
    }
    text = read_fd(fd, blob->size_bytes);
    if (n == LOG) {
        check_log(text, (size_t)blob->size_bytes, name, p);
        return;
    }
    assert_non_null(blob->headers.content_type);
    version = (int)strtol(blob->headers.content_type, NULL, 10);
    if (version != p->acknowledged && version != p->on_its_way)
        fail_msg("%s: version %d, acknowledged %d", name, version, p->acknowledged);
    fill(bytes, version);
    assert_int_equal(blob->size_bytes, size_of(version));
    assert_memory_equal(text, bytes, size_of(version));
    p->acknowledged = version;
}

static void nothing_acknowledged_is_lost_or_mixed(void **state)
{
    struct scene *s = *state;
    struct ledger *ledger =
        mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

#ifdef __SANITIZE_THREAD__
    skip(); /* cannot start threads after a fork */
#endif
    assert_ptr_not_equal(ledger, MAP_FAILED);
    srand(11);
    blobs_free(take_ptr(&s->blobs));
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
            live(s, ledger, round);
        usleep(30000 + (useconds_t)rand() % 150000);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        scene_open(s);
        for (int w = 0; w < WRITERS; w++) {
            for (int n = 0; n < NAMES; n++)
                check_name(s, w, n, &ledger->promises[w][n]);
        }
        assert_sound(s);
        blobs_free(take_ptr(&s->blobs));
    }
    print_message("%d versions written\n", ledger->next_version);
    assert_true(ledger->next_version > ROUNDS);
    munmap(ledger, sizeof(*ledger));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost_or_mixed, scene_setup,
                                        scene_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
