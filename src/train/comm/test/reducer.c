/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/reducer.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include "ranks.h"

#include <cmocka.h>

static const int counts[] = {1, 2, 3, 4, 8};

/* Empty, one float, odd, just around a chunk, larger than a piece. */
static const size_t sizes[] = {0, 1, 3, 63, 65, 1000, 4095, 4097, 30001, 100003};

/* Some number that differs by rank, step and place, and whose sums round. */
static float number(int rank, int step, size_t at)
{
    uint32_t x = (uint32_t)(at * 2654435761u) ^ (uint32_t)(rank * 40503 + step * 9176 + 1);

    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (float)(int32_t)x * 0x1p-20f;
}

static float sum_in_order(int ranks, int step, size_t at)
{
    float sum = number(0, step, at);

    for (int r = 1; r < ranks; r++)
        sum += number(r, step, at);
    return sum;
}

struct bench {
    struct reducer *reducer;
    struct reducer_span spans[ARRAY_SIZE(sizes)];
    float *arena;
    size_t floats;
};

static int set_up(struct bench *b, struct comm *comm, struct err *e)
{
    struct reducer_options options;

    if (reducer_defaults(&options, e) < 0)
        return -1;
    options.piece_bytes = 64 << 10;
    b->floats = 0;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        b->spans[i] = (struct reducer_span){b->floats, sizes[i]};
        b->floats += sizes[i] + i % 3; /* with gaps, that nobody may touch */
    }
    if (reducer_new(comm, &options, &b->reducer, e) < 0 ||
        reducer_arena(b->reducer, b->floats * sizeof(float), &b->arena, e) < 0)
        return -1;
    return reducer_attach(b->reducer, b->spans, ARRAY_SIZE(sizes), e);
}

static void fill(struct bench *b, int bucket, int rank, int step)
{
    for (size_t i = 0; i < b->spans[bucket].count; i++)
        b->arena[b->spans[bucket].offset + i] = number(rank, step, b->spans[bucket].offset + i);
}

/* All of it in the first steps, then every 61st: sanitizers are slow. */
static int is_summed(struct bench *b, int bucket, int ranks, int step)
{
    for (size_t i = 0; i < b->spans[bucket].count; i += step < 2 ? 1 : 61) {
        float want = sum_in_order(ranks, step, b->spans[bucket].offset + i);

        CHECK(memcmp(&b->arena[b->spans[bucket].offset + i], &want, sizeof want) == 0);
    }
    return 0;
}

static int are_gaps_whole(struct bench *b)
{
    for (size_t i = 0; i + 1 < ARRAY_SIZE(sizes); i++)
        for (size_t k = b->spans[i].offset + b->spans[i].count; k < b->spans[i + 1].offset; k++)
            CHECK(b->arena[k] == 0);
    return 0;
}

/* As a step does: start each as it is ready, in reverse, then wait for each. */
static int steps(struct comm *comm, void *arg)
{
    int rank = comm_facts(comm)->rank, ranks = comm_facts(comm)->ranks;
    int last = (int)ARRAY_SIZE(sizes) - 1;
    struct bench b = {0};
    struct err e = {0};

    (void)arg;
    CHECK_OK(set_up(&b, comm, &e));
    for (int step = 0; step < 12; step++) {
        for (int k = last; k >= 0; k--) {
            fill(&b, k, rank, step);
            reducer_start(b.reducer, k);
        }
        for (int k = last; k >= 0; k--) {
            CHECK_OK(reducer_wait(b.reducer, k, &e));
            CHECK(is_summed(&b, k, ranks, step) == 0);
        }
    }
    CHECK(are_gaps_whole(&b) == 0);
    reducer_free(b.reducer);
    return 0;
}

static void test_sums_have_the_bits_of_a_sum_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        assert_int_equal(ranks_run(counts[i], steps, NULL, NULL), 0);
}

/* A cycle time only delays. */
static void test_a_cycle_time_changes_nothing_but_time(void **state)
{
    (void)state;
    setenv("HOROVOD_CYCLE_TIME", "0.5", 1);
    assert_int_equal(ranks_run(2, steps, NULL, NULL), 0);
    unsetenv("HOROVOD_CYCLE_TIME");
}

