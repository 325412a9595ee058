/* checkpoint.h - a run on disk: all params and states of a plan, and where the run stood.
 *
 * --train_dir holds model-<step>.safetensors, the newest max_ckpts_to_keep of them.  The
 * metadata have: format "yardbench 1", model, dataset, optimizer, step, epoch position (batches
 * of the loader), seed, loss scale and its good steps, ranks, precision, classes.  Restoring
 * gives exactly the run that was interrupted: same bits from there on, with the same ranks and
 * threads.
 *
 * A checkpoint of another model, or with other shapes, is refused with the first name that
 * does not fit and both shapes; optimiser slots of another optimiser are left out with a word
 * on stderr by the caller (ret_missing).
 *
 * Only rank 0 writes; every rank reads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CHECKPOINT_CHECKPOINT_H
#define TRAIN_CHECKPOINT_CHECKPOINT_H

#include "base/err.h"

#include <stdint.h>

struct plan;

struct checkpoint_facts {
    char model[64], dataset[32], optimizer[16];
    int64_t step;
    int64_t batches; /* taken from the loader, by each rank */
    uint64_t seed;
    double loss_scale;
    int64_t good_steps;
    int ranks;
    int64_t classes;
};

int checkpoint_save(struct plan *plan,
                    const char *path,
                    const struct checkpoint_facts *facts,
                    struct err *e);
/* params_only: for evaluation and for --backbone_model_path; states that are running
 * statistics count as part of the model. */
int checkpoint_load(struct plan *plan,
                    const char *path,
                    bool params_only,
                    struct checkpoint_facts *ret_facts,
                    int *ret_missing,
                    struct err *e);

/* What a checkpoint says of itself, without loading it. */
int checkpoint_facts_of(const char *path, struct checkpoint_facts *ret_facts, struct err *e);

/* The file of a step in a folder; caller frees. */
char *checkpoint_path(const char *folder, int64_t step);
/* The newest whole one: *ret_path is NULL when there is none; caller frees. */
int checkpoint_latest(const char *folder, char **ret_path, struct err *e);
/* Remove all but the newest `keep` (0 = keep all), and what killed runs left half written: one
 * run at a time writes into a folder. */
int checkpoint_prune(const char *folder, int keep, struct err *e);

#endif
