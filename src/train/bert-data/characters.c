/* characters.c - see characters.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/characters.h"

#include "base/mem.h"
#include "train/bert-data/characters-table.h"

/* How many bytes a first byte announces, and the least character of that length; 0 = it
 * announces none. */
static size_t announced(unsigned char first, uint32_t *ret_least)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = first < 0x80             ? 1
                 : (first & 0xE0) == 0xC0 ? 2
                 : (first & 0xF0) == 0xE0 ? 3
                 : (first & 0xF8) == 0xF0 ? 4
                                          : 0;

    *ret_least = least[len];
    return len;
}

static uint32_t bad(size_t *ret_bytes)
{
    *ret_bytes = 1;
    return CHARACTER_BAD;
}

uint32_t character_read(const char *bytes, size_t len, size_t *ret_bytes)
{
    uint32_t least;
    size_t need = announced((unsigned char)bytes[0], &least);
    uint32_t c = need > 1 ? (unsigned char)bytes[0] & (0x7Fu >> need) : (unsigned char)bytes[0];

    if (need == 0 || need > len)
        return bad(ret_bytes);
    for (size_t i = 1; i < need; i++) {
        if (((unsigned char)bytes[i] & 0xC0) != 0x80)
            return bad(ret_bytes);
        c = c << 6 | ((unsigned char)bytes[i] & 0x3F);
    }
    if (c < least || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return bad(ret_bytes);
    *ret_bytes = need;
    return c;
}

size_t character_write(uint32_t c, char *bytes)
{
    if (c < 0x80) {
        bytes[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        bytes[0] = (char)(0xC0 | c >> 6);
        bytes[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        bytes[0] = (char)(0xE0 | c >> 12);
        bytes[1] = (char)(0x80 | (c >> 6 & 0x3F));
        bytes[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    bytes[0] = (char)(0xF0 | c >> 18);
    bytes[1] = (char)(0x80 | (c >> 12 & 0x3F));
    bytes[2] = (char)(0x80 | (c >> 6 & 0x3F));
    bytes[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

static bool is_in(uint32_t c, const struct range *ranges, size_t count)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (c > ranges[middle].last)
            low = middle + 1;
        else if (c < ranges[middle].first)
            high = middle;
        else
            return true;
    }
    return false;
}

bool character_is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v' && c != '\f') ||
           (c >= 0x80 && is_in(c, character_spaces, character_spaces_count));
}

bool character_is_nothing(uint32_t c)
{
    if (c >= ' ' && c < 0x7F)
        return false;
    return c == CHARACTER_BAD ||
           (is_in(c, character_controls, character_controls_count) && !character_is_space(c));
}

bool character_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') ||
               (c > 'z' && c < 0x7F);
    return is_in(c, character_punctuation, character_punctuation_count);
}

bool character_is_mark(uint32_t c)
{
    return c >= 0x300 && is_in(c, character_marks, character_marks_count);
}

bool character_is_ideograph(uint32_t c)
{
    static const struct range blocks[] = {
        {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
        {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};

    return c >= 0x3400 && is_in(c, blocks, ARRAY_SIZE(blocks));
}

uint32_t character_fold(uint32_t c)
{
    if (c < 0xC0)
        return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    if (c - 0xC0 < character_folded_c0_count)
        return character_folded_c0[c - 0xC0];
    if (c >= 0x370 && c - 0x370 < character_folded_370_count)
        return character_folded_370[c - 0x370];
    if (c >= 0x1E00 && c - 0x1E00 < character_folded_1e00_count)
        return character_folded_1e00[c - 0x1E00];
    return c;
}
