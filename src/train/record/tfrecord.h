/* tfrecord.h - the record files of TensorFlow: read for ImageNet, written for TensorBoard.
 *
 *   offset  bytes  what
 *   0       8      length of the data, little-endian
 *   8       4      masked CRC-32C of these 8 bytes
 *   12      n      data
 *   12+n    4      masked CRC-32C of the data
 *
 * masked(crc) = ((crc >> 15) | (crc << 17)) + 0xa282ead8.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_RECORD_TFRECORD_H
#define TRAIN_RECORD_TFRECORD_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct str;

enum {
    TFRECORD_MOST_BYTES = 256 * 1024 * 1024, /* of one record; a longer one is corrupt */
    TFRECORD_AROUND = 16,                    /* bytes that a record adds to its data */
};

/* CRC-32C (Castagnoli); crc is 0 or what an earlier call returned.  Uses the machine's
 * instruction where it has one. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);
/* The same without the instruction: for the test that compares them. */
uint32_t crc32c_tables(uint32_t crc, const void *bytes, size_t len);
uint32_t crc32c_mask(uint32_t crc);

/* Append one record. */
void tfrecord_add(struct str *out, const void *data, size_t len);

/* The record at `at` of a mapped file of len bytes: *ret_data points into it.  Fails with
 * ERR_INVALID, saying which offset and what is wrong (cut short, length's checksum, data's
 * checksum).  *ret_next is where the following record begins; it is also set when only the data
 * are damaged, so that a reader can skip that one; else it is 0: the rest is lost. */
int tfrecord_at(const void *file,
                size_t len,
                size_t at,
                const void **ret_data,
                size_t *ret_len,
                size_t *ret_next,
                struct err *e);

/* Where the record behind the one at `at` begins, without looking at the data: for an index. */
int tfrecord_skip(const void *file, size_t len, size_t at, size_t *ret_next, struct err *e);

#endif
