/* conv-run.c - candidates of a convolution: graphs drawn for cuDNN, engines opened and run, our
 * own kernels, and the passes behind them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/conv-internal.h"
#include "train/backend/cuda/each-kernels.h"
#include "train/backend/cuda/stem-kernels.h"

/* Graphs: tensors with memory in the order in which run_engine() lists them.  */

static void add_bias_relu(struct dnn_graph *g,
                          const struct conv_work *w,
                          cudnnBackendDescriptor_t from,
                          cudnnBackendDescriptor_t bias,
                          cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t between = from;

    if (w->bias) {
        between = w->has_relu ? dnn_virtual(g, &w->y_shape) : y;
        dnn_pointwise(g, CUDNN_POINTWISE_ADD, from, bias, between);
    }
    if (w->has_relu)
        dnn_pointwise(g, CUDNN_POINTWISE_RELU_FWD, between, NULL, y);
}

static void draw_masked(struct dnn_graph *g,
                        const struct conv_work *w,
                        cudnnBackendDescriptor_t x,
                        cudnnBackendDescriptor_t k,
                        cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t mask = dnn_tensor(g, &w->x_shape);
    cudnnBackendDescriptor_t raw = dnn_virtual(g, &w->x_shape);

    dnn_conv(g, w->way, &w->window, raw, k, y);
    dnn_pointwise(g, CUDNN_POINTWISE_RELU_BWD, raw, mask, x);
}

static void draw(struct dnn_graph *g, const struct conv_work *w, enum form_kind kind)
{
    struct dnn_shape list = dnn_list(w->direct.elem, w->y_shape.dim[1]);
    struct dnn_shape sums = dnn_list(ELEM_F32, w->y_shape.dim[1]);
    cudnnBackendDescriptor_t x = dnn_tensor(g, &w->x_shape), k = dnn_tensor(g, &w->w_shape);
    cudnnBackendDescriptor_t y = dnn_tensor(g, &w->y_shape);

    if (kind == FORM_FUSED && w->mask) {
        draw_masked(g, w, x, k, y);
        return;
    }
    if (kind == FORM_FUSED) {
        cudnnBackendDescriptor_t bias = w->bias ? dnn_tensor(g, &list) : NULL;
        cudnnBackendDescriptor_t raw = dnn_virtual(g, &w->y_shape);

        dnn_conv(g, w->way, &w->window, x, k, raw);
        add_bias_relu(g, w, raw, bias, y);
        return;
    }
    dnn_conv(g, w->way, &w->window, x, k, y);
    if (kind == FORM_SUMS) {
        cudnnBackendDescriptor_t sum = dnn_tensor(g, &sums), square = dnn_tensor(g, &sums);

        dnn_genstats(g, y, sum, square);
    }
}

static struct dnn_rules rules_of(const struct cuda_plan *p)
{
    return (struct dnn_rules){.is_repeatable = p->options.is_repeatable,
                              .is_exact = p->options.precision == PRECISION_FP32,
                              .is_rough = p->elem != ELEM_F32};
}

/* A graph that cuDNN does not take has no candidates. */
static void open_form(struct cuda_plan *p, const struct conv_work *w, struct form *form)
{
    struct dnn_rules rules = rules_of(p);

    form->graph = dnn_graph_new(p->arena, p->device->dnn);
    draw(form->graph, w, form->kind);
    if (dnn_graph_done(form->graph, NULL) == 0)
        form->config_count = dnn_configs(form->graph, &rules, form->configs);
    else
        form->has_all = true;
}

static bool has_config(struct cuda_plan *p, struct form *form, int config)
{
    struct dnn_rules rules = rules_of(p);

    if (config >= form->config_count && !form->has_all) {
        form->config_count =
            dnn_more_configs(form->graph, &rules, form->configs, form->config_count);
        form->has_all = true;
    }
    return config < form->config_count;
}

/* Running one candidate.  */

bool candidate_is_ready(struct cuda_plan *p,
                        const struct conv_work *w,
                        const struct candidate *c)
{
    struct form *form = c->form;

    if (form->kind == FORM_NONE || is_own(form->kind))
        return is_own(form->kind) && c->config == 0;
    if (!form->graph)
        open_form(p, w, form);
    if (!has_config(p, form, c->config) || form->is_bad[c->config])
        return false;
    if (!form->kernels[c->config].plan &&
        dnn_kernel_make(form->graph, form->configs[c->config], workspace_cap(p),
                        &form->kernels[c->config]) < 0)
        form->is_bad[c->config] = true;
    return !form->is_bad[c->config];
}

