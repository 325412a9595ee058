/* predict.c - see predict.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/scale/predict.h"

#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>

#define GBIT 1.25e8 /* bytes/s */

/* alpha: a small message from process to process through the usual stack of that network, half
 * a round trip; bandwidth: the link's nominal one. */
static const struct network_row {
    const char *word;
    struct predict_network network;
} networks[] = {
    {"10gbe", {"10 Gbit/s Ethernet, TCP", 25e-6, 10 * GBIT}},
    {"25gbe", {"25 Gbit/s Ethernet, TCP", 20e-6, 25 * GBIT}},
    {"100gbe-rdma", {"100 Gbit/s Ethernet, RoCE", 3e-6, 100 * GBIT}},
    {"hdr200", {"200 Gbit/s InfiniBand HDR", 1.5e-6, 200 * GBIT}},
    {"ndr400", {"400 Gbit/s InfiniBand NDR", 1.5e-6, 400 * GBIT}},
};

static int bad_network(const char *text, struct err *e)
{
    auto_str words = {0};

    for (size_t i = 0; i < ARRAY_SIZE(networks); i++)
        str_addf(&words, "%s, ", networks[i].word);
    return err_set(e, ERR_INVALID,
                   "network \"%.40s\" is not known: %sor <latency in us>,<Gbit/s>", text,
                   str_text(&words));
}

int predict_parse_network(const char *text, struct predict_network *ret_network, struct err *e)
{
    char *end;
    double alpha_us, gbit;

    for (size_t i = 0; i < ARRAY_SIZE(networks); i++)
        if (str_equal_nocase(text, networks[i].word)) {
            *ret_network = networks[i].network;
            return 0;
        }
    alpha_us = strtod(text, &end);
    if (end == text || *end != ',')
        return bad_network(text, e);
    text = end + 1;
    gbit = strtod(text, &end);
    if (end == text || *end || !(alpha_us >= 0) || !(gbit > 0) || isinf(alpha_us) ||
        isinf(gbit))
        return bad_network(text, e);
    *ret_network = (struct predict_network){"as given", alpha_us / 1e6, gbit * GBIT};
    return 0;
}

static double between_nodes(const struct predict_network *network, double n, double bytes)
{
    double data = 2 * (n - 1) / n * bytes / network->bytes_per_s;
    double ring = 2 * (n - 1) * network->alpha_s + data;
    double halving = 2 * ceil(log2(n)) * network->alpha_s + data;

    if (n <= 1)
        return 0;
    return ring < halving ? ring : halving;
}

void predict(const struct predict_input *input,
             const struct predict_network *network,
             int64_t nodes,
             struct predict_result *ret_result)
{
    bool has_inner = input->node_bytes_per_s > 0 && input->ranks_per_node > 1;
    double at = 0, exposed;

    for (int b = 0; b < input->bucket_count; b++) {
        const struct predict_bucket *bucket = &input->buckets[b];

        if (at < bucket->ready_s)
            at = bucket->ready_s;
        if (has_inner)
            at += bucket->bytes / input->node_bytes_per_s;
        at += between_nodes(network, (double)nodes, bucket->bytes);
    }
    exposed = at > input->backward_end_s ? at - input->backward_end_s : 0;
    *ret_result = (struct predict_result){
        .step_s = input->step_s + exposed,
        .exposed_s = exposed,
        .efficiency = input->step_s / (input->step_s + exposed),
    };
}
