/* vocab-make.c - see vocab-make.h.
 *
 * A pair knows how often it stands in the text and in which words.  The heap holds pairs with
 * the count that they had when they were put there; counts only fall afterwards or the pair is
 * put there again, so a pair whose count is not the one in the heap is put back with the right
 * one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/vocab-make.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/characters.h"
#include "train/bert-data/wordpiece.h"
#include "train/bert-data/words.h"

#include <stdio.h>
#include <string.h>

static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

struct row { /* a word as pieces */
    int32_t *pieces;
    int count;
};

struct pair {
    int32_t left, right;
    int64_t count;
    int32_t *words; /* where it is or was; some more than once */
    size_t word_count, room;
};

struct entry { /* of the heap */
    int64_t count;
    size_t pair;
};

struct vocab_maker {
    bool is_cased;
    struct words words;
    int64_t *counts; /* by word */
    size_t count_room;
    struct words pieces; /* characters first, then what they were joined to */
    struct row *rows;    /* by word */
    struct pair *pairs;
    size_t pair_count, pair_room;
    size_t *slots; /* hash table of pairs, number + 1 */
    size_t slot_count;
    struct entry *heap;
    size_t heap_count, heap_room;
};

struct vocab_maker *vocab_maker_new(bool is_cased)
{
    struct vocab_maker *m = xcalloc(1, sizeof *m);

    m->is_cased = is_cased;
    return m;
}

void vocab_maker_free(struct vocab_maker *m)
{
    if (!m)
        return;
    for (int32_t i = 0; m->rows && i < m->words.count; i++)
        free(m->rows[i].pieces);
    for (size_t i = 0; i < m->pair_count; i++)
        free(m->pairs[i].words);
    words_done(&m->words);
    words_done(&m->pieces);
    free(m->counts);
    free(m->rows);
    free(m->pairs);
    free(m->slots);
    free(m->heap);
    free(m);
}

static void *grown(void *list, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return list;
    *room = *room ? *room * 2 : 64;
    return xreallocarray(list, *room, size);
}

/* --- words and their characters ------------------------------------------------------------
 */

static void count_word(void *arg, const char *word, size_t len, bool is_long)
{
    struct vocab_maker *m = arg;
    int32_t before = m->words.count, number;

    if (is_long)
        return; /* it would be [UNK] in any case */
    number = words_add(&m->words, word, len);
    m->counts = grown(m->counts, (size_t)number, &m->count_room, sizeof *m->counts);
    m->counts[number] = number < before ? m->counts[number] + 1 : 1;
}

void vocab_maker_add(struct vocab_maker *m, const char *text, size_t len)
{
    wordpiece_words(text, len, m->is_cased, count_word, m);
}

/* The character of a word that begins there, as a piece. */
static size_t
character_piece(const char *word, size_t at, char piece[static 8], size_t *ret_bytes)
{
    size_t before = at ? 2 : 0;

    character_read(word + at, strlen(word + at), ret_bytes);
    memcpy(piece, "##", before);
    memcpy(piece + before, word + at, *ret_bytes);
    return before + *ret_bytes;
}

struct character {
    const char *piece;
    int64_t count;
};

static int by_count(const void *a, const void *b)
{
    const struct character *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->piece, y->piece);
}

static int by_piece(const void *a, const void *b)
{
    return strcmp(((const struct character *)a)->piece, ((const struct character *)b)->piece);
}

/* How often each character is there, at the beginning of words and within them. */
static int64_t *count_characters(const struct vocab_maker *m, struct words *all)
{
    int64_t *counts = NULL;
    size_t room = 0;

    for (int32_t i = 0; i < m->words.count; i++) {
        const char *word = words_text(&m->words, i);
        size_t bytes, len = strlen(word);

        for (size_t at = 0; at < len; at += bytes) {
            char piece[8];
            int32_t before = all->count;
            int32_t n = words_add(all, piece, character_piece(word, at, piece, &bytes));

            counts = grown(counts, (size_t)n, &room, sizeof *counts);
            counts[n] = (n < before ? counts[n] : 0) + m->counts[i];
        }
    }
    return counts;
}

