/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void hex_is_lower_case(void **state)
{
    auto_str out = {0};

    (void)state;
    text_hex(&out, "\x00\x0f\xa5\xff", 4);
    assert_string_equal(str_text(&out), "000fa5ff");
}

/* RFC 4648, section 10, and the two characters in which the alphabets differ. */
static const struct {
    const char *bytes, *standard, *url_safe;
} base64_table[] = {
    {"", "", ""},
    {"f", "Zg==", "Zg"},
    {"fo", "Zm8=", "Zm8"},
    {"foo", "Zm9v", "Zm9v"},
    {"foob", "Zm9vYg==", "Zm9vYg"},
    {"fooba", "Zm9vYmE=", "Zm9vYmE"},
    {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
    {"\xfb\xef\xff", "++//", "--__"},
    {"\xff", "/w==", "_w"},
};

static void base64_has_the_vectors_of_its_rfc(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(base64_table); i++) {
        const char *bytes = base64_table[i].bytes;
        auto_str standard = {0}, url_safe = {0};

        text_base64(&standard, bytes, strlen(bytes));
        text_base64url(&url_safe, bytes, strlen(bytes));
        assert_string_equal(str_text(&standard), base64_table[i].standard);
        assert_string_equal(str_text(&url_safe), base64_table[i].url_safe);
    }
}

static void base64_decodes_both_alphabets_padded_or_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(base64_table); i++) {
        auto_str padded = {0}, bare = {0};

        assert_int_equal(text_base64_decode(&padded, base64_table[i].standard, NULL), 0);
        assert_int_equal(text_base64_decode(&bare, base64_table[i].url_safe, NULL), 0);
        assert_string_equal(str_text(&padded), base64_table[i].bytes);
        assert_string_equal(str_text(&bare), base64_table[i].bytes);
    }
}

static void base64_round_trips_every_byte_at_every_length(void **state)
{
    unsigned char bytes[256];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(255 - i);
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        auto_str text = {0}, back = {0};

        text_base64(&text, bytes, len);
        assert_int_equal(text_base64_decode(&back, str_text(&text), NULL), 0);
        assert_int_equal(back.len, len);
        if (len)
            assert_memory_equal(back.data, bytes, len);
    }
}

static void broken_base64_is_refused_and_adds_nothing(void **state)
{
    static const char *const table[] = {
        "A",        "AAAAA", "=",    "==",    "====",  "A=",
        "A==",      "A===",  "AA=",  "AAA==", "AA===", "Zg=g",
        "Zg =",     "Zm9v!", "Zm\n", "Zm9v ", "Z%g=",  "\xff\xff\xff\xff",
        "Zg==Zg==",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        auto_str out = {0};

        str_add(&out, "kept");
        if (text_base64_decode(&out, table[i], &e) == 0)
            fail_msg("accepted: %s", table[i]);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(str_text(&out), "kept");
    }
}

