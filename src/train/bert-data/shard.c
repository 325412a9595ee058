/* shard.c - the form of a shard: header and records, made and checked (bert-data.h has the
 * table of bytes).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/bert-data-internal.h"
#include "train/record/tfrecord.h"

#include <string.h>

static const char magic[8] = {'y', 'a', 'r', 'd', 'b', 'e', 'r', 't'};

void shard_header_make(struct shard_header *header,
                       const struct bert_shape *shape,
                       uint64_t records)
{
    *header = (struct shard_header){.version = BERT_DATA_VERSION,
                                    .sequence = (uint32_t)shape->sequence,
                                    .predictions = (uint32_t)shape->predictions,
                                    .vocabulary = (uint32_t)shape->vocabulary,
                                    .records = records};
    memcpy(header->magic, magic, sizeof magic);
    header->crc = crc32c(0, header, offsetof(struct shard_header, crc));
}

static bool is_zero(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i])
            return false;
    return true;
}

static int check_header(const struct shard_header *h, struct err *e)
{
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return err_set(e, ERR_INVALID,
                       "is no shard of BERT data: it does not begin with "
                       "\"yardbert\"");
    if (h->version != BERT_DATA_VERSION)
        return err_set(e, ERR_INVALID, "has version %u, this program reads version %d",
                       h->version, BERT_DATA_VERSION);
    if (h->crc != crc32c(0, h, offsetof(struct shard_header, crc)) ||
        !is_zero(h->zeros, sizeof h->zeros))
        return err_set(e, ERR_INVALID, "has a damaged header");
    if (h->sequence < 2 || h->sequence > BERT_DATA_MOST_SEQUENCE ||
        h->predictions > h->sequence || h->vocabulary < 1 ||
        h->vocabulary > BERT_DATA_MOST_VOCABULARY)
        return err_set(e, ERR_INVALID,
                       "has sequences of %u tokens, %u of them masked, of a vocabulary of %u",
                       h->sequence, h->predictions, h->vocabulary);
    return 0;
}

int shard_check(const void *bytes, size_t len, struct bert_shape *ret_shape, struct err *e)
{
    struct shard_header h;
    struct bert_shape shape;

    if (len < sizeof h)
        return err_set(e, ERR_INVALID, "is no shard of BERT data: it has %zu bytes", len);
    memcpy(&h, bytes, sizeof h);
    if (check_header(&h, e) < 0)
        return -1;
    shape = (struct bert_shape){h.sequence, h.predictions, h.vocabulary};
    size_t each = record_words(&shape) * 4, all = len - sizeof h;
    if (h.records != all / each || all % each != 0)
        return err_set(e, ERR_INVALID,
                       "has %zu bytes of records, not the %llu records of %zu bytes that its "
                       "header tells",
                       all, (unsigned long long)h.records, each);
    *ret_shape = shape;
    return 0;
}

static int check_numbers(const struct bert_record *r, const struct bert_shape *s, struct err *e)
{
    if (r->length < 2 || r->length > s->sequence)
        return err_set(e, ERR_INVALID, "has %lld tokens, not 2 to %lld", (long long)r->length,
                       (long long)s->sequence);
    if (r->second < 1 || r->second > r->length)
        return err_set(e, ERR_INVALID, "has its second sentence at %lld of %lld",
                       (long long)r->second, (long long)r->length);
    if (r->next != 0 && r->next != 1)
        return err_set(e, ERR_INVALID, "has the label %lld for its second sentence",
                       (long long)r->next);
    if (r->masked < 0 || r->masked > s->predictions)
        return err_set(e, ERR_INVALID, "has %lld masked tokens, not 0 to %lld",
                       (long long)r->masked, (long long)s->predictions);
    return 0;
}

int record_check(const struct bert_record *r, const struct bert_shape *s, struct err *e)
{
    if (check_numbers(r, s, e) < 0)
        return -1;
    for (int64_t i = 0; i < r->length; i++)
        if (r->ids[i] < 0 || r->ids[i] >= s->vocabulary)
            return err_set(e, ERR_INVALID, "has the token %d, the vocabulary ends at %lld",
                           r->ids[i], (long long)s->vocabulary - 1);
    for (int64_t i = 0; i < r->masked; i++) {
        if (r->masked_at[i] < 0 || r->masked_at[i] >= r->length ||
            (i > 0 && r->masked_at[i] <= r->masked_at[i - 1]))
            return err_set(e, ERR_INVALID, "has a masked token at %d, out of order or bounds",
                           r->masked_at[i]);
        if (r->masked_id[i] < 0 || r->masked_id[i] >= s->vocabulary)
            return err_set(e, ERR_INVALID,
                           "has the masked token %d, the vocabulary ends at "
                           "%lld",
                           r->masked_id[i], (long long)s->vocabulary - 1);
    }
    return 0;
}

int record_read(const int32_t *words,
                const struct bert_shape *shape,
                struct bert_record *ret_record,
                struct err *e)
{
    size_t count = record_words(shape) - 1;
    const int32_t *masked_at = words + RECORD_IDS + shape->sequence;
    struct bert_record r = {.length = words[RECORD_LENGTH],
                            .second = words[RECORD_SECOND],
                            .next = words[RECORD_NEXT],
                            .masked = words[RECORD_MASKED],
                            .ids = words + RECORD_IDS,
                            .masked_at = masked_at,
                            .masked_id = masked_at + shape->predictions};

    if ((uint32_t)words[count] != crc32c(0, words, count * 4))
        return err_set(e, ERR_INVALID, "is damaged: its checksum does not fit");
    if (record_check(&r, shape, e) < 0)
        return -1;
    *ret_record = r;
    return 0;
}

void record_write(const struct bert_record *record,
                  const struct bert_shape *shape,
                  int32_t *words)
{
    size_t count = record_words(shape) - 1;
    int32_t *masked_at = words + RECORD_IDS + shape->sequence;

    memset(words, 0, count * 4);
    words[RECORD_LENGTH] = (int32_t)record->length;
    words[RECORD_SECOND] = (int32_t)record->second;
    words[RECORD_NEXT] = (int32_t)record->next;
    words[RECORD_MASKED] = (int32_t)record->masked;
    memcpy(words + RECORD_IDS, record->ids, (size_t)record->length * 4);
    if (record->masked > 0) {
        memcpy(masked_at, record->masked_at, (size_t)record->masked * 4);
        memcpy(masked_at + shape->predictions, record->masked_id, (size_t)record->masked * 4);
    }
    words[count] = (int32_t)crc32c(0, words, count * 4);
}