/* The most frequent ones become the first pieces, in order of their bytes. */
static void choose_characters(struct vocab_maker *m, int32_t most)
{
    struct words all = {0};
    auto_free int64_t *counts = count_characters(m, &all);
    auto_free struct character *list = xcalloc((size_t)all.count + 1, sizeof *list);
    size_t kept = all.count < most ? (size_t)all.count : (size_t)most;

    for (int32_t i = 0; i < all.count; i++)
        list[i] = (struct character){words_text(&all, i), counts[i]};
    qsort(list, (size_t)all.count, sizeof *list, by_count);
    qsort(list, kept, sizeof *list, by_piece);
    for (size_t i = 0; i < kept; i++)
        words_add(&m->pieces, list[i].piece, strlen(list[i].piece));
    words_done(&all);
}

/* A word with a character that was not kept stays an empty row. */
static void lay_row(struct vocab_maker *m, int32_t number)
{
    const char *word = words_text(&m->words, number);
    size_t bytes, len = strlen(word);
    struct row *row = &m->rows[number];

    row->pieces = xcalloc(len, sizeof *row->pieces);
    for (size_t at = 0; at < len; at += bytes) {
        char piece[8];
        int32_t id = words_find(&m->pieces, piece, character_piece(word, at, piece, &bytes));

        if (id < 0) {
            row->count = 0;
            return;
        }
        row->pieces[row->count++] = id;
    }
}

/* --- pairs ---------------------------------------------------------------------------------
 */

static size_t pair_slot(const struct vocab_maker *m, int32_t left, int32_t right)
{
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    size_t slot = (size_t)(hash >> 20) & (m->slot_count - 1);

    while (m->slots[slot] && (m->pairs[m->slots[slot] - 1].left != left ||
                              m->pairs[m->slots[slot] - 1].right != right))
        slot = (slot + 1) & (m->slot_count - 1);
    return slot;
}

static void grow_slots(struct vocab_maker *m)
{
    m->slot_count = m->slot_count ? m->slot_count * 2 : 1024;
    free(m->slots);
    m->slots = xcalloc(m->slot_count, sizeof *m->slots);
    for (size_t i = 0; i < m->pair_count; i++)
        m->slots[pair_slot(m, m->pairs[i].left, m->pairs[i].right)] = i + 1;
}

static size_t pair_of(struct vocab_maker *m, int32_t left, int32_t right)
{
    size_t slot;

    if (m->pair_count >= m->slot_count / 2)
        grow_slots(m);
    slot = pair_slot(m, left, right);
    if (m->slots[slot])
        return m->slots[slot] - 1;
    m->pairs = grown(m->pairs, m->pair_count, &m->pair_room, sizeof *m->pairs);
    m->pairs[m->pair_count] = (struct pair){.left = left, .right = right};
    m->slots[slot] = ++m->pair_count;
    return m->pair_count - 1;
}

