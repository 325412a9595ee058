/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/xml.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void text_is_escaped_so_that_it_is_read_back(void **state)
{
    static const struct {
        const char *text, *want;
    } table[] = {
        {"", "<a/>"},
        {"plain", "<a>plain</a>"},
        {"<&>\"", "<a>&lt;&amp;&gt;&quot;</a>"},
        {"a\r\n\tb", "<a>a&#13;&#10;&#9;b</a>"},
        {"\001-\037", "<a>?-?</a>"},
        {"\xef\xbf\xbe|\xef\xbf\xbf", "<a>?|?</a>"},
        {"\xc3\xa4\xe2\x82\xac", "<a>\xc3\xa4\xe2\x82\xac</a>"},
        {"\xff", "<a>?</a>"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_str out = {0};

        xml_element(&out, "a", table[i].text);
        assert_string_equal(str_text(&out), table[i].want);
    }
}

static void an_absent_text_makes_no_element(void **state)
{
    auto_str out = {0};

    (void)state;
    xml_element(&out, "a", NULL);
    assert_string_equal(str_text(&out), "");
}

static void numbers_are_written_whole(void **state)
{
    static const struct {
        int64_t number;
        const char *want;
    } table[] = {
        {0, "<n>0</n>"},
        {-7, "<n>-7</n>"},
        {INT64_MAX, "<n>9223372036854775807</n>"},
        {INT64_MIN, "<n>-9223372036854775808</n>"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_str out = {0};

        xml_number(&out, "n", table[i].number);
        assert_string_equal(str_text(&out), table[i].want);
    }
}

static void names_that_xml_cannot_hold_are_encoded(void **state)
{
    static const struct {
        const char *text, *want;
    } table[] = {
        {"dir/a b.txt", "<N>dir/a b.txt</N>"},
        {"a\001b", "<N Encoded=\"true\">a%01b</N>"},
        {"a\xef\xbf\xbf/", "<N Encoded=\"true\">a%EF%BF%BF%2F</N>"},
        {"a\nb", "<N>a&#10;b</N>"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_str out = {0};

        xml_name(&out, "N", table[i].text);
        assert_string_equal(str_text(&out), table[i].want);
    }
}

static void a_document_becomes_a_tree(void **state)
{
    static const char text[] =
        "<?xml version=\"1.0\"?>\n<List xmlns='y' a='b'>\n"
        "  <Item> one &amp; two </Item>\n  <Item/><Other><In>3</In></Other>\n"
        "</List>\n";
    autoptr(arena) arena = arena_new();
    const struct xml_node *root;

    (void)state;
    assert_int_equal(xml_parse(text, strlen(text), arena, &root, NULL), 0);
    assert_string_equal(root->name, "List");
    assert_string_equal(root->text, "");
    assert_string_equal(xml_child_text(root, "Item"), " one & two ");
    assert_string_equal(root->child->next->text, "");
    assert_string_equal(xml_child_text(xml_child(root, "Other"), "In"), "3");
    assert_null(xml_child_text(root, "Missing"));
    assert_null(xml_child(NULL, "Item"));
}

static void what_is_written_is_read_back(void **state)
{
    static const char text[] = "<a><b>1 &lt; 2</b><c></c></a>";
    autoptr(arena) arena = arena_new();
    const struct xml_node *root;
    auto_str out = {0};

    (void)state;
    assert_int_equal(xml_parse(text, strlen(text), arena, &root, NULL), 0);
    xml_write(&out, root);
    assert_string_equal(str_text(&out), text);
}

static void what_is_no_document_is_refused(void **state)
{
    static const char *const table[] = {
        "",
        "text",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<a>&unknown;</a>",
        "<a>&#0;</a>",
        "<a>\xff</a>",
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a></"
        "a>"
        "</a></a></a></a></a></a></a></a>",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        autoptr(arena) arena = arena_new();
        const struct xml_node *root = NULL;
        struct err e = {0};

        if (xml_parse(table[i], strlen(table[i]), arena, &root, &e) == 0)
            fail_msg("accepted: %s", table[i]);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(e.reason, "InvalidXmlDocument");
        assert_null(root);
    }
}

static void a_document_of_too_many_elements_is_refused(void **state)
{
    autoptr(arena) arena = arena_new();
    const struct xml_node *root;
    auto_str text = {0};

    (void)state;
    str_add(&text, "<a>");
    for (int i = 0; i < XML_MOST_NODES - 1; i++)
        str_add(&text, "<b/>");
    str_add(&text, "</a>");
    assert_int_equal(xml_parse(str_text(&text), text.len, arena, &root, NULL), 0);
    str_truncate(&text, text.len - 4);
    str_add(&text, "<b/></a>");
    assert_int_equal(xml_parse(str_text(&text), text.len, arena, &root, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped_so_that_it_is_read_back),
        cmocka_unit_test(an_absent_text_makes_no_element),
        cmocka_unit_test(numbers_are_written_whole),
        cmocka_unit_test(names_that_xml_cannot_hold_are_encoded),
        cmocka_unit_test(a_document_becomes_a_tree),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(what_is_no_document_is_refused),
        cmocka_unit_test(a_document_of_too_many_elements_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
