/* words.c - see words.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/words.h"

#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

void words_done(struct words *w)
{
    free(w->text);
    free(w->at);
    free(w->slots);
    *w = (struct words){0};
}

/* FNV-1a, with the upper half folded in. */
static size_t hash_of(const char *word, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3u;
    return (size_t)(hash ^ hash >> 32);
}

static bool is_word(const struct words *w, int32_t number, const char *word, size_t len)
{
    const char *there = w->text + w->at[number];

    return strncmp(there, word, len) == 0 && there[len] == '\0';
}

/* Where the word is, or would be. */
static size_t slot_of(const struct words *w, const char *word, size_t len)
{
    size_t slot = hash_of(word, len) & (w->slot_count - 1);

    while (w->slots[slot] && !is_word(w, w->slots[slot] - 1, word, len))
        slot = (slot + 1) & (w->slot_count - 1);
    return slot;
}

static void grow(struct words *w)
{
    size_t count = w->slot_count ? w->slot_count * 2 : 64;

    free(w->slots);
    w->slots = xcalloc(count, sizeof *w->slots);
    w->slot_count = count;
    w->at = xreallocarray(w->at, count / 2, sizeof *w->at);
    for (int32_t i = 0; i < w->count; i++) {
        const char *word = w->text + w->at[i];

        w->slots[slot_of(w, word, strlen(word))] = i + 1;
    }
}

int32_t words_add(struct words *w, const char *word, size_t len)
{
    size_t slot;

    if ((size_t)w->count >= w->slot_count / 2)
        grow(w);
    slot = slot_of(w, word, len);
    if (w->slots[slot])
        return w->slots[slot] - 1;
    if (w->room - w->len < len + 1) {
        w->room = (w->len + len + 1) * 2;
        w->text = xrealloc(w->text, w->room);
    }
    memcpy(w->text + w->len, word, len);
    w->text[w->len + len] = '\0';
    w->at[w->count] = w->len;
    w->len += len + 1;
    w->slots[slot] = ++w->count;
    return w->count - 1;
}

int32_t words_find(const struct words *w, const char *word, size_t len)
{
    return w->slot_count ? w->slots[slot_of(w, word, len)] - 1 : -1;
}

const char *words_text(const struct words *w, int32_t number)
{
    return w->text + w->at[number];
}
