/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-spec.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_occurrence_is_replaced(void **state)
{
    static const struct row {
        const char *text, *want;
    } rows[] = {
        {"https://<A>.file.core.windows.net/logs", "https://acct.file.core.windows.net/logs"},
        {"<A><A>x<A>", "acctacctxacct"},
        {"none", "none"},
        {"", ""},
        {"<A", "<A"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *got = batchai_replace(rows[i].text, "<A>", "acct");

        assert_string_equal(got, rows[i].want);
    }
}

static void a_url_tells_its_account(void **state)
{
    static const struct row {
        const char *url, *want;
    } rows[] = {
        {"https://acct.file.core.windows.net/share", "acct"},
        {"http://127.0.0.1:10004/acct/share", "acct"},
        {"share", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *got = batchai_account_of_url(rows[i].url);

        if (!str_equal(got, rows[i].want))
            fail_msg("%s: %s", rows[i].url, got ? got : "(none)");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_occurrence_is_replaced),
        cmocka_unit_test(a_url_tells_its_account),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
