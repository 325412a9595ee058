/* onednn.h - CPUs through oneDNN's C interface (2.6 of Debian; 3.x behind the same shim).
 *
 * How a plan is made:
 *  1. Convolutions and inner products ask for format `any`; the layout of an activation is what
 *     its producing convolution wants (nChw8c, nChw16c), and pools, batch norms, sums and
 *     concatenations take what comes.  Where two convolutions disagree, the reader reorders:
 *     the plan counts such reorders and `--profile` shows them; resnet50 has none.
 *  2. The master of a weight has the layout of its weight gradient; forward and data-gradient
 *     copies are reordered once after the update where they differ.
 *  3. Batch norms are own loops over the blocked layout, with their relu and add: one pass over
 *     memory for statistics, one to apply them; the mask of a relu is computed again from x,
 * and a sum of two gradients that goes into one is added there.  Activations, sums, images,
 *     concatenations, cross-entropy and updates are own loops too (par.h, compiled for several
 *     instruction sets); convolutions, linear layers and pools are oneDNN's.
 *     The transformer's rows are dense and its ops own loops; attention keeps no square of
 *     scores, only their sums (attention-loops.h), and a table of embeddings has the layout of
 *     its rows, also where the product with the vocabulary shares it.
 *  4. One scratchpad for all primitives (user mode), one planned block for all activations,
 *     huge pages asked for.  The data-gradient of the first convolution is not computed.
 *  5. fp32 alone: other precisions are ERR_METHOD.
 *
 * Built when libdnnl is found; `yardbench --version` says so.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_ONEDNN_ONEDNN_H
#define TRAIN_BACKEND_ONEDNN_ONEDNN_H

struct backend_ops;

extern const struct backend_ops backend_onednn;

#endif
