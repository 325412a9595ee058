/* Documents to examples: what each must have, and what all of them have on average.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/examples.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/vocab.h"
#include "train/record/tfrecord.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    DOCUMENTS = 40,
    SENTENCES = 30,
    WORDS = 100, /* w0..w99 */
    FIRST_WORD = 5,
    UNK = 1,
    CLS = 2,
    SEP = 3,
    MASK = 4,
};

struct made {
    const struct examples_options *o;
    int64_t examples, tokens, masked, replaced, same, elsewhere, shorter;
    uint32_t crc;
};

static struct vocab *make_vocab(void)
{
    auto_str text = {0};
    struct vocab *vocab;

    str_add(&text, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for (int i = 0; i < WORDS; i++)
        str_addf(&text, "w%d\n", i);
    assert_int_equal(vocab_parse(str_text(&text), text.len, &vocab, NULL), 0);
    return vocab;
}

/* Sentence i of document d has 3 + (d + i) % 9 words. */
static void make_corpus(struct corpus *corpus, const struct vocab *vocab, int documents)
{
    for (int d = 0; d < documents; d++) {
        for (int i = 0; i < SENTENCES; i++) {
            auto_str line = {0};

            for (int w = 0; w < 3 + (d + i) % 9; w++)
                str_addf(&line, "w%d ", (d * 31 + i * 7 + w) % WORDS);
            corpus_add_line(corpus, vocab, false, str_text(&line), line.len);
        }
        corpus_add_line(corpus, vocab, false, " \r", 2);
    }
}

static void check_parts(const struct bert_record *r, int64_t sequence)
{
    int64_t ends = 0;
    int32_t whole[256];

    memcpy(whole, r->ids, (size_t)r->length * sizeof *whole);
    for (int64_t i = 0; i < r->masked; i++)
        whole[r->masked_at[i]] = r->masked_id[i];
    assert_true(r->length >= 5 && r->length <= sequence);
    assert_int_equal(whole[0], CLS);
    assert_int_equal(whole[r->second - 1], SEP);
    assert_int_equal(whole[r->length - 1], SEP);
    assert_true(r->second > 2 && r->second < r->length - 1); /* neither part is empty */
    for (int64_t i = 0; i < r->length; i++)
        ends += whole[i] == SEP;
    assert_int_equal(ends, 2);
    for (int64_t i = 1; i < r->length - 1; i++)
        assert_true(i == r->second - 1 || whole[i] >= FIRST_WORD);
}

static int take(void *arg, const struct bert_record *r, struct err *e)
{
    struct made *m = arg;
    int64_t wanted = lround((double)r->length * m->o->masked_share);

    (void)e;
    check_parts(r, m->o->shape.sequence);
    wanted = wanted < 1 ? 1 : wanted;
    assert_int_equal(r->masked,
                     wanted < m->o->shape.predictions ? wanted : m->o->shape.predictions);
    for (int64_t i = 0; i < r->masked; i++) {
        assert_true(i == 0 || r->masked_at[i] > r->masked_at[i - 1]);
        m->replaced += r->ids[r->masked_at[i]] == MASK;
        m->same += r->ids[r->masked_at[i]] == r->masked_id[i];
    }
    m->examples++;
    m->tokens += r->length;
    m->masked += r->masked;
    m->elsewhere += r->next;
    m->shorter += r->length < m->o->shape.sequence;
    m->crc = crc32c(m->crc, r->ids, (size_t)r->length * sizeof *r->ids);
    return 0;
}

static struct made make_all(const struct corpus *corpus,
                            const struct vocab *vocab,
                            const struct examples_options *o,
                            int copies)
{
    struct made made = {.o = o};

    for (int copy = 0; copy < copies; copy++)
        for (size_t d = 0; d < corpus->document_count; d++)
            assert_int_equal(examples_make(corpus, vocab, o, d, copy, take, &made, NULL), 0);
    return made;
}

static bool is_near(int64_t part, int64_t of, double share, double by)
{
    return fabs((double)part / (double)of - share) < by;
}

static void examples_have_the_shares_of_bert(void **state)
{
    struct vocab *vocab = make_vocab();
    struct corpus corpus = {0};
    struct examples_options o = {.shape = {64, 20, FIRST_WORD + WORDS},
                                 .masked_share = 0.15,
                                 .short_share = 0.1,
                                 .seed = 1};
    struct made made, again;

    (void)state;
    make_corpus(&corpus, vocab, DOCUMENTS);
    assert_int_equal(corpus.document_count, DOCUMENTS);
    assert_int_equal(corpus.sentence_count, DOCUMENTS * SENTENCES);
    made = make_all(&corpus, vocab, &o, 10);
    /* A few thousand examples: deviations of a per cent or two. */
    assert_true(made.examples > 1000);
    assert_true(is_near(made.masked, made.tokens, 0.15, 0.01));
    assert_true(is_near(made.replaced, made.masked, 0.8, 0.02));
    /* 10 % left, and of the 10 % of any piece one in 105 is the same. */
    assert_true(is_near(made.same, made.masked, 0.101, 0.02));
    assert_true(is_near(made.elsewhere, made.examples, 0.5, 0.08));
    again = make_all(&corpus, vocab, &o, 10);
    assert_int_equal(again.crc, made.crc);
    o.seed = 2;
    again = make_all(&corpus, vocab, &o, 10);
    assert_true(again.crc != made.crc);
    vocab_free(vocab);
    corpus_done(&corpus);
}

static void few_predictions_are_a_limit(void **state)
{
    struct vocab *vocab = make_vocab();
    struct corpus corpus = {0};
    struct examples_options o = {
        .shape = {64, 2, FIRST_WORD + WORDS}, .masked_share = 0.5, .short_share = 1, .seed = 1};
    struct made made;

    (void)state;
    make_corpus(&corpus, vocab, 3);
    made = make_all(&corpus, vocab, &o, 2);
    assert_int_equal(made.masked, 2 * made.examples);
    assert_true(made.shorter > made.examples / 2);
    o.shape.predictions = 0;
    made = make_all(&corpus, vocab, &o, 1);
    assert_int_equal(made.masked, 0);
    vocab_free(vocab);
    corpus_done(&corpus);
}

/* One document, one sentence, the shortest sequence: there is still a pair. */
static void the_smallest_text_gives_examples(void **state)
{
    static const char *const lines[] = {"w1", "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12"};
    struct vocab *vocab = make_vocab();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        for (int64_t t = EXAMPLES_LEAST_SEQUENCE; t < 9; t++) {
            struct examples_options o = {
                .shape = {t, 1, FIRST_WORD + WORDS}, .masked_share = 0.15, .short_share = 0.5};
            struct corpus corpus = {0};

            corpus_add_line(&corpus, vocab, false, lines[i], strlen(lines[i]));
            assert_int_equal(make_all(&corpus, vocab, &o, 20).examples, 20);
            corpus_done(&corpus);
        }
    vocab_free(vocab);
}

/* A line of nothing but bad bytes is no blank line. */
static void blank_lines_part_documents(void **state)
{
    static const char *const lines[] = {"", "w1 w2", "\xff\xfe", "w3", " \t", "", "w4", "?"};
    struct vocab *vocab = make_vocab();
    struct corpus corpus = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        corpus_add_line(&corpus, vocab, false, lines[i], strlen(lines[i]));
    assert_int_equal(corpus.document_count, 2);
    assert_int_equal(corpus.sentence_count, 4);
    assert_int_equal(corpus.documents[1], 2);
    assert_int_equal(corpus.documents[2], 4);
    assert_int_equal(corpus.sentences[4], 5);
    assert_int_equal(corpus.tokens.ids[4], UNK);
    vocab_free(vocab);
    corpus_done(&corpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_have_the_shares_of_bert),
        cmocka_unit_test(few_predictions_are_a_limit),
        cmocka_unit_test(the_smallest_text_gives_examples),
        cmocka_unit_test(blank_lines_part_documents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
