/* bert-data.h - sentences as numbers: the shard files that BERT is trained on, written once and
 * read as batches.
 *
 * A folder of training data holds shards, NAME.bert, in order of name; all have one shape.  A
 * shard is a header and records of one size, little-endian, so that record i is found without
 * an index:
 *
 *   offset  bytes  what
 *   0       8      magic "yardbert"
 *   8       4      version, 1
 *   12      4      T, tokens of a sequence, at most BERT_DATA_MOST_SEQUENCE
 *   16      4      P, masked tokens of a sequence at most, 0 <= P <= T
 *   20      4      V, size of the vocabulary: every id is below it
 *   24      8      number of records
 *   32      28     zeros
 *   60      4      CRC-32C of the 60 bytes before
 *   64      ...    records, each 4 * (5 + T + 2 P) bytes:
 *                    i32 length        tokens that are there, 2..T; the rest of ids is 0
 *                    i32 second        where the second sentence begins, 1..length
 *                                      (= length: there is none)
 *                    i32 next          0 the second sentence follows the first in the
 *                                      text, 1 it was taken from elsewhere
 *                    i32 masked        how many tokens are masked, 0..P
 *                    i32 ids[T]        with the masked ones replaced
 *                    i32 masked_at[P]  positions, rising, below length; then zeros
 *                    i32 masked_id[P]  what was there; then zeros
 *                    u32 crc           CRC-32C of the record before it
 * A file is exactly that long.  Opening checks header and length; a record's checksum, its
 * bounds and its ids are checked when it is read, and a bad one is ERR_INVALID with the name of
 * the shard and the number of the record.
 *
 * Threads: one thread for each object.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_BERT_DATA_H
#define TRAIN_BERT_DATA_BERT_DATA_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BERT_DATA_VERSION = 1,
    BERT_DATA_MOST_SEQUENCE = 65536,
    BERT_DATA_MOST_VOCABULARY = 1 << 24,
};

struct bert_shape {
    int64_t sequence;    /* T */
    int64_t predictions; /* P */
    int64_t vocabulary;  /* V */
};

/* --- writing --- */
struct bert_record {
    int64_t length, second, next, masked; /* as in the file */
    const int32_t *ids;                   /* length of them */
    const int32_t *masked_at, *masked_id; /* masked of them */
};

struct bert_writer; /* opaque */

/* Into a temporary file beside path; bert_writer_close() makes it durable and renames it. */
int bert_writer_new(const char *path,
                    const struct bert_shape *shape,
                    struct bert_writer **ret_writer,
                    struct err *e);
/* A record that does not fit the shape is ERR_INVALID and is not written. */
int bert_writer_add(struct bert_writer *writer,
                    const struct bert_record *record,
                    struct err *e);
int bert_writer_close(struct bert_writer *writer, struct err *e);
/* Without a close before it nothing is left behind. */
void bert_writer_free(struct bert_writer *writer);

/* --- reading --- */
struct bert_data; /* opaque: the shards of a folder, mapped */

/* A folder, or one file.  A missing folder, one without shards, a file that is none (and why)
 * and shards of different shapes (both named) are told apart. */
int bert_data_open(const char *path, struct bert_data **ret_data, struct err *e);
void bert_data_free(struct bert_data *data);

struct bert_data_facts {
    struct bert_shape shape;
    int64_t records;
    int shards;
};
void bert_data_facts(const struct bert_data *data, struct bert_data_facts *ret_facts);
/* Record number 0..records-1, counted through the shards: checked, borrowed from the file. */
int bert_data_at(const struct bert_data *data,
                 int64_t number,
                 struct bert_record *ret_record,
                 struct err *e);

/* --- batches ---
 * Position p of rank r of n in training is (batch * N + i) * n + r; it belongs to epoch
 * p / records, and is record permute(p % records) of the permutation that (seed, epoch) fixes.
 * So batch b is a function of (seed, rank, ranks, b) alone, ranks never share a record of an
 * epoch, and a run that resumes at batch b sees what it would have seen.  Without is_shuffled
 * the permutation is none.  With is_once there is one epoch: the last batch is padded with
 * examples whose labels are all -1, and behind it examples is 0. */
struct bert_loader; /* opaque */

struct bert_loader_options {
    int64_t batch;       /* N, of one rank */
    int64_t sequence;    /* T of the network: at least the shards' (the rest is padding), else
                            ERR_INVALID with both */
    int64_t predictions; /* likewise P */
    uint64_t seed;
    int rank, ranks;
    int64_t first_batch; /* of this rank: where to begin */
    bool is_shuffled;
    bool is_once;
};

struct bert_batch {
    const int32_t *ids;    /* N T; padding 0 */
    const int32_t *types;  /* N T: 0 first sentence and padding, 1 second */
    const int32_t *mask;   /* N T: 1 a token, 0 padding */
    const int32_t *rows;   /* N P: n*T + position of the masked token; absent: n*T */
    const int32_t *labels; /* N P: the id that was there; absent: -1 */
    const int32_t *next;   /* N: 0 or 1; example of padding: -1 */
    int64_t examples;      /* without padding */
    int64_t masked;        /* labels that are not -1 */
    int64_t number;        /* of the batch, from 0 */
    int64_t epoch;         /* of its first example */
};

int bert_loader_new(const struct bert_data *data,
                    const struct bert_loader_options *options,
                    struct bert_loader **ret_loader,
                    struct err *e);
void bert_loader_free(struct bert_loader *loader);
/* The next batch; its arrays are borrowed until two more were taken (a step may be ahead). */
int bert_loader_next(struct bert_loader *loader, struct bert_batch *ret_batch, struct err *e);

/* --- the program ---
 * `yardbench bert-data` with the words behind it: texts to shards.  Returns the exit status. */
int bert_data_main(int argc, char **argv);

#endif
