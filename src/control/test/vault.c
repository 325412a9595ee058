/* SPDX-License-Identifier: Apache-2.0 */
#include "control/vault.h"

#include "base/fs.h"
#include "base/text.h"
#include "store/test/yard.h"

#include <sys/stat.h>
#include <unistd.h>

static const struct vault vault = {"0123456789abcdef0123456789abcde"};
static const struct vault other = {"fedcba9876543210fedcba987654321"};

#define CLIENT "1cba1da6-5a83-45e1-a88e-8b397eb84356"

/* --- the key file --- */

static void a_key_file_is_made_once_and_read_ever_after(void **state)
{
    struct vault made, again;
    auto_free char *path = NULL;
    struct stat file;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    path = yard_path(&yard, "secret.key");
    assert_ok(vault_open(path, yard.db, &made, &e), &e);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_ok(vault_open(path, yard.db, &again, &e), &e);
    assert_memory_equal(made.key, again.key, sizeof(made.key));
    yard_done(&yard);
}

static void a_damaged_key_file_is_never_replaced(void **state)
{
    static const char *const texts[] = {
        "",
        "not base64!",
        "AAAA\n", /* too short */
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
    };
    struct yard yard;

    (void)state;
    yard_init(&yard);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        auto_free char *path = yard_path(&yard, "secret.key");
        auto_str left = {0};
        struct vault read = {0};
        struct err e = {0};

        assert_ok(fs_write_durably(path, texts[i], strlen(texts[i]), 0600, &e), &e);
        assert_int_equal(vault_open(path, yard.db, &read, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_ok(fs_read(path, 4096, &left, &e), &e);
        assert_string_equal(str_text(&left), texts[i]);
    }
    yard_done(&yard);
}

static void a_lost_key_file_is_not_replaced_while_secrets_need_it(void **state)
{
    auto_free char *path = NULL;
    struct vault made, again;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    path = yard_path(&yard, "secret.key");
    assert_ok(vault_open(path, yard.db, &made, &e), &e);
    resource_free(yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "one", NULL));
    assert_ok(vault_put(&made, yard.db, 1, "key1", "the secret", 77, &e), &e);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(vault_open(path, yard.db, &again, &e), -1);
    assert_non_null(strstr(e.msg, "is missing"));
    assert_int_equal(access(path, F_OK), -1);
    yard_done(&yard);
}

/* --- secrets --- */

static int get(struct yard *yard, const struct vault *with, int64_t id, const char *name)
{
    auto_str out = {0};
    int64_t created_ms;

    if (vault_get(with, yard->db, id, name, &out, &created_ms, NULL) < 0)
        return -1;
    assert_string_equal(str_text(&out), "the secret");
    assert_int_equal(created_ms, 77);
    return 0;
}

static void a_secret_opens_in_its_place_and_with_its_key_only(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    resource_free(yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "one", NULL));
    resource_free(yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "two", NULL));
    assert_ok(vault_put(&vault, yard.db, 1, "key1", "the secret", 77, &e), &e);
    assert_int_equal(get(&yard, &vault, 1, "key1"), 0);
    assert_int_equal(get(&yard, &other, 1, "key1"), -1);
    /* Moved to another row or another name, it stays shut. */
    assert_ok(
        db_script(yard.db, "INSERT INTO secret SELECT 2, name, sealed, 77 FROM secret", &e),
        &e);
    assert_ok(db_script(yard.db,
                        "INSERT INTO secret SELECT 1, 'key2', sealed, 77 FROM secret"
                        " WHERE resource_id = 1",
                        &e),
              &e);
    assert_int_equal(get(&yard, &vault, 2, "key1"), -1);
    assert_int_equal(get(&yard, &vault, 1, "key2"), -1);
    assert_int_equal(get(&yard, &vault, 1, "key1"), 0);
    yard_done(&yard);
}

