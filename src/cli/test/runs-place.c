/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs-place.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_size_has_its_cluster(void **state)
{
    auto_free char *host = runs_cluster_name("host");
    auto_free char *big = runs_cluster_name("Standard_NC24rs_v3");

    (void)state;
    assert_string_equal(host, "run-host");
    assert_string_equal(big, "run-standard-nc24rs-v3");
}

static void a_group_has_its_account(void **state)
{
    auto_free char *a = runs_account_name("s", "Group"), *b = runs_account_name("s", "group");
    auto_free char *c = runs_account_name("s", "other");

    (void)state;
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_true(strlen(a) <= 24 &&
                strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_has_its_cluster),
        cmocka_unit_test(a_group_has_its_account),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
