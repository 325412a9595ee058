/* Texts to words and to pieces.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/wordpiece.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/characters.h"
#include "train/bert-data/vocab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void list_word(void *arg, const char *word, size_t len, bool is_long)
{
    str_addf(arg, "%s%.*s%s", ((struct str *)arg)->len ? "|" : "", (int)len, word,
             is_long ? "..." : "");
}

static void words_are_cut_as_berts(void **state)
{
    static const struct {
        const char *text;
        bool is_cased;
        const char *words;
    } cases[] = {
        {"", false, ""},
        {" \t\n ", false, ""},
        {" \tHeLLo!how  \n Are yoU?  ", false, "hello|!|how|are|you|?"},
        {" \tHeLLo!how  \n Are yoU?  ", true, "HeLLo|!|how|Are|yoU|?"},
        {"H\u00e9llo", false, "hello"},
        {"He\u0301llo", false, "hello"}, /* the accent by itself */
        {"H\u00e9llo", true, "H\u00e9llo"},
        {"ah\u535a\u63a8zz", false, "ah|\u535a|\u63a8|zz"},
        {"\u00c5ngstr\u00f6m na\u00efve \u00d8re stra\u00dfe", false,
         "angstrom|naive|\u00f8re|stra\u00dfe"},
        {"\u1eab \u0130 \u017b\u00d3\u0141W", false, "a|i|zo\u0142w"},
        {"\u0391\u03b8\u03ae\u03bd\u03b1 \u041c\u043e\u0439", false,
         "\u03b1\u03b8\u03b7\u03bd\u03b1|\u043c\u043e\u0438"},
        {"a-b_c don't $5.0", false, "a|-|b|_|c|don|'|t|$|5|.|0"},
        {"\u201cwho\u2026\u201d", false, "\u201c|who|\u2026|\u201d"},
        {"one\u00a0two\u3000three\u200bfour", false, "one|two|threefour"},
        {"a\001b\177c\u00add", false, "abcd"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        auto_str got = {0};

        wordpiece_words(cases[i].text, strlen(cases[i].text), cases[i].is_cased, list_word,
                        &got);
        assert_string_equal(str_text(&got), cases[i].words);
    }
}

static void bytes_that_are_no_text_vanish(void **state)
{
    static const char *const texts[] = {
        "a\x80z",             /* goes on with nothing before it */
        "a\xc3z",             /* does not go on */
        "a\xc0\xaf\x7fz",     /* longer than it need be */
        "a\xed\xa0\x80z",     /* half of a pair of UTF-16 */
        "a\xf4\x90\x80\x80z", /* beyond the last character */
        "a\xff\xfez",
        "az\xe2\x82",     /* ends within one */
        "a\xef\xbf\xbdz", /* the sign for all of this */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        auto_str got = {0};

        wordpiece_words(texts[i], strlen(texts[i]), false, list_word, &got);
        assert_string_equal(str_text(&got), "az");
    }
}

static void every_character_is_written_as_it_was_read(void **state)
{
    (void)state;
    for (uint32_t c = 1; c <= 0x10FFFF; c++) {
        char bytes[CHARACTER_MOST_BYTES];
        size_t len = character_write(c, bytes), read;
        bool is_half = c >= 0xD800 && c <= 0xDFFF;

        assert_int_equal(character_read(bytes, len, &read), is_half ? CHARACTER_BAD : c);
        assert_int_equal(read, is_half ? 1 : len);
    }
}

static struct vocab *small_vocab(void)
{
    static const char text[] = "[UNK]\n[CLS]\n[SEP]\n[MASK]\nwant\n##want\n##ed\nwa\nun\nrunn\n"
                               "##ing\n,\n\u535a\n##\u00df\n##\u00e6\u00df\n";
    struct vocab *vocab;

    assert_int_equal(vocab_parse(text, strlen(text), &vocab, NULL), 0);
    return vocab;
}

static void check_pieces(const struct vocab *vocab, const char *text, const char *pieces)
{
    struct tokens tokens = {0};
    auto_str got = {0};

    wordpiece_tokens(vocab, text, strlen(text), false, &tokens);
    for (size_t i = 0; i < tokens.count; i++)
        str_addf(&got, "%s%s", i ? " " : "", vocab_piece(vocab, tokens.ids[i]));
    assert_string_equal(str_text(&got), pieces);
    tokens_done(&tokens);
}

static void the_longest_piece_comes_first(void **state)
{
    struct vocab *vocab = small_vocab();

    (void)state;
    check_pieces(vocab, "", "");
    check_pieces(vocab, "unwanted running", "un ##want ##ed runn ##ing");
    check_pieces(vocab, "UNwant\u00c9d,running", "un ##want ##ed , runn ##ing");
    check_pieces(vocab, "unwantedX running", "[UNK] runn ##ing"); /* the whole word */
    check_pieces(vocab, "wa wan want wanted", "wa [UNK] want want ##ed");
    check_pieces(vocab, "ing", "[UNK]"); /* only within a word */
    check_pieces(vocab, "un\u535ara", "un \u535a [UNK]");
    check_pieces(vocab, "un\u00e6\u00df", "un ##\u00e6\u00df");
    check_pieces(vocab, "un\u00e6", "[UNK]"); /* not half of a piece */
    vocab_free(vocab);
}

static void a_word_without_end_is_unknown(void **state)
{
    struct vocab *vocab = small_vocab();
    char text[2 + 2 * WORDPIECE_MOST_CHARACTERS] = "un";
    struct tokens tokens = {0};

    (void)state;
    for (size_t i = 2; i + 2 <= WORDPIECE_MOST_CHARACTERS; i += 2)
        memcpy(text + i, "ed", 2);
    wordpiece_tokens(vocab, text, WORDPIECE_MOST_CHARACTERS, false, &tokens);
    assert_int_equal(tokens.count, WORDPIECE_MOST_CHARACTERS / 2);
    memcpy(text + WORDPIECE_MOST_CHARACTERS, "ed", 2);
    wordpiece_tokens(vocab, text, WORDPIECE_MOST_CHARACTERS + 2, false, &tokens);
    assert_int_equal(tokens.count, WORDPIECE_MOST_CHARACTERS / 2 + 1);
    assert_int_equal(tokens.ids[tokens.count - 1], vocab_special(vocab)->unknown);
    tokens_done(&tokens);
    vocab_free(vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_cut_as_berts),
        cmocka_unit_test(bytes_that_are_no_text_vanish),
        cmocka_unit_test(every_character_is_written_as_it_was_read),
        cmocka_unit_test(the_longest_piece_comes_first),
        cmocka_unit_test(a_word_without_end_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
