/* SPDX-License-Identifier: Apache-2.0 */
#include "store/test/yard.h"

static void check(struct yard *yard, int64_t id, const char *name, const char *wanted, int at)
{
    auto_free char *sealed = NULL;
    int64_t created_ms = -1;
    struct err e = {0};

    assert_ok(store_get_secret(yard->db, id, name, &sealed, &created_ms, &e), &e);
    assert_true(str_equal(sealed, wanted));
    assert_int_equal(created_ms, at);
}

static void secrets_are_kept_by_resource_and_name(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    {
        autoptr(resource) one = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "one", NULL);
        autoptr(resource) two = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "two", NULL);

        assert_ok(store_put_secret(yard.db, one->id, "key1", "a", 11, &e), &e);
        assert_ok(store_put_secret(yard.db, one->id, "key2", "b", 12, &e), &e);
        assert_ok(store_put_secret(yard.db, two->id, "key1", "c", 21, &e), &e);
        check(&yard, one->id, "key1", "a", 11);
        check(&yard, one->id, "key2", "b", 12);
        check(&yard, two->id, "key1", "c", 21);
        check(&yard, two->id, "key2", NULL, 0);
        assert_ok(store_put_secret(yard.db, one->id, "key1", "A", 31, &e), &e);
        check(&yard, one->id, "key1", "A", 31);
        check(&yard, one->id, "key2", "b", 12);
        check(&yard, two->id, "key1", "c", 21);
    }
    yard_done(&yard);
}

static void a_secret_of_nothing_is_refused(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    assert_int_equal(store_put_secret(yard.db, 77, "key1", "a", 1, &e), -1);
    assert_int_equal(e.code, ERR_CONFLICT);
    yard_done(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_kept_by_resource_and_name),
        cmocka_unit_test(a_secret_of_nothing_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
