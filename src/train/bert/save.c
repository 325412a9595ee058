/* save.c - checkpoints, weights to begin with, and what one phase leaves to the next.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "train/bert/bert-internal.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/common.h"

#include <inttypes.h>
#include <string.h>

static bool is_kept(const struct tensor *t)
{
    return t->role == ROLE_PARAM || t->role == ROLE_STATE;
}

static void fill_facts(const struct bert_run *run, struct checkpoint_facts *facts)
{
    *facts = (struct checkpoint_facts){
        .step = run->updates,
        .batches = run->step,
        .seed = run->spec.seed,
        .loss_scale = run->loss_scale,
        .ranks = run->ranks->ranks,
        .classes = run->spec.size.vocabulary,
    };
    snprintf(facts->model, sizeof(facts->model), "%s", run->spec.model);
    snprintf(facts->dataset, sizeof(facts->dataset), "bert");
    snprintf(facts->optimizer, sizeof(facts->optimizer), "%s",
             optim_info(run->spec.optim.kind)->name);
}

int bert_save(struct bert_run *run, struct err *e)
{
    const char *folder = run->flags->checkpoints_dir;
    auto_free char *path = NULL;
    struct checkpoint_facts facts;

    if (!folder[0] || !bert_speaks(run) || run->spec.mode != BERT_TRAIN ||
        run->saved_at == run->updates)
        return 0;
    if (fs_make_folders(folder, 0777, e) < 0)
        return -1;
    path = checkpoint_path(folder, run->updates);
    fill_facts(run, &facts);
    if (checkpoint_save(run->plan, path, &facts, e) < 0)
        return -1;
    run->saved_at = run->updates;
    return checkpoint_prune(folder, (int)run->flags->max_num_checkpoints, e);
}

/* Every rank reads the same file, so all must see the same newest one. */
static int agree_on(struct bert_run *run, const char *path, struct err *e)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    if (run->ranks->ranks == 1)
        return 0;
    return comm_agree(run->comm, "newest checkpoint", slash ? slash + 1 : "none", e);
}

static int find(struct bert_run *run, char **ret_path, struct err *e)
{
    const char *named = run->flags->checkpoint_to_load_path;

    *ret_path = NULL;
    if (named[0])
        *ret_path = xstrdup(named);
    else if (run->flags->checkpoints_dir[0] &&
             checkpoint_latest(run->flags->checkpoints_dir, ret_path, e) < 0)
        return -1;
    return agree_on(run, *ret_path, e);
}

static int check_facts(const struct bert_run *run,
                       const char *path,
                       const struct checkpoint_facts *facts,
                       struct err *e)
{
    if (!str_equal(facts->model, run->spec.model))
        return err_set(e, ERR_CONFLICT,
                       "the checkpoint \"%.200s\" is of the model %.60s, not of %s", path,
                       facts->model, run->spec.model);
    return 0;
}

static void say_differences(const struct bert_run *run, const struct checkpoint_facts *facts)
{
    if (!str_equal(facts->optimizer, optim_info(run->spec.optim.kind)->name))
        fprintf(stderr,
                "yardbench: the checkpoint is of the optimizer %s: its moments are "
                "taken over\n",
                facts->optimizer);
    if (facts->seed != run->spec.seed || facts->ranks != run->ranks->ranks)
        fprintf(stderr,
                "yardbench: the checkpoint had seed %" PRIu64 " and %d ranks: the run goes on, "
                "but not with the same bits\n",
                facts->seed, facts->ranks);
}

static int begin_with(struct bert_run *run, struct plan *plan, struct err *e)
{
    const char *path = run->flags->init_weights;

    return path[0] ? bert_weights_load(plan, path, e) : 0;
}

