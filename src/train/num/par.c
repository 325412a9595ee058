/* par.c - see par.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/num/par.h"

#ifdef _OPENMP
#include <omp.h>
#else
/* oneDNN may bring an OpenMP of its own into the process: keep it to one thread as well. */
void omp_set_num_threads(int threads) __attribute__((weak));
#endif

#ifdef __SSE__
#include <xmmintrin.h>
#endif

static int team = 1;

#ifdef _OPENMP
/* Of the process: with OMP_PROC_BIND this thread has been put on one of them by now. */
static int usable_cores(void)
{
    return omp_get_num_procs();
}
#endif

static void flush_denormals(void)
{
#ifdef __SSE__
    const unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040;

    _mm_setcsr(_mm_getcsr() | flush_to_zero | denormals_are_zero);
#endif
}

void par_init(int threads)
{
#ifdef _OPENMP
    team = threads > 0 ? threads : usable_cores();
    omp_set_dynamic(0);
    omp_set_num_threads(team);
#pragma omp parallel
    flush_denormals();
#else
    (void)threads;
    team = 1;
    if (omp_set_num_threads)
        omp_set_num_threads(1);
    flush_denormals();
#endif
}

int par_threads(void)
{
    return team;
}

int par_pieces(int64_t count, int64_t grain)
{
    int64_t pieces = grain > 0 ? count / grain : count;

    if (pieces > team)
        pieces = team;
    return pieces > 1 ? (int)pieces : 1;
}

void par_piece(int64_t count, int64_t grain, int piece, int64_t *ret_from, int64_t *ret_to)
{
    int pieces = par_pieces(count, grain);
    int64_t each = count / pieces, more = count % pieces;

    *ret_from = piece * each + (piece < more ? piece : more);
    *ret_to = *ret_from + each + (piece < more ? 1 : 0);
}

static void run_piece(int64_t count, int64_t grain, int piece, par_fn *fn, void *arg)
{
    int64_t from, to;

    par_piece(count, grain, piece, &from, &to);
    fn(arg, from, to);
}

/* The whole team enters even when there are fewer pieces: libgomp ends threads that a smaller
 * team leaves over, and would start them again for the next loop. */
void par_for(int64_t count, int64_t grain, par_fn *fn, void *arg)
{
    int pieces = par_pieces(count, grain);

    if (count <= 0)
        return;
    if (pieces == 1) {
        fn(arg, 0, count);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel
    for (int piece = omp_get_thread_num(); piece < pieces; piece += omp_get_num_threads())
        run_piece(count, grain, piece, fn, arg);
#else
    for (int piece = 0; piece < pieces; piece++)
        run_piece(count, grain, piece, fn, arg);
#endif
}
