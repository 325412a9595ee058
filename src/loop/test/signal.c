/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/signal.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
    struct loop *loop;
    struct loop_signals signals;
    int caught[4], count;
};

static void on_caught(struct loop_signals *signals, int signal)
{
    struct scene *scene = container_of(signals, struct scene, signals);

    scene->caught[scene->count++] = signal;
    if (scene->count == 2)
        loop_stop(scene->loop);
}

static void signals_become_events(void **state)
{
    struct scene scene = {.signals.caught = on_caught};

    (void)state;
    assert_int_equal(loop_new(&scene.loop, NULL), 0);
    assert_int_equal(loop_signals_watch(scene.loop, &scene.signals,
                                        (const int[]){SIGTERM, SIGUSR1, 0}, NULL),
                     0);
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGUSR1);
    loop_run(scene.loop);
    assert_int_equal(scene.caught[0] + scene.caught[1], SIGTERM + SIGUSR1);

    loop_signals_unwatch(&scene.signals);
    loop_signals_unwatch(&scene.signals);
    kill(getpid(), SIGTERM); /* still blocked: the test survives */
    loop_free(scene.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(signals_become_events)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
