/* open.c - everything a run needs, opened in order, phase by phase; and closed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-internal.h"
#include "train/num/par.h"
#include "train/run/backends.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

const struct bert_phase *bert_phase_of(const struct bert_run *run)
{
    return &run->spec.phases[run->round];
}

int64_t bert_end(const struct bert_run *run)
{
    return run->spec.warmup + bert_phase_of(run)->steps;
}

bool bert_speaks(const struct bert_run *run)
{
    return run->ranks->rank == 0;
}

static void say(const struct bert_run *run, const struct str *notes)
{
    for (const char *line = str_text(notes); *line && bert_speaks(run);) {
        size_t len = strcspn(line, "\n");

        fprintf(stderr, "yardbench: %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

static int threads_of(const struct bert_run *run)
{
    int cores;

    if (run->flags->num_threads > 0)
        return (int)run->flags->num_threads;
    par_init(0);
    cores = par_threads() / run->ranks->local_ranks;
    return cores > 1 ? cores : 1;
}

/* The card of this rank: by --gpu_indices, else by its number on the host. */
static int card_of(const struct bert_run *run)
{
    const char *at = run->flags->gpu_indices;

    for (int i = 0; i < run->ranks->local_rank && *at; i++)
        at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',');
    return *at >= '0' && *at <= '9' ? atoi(at) : run->ranks->local_rank;
}

/* --cuda_mem_limit_in_gb becomes a share of the card once its size is known: at plan time the
 * backend only takes what it needs, so a limit can refuse, not shrink. */
static int check_memory(const struct bert_run *run, struct err *e)
{
    double limit = run->flags->cuda_mem_limit_in_gb * 1024 * 1024 * 1024;
    struct plan_memory m;
    double needed;

    if (limit <= 0 || !run->plan)
        return 0;
    plan_memory(run->plan, &m);
    needed = (double)(m.params_bytes + m.grads_bytes + m.activations_bytes + m.other_bytes);
    if (needed <= limit)
        return 0;
    return err_set(e, ERR_NO_SPACE,
                   "the run needs %.2f GB, more than --cuda_mem_limit_in_gb: try a smaller "
                   "--train_batch_size",
                   needed / (1024 * 1024 * 1024));
}

static int open_device(struct bert_run *run, struct err *e)
{
    struct device_options o = {.threads = threads_of(run), .card = card_of(run)};
    auto_str notes = {0};

    par_init(o.threads);
    if (device_open(run->backend, &o, &run->device, e) < 0)
        return -1;
    device_facts(run->device, &run->device_facts);
    if (bert_settle_precision(run->flags, run->device_facts.precisions, &run->spec.optim,
                              &run->precision, &notes, e) < 0)
        return err_wrap(e, "%s on %s", run->backend->name, run->device_facts.name);
    say(run, &notes);
    return 0;
}

static int open_files(struct bert_run *run, struct err *e)
{
    const char *losses = run->flags->convergence_test_output_file;

    if (!bert_speaks(run) || run->spec.mode == BERT_PERF)
        return 0;
    if (run->flags->log_dir[0] && events_open(run->flags->log_dir, &run->events, e) < 0)
        return -1;
    if (!losses[0])
        return 0;
    run->losses = fopen(losses, "we");
    if (!run->losses)
        return err_sys(e, errno, "could not write \"%.200s\"", losses);
    fputs("step,total_loss,mlm_loss,nsp_loss\n", run->losses);
    return 0;
}

int bert_open(struct bert_run *run,
              const struct bert_flags *flags,
              struct comm *comm,
              struct err *e)
{
    auto_str notes = {0};

    *run = (struct bert_run){
        .flags = flags,
        .comm = comm,
        .ranks = comm_facts(comm),
        .last_finite = NAN,
        .loss_scale = 1,
        .saved_at = -1,
    };
    if (bert_settle(flags, run->ranks, &run->spec, &notes, e) < 0)
        return -1;
    say(run, &notes);
    if (backends_find(flags->backend, flags->device, &run->backend, e) < 0)
        return -1;
    if (flags->plan_only)
        return 0;
    return open_device(run, e) < 0 ? -1 : open_files(run, e);
}

