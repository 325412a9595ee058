/* vocab.c - see vocab.h: pieces one after another in one text, found by a hash table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/vocab.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/bert-data.h"
#include "train/bert-data/words.h"

#include <string.h>

enum {
    MOST_FILE_BYTES = 1 << 28,
};

struct vocab {
    struct words words; /* number of a word = number of the piece */
    struct vocab_special special;
};

void vocab_free(struct vocab *vocab)
{
    if (!vocab)
        return;
    words_done(&vocab->words);
    free(vocab);
}

static int add_line(struct vocab *vocab, const char *line, size_t len, struct err *e)
{
    int32_t number = vocab->words.count;

    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (memchr(line, '\0', len))
        return err_set(e, ERR_INVALID, "line %d has a zero byte", number + 1);
    if (len == 0 || len > VOCAB_MOST_PIECE)
        return err_set(e, ERR_INVALID, "line %d has %zu bytes, not 1 to %d", number + 1, len,
                       VOCAB_MOST_PIECE);
    if (number >= BERT_DATA_MOST_VOCABULARY)
        return err_set(e, ERR_TOO_LARGE, "has more than %d lines", BERT_DATA_MOST_VOCABULARY);
    if (words_add(&vocab->words, line, len) != number)
        return err_set(e, ERR_INVALID, "line %d has \"%.*s\" a second time", number + 1,
                       len < 100 ? (int)len : 100, line);
    return 0;
}

static int find_special(struct vocab *vocab, struct err *e)
{
    const struct {
        const char *piece;
        int32_t *number;
    } all[] = {{"[UNK]", &vocab->special.unknown},
               {"[CLS]", &vocab->special.begin},
               {"[SEP]", &vocab->special.end},
               {"[MASK]", &vocab->special.mask}};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        *all[i].number = words_find(&vocab->words, all[i].piece, strlen(all[i].piece));
        if (*all[i].number < 0)
            return err_set(e, ERR_INVALID, "is no vocabulary of BERT: there is no line \"%s\"",
                           all[i].piece);
    }
    return 0;
}

static int parse(struct vocab *vocab, const char *text, size_t len, struct err *e)
{
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t size = end ? (size_t)(end - text) - at : len - at;

        if (add_line(vocab, text + at, size, e) < 0)
            return -1;
        at += size + 1;
    }
    return find_special(vocab, e);
}

int vocab_parse(const char *text, size_t len, struct vocab **ret_vocab, struct err *e)
{
    struct vocab *vocab = xcalloc(1, sizeof *vocab);

    if (parse(vocab, text, len, e) < 0) {
        vocab_free(vocab);
        return -1;
    }
    *ret_vocab = vocab;
    return 0;
}

int vocab_read(const char *path, struct vocab **ret_vocab, struct err *e)
{
    auto_str text = {0};

    if (fs_read(path, MOST_FILE_BYTES, &text, e) < 0)
        return -1;
    if (vocab_parse(str_text(&text), text.len, ret_vocab, e) < 0)
        return err_wrap(e, "\"%.200s\"", path);
    return 0;
}

int32_t vocab_count(const struct vocab *vocab)
{
    return vocab->words.count;
}

const struct vocab_special *vocab_special(const struct vocab *vocab)
{
    return &vocab->special;
}

int32_t vocab_find(const struct vocab *vocab, const char *piece, size_t len)
{
    return words_find(&vocab->words, piece, len);
}

const char *vocab_piece(const struct vocab *vocab, int32_t number)
{
    return words_text(&vocab->words, number);
}

void vocab_format(const struct vocab *vocab, struct str *out)
{
    for (int32_t i = 0; i < vocab->words.count; i++)
        str_addf(out, "%s\n", words_text(&vocab->words, i));
}
