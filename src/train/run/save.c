/* save.c - checkpoints of a run: written when due, taken up again at the start.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fs.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/common.h"
#include "train/run/run-internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void fill_facts(const struct run *run, struct checkpoint_facts *facts)
{
    *facts = (struct checkpoint_facts){
        .step = run->step,
        .batches = run->batches,
        .seed = run->spec.seed,
        .loss_scale = run->loss_scale,
        .ranks = run->ranks->ranks,
        .classes = run->data.classes,
    };
    snprintf(facts->model, sizeof(facts->model), "%s", run->spec.model->name);
    snprintf(facts->dataset, sizeof(facts->dataset), "%s", run->data.name);
    snprintf(facts->optimizer, sizeof(facts->optimizer), "%s", run->flags->optimizer);
}

int run_save(struct run *run, struct err *e)
{
    const char *folder = run->flags->train_dir;
    auto_free char *path = NULL;
    struct checkpoint_facts facts;

    if (!folder || run->ranks->rank != 0 || !run_is_training(run) ||
        run->saved_step == run->step)
        return 0;
    if (fs_make_folders(folder, 0777, e) < 0)
        return -1;
    path = checkpoint_path(folder, run->step);
    fill_facts(run, &facts);
    if (checkpoint_save(run->plan, path, &facts, e) < 0)
        return -1;
    run->saved_step = run->step;
    run->saved_ms = clock_mono_ms();
    return checkpoint_prune(folder, (int)run->flags->max_ckpts_to_keep, e);
}

bool run_saves_at(const struct run *run, int64_t step)
{
    int64_t every = run->spec.save_every, number = step - run->spec.warmup;

    return every > 0 && number > 0 && number % every == 0;
}

bool run_save_is_late(const struct run *run)
{
    int64_t seconds = run->flags->save_model_secs;

    return seconds > 0 && clock_mono_ms() - run->saved_ms >= 1000 * seconds;
}

/* What the backend has been given already comes first: the parameters are not at rest. */
int run_save_if_due(struct run *run, struct err *e)
{
    if (run->flight_count == 0 && (run_saves_at(run, run->step) || run_save_is_late(run)))
        return run_save(run, e);
    return 0;
}

static int check_facts(const struct run *run,
                       const char *path,
                       const struct checkpoint_facts *facts,
                       struct err *e)
{
    if (!str_equal(facts->model, run->spec.model->name))
        return err_set(e, ERR_CONFLICT,
                       "the checkpoint \"%.200s\" is of the model %.60s, not of %s", path,
                       facts->model, run->spec.model->name);
    return 0;
}

static void
say_differences(const struct run *run, const struct checkpoint_facts *facts, int missing)
{
    if (run->ranks->rank != 0)
        return;
    if (missing)
        fprintf(stderr,
                "yardbench: the checkpoint is of the optimizer %s: what %s keeps begins anew\n",
                facts->optimizer, run->flags->optimizer);
    if (facts->seed != run->spec.seed || facts->ranks != run->ranks->ranks)
        fprintf(stderr,
                "yardbench: the checkpoint had seed %" PRIu64 " and %d ranks: the run goes on, "
                "but not with the same bits\n",
                facts->seed, facts->ranks);
}

/* The model's name first: a wrong one explains shapes that do not fit. */
static int load(struct run *run, const char *path, struct err *e)
{
    struct checkpoint_facts facts;
    int missing;

    if (checkpoint_facts_of(path, &facts, e) < 0 || check_facts(run, path, &facts, e) < 0 ||
        checkpoint_load(run->plan, path, false, &facts, &missing, e) < 0)
        return -1;
    say_differences(run, &facts, missing);
    run->step = run->saved_step = facts.step;
    run->batches = facts.batches;
    if (run->ranks->rank == 0)
        fprintf(stderr, "yardbench: going on from \"%s\"\n", path);
    return 0;
}

/* Every rank reads the same file, so all must see the same newest one. */
static int agree_on(struct run *run, const char *path, struct err *e)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    if (run->ranks->ranks == 1)
        return 0;
    return comm_agree(run->comm, "newest checkpoint", slash ? slash + 1 : "none", e);
}

static int begin_with(struct run *run, struct err *e)
{
    const char *path = run->flags->backbone_model_path;
    struct checkpoint_facts facts;
    int missing;

    return path ? checkpoint_load(run->plan, path, true, &facts, &missing, e) : 0;
}

int run_resume(struct run *run, struct err *e)
{
    auto_free char *path = NULL;

    if (!run->plan)
        return 0;
    if (begin_with(run, e) < 0)
        return -1;
    if (run_is_training(run) && run->flags->train_dir) {
        if (checkpoint_latest(run->flags->train_dir, &path, e) < 0 ||
            agree_on(run, path, e) < 0 || (path && load(run, path, e) < 0))
            return -1;
    }
    return run->ranks->ranks > 1 && run->spec.update != RUN_INDEPENDENT
               ? run_broadcast(run->plan, run->comm, e)
               : 0;
}
