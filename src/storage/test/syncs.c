/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/syncs.h"
#include "scene.h"

#include <pthread.h>

enum {
    THREADS = 6,
    ROUNDS = 50,
};

struct waiter {
    struct syncs *syncs;
    const int *fds;
    int failures;
};

static void *wait_often(void *arg)
{
    struct waiter *w = arg;

    for (int i = 0; i < ROUNDS; i++)
        w->failures += syncs_wait(w->syncs, w->fds[i % 2], NULL) < 0;
    return NULL;
}

static void all_who_wait_are_served(void **state)
{
    struct scene *s = *state;
    auto_free char *tree = scene_path(s, "tree"), *odd = scene_path(s, "odd");
    const int fds[] = {open(tree, O_RDONLY | O_DIRECTORY), open(odd, O_RDONLY | O_DIRECTORY)};
    struct syncs *syncs = syncs_new();
    struct waiter waiters[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        waiters[i] = (struct waiter){syncs, fds, 0};
        pthread_create(&threads[i], NULL, wait_often, &waiters[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(waiters[i].failures, 0);
    }
    syncs_free(syncs);
    close(fds[0]);
    close(fds[1]);
}

static void a_failure_is_told(void **state)
{
    struct syncs *syncs = syncs_new();
    struct err e = {0};
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(syncs_wait(syncs, ends[0], &e), -1); /* a pipe cannot be synced */
    assert_int_equal(syncs_wait(syncs, -1, &e), -1);
    close(ends[0]);
    close(ends[1]);
    syncs_free(syncs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_who_wait_are_served, scene_setup, scene_teardown),
        cmocka_unit_test(a_failure_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
