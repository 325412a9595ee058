/* crc64.h - the CRC-64 of NVMe and of Azure storage.
 *
 * Reflected polynomial 0x9a6c9329ac4bc9b5, all ones before and after.  The wire shows it as
 * base64 of its eight bytes, lowest first.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CRC64_H
#define BASE_CRC64_H

#include <stddef.h>
#include <stdint.h>

/* Go on with crc (0 at the start). */
uint64_t crc64(uint64_t crc, const void *bytes, size_t len);

#endif
