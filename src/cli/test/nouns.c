/* The table itself: what holds for every row.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/complete.h"
#include "cli/help.h"
#include "cli/jmespath.h"
#include "cli/man.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_command_is_complete(void **state)
{
    const struct command *row;

    (void)state;
    for (size_t i = 0; (row = command_at(i)); i++) {
        if (!row->summary || !str_ends(row->summary, ".") || !row->run ||
            !row->examples[0].what || !row->examples[0].how)
            fail_msg("%s lacks something", row->path);
        assert_ptr_equal(command_find(row->path), row);
    }
}

static void every_command_stands_in_a_known_group(void **state)
{
    const struct command *row;

    (void)state;
    for (size_t i = 0; (row = command_at(i)); i++) {
        const char *space = strrchr(row->path, ' ');
        auto_free char *parent =
            space ? xstrndup(row->path, (size_t)(space - row->path)) : NULL;

        if (parent && !group_find(parent) && !command_find(parent))
            fail_msg("%s: there is no group %s", row->path, parent);
    }
}

static void no_spelling_means_two_things_in_one_command(void **state)
{
    const struct command *row;
    const struct option_row *a, *b;
    char name[OPTION_BYTES], other[OPTION_BYTES];

    (void)state;
    for (size_t i = 0; (row = command_at(i)); i++) {
        for (size_t j = 0; (a = command_option_at(row, j)); j++) {
            for (size_t k = j + 1; (b = command_option_at(row, k)); k++) {
                for (size_t x = 0; option_spelling(a, x, name); x++) {
                    for (size_t y = 0; option_spelling(b, y, other); y++) {
                        if (str_equal(name, other))
                            fail_msg("%s: %s is there twice", row->path, name);
                    }
                }
            }
        }
    }
}

static void every_table_expression_parses(void **state)
{
    const struct command *row;

    (void)state;
    for (size_t i = 0; (row = command_at(i)); i++) {
        autoptr(jmespath) path = NULL;
        struct err e;

        if (row->table && jmespath_parse(row->table, &path, &e) < 0)
            fail_msg("%s: %s", row->path, e.msg);
    }
}

/* Split as a shell does: spaces, both kinds of quotes; a redirection ends the words. */
static int shell_words(const char *line, char *words[], int most)
{
    int count = 0;

    while (*line && *line != '<' && *line != '>') {
        auto_str word = {0};
        char quote = '\0';

        for (; *line && (quote || *line != ' '); line++) {
            if (quote ? *line == quote : *line == '\'' || *line == '"')
                quote = quote ? '\0' : *line;
            else
                str_add_char(&word, *line);
        }
        assert_true(count < most);
        words[count++] = str_take(&word);
        line += strspn(line, " ");
    }
    return count;
}

static void every_example_is_a_right_command_line(void **state)
{
    const struct command *row;
    int tried = 0;

    (void)state;
    for (size_t i = 0; (row = command_at(i)); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(row->examples) && row->examples[j].how; j++) {
            char *words[32] = {0};
            int count = shell_words(row->examples[j].how, words, 32);
            autoptr(args) args = NULL;
            struct err e = {0};

            assert_true(count > 0);
            if (str_equal(words[0], "yard")) {
                if (args_parse(count - 1, words + 1, &args, &e) < 0 || args_check(args, &e) < 0)
                    fail_msg("%s: %s", row->examples[j].how, e.msg);
                assert_ptr_equal(args_command(args), row);
                tried++;
            }
            for (int k = 0; k < count; k++)
                free(words[k]);
        }
    }
    assert_true(tried > 40);
}

static void help_shows_every_option_and_example(void **state)
{
    const struct command *row;
    const struct option_row *option;

    (void)state;
    for (size_t i = 0; (row = command_at(i)); i++) {
        auto_str text = {0};

        help_command(&text, row);
        assert_non_null(strstr(str_text(&text), row->summary));
        assert_non_null(strstr(str_text(&text), row->examples[0].how));
        for (size_t j = 0; (option = command_option_at(row, j)); j++) {
            auto_str title = {0};

            help_option_title(&title, option);
            assert_non_null(strstr(str_text(&text), str_text(&title)));
        }
    }
}

static void help_of_a_group_lists_its_children(void **state)
{
    auto_str text = {0}, root = {0};

    (void)state;
    help_group(&text, "storage account");
    assert_non_null(strstr(str_text(&text), "    keys "));
    assert_non_null(strstr(str_text(&text), "    create "));
    assert_non_null(strstr(str_text(&text), "Examples"));
    assert_null(strstr(str_text(&text), "renew"));
    help_group(&root, "");
    assert_non_null(strstr(str_text(&root), "    group "));
    assert_non_null(strstr(str_text(&root), "    up "));
    assert_null(strstr(str_text(&root), "    man "));
}

static void completion_and_manual_know_every_command(void **state)
{
    auto_str bash = {0}, zsh = {0}, fish = {0}, page = {0};
    const struct command *row;

    (void)state;
    complete_bash(&bash);
    complete_zsh(&zsh);
    complete_fish(&fish);
    man_page(&page, "storage");
    for (size_t i = 0; (row = command_at(i)); i++) {
        auto_free char *quoted = xasprintf("'%s'", row->path);

        assert_int_equal(!!strstr(str_text(&bash), quoted), !row->hidden);
        assert_int_equal(!!strstr(str_text(&zsh), quoted), !row->hidden);
        assert_int_equal(!!strstr(str_text(&fish), quoted), !row->hidden);
    }
    assert_non_null(strstr(str_text(&page), ".SS yard storage account generate\\-sas"));
    assert_null(strstr(str_text(&page), "batchai"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_is_complete),
        cmocka_unit_test(every_command_stands_in_a_known_group),
        cmocka_unit_test(no_spelling_means_two_things_in_one_command),
        cmocka_unit_test(every_table_expression_parses),
        cmocka_unit_test(every_example_is_a_right_command_line),
        cmocka_unit_test(help_shows_every_option_and_example),
        cmocka_unit_test(help_of_a_group_lists_its_children),
        cmocka_unit_test(completion_and_manual_know_every_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
