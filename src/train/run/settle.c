/* settle.c - from flags to one struct run_spec.  Pure; the rules are tf_cnn_benchmarks'.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/run/backends.h"
#include "train/run/run-internal.h"

#include <math.h>

enum {
    DEFAULT_BATCHES = 100,
    DEFAULT_WARMUP = 10,
    RESNET_BATCH = 256, /* for which its base rate holds */
};

static const double default_loss_scale = 128; /* of fp16 */
static const double channel_means[] = {123.68, 116.78, 103.94};

/* How many examples all ranks together take in a step. */
static double step_examples(const struct run_spec *spec, const struct comm_facts *ranks)
{
    return (double)spec->batch * (double)spec->passes * ranks->ranks;
}

int64_t run_steps_of_epochs(double epochs, double count, double examples)
{
    return (int64_t)((epochs * count + examples - 1) / examples);
}

static void settle_sizes(struct run_spec *spec,
                         const struct flags *f,
                         const struct comm_facts *ranks,
                         const struct dataset_facts *data)
{
    int64_t threshold = f->autotune_threshold > 0 ? f->autotune_threshold : 1;
    double examples, count = (double)data->count;

    spec->batch = f->batch_size > 0 ? f->batch_size : spec->model->default_batch;
    spec->eval_batch = f->eval_batch_size > 0 ? f->eval_batch_size : spec->batch;
    spec->passes = f->forward_only || f->eval ? 1 : f->gradient_accumulation_steps;
    examples = step_examples(spec, ranks);
    if (!isnan(f->num_epochs) && f->num_epochs > 0)
        spec->steps = run_steps_of_epochs(f->num_epochs, count, examples);
    else
        spec->steps = f->num_batches > 0 ? f->num_batches : DEFAULT_BATCHES;
    spec->epochs = (double)spec->steps * examples / count;
    if (f->num_warmup_batches != FLAG_NONE)
        spec->warmup = f->num_warmup_batches;
    else
        spec->warmup = 5 * threshold * threshold > DEFAULT_WARMUP ? 5 * threshold * threshold
                                                                  : DEFAULT_WARMUP;
    spec->eval_every = f->eval_every_n_steps > 0 ? f->eval_every_n_steps : 0;
    spec->save_every = f->save_model_steps > 0 ? f->save_model_steps : 0;
    spec->seed = (uint64_t)f->tf_random_seed;
    spec->is_synthetic = data->is_synthetic;
}

static enum run_update settle_update(const char *text, struct str *notes)
{
    if (str_equal(text, "horovod"))
        return RUN_SUM;
    if (str_equal(text, "independent"))
        return RUN_INDEPENDENT;
    if (str_starts(text, "distributed_") || str_starts(text, "collective_"))
        str_addf(notes, "--variable_update=%s is taken as replicated\n", text);
    return RUN_MEAN;
}

static int settle_precision(struct run_spec *spec, const struct flags *f, struct err *e)
{
    const char *text = f->precision ? f->precision : f->use_fp16 ? "fp16" : "fp32";

    return precision_parse(text, &spec->precision, e);
}

static float epsilon_of(const struct optim_spec *spec, const struct flags *f)
{
    switch (spec->kind) {
    case OPTIM_RMSPROP:
        return (float)f->rmsprop_epsilon;
    case OPTIM_ADAM:
    case OPTIM_ADAMW:
        return (float)f->adam_epsilon;
    case OPTIM_LAMB:
        return flags_given(f, "adam_epsilon") ? (float)f->adam_epsilon : spec->epsilon;
    case OPTIM_SGD:
    case OPTIM_MOMENTUM:
    case OPTIM_LARS:
    case OPTIM_KINDS:
        break;
    }
    return spec->epsilon;
}

static float or_none(double value)
{
    return isnan(value) ? 0 : (float)value;
}

static void
settle_scale(struct optim_spec *o, const struct run_spec *spec, const struct flags *f)
{
    double scale = spec->precision == PRECISION_FP16 ? default_loss_scale : 1;

    o->loss_scale = (float)(isnan(f->fp16_loss_scale) ? scale : f->fp16_loss_scale);
    o->has_dynamic_scale = f->fp16_enable_auto_loss_scale;
    o->scale_grows_after = (int)f->fp16_inc_loss_scale_every_n;
}

static int settle_optim(struct run_spec *spec,
                        const struct flags *f,
                        const struct comm_facts *ranks,
                        struct err *e)
{
    struct optim_spec *o = &spec->optim;
    enum optim_kind kind;
    bool decouples;

    if (optim_parse(f->optimizer, &kind, e) < 0)
        return -1;
    optim_defaults(o, kind);
    decouples = kind == OPTIM_ADAMW || kind == OPTIM_LAMB;
    o->momentum = (float)(kind == OPTIM_RMSPROP ? f->rmsprop_momentum : f->momentum);
    o->rmsprop_decay = (float)f->rmsprop_decay;
    o->beta1 = (float)f->adam_beta1;
    o->beta2 = (float)f->adam_beta2;
    o->epsilon = epsilon_of(o, f);
    /* In the original every rank's gradient has the decay in it, and they are summed. */
    o->weight_decay = (float)f->weight_decay;
    if (spec->update == RUN_SUM && !decouples)
        o->weight_decay *= (float)ranks->ranks;
    o->clip_value = or_none(f->gradient_clip);
    o->clip_norm = or_none(f->clip_norm);
    settle_scale(o, spec, f);
    return 0;
}

