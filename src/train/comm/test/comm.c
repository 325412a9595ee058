/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include "ranks.h"

#include <cmocka.h>

static const int counts[] = {1, 2, 3, 8};

static int knows_itself(struct comm *comm, void *arg)
{
    const struct comm_facts *facts = comm_facts(comm);

    CHECK(facts->ranks == *(int *)arg);
    CHECK(facts->rank >= 0 && facts->rank < facts->ranks && facts->rank == facts->local_rank);
    CHECK(facts->hosts == 1 && facts->host == 0 && facts->local_ranks == facts->ranks);
    CHECK(str_equal(facts->way, "local") && facts->host_name[0]);
    return 0;
}

static void test_ranks_know_themselves(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        int ranks = counts[i];

        assert_int_equal(ranks_run(ranks, knows_itself, &ranks, NULL), 0);
    }
}

static void test_without_a_launcher_one_is_alone(void **state)
{
    struct comm *comm;
    struct err e = {0};
    double value = 2;
    char text[] = "stays";

    (void)state;
    assert_int_equal(comm_open(&comm, &e), 0);
    assert_string_equal(comm_facts(comm)->way, "alone");
    assert_int_equal(comm_facts(comm)->ranks, 1);
    assert_int_equal(comm_barrier(comm, &e), 0);
    assert_int_equal(comm_sum(comm, &value, 1, &e), 0);
    assert_int_equal(comm_broadcast(comm, text, sizeof text, 0, &e), 0);
    assert_int_equal(comm_agree(comm, "model", "a", &e), 0);
    assert_true(value == 2);
    assert_string_equal(text, "stays");
    comm_free(comm);
}

/* Also longer than the exchange area, and from several roots. */
static int broadcasts(struct comm *comm, void *arg)
{
    const size_t sizes[] = {0, 1, 4096, (1 << 20) + 1};
    auto_free unsigned char *bytes = xcalloc(1, (1 << 20) + 1);
    int rank = comm_facts(comm)->rank;
    struct err e = {0};

    (void)arg;
    for (int root = 0; root < comm_facts(comm)->ranks; root += 3)
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
            for (size_t k = 0; k < sizes[i]; k++)
                bytes[k] = (unsigned char)(rank == root ? k * 7 + (size_t)root : 255);
            CHECK_OK(comm_broadcast(comm, bytes, sizes[i], root, &e));
            for (size_t k = 0; k < sizes[i]; k++)
                CHECK(bytes[k] == (unsigned char)(k * 7 + (size_t)root));
        }
    return 0;
}

static int gathers(struct comm *comm, void *arg)
{
    size_t ranks = (size_t)comm_facts(comm)->ranks;
    const size_t len = (1 << 20) / ranks + 17; /* two rounds */
    auto_free unsigned char *mine = xmalloc(len), *all = xmalloc(len * ranks);
    struct err e = {0};

    (void)arg;
    for (size_t k = 0; k < len; k++)
        mine[k] = (unsigned char)(k + (size_t)comm_facts(comm)->rank);
    CHECK_OK(comm_gather(comm, mine, len, all, &e));
    for (size_t r = 0; r < ranks; r++)
        for (size_t k = 0; k < len; k++)
            CHECK(all[r * len + k] == (unsigned char)(k + r));
    return 0;
}

static int folds(struct comm *comm, void *arg)
{
    int rank = comm_facts(comm)->rank, ranks = comm_facts(comm)->ranks;
    double sums[] = {rank, 1, 0.1}, most[] = {rank, -rank, rank == 1 ? NAN : 0};
    struct err e = {0};

    (void)arg;
    CHECK_OK(comm_sum(comm, sums, 3, &e));
    CHECK(sums[0] == ranks * (ranks - 1) / 2 && sums[1] == ranks);
    CHECK_OK(comm_most(comm, most, 3, &e));
    CHECK(most[0] == ranks - 1 && most[1] == 0);
    CHECK(ranks == 1 || isnan(most[2])); /* what is not a number is not hidden */
    return 0;
}

static int many_barriers(struct comm *comm, void *arg)
{
    struct err e = {0};

    (void)arg;
    for (int i = 0; i < 100; i++)
        CHECK_OK(comm_barrier(comm, &e));
    return 0;
}

static void test_collectives(void **state)
{
    static ranks_fn *const all[] = {broadcasts, gathers, folds, many_barriers};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        for (size_t k = 0; k < ARRAY_SIZE(all); k++)
            assert_int_equal(ranks_run(counts[i], all[k], NULL, NULL), 0);
}

static int agrees_but_for_two(struct comm *comm, void *arg)
{
    int rank = comm_facts(comm)->rank;
    struct err e = {0};

    (void)arg;
    CHECK_OK(comm_agree(comm, "model", "resnet50", &e));
    CHECK(comm_agree(comm, "model", rank == 1 || rank == 3 ? "vgg" : "lenet", &e) < 0);
    CHECK(e.code == ERR_CONFLICT);
    CHECK(str_equal(e.msg, "model: ranks 1, 3 differ from rank 0"));
    return 0;
}

