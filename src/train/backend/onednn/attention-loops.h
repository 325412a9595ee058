/* attention-loops.h - attention of one head of one sequence, on one thread.
 *
 * Rows of queries are done ATTENTION_ROWS at a time: their scores, softmax and product with the
 * values stay in the cache, and memory grows with T, not with T squared.  Keys behind the last
 * one that the mask shows are left out altogether; where it shows none, the result is zero.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_ONEDNN_ATTENTION_LOOPS_H
#define TRAIN_BACKEND_ONEDNN_ATTENTION_LOOPS_H

#include "train/backend/onednn/loops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attention_head {
    int64_t t, e;
    int64_t qkv_row, y_row; /* floats from one position to the next: 3D, D */
    float scale;
    bool has_dropout;
    struct keep keep;
    uint64_t first;         /* element of the N A T T probabilities, for dropout */
    const float *q, *k, *v; /* T E each */
    const int32_t *mask;    /* T: 0 = not to be looked at */
    float *y, *saved;       /* T E, written; T: log of the sum of e^score */
    const float *dy;        /* backward: y and saved are read */
    float *dq, *dk, *dv;
};

enum {
    ATTENTION_ROWS = 64,    /* scores of 512 keys are then 128 KB */
    ATTENTION_COLUMNS = 32, /* what is packed is filled up to so many columns, and rows: whole
                               tiles of the largest kind, 8 rows by 2 vectors */
};

static inline int64_t attention_whole(int64_t count, int64_t of)
{
    return (count + of - 1) / of * of;
}

/* Floats of scratch that one thread needs: the head packed in several forms, blocks of rows of
 * E and of T, mask and dropout. */
static inline size_t attention_room(int64_t t, int64_t e, bool is_backward)
{
    int64_t t_room = attention_whole(t, ATTENTION_COLUMNS);
    int64_t e_room = attention_whole(e, ATTENTION_COLUMNS);
    int64_t heads = is_backward ? 5 : 2, blocks = is_backward ? 3 : 2;
    int64_t scores = is_backward ? 2 : 1;

    return (size_t)(heads * t_room * e_room + blocks * ATTENTION_ROWS * e_room +
                    scores * ATTENTION_ROWS * t_room + 2 * t_room);
}

#ifdef LOOPS_ISA
void FOR_ISA(attention_forward)(const struct attention_head *h, float *room);
void FOR_ISA(attention_backward)(const struct attention_head *h, float *room);
void FOR_ISA(loop_keep)(const struct keep *k, uint64_t first, int64_t count, float *to);
#endif

#endif
