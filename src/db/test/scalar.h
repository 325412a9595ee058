/* scalar.h - the one number that a query gives.  Behind cmocka.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DB_TEST_SCALAR_H
#define DB_TEST_SCALAR_H

#include "db/db.h"

static inline int64_t scalar(struct db *db, const char *sql)
{
    auto_query q = {0};
    struct err e = {0};

    if (db_select(db, &q, &e, sql, "") < 0 || db_next(&q, &e) != 1)
        fail_msg("%s: %s", sql, e.msg);
    return db_int(&q, 0);
}

#endif
