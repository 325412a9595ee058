/* SPDX-License-Identifier: Apache-2.0 */
#include "control/principals.h"

#include "store/test/yard.h"

#include <pthread.h>
#include <stdatomic.h>

static void put(struct yard *yard, const char *name, const char *token)
{
    autoptr(principal) p = xcalloc(1, sizeof(*p));
    char hash[2 * CRYPT_SHA256_BYTES + 1], id[CRYPT_UUID_BYTES];
    struct err e = {0};

    principals_hash_token(token, hash);
    p->name = xstrdup(name);
    p->client_id = xstrdup(crypt_uuid(id));
    p->token_hash = xstrdup(hash);
    p->scope = xstrdup("");
    p->role = ACCESS_OWNER;
    assert_ok(store_put_principal(yard->db, p, &e), &e);
}

static void a_hash_is_sha256_in_hex(void **state)
{
    char hash[2 * CRYPT_SHA256_BYTES + 1];

    (void)state;
    principals_hash_token("abc", hash);
    assert_string_equal(hash,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    principals_hash_token("", hash);
    assert_string_equal(hash,
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void nobody_is_known_before_the_list_is_read(void **state)
{
    struct principals *p = principals_new();
    struct identity who;

    (void)state;
    assert_false(principals_by_token(p, "", &who));
    assert_false(principals_by_client(p, "", &who));
    principals_free(p);
}

static void each_is_found_by_token_and_client_and_nobody_else(void **state)
{
    static const char *const names[] = {"ann", "bob", "cas"};
    struct principals *p = principals_new();
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        put(&yard, names[i], names[i]);
    assert_ok(principals_load(p, yard.db, &e), &e);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char hash[2 * CRYPT_SHA256_BYTES + 1];
        struct identity who, again;
        auto_free char *upper = NULL;

        principals_hash_token(names[i], hash);
        assert_true(principals_by_token(p, hash, &who));
        assert_string_equal(who.name, names[i]);
        upper = xstrdup(who.client_id);
        for (char *c = upper; *c; c++)
            *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        assert_true(principals_by_client(p, upper, &again));
        assert_string_equal(again.name, names[i]);
        hash[0] = hash[0] == '0' ? '1' : '0';
        assert_false(principals_by_token(p, hash, &who));
        assert_false(principals_by_client(p, names[i], &who));
    }
    principals_free(p);
    yard_done(&yard);
}

static void a_list_that_cannot_be_read_leaves_the_old_one(void **state)
{
    struct principals *p = principals_new();
    char hash[2 * CRYPT_SHA256_BYTES + 1];
    struct identity who;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    put(&yard, "ann", "ann");
    assert_ok(principals_load(p, yard.db, &e), &e);
    put(&yard, "bob", "bob");
    assert_ok(db_script(yard.db, "UPDATE principal SET role = 'king' WHERE name = 'bob'", &e),
              &e);
    assert_int_equal(principals_load(p, yard.db, &e), -1);
    principals_hash_token("ann", hash);
    assert_true(principals_by_token(p, hash, &who));
    principals_free(p);
    yard_done(&yard);
}

struct asking {
    struct principals *principals;
    atomic_bool stop;
    atomic_int misses;
};

static void *ask_on(void *arg)
{
    struct asking *asking = arg;
    char hash[2 * CRYPT_SHA256_BYTES + 1];
    struct identity who;

    principals_hash_token("ann", hash);
    while (!asking->stop)
        if (!principals_by_token(asking->principals, hash, &who) || !str_equal(who.name, "ann"))
            asking->misses++;
    return NULL;
}

static void the_list_is_replaced_while_others_ask(void **state)
{
    struct asking asking = {.principals = principals_new()};
    pthread_t threads[4];
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    put(&yard, "ann", "ann");
    assert_ok(principals_load(asking.principals, yard.db, &e), &e);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_on, &asking), 0);
    for (int i = 0; i < 50; i++)
        assert_ok(principals_load(asking.principals, yard.db, &e), &e);
    asking.stop = true;
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(asking.misses, 0);
    principals_free(asking.principals);
    yard_done(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hash_is_sha256_in_hex),
        cmocka_unit_test(nobody_is_known_before_the_list_is_read),
        cmocka_unit_test(each_is_found_by_token_and_client_and_nobody_else),
        cmocka_unit_test(a_list_that_cannot_be_read_leaves_the_old_one),
        cmocka_unit_test(the_list_is_replaced_while_others_ask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
