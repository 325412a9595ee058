/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pool.h"

#include "store/test/yard.h"

#include <pthread.h>

static void a_reader_goes_back_and_is_taken_again(void **state)
{
    struct store_pool *pool;
    struct db *first;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    pool = store_pool_new(yard.db_path);
    {
        auto_reader one = {0};
        auto_reader two = {0};

        assert_ok(store_pool_take(pool, &one, &e), &e);
        assert_ok(store_pool_take(pool, &two, &e), &e);
        assert_ptr_not_equal(one.db, two.db);
        first = two.db;
        store_reader_done(&two);
        store_reader_done(&two); /* already back */
        assert_null(two.db);
        assert_ok(store_pool_take(pool, &two, &e), &e);
        assert_ptr_equal(two.db, first);
    }
    store_pool_free(pool);
    yard_done(&yard);
}

static void what_a_pool_gives_only_reads(void **state)
{
    struct store_pool *pool;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    pool = store_pool_new(yard.db_path);
    {
        auto_reader reader = {0};

        assert_ok(store_pool_take(pool, &reader, &e), &e);
        assert_int_equal(store_put_meta(reader.db, "a", "b", NULL), -1);
    }
    store_pool_free(pool);
    yard_done(&yard);
}

static void without_a_database_there_is_no_reader(void **state)
{
    auto_free char *path = NULL;
    struct store_pool *pool;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    path = yard_path(&yard, "elsewhere.db");
    pool = store_pool_new(path);
    {
        auto_reader reader = {0};

        assert_int_equal(store_pool_take(pool, &reader, &e), -1);
        assert_null(reader.db);
    }
    store_pool_free(pool);
    yard_done(&yard);
}

static void *ask(void *arg)
{
    for (int i = 0; i < 200; i++) {
        auto_reader reader = {0};
        auto_free char *value = NULL;

        if (store_pool_take(arg, &reader, NULL) < 0 ||
            store_get_meta(reader.db, "subscription_id", &value, NULL) < 0 || !value)
            return arg;
    }
    return NULL;
}

static void many_threads_share_a_pool(void **state)
{
    pthread_t threads[80]; /* more than the pool keeps */
    struct store_pool *pool;
    struct yard yard;

    (void)state;
    yard_init(&yard);
    pool = store_pool_new(yard.db_path);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, pool), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    store_pool_free(pool);
    yard_done(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_goes_back_and_is_taken_again),
        cmocka_unit_test(what_a_pool_gives_only_reads),
        cmocka_unit_test(without_a_database_there_is_no_reader),
        cmocka_unit_test(many_threads_share_a_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
