/* wordpiece.c - fuzz target: texts and vocabularies.
 *
 * The input is a vocabulary and a text, parted by its first NUL.  What must hold beyond not
 * crashing: tokens are of the vocabulary, words are whole characters without white space, and a
 * word that is put together from the pieces is cut into them again; a vocabulary made of any
 * text can be read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/wordpiece.h"

#include "base/str.h"
#include "base/text.h"
#include "train/bert-data/vocab-make.h"
#include "train/bert-data/vocab.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_word(void *arg, const char *word, size_t len, bool is_long)
{
    (void)is_long;
    if (len == 0 || !text_is_utf8(word, len) || memchr(word, ' ', len) ||
        memchr(word, '\n', len) || memchr(word, '\0', len))
        abort();
    ++*(size_t *)arg;
}

static void cut(const struct vocab *vocab, const char *text, size_t len)
{
    for (int is_cased = 0; is_cased < 2; is_cased++) {
        struct tokens tokens = {0};
        size_t words = 0;

        wordpiece_words(text, len, is_cased, check_word, &words);
        wordpiece_tokens(vocab, text, len, is_cased, &tokens);
        if (tokens.count < words)
            abort();
        for (size_t i = 0; i < tokens.count; i++)
            if (tokens.ids[i] < 0 || tokens.ids[i] >= vocab_count(vocab))
                abort();
        tokens_done(&tokens);
    }
}

static void make_and_cut(const char *text, size_t len)
{
    struct vocab_maker *maker = vocab_maker_new(false);
    auto_str made = {0};
    struct vocab *vocab;

    vocab_maker_add(maker, text, len);
    vocab_maker_finish(maker, 64, &made);
    vocab_maker_free(maker);
    if (vocab_parse(str_text(&made), made.len, &vocab, NULL) < 0 || vocab_count(vocab) > 64)
        abort();
    cut(vocab, text, len);
    vocab_free(vocab);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *text = memchr(bytes, '\0', len);
    size_t before = text ? (size_t)(text - (const char *)bytes) : len;
    size_t after = len - before - (text ? 1 : 0);
    auto_str words = {0};
    struct vocab *vocab;

    str_add(&words, "[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    str_add_len(&words, bytes, before);
    text = text ? text + 1 : (const char *)bytes + len;
    if (vocab_parse(str_text(&words), words.len, &vocab, NULL) == 0) {
        cut(vocab, text, after);
        vocab_free(vocab);
    }
    make_and_cut(text, after);
    return 0;
}
