/* crc32c.c - CRC-32C by the instruction that x86 and ARM have for it, else by tables.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/record/tfrecord.h"

#include <pthread.h>
#include <string.h>

static const uint32_t polynomial = 0x82f63b78; /* Castagnoli's, reflected */

static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
        tables[0][i] = crc;
    }
    for (int t = 1; t < 8; t++)
        for (uint32_t i = 0; i < 256; i++)
            tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 255];
}

/* Eight bytes a turn. */
static uint32_t by_table(uint32_t crc, const uint8_t *p, size_t len)
{
    pthread_once(&tables_once, make_tables);
    for (; len >= 8; p += 8, len -= 8)
        crc = tables[7][(crc ^ p[0]) & 255] ^ tables[6][((crc >> 8) ^ p[1]) & 255] ^
              tables[5][((crc >> 16) ^ p[2]) & 255] ^ tables[4][(crc >> 24) ^ p[3]] ^
              tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
    for (; len; p++, len--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 255];
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t
by_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
    uint64_t wide = crc;

    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word;

        memcpy(&word, p, sizeof(word));
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; len; p++, len--)
        crc = __builtin_ia32_crc32qi(crc, *p);
    return crc;
}

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#else
static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
    return by_table(crc, p, len);
}

static bool has_instruction(void)
{
    return false;
}
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
    return ~(has_instruction() ? by_instruction(~crc, bytes, len) : by_table(~crc, bytes, len));
}

uint32_t crc32c_tables(uint32_t crc, const void *bytes, size_t len)
{
    return ~by_table(~crc, bytes, len);
}

uint32_t crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}