static void test_ranks_that_differ_are_named_everywhere(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(4, agrees_but_for_two, NULL, NULL), 0);
}

/* --- death -----------------------------------------------------------------------------------
 */

struct death {
    int rank, signal; /* signal 0: exits with status 7 */
};

static int loses_one(struct comm *comm, void *arg)
{
    const struct death *death = arg;
    char want[64];
    struct err e = {0};
    int64_t begun;

    CHECK_OK(comm_barrier(comm, &e));
    if (comm_facts(comm)->rank == death->rank) {
        if (death->signal == 0)
            _exit(7);
        raise(death->signal);
    }
    begun = clock_mono_ms();
    CHECK(comm_barrier(comm, &e) < 0);
    CHECK(clock_mono_ms() - begun < COMM_DEATH_SECONDS * 1000);
    snprintf(want, sizeof want, "rank %d (host ", death->rank);
    CHECK(e.code == ERR_BUSY && str_starts(e.msg, want) && strstr(e.msg, ") died"));
    return 0;
}

static void test_a_dead_rank_is_named_by_all_others(void **state)
{
    static const struct death deaths[] = {{0, SIGKILL}, {2, SIGKILL}, {1, SIGTERM}, {3, 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(deaths); i++) {
        struct death death = deaths[i];

        assert_int_equal(ranks_run(4, loses_one, &death, NULL), 1);
    }
}

static int waits_for_a_sleeper(struct comm *comm, void *arg)
{
    const struct timespec nap = {0, 600000000};
    struct err e = {0};

    (void)arg;
    if (comm_facts(comm)->rank == 1)
        nanosleep(&nap, NULL);
    CHECK_OK(comm_barrier(comm, &e));
    return 0;
}

static void test_a_slow_rank_is_waited_for(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, waits_for_a_sleeper, NULL, NULL), 0);
}

static int aborts(struct comm *comm, void *arg)
{
    struct err e = {0};
    struct err why = {.code = ERR_NOT_FOUND, .msg = "no such model"};
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)arg;
    dup2(quiet, STDERR_FILENO);
    if (comm_facts(comm)->rank == 1)
        comm_abort(comm, &why);
    CHECK(comm_barrier(comm, &e) < 0);
    CHECK(str_starts(e.msg, "rank 1 "));
    return 0;
}

static void test_abort_has_the_errors_status_and_ends_the_others_waits(void **state)
{
    int status[RANKS_MOST] = {0};

    (void)state;
    assert_int_equal(ranks_run(3, aborts, NULL, status), 1);
    assert_int_equal(WEXITSTATUS(status[1]), err_info(ERR_NOT_FOUND)->exit_status);
}

static int is_gone(struct comm *comm, void *arg)
{
    struct err e = {0};
    char path[SHARE_NAME_BYTES + 16], text[LOCAL_TEXT_BYTES];
    const char *name;

    (void)arg;
    CHECK_OK(comm_barrier(comm, &e));
    snprintf(text, sizeof text, "%s", getenv(LOCAL_VARIABLE));
    name = strchr(text, '/');
    snprintf(path, sizeof path, "/dev/shm%s", name);
    CHECK(access(path, F_OK) < 0);
    return 0;
}

static void test_nothing_stays_in_shared_memory(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, is_gone, NULL, NULL), 0);
}

static void test_a_bad_seat_is_refused(void **state)
{
    static const char *const bad[] = {
        "",      "0",        "0:2",       "0:2:",     "2:2:/x",     "-1:2:/x",
        "0:0:/", "0:2:name", "0:2:/a/b",  "a:2:/x",   "0:99999:/x", "0x0:2:/x",
        "0:2:/", " 0:2:/x",  "0 :2:/abc", "0:999:/x",
    };
    struct local_seat seat;
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(local_parse(bad[i], &seat, &e), -1);
    assert_int_equal(local_parse("3:4:/yardbench-1", &seat, &e), 0);
    assert_int_equal(seat.rank, 3);
    assert_string_equal(seat.name, "/yardbench-1");
    setenv(LOCAL_VARIABLE, "0:2:/yardbench-none", 1);
    assert_int_equal(comm_open(&(struct comm *){NULL}, &e), -1);
    unsetenv(LOCAL_VARIABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_launcher_one_is_alone),
        cmocka_unit_test(test_ranks_know_themselves),
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_ranks_that_differ_are_named_everywhere),
        cmocka_unit_test(test_a_dead_rank_is_named_by_all_others),
        cmocka_unit_test(test_a_slow_rank_is_waited_for),
        cmocka_unit_test(test_abort_has_the_errors_status_and_ends_the_others_waits),
        cmocka_unit_test(test_nothing_stays_in_shared_memory),
        cmocka_unit_test(test_a_bad_seat_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