static bool is_before(const struct vocab_maker *m, struct entry a, struct entry b)
{
    const struct pair *x = &m->pairs[a.pair], *y = &m->pairs[b.pair];

    if (a.count != b.count)
        return a.count > b.count;
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static void push(struct vocab_maker *m, size_t pair)
{
    struct entry entry = {m->pairs[pair].count, pair};
    size_t at = m->heap_count;

    m->heap = grown(m->heap, m->heap_count, &m->heap_room, sizeof *m->heap);
    m->heap_count++;
    for (; at > 0 && is_before(m, entry, m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = entry;
}

static struct entry pop(struct vocab_maker *m)
{
    struct entry top = m->heap[0], last = m->heap[--m->heap_count];
    size_t at = 0;

    for (;;) {
        size_t next = 2 * at + 1;

        if (next + 1 < m->heap_count && is_before(m, m->heap[next + 1], m->heap[next]))
            next++;
        if (next >= m->heap_count || !is_before(m, m->heap[next], last))
            break;
        m->heap[at] = m->heap[next];
        at = next;
    }
    m->heap[at] = last;
    return top;
}

/* Count the pairs of a word in (sign 1) or out (-1). */
static void count_pairs(struct vocab_maker *m, int32_t word, int sign, bool pushes)
{
    const struct row *row = &m->rows[word];

    for (int i = 0; i + 1 < row->count; i++) {
        size_t number = pair_of(m, row->pieces[i], row->pieces[i + 1]);
        struct pair *p = &m->pairs[number];

        p->count += sign * m->counts[word];
        if (sign < 0)
            continue;
        if (p->word_count == 0 || p->words[p->word_count - 1] != word) {
            p->words = grown(p->words, p->word_count, &p->room, sizeof *p->words);
            p->words[p->word_count++] = word;
        }
        if (pushes)
            push(m, number);
    }
}

/* --- joining -------------------------------------------------------------------------------
 */

static bool has_pair(const struct row *row, int32_t left, int32_t right)
{
    for (int i = 0; i + 1 < row->count; i++)
        if (row->pieces[i] == left && row->pieces[i + 1] == right)
            return true;
    return false;
}

static void join_in(struct row *row, int32_t left, int32_t right, int32_t joined)
{
    int kept = 0;

    for (int i = 0; i < row->count; i++) {
        bool is_pair =
            i + 1 < row->count && row->pieces[i] == left && row->pieces[i + 1] == right;

        row->pieces[kept++] = is_pair ? joined : row->pieces[i];
        i += is_pair;
    }
    row->count = kept;
}

static int32_t add_joined(struct vocab_maker *m, int32_t left, int32_t right)
{
    auto_str text = {0};

    str_add(&text, words_text(&m->pieces, left));
    str_add(&text, words_text(&m->pieces, right) + 2); /* without its ## */
    return words_add(&m->pieces, text.data, text.len);
}

static void join(struct vocab_maker *m, size_t number)
{
    struct pair pair = m->pairs[number]; /* the list may move */
    int32_t joined = add_joined(m, pair.left, pair.right);

    m->pairs[number].words = NULL;
    m->pairs[number].word_count = m->pairs[number].room = 0;
    for (size_t i = 0; i < pair.word_count; i++) {
        struct row *row = &m->rows[pair.words[i]];

        if (!has_pair(row, pair.left, pair.right))
            continue;
        count_pairs(m, pair.words[i], -1, false);
        join_in(row, pair.left, pair.right, joined);
        count_pairs(m, pair.words[i], 1, true);
    }
    free(pair.words);
}

static void join_all(struct vocab_maker *m, int32_t most)
{
    while (m->heap_count > 0 && m->pieces.count < most) {
        struct entry top = pop(m);
        int64_t count = m->pairs[top.pair].count;

        if (count < 2)
            continue;
        if (count == top.count)
            join(m, top.pair);
        else if (count < top.count)
            push(m, top.pair);
    }
}

void vocab_maker_finish(struct vocab_maker *m, int32_t most, struct str *out)
{
    int32_t left = most - (int32_t)ARRAY_SIZE(specials);

    choose_characters(m, left);
    m->rows = xcalloc((size_t)m->words.count + 1, sizeof *m->rows);
    for (int32_t i = 0; i < m->words.count; i++) {
        lay_row(m, i);
        count_pairs(m, i, 1, false);
    }
    for (size_t i = 0; i < m->pair_count; i++)
        push(m, i);
    join_all(m, left);
    for (size_t i = 0; i < ARRAY_SIZE(specials); i++)
        str_addf(out, "%s\n", specials[i]);
    for (int32_t i = 0; i < m->pieces.count; i++)
        str_addf(out, "%s\n", words_text(&m->pieces, i));
}