/* What the data have, unless the flags ask for more: the rest is padding then. */
static void take_shape(const struct bert_run *run,
                       const struct bert_source *source,
                       int64_t batch,
                       struct bert_options *ret_shape)
{
    const struct bert_flags *f = run->flags;
    const struct bert_data_facts *facts = source ? bert_source_facts(source) : NULL;
    bool is_first = run->round == 0;

    *ret_shape = (struct bert_options){.batch = batch,
                                       .sequence = f->max_seq_length,
                                       .predictions = f->max_predictions_per_seq};
    if (facts && !(is_first && bert_flags_given(f, "max_seq_length")))
        ret_shape->sequence = facts->shape.sequence;
    if (facts && !(is_first && bert_flags_given(f, "max_predictions_per_seq")))
        ret_shape->predictions = facts->shape.predictions;
}

static int open_sources(struct bert_run *run, struct err *e)
{
    const struct bert_phase *p = bert_phase_of(run);

    if (run->spec.mode != BERT_VALIDATION) {
        if (bert_source_open(p->train_dir, &run->source, e) < 0)
            return p->train_dir && e && e->code == ERR_NOT_FOUND
                       ? err_wrap(e, "no training data (`yardbench bert-data` makes them)")
                       : -1;
        take_shape(run, run->source, p->batch, &run->shape);
    }
    if (run->spec.eval_batch > 0) {
        if (bert_source_open(p->test_dir, &run->test, e) < 0)
            return err_wrap(e, "no test data");
        take_shape(run, run->test, run->spec.eval_batch, &run->eval_shape);
    }
    return 0;
}

static int agree(struct bert_run *run, struct err *e)
{
    const struct bert_phase *p = bert_phase_of(run);
    auto_str text = {0};

    if (run->ranks->ranks == 1)
        return 0;
    str_addf(&text,
             "%s %" PRId64 " x %" PRId64 " tokens, %" PRId64 " masked, x %" PRId64
             ", steps %" PRId64 " + %" PRId64 ", seed %" PRIu64 ", %s",
             run->spec.model, run->shape.batch, run->shape.sequence, run->shape.predictions,
             p->passes, run->spec.warmup, p->steps, run->spec.seed,
             precision_name(run->precision));
    return comm_agree(run->comm, "command line", str_text(&text), e);
}

static int agree_on_layout(struct bert_run *run, struct err *e)
{
    auto_str text = {0};

    if (run->ranks->ranks == 1 || !run->plan)
        return 0;
    plan_layout(run->plan, &text);
    return comm_agree(run->comm, "layout of gradients", str_text(&text), e);
}

int bert_open_phase(struct bert_run *run, struct err *e)
{
    run->times = (struct bert_times){0};
    run->sums = (struct bert_losses){0};
    if (open_sources(run, e) < 0)
        return -1;
    if (run->flags->plan_only)
        return 0;
    if (agree(run, e) < 0 ||
        (run->spec.mode != BERT_VALIDATION && bert_make_plan(run, e) < 0) ||
        (run->spec.eval_batch > 0 && bert_make_eval_plan(run, e) < 0))
        return -1;
    return check_memory(run, e) < 0 ? -1 : agree_on_layout(run, e);
}

/* After an error: what the backend borrowed comes back. */
static void land_all(struct bert_run *run)
{
    struct step_values unused;

    for (int i = 0; i < run->flight_count; i++)
        (void)plan_wait(run->plan, run->flights[i].ticket, &unused, NULL);
    run->flight_count = 0;
}

void bert_close_phase(struct bert_run *run)
{
    land_all(run);
    plan_free(run->eval_plan);
    plan_free(run->plan);
    graph_free(run->eval_graph);
    graph_free(run->graph);
    reducer_free(run->reducer);
    bert_source_free(run->source);
    bert_source_free(run->test);
    run->eval_plan = run->plan = NULL;
    run->eval_graph = run->graph = NULL;
    run->reducer = NULL;
    run->source = run->test = NULL;
}

void bert_close(struct bert_run *run)
{
    bert_close_phase(run);
    device_free(run->device);
    events_free(run->events);
    profile_free(run->profile);
    if (run->losses)
        fclose(run->losses);
    free(run->rows);
}
