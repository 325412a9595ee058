/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job-table.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const titles[] = {"NAME", "STATE", "X", NULL};

static void fill(struct job_table *table)
{
    job_table_init(table, titles);
    job_table_add(table, "a-long-name");
    job_table_add(table, "%s", "failed");
    job_table_add(table, "%d", 1);
    job_table_add(table, "b\x1b[2J");
    job_table_add(table, "queued");
    job_table_add(table, "%s", "");
}

static void cells_stand_in_columns(void **state)
{
    static const struct job_table_look plain = {0}, narrow = {.clean = true, .width = 15};
    auto_job_table table;
    auto_str wide = {0}, cut = {0};

    (void)state;
    fill(&table);
    job_table_format(&wide, &table, &plain);
    assert_string_equal(str_text(&wide), "NAME         STATE   X\n"
                                         "a-long-name  failed  1\n"
                                         "b\x1b[2J        queued\n");
    job_table_format(&cut, &table, &narrow);
    assert_string_equal(str_text(&cut), "NAME         ST\n"
                                        "a-long-name  fa\n"
                                        "b[2J         qu\n");
}

static void states_have_colours(void **state)
{
    static const struct job_table_look look = {.colour = true, .clean = true};
    auto_job_table table;
    auto_str out = {0};

    (void)state;
    fill(&table);
    job_table_format(&out, &table, &look);
    assert_non_null(strstr(str_text(&out), "\x1b[31mfailed\x1b[0m  1\n"));
    assert_non_null(strstr(str_text(&out), "b[2J"));
    assert_null(strstr(str_text(&out), "\x1b[2J"));
    assert_string_equal(job_table_colour("a word"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_stand_in_columns),
        cmocka_unit_test(states_have_colours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