static void a_missing_secret_is_not_found(void **state)
{
    auto_str out = {0};
    int64_t created_ms;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    assert_int_equal(vault_get(&vault, yard.db, 1, "key1", &out, &created_ms, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(out.len, 0);
    yard_done(&yard);
}

/* --- tokens --- */

static void a_token_tells_client_and_expiry(void **state)
{
    static const int64_t expiries[] = {0, 1, 1893456000000, INT64_MAX, -1};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(expiries); i++) {
        auto_str token = {0}, client = {0};
        int64_t expires_ms = 42;
        struct err e = {0};

        vault_issue_token(&vault, CLIENT, expiries[i], &token);
        assert_true(str_starts(str_text(&token), "yt1."));
        assert_ok(vault_read_token(&vault, str_text(&token), &client, &expires_ms, &e), &e);
        assert_string_equal(str_text(&client), CLIENT);
        assert_int_equal(expires_ms, expiries[i]);
    }
}

static void refuse(const struct vault *with, const char *token)
{
    auto_str client = {0};
    int64_t expires_ms = 42;
    struct err e = {0};

    if (vault_read_token(with, token, &client, &expires_ms, &e) == 0)
        fail_msg("taken: %s", token);
    assert_int_equal(e.code, ERR_UNAUTHORIZED);
    assert_int_equal(client.len, 0);
    assert_int_equal(expires_ms, 42);
    assert_null(strstr(e.msg, "yt1."));
}

/* Another digit of base64, different in its highest bit: some low bits at an end mean nothing.
 */
static char forge(char c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *at = strchr(digits, c);

    return at ? digits[(at - digits + 32) % 64] : 'A';
}

static void a_token_with_any_character_changed_is_refused(void **state)
{
    auto_str token = {0};

    (void)state;
    vault_issue_token(&vault, CLIENT, 1893456000000, &token);
    for (size_t i = 0; i < token.len; i++) {
        auto_free char *forged = xstrdup(str_text(&token));

        forged[i] = forge(forged[i]);
        refuse(&vault, forged);
    }
    for (size_t len = 0; len < token.len; len++) {
        auto_free char *cut = xstrndup(str_text(&token), len);

        refuse(&vault, cut);
    }
}

static void tokens_of_another_key_or_form_are_refused(void **state)
{
    static const char *const forms[] = {
        "",
        "yt1.",
        "yt1..",
        "yt1.x.y",
        "yt2.YWJj.YWJj",
        "yt1.!",
        "yt1.YWJj.!!",
        "yt1.YWJj",
        "yt1.YWJj.YWJj.YWJj",
    };
    auto_str foreign = {0}, longer = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
        refuse(&vault, forms[i]);
    vault_issue_token(&other, CLIENT, 1893456000000, &foreign);
    refuse(&vault, str_text(&foreign));
    vault_issue_token(&vault, CLIENT, 1893456000000, &longer);
    str_add(&longer, "AAAA");
    refuse(&vault, str_text(&longer));
}

/* The expiry is inside the signature: it cannot be moved. */
static void an_expiry_cannot_be_put_off(void **state)
{
    auto_str soon = {0}, later = {0};
    auto_free char *mixed = NULL;

    (void)state;
    vault_issue_token(&vault, CLIENT, 1893456000000, &soon);
    vault_issue_token(&vault, CLIENT, 1893456000001, &later);
    mixed = xasprintf("%.*s%s", (int)(strrchr(later.data, '.') - later.data), later.data,
                      strrchr(soon.data, '.'));
    refuse(&vault, mixed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_file_is_made_once_and_read_ever_after),
        cmocka_unit_test(a_damaged_key_file_is_never_replaced),
        cmocka_unit_test(a_lost_key_file_is_not_replaced_while_secrets_need_it),
        cmocka_unit_test(a_secret_opens_in_its_place_and_with_its_key_only),
        cmocka_unit_test(a_missing_secret_is_not_found),
        cmocka_unit_test(a_token_tells_client_and_expiry),
        cmocka_unit_test(a_token_with_any_character_changed_is_refused),
        cmocka_unit_test(tokens_of_another_key_or_form_are_refused),
        cmocka_unit_test(an_expiry_cannot_be_put_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
