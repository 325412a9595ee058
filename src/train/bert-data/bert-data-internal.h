/* bert-data-internal.h - what the files of this part share: the form of a shard in bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_BERT_DATA_INTERNAL_H
#define TRAIN_BERT_DATA_BERT_DATA_INTERNAL_H

#include "train/bert-data/bert-data.h"

#define SHARD_SUFFIX ".bert"

/* Shards are written and mapped as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shards are little-endian");

struct shard_header { /* as the table of bert-data.h has it */
    char magic[8];
    uint32_t version, sequence, predictions, vocabulary;
    uint64_t records;
    char zeros[28];
    uint32_t crc;
};
_Static_assert(sizeof(struct shard_header) == 64, "a header has 64 bytes");

enum {
    RECORD_LENGTH, /* the words of a record before its ids */
    RECORD_SECOND,
    RECORD_NEXT,
    RECORD_MASKED,
    RECORD_IDS,
};

/* Words of four bytes in a record, the checksum with it. */
static inline size_t record_words(const struct bert_shape *shape)
{
    return 5 + (size_t)shape->sequence + 2 * (size_t)shape->predictions;
}

/* Header of a shard. */
void shard_header_make(struct shard_header *header,
                       const struct bert_shape *shape,
                       uint64_t records);
/* A whole file in memory: header and length.  Errors do not name the file. */
int shard_check(const void *bytes, size_t len, struct bert_shape *ret_shape, struct err *e);

/* Do numbers, positions and ids fit the shape? */
int record_check(const struct bert_record *record,
                 const struct bert_shape *shape,
                 struct err *e);
/* The record in these words; checks its checksum and all of it. */
int record_read(const int32_t *words,
                const struct bert_shape *shape,
                struct bert_record *ret_record,
                struct err *e);
/* Into record_words() words. */
void record_write(const struct bert_record *record,
                  const struct bert_shape *shape,
                  int32_t *words);

#endif
