/* SPDX-License-Identifier: Apache-2.0 */
#include "train/record/tfrecord.h"

#include "base/str.h"

#include <endian.h>
#include <string.h>

enum {
    LENGTH_BYTES = 8,
    CRC_BYTES = 4,
    HEAD_BYTES = LENGTH_BYTES + CRC_BYTES,
};

static void add_u32(struct str *out, uint32_t value)
{
    uint32_t little = htole32(value);

    str_add_len(out, &little, sizeof(little));
}

void tfrecord_add(struct str *out, const void *data, size_t len)
{
    uint64_t little = htole64((uint64_t)len);

    str_add_len(out, &little, sizeof(little));
    add_u32(out, crc32c_mask(crc32c(0, &little, sizeof(little))));
    str_add_len(out, data, len);
    add_u32(out, crc32c_mask(crc32c(0, data, len)));
}

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t little;

    memcpy(&little, p, sizeof(little));
    return le32toh(little);
}

static uint64_t u64_at(const uint8_t *p)
{
    uint64_t little;

    memcpy(&little, p, sizeof(little));
    return le64toh(little);
}

static bool has_crc(const uint8_t *data, size_t len, const uint8_t *crc)
{
    return crc32c_mask(crc32c(0, data, len)) == u32_at(crc);
}

/* Check the length of the record at `at` against its checksum and what is left of the file. */
static int
read_size(const uint8_t *record, size_t left, size_t at, uint64_t *ret_size, struct err *e)
{
    uint64_t size;

    if (left < TFRECORD_AROUND)
        return err_set(e, ERR_INVALID, "cut short at offset %zu", at);
    if (!has_crc(record, LENGTH_BYTES, record + LENGTH_BYTES))
        return err_set(e, ERR_INVALID, "wrong checksum of the length at offset %zu", at);
    size = u64_at(record);
    if (size > TFRECORD_MOST_BYTES)
        return err_set(e, ERR_INVALID, "record at offset %zu is too long", at);
    if (size > left - TFRECORD_AROUND)
        return err_set(e, ERR_INVALID, "cut short at offset %zu", at);
    *ret_size = size;
    return 0;
}

int tfrecord_skip(const void *file, size_t len, size_t at, size_t *ret_next, struct err *e)
{
    uint64_t size;

    if (read_size((const uint8_t *)file + at, at <= len ? len - at : 0, at, &size, e) < 0)
        return -1;
    *ret_next = at + TFRECORD_AROUND + (size_t)size;
    return 0;
}

int tfrecord_at(const void *file,
                size_t len,
                size_t at,
                const void **ret_data,
                size_t *ret_len,
                size_t *ret_next,
                struct err *e)
{
    const uint8_t *record = (const uint8_t *)file + at;
    uint64_t size;

    *ret_next = 0;
    if (read_size(record, at <= len ? len - at : 0, at, &size, e) < 0)
        return -1;
    *ret_next = at + TFRECORD_AROUND + (size_t)size;
    if (!has_crc(record + HEAD_BYTES, (size_t)size, record + HEAD_BYTES + size))
        return err_set(e, ERR_INVALID, "wrong checksum of the data at offset %zu", at);
    *ret_data = record + HEAD_BYTES;
    *ret_len = (size_t)size;
    return 0;
}