static int model_schedule(struct schedule *s,
                          const struct run_spec *spec,
                          const struct flags *f,
                          double examples)
{
    static const double epochs[] = {0, 30, 60, 80, 90};
    double base = isnan(f->resnet_base_lr) ? spec->model->default_rate : f->resnet_base_lr;

    s->kind = SCHEDULE_CONSTANT;
    s->rate = spec->model->default_rate;
    if (!spec->model->rate_by_batch)
        return 0;
    s->kind = SCHEDULE_PIECEWISE;
    s->rate = base * examples / RESNET_BATCH;
    s->pieces = (int)ARRAY_SIZE(epochs);
    s->warmup_epochs = 5;
    for (int i = 0; i < s->pieces; i++) {
        s->piece_epoch[i] = epochs[i];
        s->piece_rate[i] = s->rate * pow(0.1, i);
    }
    return 0;
}

static void rate_schedule(struct schedule *s, const struct flags *f)
{
    s->kind = SCHEDULE_CONSTANT;
    s->rate = f->init_learning_rate;
    s->floor = f->minimum_learning_rate;
    s->warmup_epochs = f->num_learning_rate_warmup_epochs;
    if (str_equal(f->learning_rate_schedule, "cosine")) {
        s->kind = SCHEDULE_COSINE;
    } else if (str_equal(f->learning_rate_schedule, "polynomial")) {
        s->kind = SCHEDULE_POLYNOMIAL;
        s->power = 1;
    } else if (f->num_epochs_per_decay > 0 && f->learning_rate_decay_factor > 0) {
        s->kind = SCHEDULE_EXPONENTIAL;
        s->factor = f->learning_rate_decay_factor;
        s->decay_epochs = f->num_epochs_per_decay;
    }
}

static int settle_schedule(struct run_spec *spec,
                           const struct flags *f,
                           const struct comm_facts *ranks,
                           const struct dataset_facts *data,
                           struct err *e)
{
    struct schedule *s = &spec->schedule;
    double examples = step_examples(spec, ranks);

    *s = (struct schedule){
        .steps_per_epoch = (double)data->count / examples,
        .steps = spec->warmup + spec->steps,
    };
    if (f->piecewise_learning_rate_schedule) {
        s->warmup_epochs = f->num_learning_rate_warmup_epochs;
        if (schedule_parse_pieces(s, f->piecewise_learning_rate_schedule, e) < 0)
            return err_wrap(e, "--piecewise_learning_rate_schedule");
        return 0;
    }
    if (isnan(f->init_learning_rate))
        return model_schedule(s, spec, f, examples);
    rate_schedule(s, f);
    return 0;
}

static int settle_pictures(struct run_spec *spec,
                           const struct flags *f,
                           const struct dataset_facts *data,
                           struct err *e)
{
    struct model_options *m = &spec->model_options;
    struct decode_options *d = &spec->decode;

    *m = (struct model_options){
        .batch = spec->batch,
        .classes = data->classes,
        .height = spec->model->image_size,
        .width = spec->model->image_size,
        .channels = data->channels,
        .image_type = data->is_synthetic ? DTYPE_F32 : DTYPE_U8,
        .label_smoothing = (float)f->label_smoothing,
        .is_frozen = f->forward_only && f->freeze_when_forward_only,
    };
    /* Synthetic pictures have 0..255 too and are scaled likewise, as in the original of the
     * recipes' time.  Later its readers took over the scaling, and what is not read lost it: a
     * network without batch norm then diverges at once. */
    for (int c = 0; c < 4; c++) {
        bool by_mean = f->ml_perf && c < 3;

        m->image_scale[c] = by_mean ? 1 : 1 / 127.5F;
        m->image_shift[c] = by_mean ? -(float)channel_means[c] : -1;
    }
    *d = (struct decode_options){
        .height = m->height,
        .width = m->width,
        .channels = m->channels,
        .is_training = true,
        .distorts = f->distortions,
        .fuses_crop = f->fuse_decode_and_crop,
    };
    return resize_parse(f->resize_method, &d->resize, e);
}

int run_settle(const struct flags *flags,
               const struct comm_facts *ranks,
               const struct dataset_facts *dataset,
               struct run_spec *ret_spec,
               struct str *notes,
               struct err *e)
{
    struct run_spec spec = {0};

    if (model_find(flags->model, dataset->name, &spec.model, e) < 0 ||
        backends_find(flags->backend, flags->device, &spec.backend, e) < 0)
        return -1;
    settle_sizes(&spec, flags, ranks, dataset);
    spec.update = settle_update(flags->variable_update, notes);
    if (settle_precision(&spec, flags, e) < 0 || settle_optim(&spec, flags, ranks, e) < 0 ||
        settle_schedule(&spec, flags, ranks, dataset, e) < 0 ||
        settle_pictures(&spec, flags, dataset, e) < 0)
        return -1;
    *ret_spec = spec;
    return 0;
}
