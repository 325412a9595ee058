/* bert_shard.c - fuzz target: shards of BERT's training data.
 *
 * What must hold beyond not crashing: a record that was read fits its shape and is, written
 * again, the same bytes.  The checksums of every input are also put right, or nothing would get
 * beyond them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/bert-data/bert-data-internal.h"
#include "train/record/tfrecord.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_record(const int32_t *words, const struct bert_shape *shape)
{
    auto_free int32_t *again = xcalloc(record_words(shape), sizeof *again);
    struct bert_record r;

    if (record_read(words, shape, &r, NULL) < 0)
        return;
    for (int64_t i = 0; i < r.length; i++)
        if (r.ids[i] < 0 || r.ids[i] >= shape->vocabulary)
            abort();
    for (int64_t i = 0; i < r.masked; i++)
        if (r.masked_at[i] < 0 || r.masked_at[i] >= r.length)
            abort();
    record_write(&r, shape, again);
    if (memcmp(again, words, (size_t)(RECORD_IDS + r.length) * 4) != 0)
        abort();
}

static void try_file(int32_t *file, size_t len)
{
    struct bert_shape shape;
    size_t words;

    if (shard_check(file, len, &shape, NULL) < 0)
        return;
    words = record_words(&shape);
    for (size_t at = sizeof(struct shard_header) / 4; at < len / 4; at += words) {
        try_record(file + at, &shape);
        file[at + words - 1] = (int32_t)crc32c(0, file + at, (words - 1) * 4);
        try_record(file + at, &shape);
    }
}

/* The header's number of records and checksum as they should be. */
static void put_right(int32_t *file, size_t len)
{
    struct shard_header h;
    struct bert_shape shape;

    if (len < sizeof h)
        return;
    memcpy(&h, file, sizeof h);
    if (h.sequence > BERT_DATA_MOST_SEQUENCE || h.predictions > h.sequence)
        return;
    shape = (struct bert_shape){h.sequence, h.predictions, h.vocabulary};
    shard_header_make(&h, &shape, (len - sizeof h) / (record_words(&shape) * 4));
    memcpy(file, &h, sizeof h);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    auto_free int32_t *file = xcalloc(1, len + 4); /* aligned, as a mapping is */

    if (len > 0)
        memcpy(file, bytes, len);
    try_file(file, len);
    put_right(file, len);
    try_file(file, len);
    return 0;
}
