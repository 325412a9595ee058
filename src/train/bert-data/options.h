/* options.h - the command line of `yardbench bert-data`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_OPTIONS_H
#define TRAIN_BERT_DATA_OPTIONS_H

#include "base/err.h"

#include <stdint.h>
#include <stdio.h>

struct data_options {
    const char *output, *vocab;
    int64_t make_vocab; /* 0 = not asked for */
    int64_t sequence, predictions, copies, shards, seed;
    double short_share, masked_share;
    bool is_cased, overwrites, wants_help;
    const char **inputs; /* files and folders; borrowed words in a list of their own */
    int input_count;
};

/* Words are borrowed.  Names may have _ for -, and "--name value" or "--name=value". */
int data_options_parse(struct data_options *o, int count, char **words, struct err *e);
void data_options_done(struct data_options *o);
void data_options_print_help(FILE *to);

#endif
