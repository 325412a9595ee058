/* wordpiece.c - see wordpiece.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/wordpiece.h"

#include "base/mem.h"
#include "train/bert-data/characters.h"
#include "train/bert-data/vocab.h"

#include <string.h>

enum {
    MOST_WORD_BYTES = WORDPIECE_MOST_CHARACTERS * CHARACTER_MOST_BYTES,
};

/* The word that is being put together. */
struct builder {
    wordpiece_word_fn *fn;
    void *arg;
    char word[MOST_WORD_BYTES];
    size_t len;
    int characters;
};

static void end_word(struct builder *b)
{
    if (b->characters > 0)
        b->fn(b->arg, b->word, b->len, b->characters > WORDPIECE_MOST_CHARACTERS);
    b->len = 0;
    b->characters = 0;
}

static void add_character(struct builder *b, uint32_t c)
{
    if (b->characters < WORDPIECE_MOST_CHARACTERS)
        b->len += character_write(c, b->word + b->len);
    if (b->characters <= WORDPIECE_MOST_CHARACTERS)
        b->characters++;
}

static void take(struct builder *b, uint32_t c, bool is_cased)
{
    bool is_alone;

    if (character_is_space(c)) {
        end_word(b);
        return;
    }
    if (character_is_nothing(c))
        return;
    if (!is_cased) {
        c = character_fold(c);
        if (character_is_mark(c))
            return;
    }
    is_alone = character_is_punctuation(c) || character_is_ideograph(c);
    if (is_alone)
        end_word(b);
    add_character(b, c);
    if (is_alone)
        end_word(b);
}

void wordpiece_words(
    const char *text, size_t len, bool is_cased, wordpiece_word_fn *fn, void *arg)
{
    struct builder b = {.fn = fn, .arg = arg};

    for (size_t at = 0; at < len;) {
        size_t bytes;
        uint32_t c = character_read(text + at, len - at, &bytes);

        at += bytes;
        take(&b, c, is_cased);
    }
    end_word(&b);
}

void tokens_done(struct tokens *t)
{
    free(t->ids);
    *t = (struct tokens){0};
}

void tokens_add(struct tokens *t, int32_t id)
{
    if (t->count == t->room) {
        t->room = t->room ? t->room * 2 : 256;
        t->ids = xreallocarray(t->ids, t->room, sizeof *t->ids);
    }
    t->ids[t->count++] = id;
}

/* The longest piece at the beginning of `rest`, tried from the longest down: -1 = none. */
static int32_t
longest(const struct vocab *vocab, const char *rest, size_t len, bool goes_on, size_t *ret_len)
{
    char piece[2 + MOST_WORD_BYTES] = "##";
    size_t before = goes_on ? 2 : 0;

    memcpy(piece + before, rest, len);
    for (size_t end = len; end > 0; end--) {
        int32_t id;

        if (end < len && ((unsigned char)rest[end] & 0xC0) == 0x80)
            continue; /* within a character */
        id = vocab_find(vocab, piece, before + end);
        if (id >= 0) {
            *ret_len = end;
            return id;
        }
    }
    return -1;
}

struct cutter {
    const struct vocab *vocab;
    struct tokens *tokens;
};

static void cut(void *arg, const char *word, size_t len, bool is_long)
{
    const struct cutter *c = arg;
    size_t begun = c->tokens->count, taken;

    for (size_t at = 0; at < len; at += taken) {
        int32_t id = is_long ? -1 : longest(c->vocab, word + at, len - at, at > 0, &taken);

        if (id < 0) { /* the whole word, not the rest of it */
            c->tokens->count = begun;
            tokens_add(c->tokens, vocab_special(c->vocab)->unknown);
            return;
        }
        tokens_add(c->tokens, id);
    }
}

void wordpiece_tokens(const struct vocab *vocab,
                      const char *text,
                      size_t len,
                      bool is_cased,
                      struct tokens *tokens)
{
    struct cutter c = {vocab, tokens};

    wordpiece_words(text, len, is_cased, cut, &c);
}
