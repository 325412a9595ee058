/* conv-check.c - engines of cuDNN that compute something else are no candidates.
 *
 * Engines 1 and 20 of cuDNN 9.14 were seen to take pads that differ before and behind for equal
 * ones when they make a gradient of weights, and to report nothing.  So where pads differ, such
 * an engine is held against the kernel by the definition before it is measured, on a pattern of
 * -1, 0 and 1: what is right is within the rounding of 16 bits, what is wrong is about as far
 * away as the gradient is large.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/conv-internal.h"

static const float most_away = 0.1f; /* in parts of the whole */

static bool is_suspect(const struct conv_work *w)
{
    const struct window *win = &w->window;

    return w->way == DNN_WEIGHTS && (win->top != win->bottom || win->left != win->right);
}

int conv_check_begin(struct cuda_plan *p,
                     const struct conv_work *w,
                     struct conv_check *check,
                     struct err *e)
{
    const struct conv_direct *v = &w->direct;
    cudaStream_t stream = p->device->stream;
    cudaError_t status;

    if (!is_suspect(w))
        return 0;
    status =
        cudaMalloc((void **)&check->wanted, (size_t)(w->weights + 2) * sizeof *check->wanted);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "room for a gradient");
    conv_pattern(v->elem, w->x->data, w->x->rows, v->c, v->x_pitch, 1, stream);
    conv_pattern(v->elem, w->y->data, w->y->rows, v->k, v->y_pitch, 2, stream);
    conv_direct_weights(v, w->y->data, w->x->data, check->wanted, w->weights, false, stream);
    return launched(e, "a convolution");
}

bool conv_check_is_right(const struct cuda_plan *p,
                         const struct conv_work *w,
                         const struct conv_check *check)
{
    cudaStream_t stream = p->device->stream;
    float *squares = check->wanted ? check->wanted + w->weights : NULL, found[2];

    if (!squares)
        return true;
    conv_squares(w->w->data, check->wanted, w->weights, squares, stream);
    return cudaMemcpyAsync(found, squares, sizeof found, cudaMemcpyDeviceToHost, stream) ==
               cudaSuccess &&
           cudaStreamSynchronize(stream) == cudaSuccess &&
           found[0] <= most_away * most_away * found[1];
}

void conv_check_end(struct conv_check *check)
{
    (void)cudaFree(check->wanted);
    check->wanted = NULL;
}