/* The place first: the checkpoint may be of the second phase, whose graph is another. */
int bert_resume(struct bert_run *run, struct err *e)
{
    auto_free char *path = NULL;
    struct checkpoint_facts facts;

    if (run->spec.mode != BERT_TRAIN)
        return 0;
    if (find(run, &path, e) < 0)
        return -1;
    if (!path)
        return 0;
    if (checkpoint_facts_of(path, &facts, e) < 0 || check_facts(run, path, &facts, e) < 0)
        return -1;
    run->updates = run->saved_at = facts.step;
    bert_place(&run->spec, facts.step, &run->round, &run->step);
    if (bert_speaks(run)) {
        say_differences(run, &facts);
        fprintf(stderr, "yardbench: going on from \"%s\"\n", path);
    }
    return 0;
}

static int
load_checkpoint(struct bert_run *run, struct plan *plan, bool is_whole, struct err *e)
{
    auto_free char *path = NULL;
    struct checkpoint_facts facts;
    int missing;

    if (find(run, &path, e) < 0)
        return -1;
    if (!path && run->spec.mode == BERT_VALIDATION && !run->flags->init_weights[0])
        return err_set(e, ERR_NOT_FOUND,
                       "there is no checkpoint to evaluate: --checkpoints_dir, "
                       "--checkpoint_to_load_path or --init_weights names one");
    if (!path)
        return 0;
    if (checkpoint_load(plan, path, !is_whole, &facts, &missing, e) < 0)
        return -1;
    run->updates = facts.step;
    return 0;
}

int bert_begin_with(struct bert_run *run, struct err *e)
{
    bool trains = run->spec.mode == BERT_TRAIN;

    if (begin_with(run, run->plan ? run->plan : run->eval_plan, e) < 0)
        return -1;
    if (run->spec.mode == BERT_VALIDATION)
        return load_checkpoint(run, run->eval_plan, false, e);
    if (trains && run->saved_at >= 0 && load_checkpoint(run, run->plan, true, e) < 0)
        return -1;
    return run->ranks->ranks > 1 ? run_broadcast(run->plan, run->comm, e) : 0;
}

/* --- from phase to phase --- */
struct carried {
    char *name;
    float *values;
    size_t bytes;
};

struct bert_carry {
    struct carried *each;
    int count;
};

void bert_carry_free(struct bert_carry *carry)
{
    if (!carry)
        return;
    for (int i = 0; i < carry->count; i++) {
        free(carry->each[i].name);
        free(carry->each[i].values);
    }
    free(carry->each);
    free(carry);
}

/* The loss scale begins anew with a phase. */
static bool is_carried(const struct tensor *t)
{
    return is_kept(t) && !str_equal(t->name, "optimizer.loss_scale") &&
           !str_equal(t->name, "optimizer.good_steps");
}

int bert_carry_take(struct bert_run *run, struct bert_carry **ret_carry, struct err *e)
{
    autoptr(bert_carry) carry = xcalloc(1, sizeof(*carry));
    const struct graph *g = run->graph;

    carry->each = xcalloc((size_t)g->tensor_count, sizeof(*carry->each));
    for (int t = 0; t < g->tensor_count; t++) {
        struct carried *c = &carry->each[carry->count];

        if (!is_carried(&g->tensors[t]))
            continue;
        carry->count++;
        c->name = xstrdup(g->tensors[t].name);
        c->bytes = (size_t)tensor_elements(&g->tensors[t]) * sizeof(float);
        c->values = xmalloc(c->bytes);
        if (plan_read(run->plan, t, c->values, c->bytes, e) < 0)
            return -1;
    }
    *ret_carry = take_ptr(&carry);
    return 0;
}

int bert_carry_give(struct bert_run *run, const struct bert_carry *carry, struct err *e)
{
    for (int i = 0; i < carry->count; i++) {
        const struct carried *c = &carry->each[i];
        int tensor = graph_find(run->graph, c->name);

        if (tensor < 0)
            return err_set(e, ERR_INTERNAL, "the next phase has no \"%.100s\"", c->name);
        if (plan_write(run->plan, tensor, c->values, c->bytes, e) < 0)
            return -1;
    }
    return 0;
}