/* Where dw goes: the gradient itself when the kernel writes fp32 and nothing is there yet.  (No
 * engine of cuDNN 9 writes fp32 from 16-bit inputs.) */
static void *weights_to(const struct conv_work *w, bool adds)
{
    return w->direct.elem == ELEM_F32 && !adds ? w->w->data : w->rough->data;
}

static void run_direct(const struct conv_work *w, bool adds, cudaStream_t stream)
{
    switch (w->way) {
    case DNN_FORWARD:
        conv_direct_forward(&w->direct, w->x->data, w->w->data, w->y->data, stream);
        break;
    case DNN_DATA:
        conv_direct_data(&w->direct, w->y->data, w->w->data, w->x->data, stream);
        break;
    case DNN_WEIGHTS:
        conv_direct_weights(&w->direct, w->y->data, w->x->data, w->w->data, w->weights, adds,
                            stream);
        break;
    }
}

static void
run_stem(const struct cuda_plan *p, const struct conv_work *w, bool adds, cudaStream_t stream)
{
    struct stem_grads to = {.adds = adds};

    if (w->way == DNN_FORWARD) {
        struct stem_arrays a = {w->x->data, w->w->data, w->bias ? w->bias->data : NULL,
                                w->has_relu, w->y->data};

        stem_forward(&w->direct, p->device->multiprocessors, &a, stream);
        return;
    }
    to.dw = w->w->data;
    to.parts = w->parts->data;
    to.dbias = w->bias_grad ? w->bias_grad->dbias->data : NULL;
    stem_weights(&w->direct, p->device->multiprocessors, w->y->data, w->x->data, &to, stream);
}

static int run_engine(struct cuda_plan *p,
                      struct conv_work *w,
                      const struct candidate *c,
                      bool adds,
                      cudaStream_t stream,
                      struct err *e)
{
    void *data[DNN_MOST_TENSORS] = {w->x->data, w->w->data, w->y->data};
    struct form *form = c->form;

    if (w->way == DNN_WEIGHTS)
        data[1] = weights_to(w, adds);
    if (form->kind == FORM_FUSED)
        data[3] = w->mask ? w->mask->data : w->bias ? w->bias->data : NULL;
    if (form->kind == FORM_SUMS) {
        data[3] = w->sums->sums->data;
        data[4] = (float *)w->sums->sums->data + w->y_shape.dim[1];
    }
    if (dnn_bind(form->graph, &w->pack, &form->kernels[c->config], data, p->workspace, e) < 0)
        return -1;
    return dnn_run(form->graph, &w->pack, stream, e);
}

static void run_mask(const struct conv_work *w, cudaStream_t stream)
{
    struct each_args args = {.kind = EACH_RELU_GRAD,
                             .elem = w->direct.elem,
                             .to = w->x->data,
                             .from = {w->x->data, w->mask->data},
                             .inputs = 2,
                             .count = (int64_t)(w->x->bytes / elem_bytes(w->x->elem))};

    launch_each(&args, stream);
}

/* What the form left out. */
static void
run_rest(const struct conv_work *w, enum form_kind kind, bool adds, cudaStream_t stream)
{
    bool is_whole = kind == FORM_FUSED || kind == FORM_STEM;

    if (w->mask && !is_whole)
        run_mask(w, stream);
    if (w->way == DNN_FORWARD && !is_whole && (w->bias || w->has_relu || w->add))
        conv_finish(w->direct.elem, w->y->data, w->bias ? w->bias->data : NULL,
                    w->add ? w->add->data : NULL, w->y->rows, (int)w->y->pitch, w->has_relu,
                    stream);
    if (w->way == DNN_WEIGHTS && !is_own(kind) && weights_to(w, adds) != w->w->data)
        conv_into_grad(w->direct.elem, w->rough->data, w->w->data, w->weights, adds, stream);
}

int candidate_run(struct cuda_plan *p,
                  struct conv_work *w,
                  const struct candidate *c,
                  bool adds,
                  cudaStream_t stream,
                  struct err *e)
{
    if (c->form->kind == FORM_DIRECT)
        run_direct(w, adds, stream);
    else if (c->form->kind == FORM_STEM)
        run_stem(p, w, adds, stream);
    else if (run_engine(p, w, c, adds, stream, e) < 0)
        return -1;
    run_rest(w, c->form->kind, adds, stream);
    return launched(e, "a convolution");
}