/* Waits in another order than starts, some buckets in some steps only. */
static int odd_orders(struct comm *comm, void *arg)
{
    static const int order[] = {9, 2, 7, 4};
    int rank = comm_facts(comm)->rank, ranks = comm_facts(comm)->ranks;
    struct bench b = {0};
    struct err e = {0};

    (void)arg;
    CHECK_OK(set_up(&b, comm, &e));
    for (int step = 0; step < 16; step++) {
        size_t some = 1 + (size_t)step % ARRAY_SIZE(order);

        for (size_t i = 0; i < some; i++) {
            fill(&b, order[i], rank, step);
            reducer_start(b.reducer, order[i]);
        }
        for (size_t i = some; i-- > 0;) {
            CHECK_OK(reducer_wait(b.reducer, order[i], &e));
            CHECK(is_summed(&b, order[i], ranks, step) == 0);
        }
    }
    reducer_free(b.reducer);
    return 0;
}

static void test_buckets_may_be_waited_for_in_any_order(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, odd_orders, NULL, NULL), 0);
}

/* --- reducer_sum -----------------------------------------------------------------------------
 */

static int sums_at(struct comm *comm, struct reducer *reducer, float *values, size_t n)
{
    int rank = comm_facts(comm)->rank, ranks = comm_facts(comm)->ranks;
    struct err e = {0};

    for (int step = 0; step < 2; step++) {
        for (size_t i = 0; i < n; i++)
            values[i] = number(rank, step, i);
        CHECK_OK(reducer_sum(reducer, values, n, &e));
        for (size_t i = 0; i < n; i++)
            CHECK(values[i] == sum_in_order(ranks, step, i));
    }
    return 0;
}

static int sums_any_memory(struct comm *comm, void *arg)
{
    struct bench b = {0};
    struct err e = {0};

    (void)arg;
    CHECK_OK(set_up(&b, comm, &e));
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        auto_free float *values = xcalloc(sizes[i] + 1, sizeof *values);

        CHECK(sums_at(comm, b.reducer, values, sizes[i]) == 0);
        CHECK(values[sizes[i]] == 0);
        /* in the arena, at another place on every rank */
        CHECK(sums_at(comm, b.reducer, b.arena + comm_facts(comm)->rank, sizes[i]) == 0);
    }
    reducer_free(b.reducer);
    return 0;
}

static void test_any_memory_can_be_summed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        assert_int_equal(ranks_run(counts[i], sums_any_memory, NULL, NULL), 0);
}

/* --- what it tells ---------------------------------------------------------------------------
 */

static int tells(struct comm *comm, void *arg)
{
    struct reducer_times times;
    const struct reducer_event *events;
    auto_str pace = {0};
    struct bench b = {0};
    struct err e = {0};
    int count = 0;
    const struct timespec nap = {0, 20000000};

    (void)arg;
    CHECK_OK(set_up(&b, comm, &e));
    reducer_trace(b.reducer, true);
    nanosleep(&nap, NULL);
    reducer_start(b.reducer, 9);
    reducer_start(b.reducer, 0); /* empty */
    nanosleep(&nap, NULL);
    CHECK_OK(reducer_wait(b.reducer, 9, &e));
    CHECK_OK(reducer_wait(b.reducer, 0, &e));
    reducer_times(b.reducer, &times);
    CHECK(times.calls == 2 && times.bytes == sizes[9] * sizeof(float));
    CHECK(times.busy_s >= 0 && times.exposed_s >= 0 && times.exposed_s < 10);
    events = reducer_events(b.reducer, &count);
    CHECK(count == 1 && events[0].bucket == 9);
    CHECK(events[0].begin_ns > 0 && events[0].end_ns >= events[0].begin_ns);
    reducer_pace(b.reducer, &pace);
    CHECK(strtod(str_text(&pace), NULL) >= 0.04);
    CHECK(strstr(str_text(&pace), ":400012") != NULL);
    str_truncate(&pace, 0);
    reducer_pace(b.reducer, &pace);
    CHECK(pace.len == 0);
    reducer_times(b.reducer, &times);
    CHECK(times.calls == 0 && times.bytes == 0 && times.busy_s == 0);
    reducer_free(b.reducer);
    return 0;
}

static void test_times_events_and_pace(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, tells, NULL, NULL), 0);
}

/* --- what is refused -------------------------------------------------------------------------
 */

