/* loader.h - batches, decoded ahead by threads, in an order that a seed fixes.
 *
 * Epoch by epoch, all examples are permuted by (seed, epoch) without a table (a keyed
 * permutation of 0..count-1), rank r of n takes positions r, r+n, ...; batch b is a function of
 * (seed, rank, ranks, b) alone, so a run that resumes at batch b sees what it would have seen.
 * Training drops what is left of an epoch only by running on into the next; evaluation sees
 * every example once, the last batch being padded with label -1, which counts nowhere.
 *
 * A corrupt example is reported by name on stderr, replaced by the next position's, and
 * counted; beyond the limit loader_next fails with the last message and the count.
 *
 * Synthetic data: one batch, made once; loader_next gives it again and says so (is_same), so
 * that nothing is fed twice.
 *
 * Threads: loader_next and loader_release from one thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_DATA_LOADER_H
#define TRAIN_DATA_LOADER_H

#include "train/data/dataset.h"

struct loader; /* opaque */

struct loader_options {
    int64_t batch;
    struct decode_options decode;
    uint64_t seed;
    int rank, ranks;
    int64_t first_batch; /* of this rank: where to begin */
    int threads;         /* 0 = 1, or as many as cores are left beside the step's threads */
    int ahead;           /* batches kept ready; 0 = 2.  A ring of ahead + 3 is allocated once */
    bool repeats_sample; /* --datasets_repeat_cached_sample: decode one batch, give it always */
    bool is_shuffled;
    int most_corrupt; /* examples */
};

struct batch {
    const void *images;    /* N H W C; u8, or f32 when synthetic */
    const int32_t *labels; /* N */
    bool is_float;
    bool is_same;     /* as the one before */
    int64_t examples; /* without padding */
    int64_t number;
    int slot; /* the loader's */
};

int loader_new(const struct dataset *dataset,
               const struct loader_options *options,
               struct loader **ret_loader,
               struct err *e);
void loader_free(struct loader *loader);
/* Blocks until the next batch is ready; at the end of an evaluation examples is 0.  Several may
 * be out at once. */
int loader_next(struct loader *loader, struct batch *ret_batch, struct err *e);
void loader_release(struct loader *loader, const struct batch *batch);
/* How long loader_next waited since the last call: time that the data cost. */
double loader_waited_s(struct loader *loader);
int64_t loader_corrupt(struct loader *loader); /* examples skipped so far */

#endif
