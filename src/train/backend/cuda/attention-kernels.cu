/* attention-kernels.cu - see attention-kernels.h: who does what.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/attention-kernels.h"

#include "train/backend/cuda/attention-fast.h"
#include "train/backend/cuda/attention-plain.h"

bool attention_is_fast(enum elem elem, int length, int width)
{
    return (elem == ELEM_F16 || elem == ELEM_BF16) && length % ATTENTION_TILE == 0 &&
           (width == 32 || width == 64 || width == 128);
}

void attention_forward(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    if (attention_is_fast(elem, args->length, args->width))
        attention_fast_forward(stream, elem, args);
    else
        attention_plain_forward(stream, elem, args);
}

void attention_backward(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    if (!attention_is_fast(elem, args->length, args->width)) {
        attention_plain_backward(stream, elem, args);
    } else if (attention_is_joint(args)) {
        (args->length == ATTENTION_WHOLE ? attention_fast_grad_whole
                                         : attention_fast_grad_joint)(stream, elem, args);
    } else {
        attention_fast_grad_q(stream, elem, args);
        attention_fast_grad_kv(stream, elem, args);
    }
}
