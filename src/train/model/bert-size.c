/* bert-size.c - from the name of a model file to its sizes: see bert.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/model/bert.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum {
    VOCABULARY = 30528, /* 30522 of the English one, and more to a multiple of 64 */
    POSITIONS = 512,
};

static const struct named {
    const char *word;
    int64_t layers, width, heads;
} named[] = {
    {"large", 24, 1024, 16}, {"base", 12, 768, 12}, {"medium", 8, 512, 8},
    {"small", 4, 512, 8},    {"mini", 4, 256, 4},   {"tiny", 2, 128, 2},
};

/* Sizes of more than that are a slip of the hand, and products of them stay within an int64. */
static const struct key {
    const char *key;
    size_t offset;
    int64_t most;
} keys[] = {
    {"L", offsetof(struct bert_size, layers), 1000},
    {"H", offsetof(struct bert_size, width), 65536},
    {"A", offsetof(struct bert_size, heads), 1024},
    {"V", offsetof(struct bert_size, vocabulary), 1 << 24},
    {"S", offsetof(struct bert_size, positions), 65536},
    {"I", offsetof(struct bert_size, between), 1 << 20},
};

static bool is_between(char c)
{
    return c == '-' || c == '_';
}

/* Does a number end here?  ".onnx" may follow. */
static bool ends(const char *at)
{
    return !*at || is_between(*at) || (*at == '.' && isalpha((unsigned char)at[1]));
}

/* Does a part of the name begin here? */
static bool begins(const char *name, const char *at)
{
    return at == name || is_between(at[-1]);
}

/* The number behind key ("L-24"), or NULL. */
static const char *number_of(const char *name, const char *key)
{
    size_t len = strlen(key);

    for (const char *at = name; *at; at++)
        if (begins(name, at) && strncmp(at, key, len) == 0 && is_between(at[len]) &&
            isdigit((unsigned char)at[len + 1]))
            return at + len + 1;
    return NULL;
}

static int
take_key(struct bert_size *size, const struct key *key, const char *name, struct err *e)
{
    const char *text = number_of(name, key->key);
    int64_t number;
    char *end;

    if (!text)
        return 0;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno || number < 1 || number > key->most || !ends(end))
        return err_set(e, ERR_INVALID, "%s in \"%.100s\" is not within 1 and %lld", key->key,
                       name, (long long)key->most);
    memcpy((char *)size + key->offset, &number, sizeof(number));
    return 0;
}

static int take_dropout(struct bert_size *size, const char *name, struct err *e)
{
    const char *text = number_of(name, "Dp");
    double rate;
    char *end;

    if (!text)
        return 0;
    rate = strtod(text, &end);
    if (!(rate >= 0 && rate < 1) || !ends(end))
        return err_set(e, ERR_INVALID, "Dp in \"%.100s\" is no rate of dropout", name);
    size->dropout = (float)rate;
    return 0;
}

static bool has_word(const char *name, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = name; *at; at++)
        if (begins(name, at) && str_starts_nocase(at, word) &&
            (!at[len] || is_between(at[len])))
            return true;
    return false;
}

static bool take_word(struct bert_size *size, const char *name)
{
    if (!str_starts_nocase(name, "bert"))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(named); i++)
        if (has_word(name, named[i].word)) {
            size->layers = named[i].layers;
            size->width = named[i].width;
            size->heads = named[i].heads;
            return true;
        }
    return false;
}

static int no_size(const char *name, struct err *e)
{
    size_t best = SIZE_MAX, at = 0;

    for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
        auto_free char *whole = xasprintf("bert-%s", named[i].word);
        size_t distance = str_distance(name, whole);

        if (distance < best) {
            best = distance;
            at = i;
        }
    }
    return err_set(e, ERR_NOT_FOUND,
                   "no BERT is called \"%.100s\"; did you mean \"bert-%s\"?  Any size is "
                   "written as bert_L-24_H-1024_A-16_V_30528",
                   name, named[at].word);
}

static int check(const struct bert_size *size, const char *name, struct err *e)
{
    if (!size->layers || !size->width || !size->heads)
        return no_size(name, e);
    if (size->width % size->heads)
        return err_set(e, ERR_INVALID, "\"%.100s\": %lld columns cannot be cut into %lld heads",
                       name, (long long)size->width, (long long)size->heads);
    return 0;
}

int bert_size_parse(const char *name, struct bert_size *ret_size, struct err *e)
{
    struct bert_size size = {.vocabulary = VOCABULARY, .positions = POSITIONS, .dropout = 0.1F};
    const char *slash = strrchr(name, '/');

    name = slash ? slash + 1 : name;
    take_word(&size, name);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (take_key(&size, &keys[i], name, e) < 0)
            return -1;
    if (take_dropout(&size, name, e) < 0 || check(&size, name, e) < 0)
        return -1;
    if (!size.between)
        size.between = 4 * size.width;
    *ret_size = size;
    return 0;
}
