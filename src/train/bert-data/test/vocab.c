/* Vocabularies: read, refused, made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/vocab.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/vocab-make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void a_line_is_a_piece(void **state)
{
    static const char text[] = "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nthe\r\n##s";
    struct vocab *vocab;
    auto_str again = {0};

    (void)state;
    assert_int_equal(vocab_parse(text, strlen(text), &vocab, NULL), 0);
    assert_int_equal(vocab_count(vocab), 7);
    assert_int_equal(vocab_find(vocab, "the", 3), 5);
    assert_int_equal(vocab_find(vocab, "##s", 3), 6);
    assert_int_equal(vocab_find(vocab, "th", 2), -1);
    assert_int_equal(vocab_find(vocab, "them", 4), -1);
    assert_int_equal(vocab_special(vocab)->mask, 4);
    vocab_format(vocab, &again);
    assert_string_equal(str_text(&again), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\n");
    vocab_free(vocab);
}

static void what_is_no_vocabulary_is_refused(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *says;
    } cases[] = {
        {"", 0, "[UNK]"},
        {"[UNK]\n[CLS]\n[SEP]\n", 18, "[MASK]"},
        {"a\n\nb\n", 5, "line 2 has 0 bytes"},
        {"a\nb\na\n", 6, "line 3 has \"a\" a second time"},
        {"a\nb\0c\n", 6, "line 2 has a zero byte"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct vocab *vocab;
        struct err e = {0};

        assert_int_equal(vocab_parse(cases[i].text, cases[i].len, &vocab, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_non_null(strstr(e.msg, cases[i].says));
    }
}

static void make(const char *text, int32_t most, struct str *out)
{
    struct vocab_maker *maker = vocab_maker_new(false);

    vocab_maker_add(maker, text, strlen(text));
    vocab_maker_finish(maker, most, out);
    vocab_maker_free(maker);
}

/* Characters, then pairs by how often they are there: l ##o and ##o ##w 5 times, of which ##o
 * is the older piece; then l ##ow; then of those that are there 3 times ##e ##t, and so on. */
static void the_most_frequent_pair_is_joined_first(void **state)
{
    auto_str out = {0};

    (void)state;
    make("low low lower lower lowest Wet wet wet", 64, &out);
    assert_string_equal(str_text(&out), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
                                        "##e\n##o\n##r\n##s\n##t\n##w\nl\nw\n"
                                        "##ow\nlow\n##et\nwet\nlowe\nlower\n");
}

static void a_vocabulary_has_no_more_than_was_asked_for(void **state)
{
    auto_str out = {0};

    (void)state;
    make("aaa aab aac aad aae aaf aag aah aai aaj aak", 16, &out);
    /* Five special ones and the eleven most frequent characters; no room to join. */
    assert_string_equal(str_text(&out),
                        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
                        "##a\n##b\n##c\n##d\n##e\n##f\n##g\n##h\n##i\n##j\na\n");
}

static void a_text_of_one_letter_is_joined_to_the_end(void **state)
{
    auto_str out = {0};

    (void)state;
    make("aaaaaaaa aaaaaaaa", 64, &out);
    assert_non_null(strstr(str_text(&out), "\naaaaaaaa\n"));
}

static void a_made_vocabulary_can_be_read(void **state)
{
    static const char text[] = "The quick brown fox; the lazy dog \u535a\u63a8, na\u00efve!";
    auto_str out = {0};
    struct vocab *vocab;

    (void)state;
    make(text, 100, &out);
    assert_int_equal(vocab_parse(str_text(&out), out.len, &vocab, NULL), 0);
    assert_true(vocab_find(vocab, "the", 3) >= 0);
    assert_true(vocab_find(vocab, "\u535a", 3) >= 0);
    assert_true(vocab_find(vocab, ";", 1) >= 0);
    vocab_free(vocab);
    str_truncate(&out, 0);
    make("", 16, &out); /* nothing at all */
    assert_int_equal(vocab_parse(str_text(&out), out.len, &vocab, NULL), 0);
    assert_int_equal(vocab_count(vocab), 5);
    vocab_free(vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_piece),
        cmocka_unit_test(what_is_no_vocabulary_is_refused),
        cmocka_unit_test(the_most_frequent_pair_is_joined_first),
        cmocka_unit_test(a_vocabulary_has_no_more_than_was_asked_for),
        cmocka_unit_test(a_text_of_one_letter_is_joined_to_the_end),
        cmocka_unit_test(a_made_vocabulary_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
