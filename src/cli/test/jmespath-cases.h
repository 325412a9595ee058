/* jmespath-cases.h - tables of JMESPath cases, for the tests of this folder.
 *
 * Wanted values are compared as compact JSON text, so that the order of keys and the difference
 * between 1 and 1.0 count.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TEST_JMESPATH_CASES_H
#define CLI_TEST_JMESPATH_CASES_H

#include "base/json.h"
#include "base/str.h"
#include "cli/jmespath.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct found {
    const char *expression, *document, *wanted;
};

struct fault {
    const char *expression, *document; /* a NULL document: parsing alone must fail */
    const char *reason, *message;      /* the message's beginning */
};

static inline int
search_text(const char *expression, const char *document, struct str *out, struct err *e)
{
    auto_json json_t *given = NULL;
    auto_json json_t *value = NULL;
    autoptr(jmespath) path = NULL;

    if (jmespath_parse(expression, &path, e) < 0)
        return -1;
    if (!document)
        return 0;
    if (json_parse(document, strlen(document), &given, e) < 0)
        fail_msg("%s: %s", document, e->msg);
    if (jmespath_search(path, given, &value, e) < 0)
        return -1;
    json_write(out, value);
    return 0;
}

static inline void check_found(const struct found *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        auto_str out = {0};
        struct err e = {0};

        if (search_text(table[i].expression, table[i].document, &out, &e) < 0)
            fail_msg("%s: %s", table[i].expression, e.msg);
        if (!str_equal(str_text(&out), table[i].wanted))
            fail_msg("%s over %s: got %s, wanted %s", table[i].expression, table[i].document,
                     str_text(&out), table[i].wanted);
    }
}

static inline void check_faults(const struct fault *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        auto_str out = {0};
        struct err e = {0};

        if (search_text(table[i].expression, table[i].document, &out, &e) == 0)
            fail_msg("%s: got %s, wanted %s", table[i].expression, str_text(&out),
                     table[i].reason);
        assert_int_equal(e.code, ERR_INVALID);
        if (!str_equal(e.reason, table[i].reason) || !str_starts(e.msg, table[i].message))
            fail_msg("%s: got %s: %s, wanted %s: %s", table[i].expression, e.reason, e.msg,
                     table[i].reason, table[i].message);
    }
}

#endif
