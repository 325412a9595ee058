/* predict.h - how a run would scale on a network that is not here: the alpha-beta model.  Pure.
 *
 * With n nodes of g ranks, S bytes of gradients, latency a and bandwidth B of a node's link:
 *   in the node    measured: reduce-scatter + all-gather in shared memory (or NVLink)
 *   ring           2(n-1) a + 2(n-1)/n S/B
 *   halving        2 ceil(log2 n) a + 2(n-1)/n S/B
 * the better of the two for each bucket; buckets start when the measured backward pass has
 * them ready and go one after another; what reaches beyond the end of the backward pass is
 * exposed.  efficiency = step(1 rank) / step(n).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SCALE_PREDICT_H
#define TRAIN_SCALE_PREDICT_H

#include "base/err.h"

#include <stdint.h>

struct predict_network {
    const char *name; /* "25 Gbit/s Ethernet" */
    double alpha_s;
    double bytes_per_s;
};
/* Known ones: 10gbe 25gbe 100gbe-rdma hdr200 ndr400; or "alpha_us,gbit". */
int predict_parse_network(const char *text, struct predict_network *ret_network, struct err *e);

struct predict_bucket {
    double ready_s; /* since the beginning of the step */
    double bytes;
};

struct predict_input {
    double step_s;         /* of one rank alone */
    double backward_end_s; /* since the beginning of the step */
    const struct predict_bucket *buckets;
    int bucket_count;
    double node_bytes_per_s; /* measured, of the sum within a node; 0 = one rank a node */
    int ranks_per_node;
};

struct predict_result {
    double step_s, exposed_s, efficiency;
};
void predict(const struct predict_input *input,
             const struct predict_network *network,
             int64_t nodes,
             struct predict_result *ret_result);

#endif
