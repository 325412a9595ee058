/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/lookout.h"

#include "base/clock.h"
#include "base/mem.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void nap(void)
{
    const struct timespec ms = {0, 5000000};

    nanosleep(&ms, NULL);
}

static bool finds(struct lookout *lookout, int *ret_rank)
{
    int64_t until = clock_mono_ms() + 5000;

    while (clock_mono_ms() < until) {
        if (lookout_find_dead(lookout, ret_rank))
            return true;
        nap();
    }
    return false;
}

/* Rank `rank`: waits until it hears of a death, and exits with that rank's number; or dies or
 * leaves itself. */
static pid_t start(const struct lookout_address *address, int rank, char fate)
{
    struct lookout *lookout;
    pid_t pid = fork();
    int dead = -1;

    if (pid != 0)
        return pid;
    if (lookout_connect(address, rank, &lookout, NULL) < 0 ||
        lookout_confirm(lookout, NULL) < 0)
        _exit(100);
    if (fate == 'd')
        raise(SIGKILL);
    if (fate == 'l')
        lookout_free(lookout);
    if (fate == 'l')
        _exit(0);
    _exit(finds(lookout, &dead) ? dead : 101);
}

static int end_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_a_death_is_told_to_all_and_a_good_bye_is_none(void **state)
{
    struct lookout_address address;
    struct lookout *hub;
    struct err e = {0};
    pid_t pids[3];
    int dead = -1;

    (void)state;
    assert_int_equal(lookout_listen(&hub, &address, &e), 0);
    pids[0] = start(&address, 4, 'w');
    pids[1] = start(&address, 5, 'l');
    pids[2] = start(&address, 6, 'd');
    assert_int_equal(lookout_accept(hub, 3, &e), 0);
    assert_true(finds(hub, &dead));
    assert_int_equal(dead, 6);
    assert_int_equal(end_of(pids[0]), 6);
    assert_int_equal(end_of(pids[1]), 0);
    assert_int_equal(end_of(pids[2]), -SIGKILL);
    lookout_free(hub);
}

static void test_who_loses_rank_0_knows_it(void **state)
{
    struct lookout_address address;
    struct lookout *hub;
    pid_t pid, zero;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    zero = fork();
    if (zero == 0) {
        if (lookout_listen(&hub, &address, NULL) < 0 ||
            write(ends[1], &address, sizeof address) != sizeof address ||
            lookout_accept(hub, 1, NULL) < 0)
            _exit(1);
        raise(SIGKILL);
    }
    assert_int_equal(read(ends[0], &address, sizeof address), sizeof address);
    pid = start(&address, 1, 'w');
    assert_int_equal(end_of(zero), -SIGKILL);
    assert_int_equal(end_of(pid), 0); /* the number of the rank that died */
    close(ends[0]);
    close(ends[1]);
}

static void test_a_stranger_is_not_let_in(void **state)
{
    struct lookout_address address, wrong;
    struct lookout *hub = NULL, *guest = NULL;
    struct err e = {0};
    pid_t pid;
    int dead = -1;

    (void)state;
    assert_int_equal(lookout_listen(&hub, &address, &e), 0);
    wrong = address;
    wrong.token[3] ^= 1;
    assert_int_equal(lookout_connect(&wrong, 9, &guest, &e), 0);
    pid = start(&address, 1, 'd');
    assert_int_equal(lookout_accept(hub, 1, &e), 0);
    assert_int_equal(lookout_confirm(guest, &e), -1);
    assert_true(finds(hub, &dead));
    assert_int_equal(dead, 1);
    end_of(pid);
    lookout_free(guest);
    lookout_free(hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_death_is_told_to_all_and_a_good_bye_is_none),
        cmocka_unit_test(test_who_loses_rank_0_knows_it),
        cmocka_unit_test(test_a_stranger_is_not_let_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
