/* move.c - between the caller's dense arrays in logical order and what lies on the card.
 *
 * Between steps only, so nothing here is fast: whole tensors go through an array of the host
 * that has the card's layout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/cuda/make.h"
#include "train/backend/cuda/params.h"
#include "train/num/half.h"

#include <string.h>

struct moving {
    enum elem elem;
    void *card;  /* the host's array in the card's layout */
    void *dense; /* four bytes each, in logical order */
};

/* `count` elements from `logical` on, each `stride` behind the last on the card. */
typedef void
row_fn(const struct moving *m, int64_t logical, int64_t at, int64_t count, int64_t stride);

static void walk(const struct shape_of *s, row_fn *fn, const struct moving *m)
{
    int64_t i = 0;

    for (int64_t a = 0; a < s->dim[0]; a++)
        for (int64_t b = 0; b < s->dim[1]; b++)
            for (int64_t c = 0; c < s->dim[2]; c++) {
                fn(m, i, a * s->stride[0] + b * s->stride[1] + c * s->stride[2], s->dim[3],
                   s->stride[3]);
                i += s->dim[3];
            }
}

static void
take_out(const struct moving *m, int64_t logical, int64_t at, int64_t count, int64_t stride)
{
    float *to = (float *)m->dense + logical;
    const uint16_t *half = (const uint16_t *)m->card + at;
    const float *whole = (const float *)m->card + at;

    for (int64_t i = 0; i < count; i++)
        switch ((int)m->elem) {
        case ELEM_F16:
            to[i] = half_to_float(half[i * stride]);
            break;
        case ELEM_BF16:
            to[i] = bf16_to_float(half[i * stride]);
            break;
        default: /* fp32 and int32: the bits as they are */
            memcpy(&to[i], &whole[i * stride], sizeof *to);
            break;
        }
}

static void
put_in(const struct moving *m, int64_t logical, int64_t at, int64_t count, int64_t stride)
{
    const float *from = (const float *)m->dense + logical;
    float *to = (float *)m->card + at;

    if (stride == 1) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        to[i * stride] = from[i];
}

static int settle(struct cuda_plan *p, struct err *e)
{
    cudaError_t status = cudaStreamSynchronize(p->device->stream);

    return status == cudaSuccess ? 0 : cuda_fail(e, status, "waiting for the card");
}

/* Where a tensor lies: a param as its master; NULL = it cannot be looked at. */
static const struct place *find(const struct cuda_plan *p, int t)
{
    const struct tensor *tensor = tensor_of(p, t);
    const struct place *place = &p->places[t];

    if (tensor->role == ROLE_PARAM)
        return &p->params->all[p->params->of_tensor[t]].master_place;
    if (tensor->role == ROLE_INPUT || !place->is_set || !place->data)
        return NULL;
    if (tensor->role == ROLE_STATE || tensor->role == ROLE_GRAD || p->options.keeps_all)
        return place;
    return NULL;
}

int cuda_plan_read(struct plan *plan, int tensor, void *values, size_t bytes, struct err *e)
{
    struct cuda_plan *p = cuda_plan(plan);
    const struct place *place = find(p, tensor);
    cudaError_t status;
    struct shape_of shape;

    if (!place)
        return err_set(e, ERR_METHOD, "\"%s\" is not kept: its memory is used again",
                       tensor_of(p, tensor)->name);
    if (bytes != (size_t)tensor_elements(tensor_of(p, tensor)) * 4)
        return err_set(e, ERR_INVALID, "\"%s\" has another size", tensor_of(p, tensor)->name);
    auto_free void *card = xcalloc(1, place->bytes);
    if (settle(p, e) < 0)
        return -1;
    status = cudaMemcpy(card, place->data, place->bytes, cudaMemcpyDeviceToHost);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "reading a tensor");
    shape_on_card(p, tensor, &shape);
    walk(&shape, take_out, &(struct moving){place->elem, card, values});
    return 0;
}

int move_in(struct cuda_plan *p, int tensor, const float *values, struct err *e)
{
    const struct place *place = find(p, tensor);
    bool is_param = tensor_of(p, tensor)->role == ROLE_PARAM;
    auto_free void *card = xcalloc(1, place->bytes);
    cudaError_t status;
    struct shape_of shape;

    shape_on_card(p, tensor, &shape);
    walk(&shape, put_in, &(struct moving){ELEM_F32, card, (void *)(uintptr_t)values});
    /* On the stream of the cast: a plain copy returns before its last bytes have arrived, and
     * our stream waits for no other. */
    status = cudaMemcpyAsync(place->data, card, place->bytes, cudaMemcpyHostToDevice,
                             p->device->stream);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "writing a tensor");
    if (is_param && p->elem != ELEM_F32) {
        const struct param *param = &p->params->all[p->params->of_tensor[tensor]];

        launch_cast(param->copy, p->elem, param->master, (int64_t)param->count,
                    p->device->stream);
        if (launched(e, "a copy of the weights") < 0)
            return -1;
    }
    p->params->version++;
    return settle(p, e);
}

int cuda_plan_write(
    struct plan *plan, int tensor, const void *values, size_t bytes, struct err *e)
{
    struct cuda_plan *p = cuda_plan(plan);
    enum role role = tensor_of(p, tensor)->role;

    if (!find(p, tensor) || (role != ROLE_PARAM && role != ROLE_STATE) || p->shares)
        return err_set(e, ERR_METHOD, "\"%s\" cannot be written", tensor_of(p, tensor)->name);
    if (bytes != (size_t)tensor_elements(tensor_of(p, tensor)) * sizeof(float))
        return err_set(e, ERR_INVALID, "\"%s\" has another size", tensor_of(p, tensor)->name);
    return move_in(p, tensor, values, e);
}
