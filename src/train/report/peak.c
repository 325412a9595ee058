/* peak.c - see peak.h.
 *
 * Twelve chains: two units of four cycles' latency need eight, the rest hides the loop.  The
 * kernels are compiled for each instruction set there is, and the machine's best is taken.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/report/peak.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    CHAINS = 12,
    ROUNDS = 5,
    TURNS = 1000, /* of the kernel between looks at the clock */
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- kernels: TURNS times CHAINS fused multiply-adds -----------------------------------------
 */

/* AddressSanitizer puts locals where a vector of 64 bytes may not lie. */
#define KERNEL(isa) __attribute__((target(isa), no_sanitize("address")))

#if defined(__x86_64__)
KERNEL("avx512f") static float fma_avx512(float start)
{
    __m512 a[CHAINS], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(start);

    for (int c = 0; c < CHAINS; c++)
        a[c] = _mm512_set1_ps((float)c);
    for (int t = 0; t < TURNS; t++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++)
            a[c] = _mm512_fmadd_ps(a[c], x, y);
    for (int c = 1; c < CHAINS; c++)
        a[0] = _mm512_add_ps(a[0], a[c]);
    return _mm512_cvtss_f32(a[0]);
}

KERNEL("avx2,fma") static float fma_avx2(float start)
{
    __m256 a[CHAINS], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(start);

    for (int c = 0; c < CHAINS; c++)
        a[c] = _mm256_set1_ps((float)c);
    for (int t = 0; t < TURNS; t++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++)
            a[c] = _mm256_fmadd_ps(a[c], x, y);
    for (int c = 1; c < CHAINS; c++)
        a[0] = _mm256_add_ps(a[0], a[c]);
    return _mm256_cvtss_f32(a[0]);
}
#endif

/* Four lanes: what every machine of 64 bits has; a product and a sum where there is no fused
 * operation. */
static float fma_plain(float start)
{
    typedef float lanes __attribute__((vector_size(16)));
    lanes a[CHAINS], x = {0.999f, 0.999f, 0.999f, 0.999f}, y = {start, start, start, start};

    for (int c = 0; c < CHAINS; c++)
        a[c] = y + (float)c;
    for (int t = 0; t < TURNS; t++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++)
            a[c] = a[c] * x + y;
    for (int c = 1; c < CHAINS; c++)
        a[0] += a[c];
    return a[0][0];
}

struct kernel {
    float (*run)(float start);
    int lanes;
};

static struct kernel best_kernel(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return (struct kernel){fma_avx512, 16};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct kernel){fma_avx2, 8};
#endif
    return (struct kernel){fma_plain, 4};
}

/* --- threads ---------------------------------------------------------------------------------
 */

/* One thread's work in a round: returns how much it did. */
typedef double work_fn(void *arg, int thread, double until_s);

struct team {
    pthread_barrier_t gate;
    work_fn *work;
    void *arg;
    double best; /* of the rounds: sum of all threads' rates */
    double rate[ROUNDS];
    pthread_mutex_t lock;
};

struct seat {
    struct team *team;
    pthread_t thread;
    int number;
};

static void *be_thread(void *arg)
{
    const double round_s = 0.01;
    struct seat *seat = arg;
    struct team *team = seat->team;

    for (int round = 0; round < ROUNDS; round++) {
        double begun, done;

        pthread_barrier_wait(&team->gate);
        begun = now_s();
        done = team->work(team->arg, seat->number, begun + round_s);
        done /= now_s() - begun;
        pthread_mutex_lock(&team->lock);
        team->rate[round] += done;
        pthread_mutex_unlock(&team->lock);
    }
    return NULL;
}

/* Work per second of all threads together; the best round, since whatever else runs only ever
 * slows it. */
static double best_rate(int threads, work_fn *work, void *arg)
{
    struct team team = {.work = work, .arg = arg, .lock = PTHREAD_MUTEX_INITIALIZER};
    auto_free struct seat *seats = xcalloc((size_t)threads, sizeof *seats);

    pthread_barrier_init(&team.gate, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        seats[i] = (struct seat){.team = &team, .number = i};
        if (i > 0 && pthread_create(&seats[i].thread, NULL, be_thread, &seats[i]) != 0)
            abort(); /* the barrier counts on it */
    }
    be_thread(&seats[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(seats[i].thread, NULL);
    pthread_barrier_destroy(&team.gate);
    for (int round = 0; round < ROUNDS; round++)
        if (team.rate[round] > team.best)
            team.best = team.rate[round];
    return team.best;
}

/* --- what is measured ------------------------------------------------------------------------
 */

static double multiply(void *arg, int thread, double until_s)
{
    const struct kernel *kernel = arg;
    volatile float sink = 0.001f;
    double flops = 0;

    (void)thread;
    do {
        for (int i = 0; i < 20; i++)
            sink = kernel->run(sink * 1e-9f);
        flops += 20.0 * TURNS * CHAINS * 2 * kernel->lanes;
    } while (now_s() < until_s);
    return flops;
}

double peak_flops(int threads)
{
    struct kernel kernel = best_kernel();

    return best_rate(threads > 0 ? threads : 1, multiply, &kernel);
}

struct memory {
    float *a, *b, *c;
    size_t each; /* floats of a thread */
};

enum {
    LINE = 16, /* floats of a cache line */
};
typedef float line __attribute__((vector_size(LINE * sizeof(float)), aligned(4), may_alias));

/* a = b + 3 c, over this thread's share, once.  Counted as the three arrays' bytes, as STREAM
 * does. */
static double triad(void *arg, int thread, double until_s)
{
    const struct memory *m = arg;
    size_t from = m->each * (size_t)thread;
    double bytes = 0;

    do {
        for (size_t i = from; i + LINE <= from + m->each; i += LINE)
            *(line *)(m->a + i) = *(const line *)(m->b + i) + 3 * *(const line *)(m->c + i);
        bytes += 3.0 * (double)m->each * sizeof(float);
    } while (now_s() < until_s);
    return bytes;
}

/* Twice the last cache for each array, within an eighth of the memory for all. */
static size_t array_bytes(size_t ranks)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), pages = sysconf(_SC_PHYS_PAGES);
    size_t wanted = cache > 0 ? 2 * (size_t)cache / ranks : 0;
    size_t least = ((size_t)64 << 20) / ranks;
    size_t most =
        pages > 0 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) / 8 / 3 / ranks : least;

    if (wanted < least)
        wanted = least;
    return wanted < most ? wanted : most;
}

double peak_bandwidth(int threads)
{
    return peak_bandwidth_shared(threads, 1);
}

double peak_bandwidth_shared(int threads, int ranks)
{
    size_t bytes = array_bytes(ranks > 1 ? (size_t)ranks : 1) / 4096 * 4096;
    size_t n = bytes / sizeof(float);
    float *all =
        mmap(NULL, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct memory memory;
    double best;

    if (threads < 1)
        threads = 1;
    if (all == MAP_FAILED)
        return 0;
    madvise(all, 3 * bytes, MADV_HUGEPAGE);
    memory = (struct memory){all, all + n, all + 2 * n, n / (size_t)threads};
    best = best_rate(threads, triad, &memory); /* the first round pays for the pages */
    munmap(all, 3 * bytes);
    return best;
}
