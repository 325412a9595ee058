/* conv-check.c - engines of cuDNN that compute something else are no candidates.
 *
 * Engines 1 and 20 of cuDNN 9.14 were seen to take pads that differ before and behind for equal
 * ones when they make a gradient of weights, and to report nothing.  So where pads differ, an
 * engine is held against the kernel by the definition before it is measured, on the small
 * random values that places have then.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/conv-internal.h"

/* Of the whole: rounding to 16 bits is 1/500, a row or column left out 1/30 at least. */
static const float most_away = 0.02f;

void plan_conv_check(struct cuda_plan *p, int n, struct conv_work *w)
{
    const struct window *win = &w->window;

    if (win->top != win->bottom || win->left != win->right)
        w->wanted = scratch(p, ELEM_F32, w->weights + 2, n);
}

int conv_check_begin(struct cuda_plan *p, const struct conv_work *w, struct err *e)
{
    if (!w->wanted)
        return 0;
    conv_direct_weights(&w->direct, w->y->data, w->x->data, w->wanted->data, w->weights, false,
                        p->device->stream);
    return launched(e, "a convolution");
}

bool conv_is_right(struct cuda_plan *p, struct conv_work *w, const struct candidate *c)
{
    cudaStream_t stream = p->device->stream;
    float found[2], *wanted = w->wanted ? w->wanted->data : NULL;

    if (!wanted)
        return true;
    /* One that writes nothing is not right because another one was. */
    if (cudaMemsetAsync(w->w->data, 0, (size_t)w->weights * sizeof *wanted, stream) !=
            cudaSuccess ||
        candidate_run(p, w, c, false, stream, NULL) < 0)
        return false;
    conv_squares(w->w->data, wanted, w->weights, wanted + w->weights, stream);
    return cudaMemcpyAsync(found, wanted + w->weights, sizeof found, cudaMemcpyDeviceToHost,
                           stream) == cudaSuccess &&
           cudaStreamSynchronize(stream) == cudaSuccess &&
           found[0] <= most_away * most_away * found[1];
}
