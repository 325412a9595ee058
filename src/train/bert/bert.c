/* bert.c - a run: its phases one after another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert.h"

#include "base/fs.h"
#include "train/bert/bert-internal.h"
#include "train/run/common.h"

/* Weights of the last phase, or of a file, or new ones. */
static int begin_phase(struct bert_run *run, const struct bert_carry *carry, struct err *e)
{
    if (bert_open_phase(run, e) < 0)
        return -1;
    return carry ? bert_carry_give(run, carry, e) : bert_begin_with(run, e);
}

static int end_phase(struct bert_run *run, struct err *e)
{
    bert_show_summary(run);
    bert_print_profile(run);
    if (bert_write_metrics(run, e) < 0 || bert_save(run, e) < 0)
        return -1;
    return 0;
}

static bool has_next(const struct bert_run *run)
{
    return !run->wants_stop && run->round + 1 < run->spec.phase_count;
}

static int phases(struct bert_run *run, struct err *e)
{
    autoptr(bert_carry) carry = NULL;

    for (;;) {
        if (begin_phase(run, carry, e) < 0)
            return -1;
        bert_carry_free(take_ptr(&carry));
        if (bert_loop(run, e) < 0 || end_phase(run, e) < 0)
            return -1;
        if (!has_next(run))
            return 0;
        if (bert_carry_take(run, &carry, e) < 0)
            return -1;
        bert_close_phase(run);
        run->round++;
        run->step = 0;
    }
}

static int save_weights(struct bert_run *run, struct err *e)
{
    const char *folder = run->flags->output_dir;
    auto_free char *path = NULL;

    if (!folder[0] || !bert_speaks(run) || run->spec.mode != BERT_TRAIN)
        return 0;
    if (fs_make_folders(folder, 0777, e) < 0)
        return -1;
    path = xasprintf("%s/%s_trained.safetensors", folder, run->spec.leaf);
    return bert_weights_save(run->plan, path, e);
}

static int run_all(struct bert_run *run, struct err *e)
{
    if (run->flags->plan_only)
        return bert_open_phase(run, e) < 0 ? -1 : bert_print_plan(run, e);
    if (run->spec.mode == BERT_VALIDATION)
        return bert_validate(run, e);
    if (bert_resume(run, e) < 0 || phases(run, e) < 0 || save_weights(run, e) < 0)
        return -1;
    return run->ranks->ranks > 1 ? comm_barrier(run->comm, e) : 0;
}

int bert_train(const struct bert_flags *flags,
               struct comm *comm,
               int *ret_signal,
               struct err *e)
{
    struct bert_run run;
    struct err unsaid;
    int rc;

    run_block_signals();
    rc = bert_open(&run, flags, comm, e);
    if (rc == 0)
        rc = run_all(&run, e);
    /* The figures are written whatever happened. */
    if (bert_write_json(&run, rc < 0 ? e : NULL, rc < 0 ? &unsaid : e) < 0)
        rc = -1;
    *ret_signal = run.wants_stop ? run_pending_signal() : 0;
    bert_close(&run);
    return rc;
}
