/* onednn.h - CPUs through oneDNN's C interface (2.6 of Debian; 3.x behind the same shim).
 *
 * How a plan is made:
 *  1. Convolutions and inner products ask for format `any`; the layout of an activation is what
 *     its producing convolution wants (nChw8c, nChw16c), and pools, batch norms, sums and
 *     concatenations take what comes.  Where two convolutions disagree, the reader reorders:
 *     the plan counts such reorders and `--profile` shows them; resnet50 has none.
 *  2. The master of a weight has the layout of its weight gradient; forward and data-gradient
 *     copies are reordered once after the update where they differ.
 *  3. BN+ReLU is oneDNN's with fused relu and its bit mask; BN+add+ReLU, SUM, pools' sums,
 *     IMAGE, XENT and the updates are own loops over the blocked layout (par.h, vectorised by
 *     the compiler for the build's baseline and for AVX2 and AVX-512 by target_clones).
 *  4. One scratchpad for all primitives (user mode), one planned block for all activations,
 *     huge pages asked for.  The data-gradient of the first convolution is not computed.
 *  5. bf16 only where the machine has it in hardware (avx512_bf16, AMX); else ERR_METHOD.
 *
 * Built when libdnnl is found; `yardbench --version` says so.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_ONEDNN_ONEDNN_H
#define TRAIN_BACKEND_ONEDNN_ONEDNN_H

struct backend_ops;

extern const struct backend_ops backend_onednn;

#endif