static int differs(struct comm *comm, void *arg)
{
    int rank = comm_facts(comm)->rank;
    struct reducer_span spans[] = {{0, 10}, {10, rank == 1 ? 5 : 6}};
    struct reducer_options options;
    struct reducer *reducer;
    struct err e = {0};
    float *arena;

    (void)arg;
    CHECK_OK(reducer_defaults(&options, &e));
    CHECK_OK(reducer_new(comm, &options, &reducer, &e));
    CHECK(reducer_arena(reducer, rank == 2 ? 400 : 404, &arena, &e) < 0);
    CHECK(strstr(e.msg, "rank 2 differs"));
    CHECK_OK(reducer_arena(reducer, 400, &arena, &e));
    CHECK((uintptr_t)arena % 4096 == 0);
    CHECK(reducer_attach(reducer, spans, 2, &e) < 0);
    CHECK(strstr(e.msg, "buckets of gradients: rank 1 differs"));
    spans[1].count = 91; /* beyond the end */
    CHECK(reducer_attach(reducer, spans, 2, &e) < 0 && e.code == ERR_RANGE);
    spans[1] = (struct reducer_span){9, 5}; /* overlaps */
    CHECK(reducer_attach(reducer, spans, 2, &e) < 0 && e.code == ERR_RANGE);
    reducer_free(reducer);
    return 0;
}

static void test_ranks_with_other_buckets_are_refused(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, differs, NULL, NULL), 0);
}

static void test_the_environment_is_read_and_checked(void **state)
{
    static const char *const bad[] = {"", "x", "-1", "1e99", "3 MB", "nan"};
    struct reducer_options options;
    struct err e = {0};

    (void)state;
    assert_int_equal(reducer_defaults(&options, &e), 0);
    assert_int_equal(options.fusion_bytes, 16 << 20);
    assert_true(options.cycle_ms == 0);
    setenv("HOROVOD_FUSION_THRESHOLD", "0", 1);
    setenv("HOROVOD_CYCLE_TIME", "3.5", 1);
    assert_int_equal(reducer_defaults(&options, &e), 0);
    assert_int_equal(options.fusion_bytes, 0);
    assert_true(options.cycle_ms == 3.5);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        setenv("HOROVOD_CYCLE_TIME", bad[i], 1);
        assert_int_equal(reducer_defaults(&options, &e), -1);
        assert_non_null(strstr(e.msg, "HOROVOD_CYCLE_TIME"));
    }
    unsetenv("HOROVOD_FUSION_THRESHOLD");
    unsetenv("HOROVOD_CYCLE_TIME");
}

/* --- death -----------------------------------------------------------------------------------
 */

struct death {
    int rank;
    bool has_started; /* it handed one bucket in before */
};

static int loses_one(struct comm *comm, void *arg)
{
    const struct death *death = arg;
    int rank = comm_facts(comm)->rank;
    struct bench b = {0};
    struct err e = {0};
    int64_t begun;
    char want[32];

    CHECK_OK(set_up(&b, comm, &e));
    if (rank == death->rank) {
        if (death->has_started)
            reducer_start(b.reducer, 9);
        raise(SIGKILL);
    }
    reducer_start(b.reducer, 9);
    reducer_start(b.reducer, 8);
    begun = clock_mono_ms();
    CHECK(reducer_wait(b.reducer, 8, &e) < 0);
    CHECK(clock_mono_ms() - begun < COMM_DEATH_SECONDS * 1000);
    snprintf(want, sizeof want, "rank %d (host ", death->rank);
    CHECK(str_starts(e.msg, want));
    reducer_free(b.reducer);
    return 0;
}

static void test_a_rank_that_dies_in_a_step_is_named(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++)
        for (int started = 0; started < 2; started++) {
            struct death death = {rank, started};

            assert_int_equal(ranks_run(3, loses_one, &death, NULL), 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_have_the_bits_of_a_sum_in_order),
        cmocka_unit_test(test_a_cycle_time_changes_nothing_but_time),
        cmocka_unit_test(test_buckets_may_be_waited_for_in_any_order),
        cmocka_unit_test(test_any_memory_can_be_summed),
        cmocka_unit_test(test_times_events_and_pace),
        cmocka_unit_test(test_ranks_with_other_buckets_are_refused),
        cmocka_unit_test(test_the_environment_is_read_and_checked),
        cmocka_unit_test(test_a_rank_that_dies_in_a_step_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
