/* hop.h - who sends what to whom, in each step of an all-reduce between hosts.  Pure.
 *
 * The array is cut into as many blocks as there are hosts.  First every host ends up with the
 * sum of one block, then the blocks go round.
 *   halving and doubling   hosts are a power of two: 2 log2(n) steps
 *   ring                   any number: 2(n-1) steps
 * Both move 2(n-1)/n of the array, the least there is; each block is summed along one way, so
 * all hosts get the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_HOP_H
#define TRAIN_COMM_HOP_H

#include <stdbool.h>
#include <stddef.h>

struct hop {
    int to, from; /* hosts */
    int send_first, send_count;
    int receive_first, receive_count; /* blocks */
    bool adds;                        /* what comes is added; else it replaces */
};

int hop_count(int hosts);
void hop_at(int hosts, int host, int step, struct hop *ret_hop);
/* Blocks first.. of an array of `count` elements cut into `blocks`. */
size_t hop_block(size_t count, int blocks, int first);

#endif
