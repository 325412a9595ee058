/* SPDX-License-Identifier: Apache-2.0 */
#include "db/db.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "db/test/scalar.h"

/* A table, another that goes with its rows, and both with one row. */
#define HOUSE                                                                                  \
    "CREATE TABLE house (id INTEGER PRIMARY KEY, name TEXT UNIQUE);"                           \
    "CREATE TABLE room (house_id INTEGER REFERENCES house (id) ON DELETE CASCADE);"            \
    "INSERT INTO house VALUES (1, 'first');"                                                   \
    "INSERT INTO room VALUES (1);"
/* Puts another in the place of the first. */
#define REBUILD(rows)                                                                          \
    "CREATE TABLE house_2 (id INTEGER PRIMARY KEY, name TEXT);"                                \
    "INSERT INTO house_2 SELECT id, name FROM house WHERE " rows ";"                           \
    "DROP TABLE house;"                                                                        \
    "ALTER TABLE house_2 RENAME TO house;"

static struct db *open_memory(void)
{
    struct db *db = NULL;
    struct err e = {0};

    if (db_open(":memory:", DB_WRITER, &db, &e) < 0)
        fail_msg("%s", e.msg);
    return db;
}

static void a_table_is_replaced_without_harm_to_what_refers_to_it(void **state)
{
    static const struct db_migration list[] = {{1, "house", HOUSE}, {2, "again", REBUILD("1")}};
    autoptr(db) db = open_memory();

    (void)state;
    assert_int_equal(db_migrate(db, list, 1, NULL), 0);
    assert_int_equal(db_migrate(db, list, 2, NULL), 0);
    assert_int_equal(scalar(db, "PRAGMA user_version"), 2);
    assert_int_equal(scalar(db, "SELECT count(*) FROM room"), 1);
    /* Foreign keys hold again. */
    assert_int_equal(db_script(db, "INSERT INTO room VALUES (2)", NULL), -1);
    assert_int_equal(db_script(db, "DELETE FROM house", NULL), 0);
    assert_int_equal(scalar(db, "SELECT count(*) FROM room"), 0);
}

static void a_migration_that_leaves_rows_in_the_air_is_undone(void **state)
{
    static const struct db_migration list[] = {{1, "house", HOUSE}, {2, "again", REBUILD("0")}};
    autoptr(db) db = open_memory();
    struct err e = {0};

    (void)state;
    assert_int_equal(db_migrate(db, list, 2, &e), -1);
    assert_non_null(strstr(e.msg, "migration 2 (again): a row of the table room"));
    assert_int_equal(scalar(db, "PRAGMA user_version"), 1);
    assert_int_equal(scalar(db, "SELECT count(*) FROM house WHERE name = 'first'"), 1);
    assert_int_equal(db_script(db, "INSERT INTO room VALUES (2)", NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_replaced_without_harm_to_what_refers_to_it),
        cmocka_unit_test(a_migration_that_leaves_rows_in_the_air_is_undone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