static void percent_leaves_the_unreserved_alone(void **state)
{
    static const struct {
        const char *text, *encoded;
    } table[] = {
        {"", ""},
        {"AZaz09-._~", "AZaz09-._~"},
        {"a b", "a%20b"},
        {"a/b?c#d", "a%2Fb%3Fc%23d"},
        {"+&=%", "%2B%26%3D%25"},
        {"\xc3\xbc\x7f\x01", "%C3%BC%7F%01"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_str out = {0}, back = {0};

        text_percent(&out, table[i].text);
        assert_string_equal(str_text(&out), table[i].encoded);
        assert_int_equal(text_percent_decode(&back, out.data, out.len, false, NULL), 0);
        assert_string_equal(str_text(&back), table[i].text);
    }
}

static void percent_of_a_path_keeps_its_slashes(void **state)
{
    auto_str out = {0};

    (void)state;
    text_percent_path(&out, "/a b/\xc3\xbc?//c%/");
    assert_string_equal(str_text(&out), "/a%20b/%C3%BC%3F//c%25/");
}

static void percent_decodes_once(void **state)
{
    static const struct {
        const char *text;
        bool plus;
        const char *decoded;
    } table[] = {
        {"a+b", false, "a+b"},     {"a+b", true, "a b"},
        {"a%2Bb", true, "a+b"},    {"%2541", false, "%41"},
        {"%41%5a", false, "AZ"},   {"%e2%82%AC", false, "\xe2\x82\xac"},
        {"%2e%2E/", false, "../"}, {"%0a", false, "\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const char *text = table[i].text;
        auto_str out = {0};

        assert_int_equal(text_percent_decode(&out, text, strlen(text), table[i].plus, NULL), 0);
        assert_string_equal(str_text(&out), table[i].decoded);
    }
}

static void broken_escapes_and_nul_are_refused_and_add_nothing(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } table[] = {
        {"%", 1},    {"%4", 2},   {"a%4", 3}, {"%zz", 3},     {"%4g", 3},
        {"%g4", 3},  {"%%41", 4}, {"%00", 3}, {"ok%00ok", 7}, {"a\0b", 3},
        {"%41%", 4}, {"% 41", 4}, {"%-1", 3}, {"%4\0", 3},    {"%412%4", 6},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        auto_str out = {0};

        str_add(&out, "kept");
        if (text_percent_decode(&out, table[i].text, table[i].len, false, &e) == 0)
            fail_msg("accepted: %s", table[i].text);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(str_text(&out), "kept");
    }
}

static void an_escape_is_not_read_past_the_given_length(void **state)
{
    auto_str out = {0};

    (void)state;
    assert_int_equal(text_percent_decode(&out, "a%41", 2, false, NULL), -1);
    assert_int_equal(text_percent_decode(&out, "a%41", 3, false, NULL), -1);
    assert_int_equal(text_percent_decode(&out, "a%41", 4, false, NULL), 0);
}

static void utf8_has_one_form_for_each_character(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } table[] = {
        {"", true},
        {"ascii", true},
        {"\x7f", true},
        {"\xc2\x80", true},
        {"\xdf\xbf", true},
        {"\xe0\xa0\x80", true},
        {"\xed\x9f\xbf", true},
        {"\xee\x80\x80", true},
        {"\xef\xbf\xbf", true},
        {"\xf0\x90\x80\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"\x80", false}, /* a tail alone */
        {"\xbf"
         "a",
         false},
        {"\xc0\x80", false},         /* overlong NUL */
        {"\xc1\xbf", false},         /* overlong */
        {"\xe0\x9f\xbf", false},     /* overlong */
        {"\xf0\x8f\xbf\xbf", false}, /* overlong */
        {"\xed\xa0\x80", false},     /* surrogate */
        {"\xed\xbf\xbf", false},     /* surrogate */
        {"\xf4\x90\x80\x80", false}, /* beyond U+10FFFF */
        {"\xf5\x80\x80\x80", false},
        {"\xff", false},
        {"\xc3", false}, /* cut */
        {"\xe2\x82", false},
        {"\xf0\x9f\x98", false},
        {"\xe2\x28\xa1", false}, /* second byte no tail */
        {"\xe2\x82\x28", false},
        {"\xc3\xbc\xc3", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (text_is_utf8(table[i].text, strlen(table[i].text)) != table[i].good)
            fail_msg("row %zu", i);
    }
    assert_true(text_is_utf8("a\0b", 3));
    assert_false(text_is_utf8("\xe2\x82\xac", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_is_lower_case),
        cmocka_unit_test(base64_has_the_vectors_of_its_rfc),
        cmocka_unit_test(base64_decodes_both_alphabets_padded_or_not),
        cmocka_unit_test(base64_round_trips_every_byte_at_every_length),
        cmocka_unit_test(broken_base64_is_refused_and_adds_nothing),
        cmocka_unit_test(percent_leaves_the_unreserved_alone),
        cmocka_unit_test(percent_of_a_path_keeps_its_slashes),
        cmocka_unit_test(percent_decodes_once),
        cmocka_unit_test(broken_escapes_and_nul_are_refused_and_add_nothing),
        cmocka_unit_test(an_escape_is_not_read_past_the_given_length),
        cmocka_unit_test(utf8_has_one_form_for_each_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
