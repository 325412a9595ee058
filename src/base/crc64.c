/* Eight bytes at a step by eight tables ("slicing by 8").
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc64.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

static const uint64_t polynomial = 0x9a6c9329ac4bc9b5ull;
static uint64_t tables[8][256];

static void make_tables(void)
{
    for (unsigned int i = 0; i < 256; i++) {
        uint64_t crc = i;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
        tables[0][i] = crc;
    }
    for (unsigned int i = 0; i < 256; i++) {
        for (int t = 1; t < 8; t++)
            tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
    }
}

uint64_t crc64(uint64_t crc, const void *bytes, size_t len)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned char *p = bytes;

    pthread_once(&once, make_tables);
    crc = ~crc;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t word;

        memcpy(&word, p, sizeof(word));
        word = le64toh(word) ^ crc;
        crc = tables[7][word & 0xff] ^ tables[6][(word >> 8) & 0xff] ^
              tables[5][(word >> 16) & 0xff] ^ tables[4][(word >> 24) & 0xff] ^
              tables[3][(word >> 32) & 0xff] ^ tables[2][(word >> 40) & 0xff] ^
              tables[1][(word >> 48) & 0xff] ^ tables[0][word >> 56];
    }
    for (; len > 0; len--, p++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 0xff];
    return ~crc;
}
