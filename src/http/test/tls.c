/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const files[] = {"ca.pem", "ca.key", "server.pem", "server.key"};

static int setup(void **state)
{
    *state = xstrdup("/tmp/http-tls-XXXXXX");
    return mkdtemp(*state) ? 0 : -1;
}

static int teardown(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        auto_free char *path = xasprintf("%s/%s", (char *)*state, files[i]);

        unlink(path);
    }
    rmdir(*state);
    free(*state);
    return 0;
}

static char *content(const char *folder, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    struct str text = {0};

    assert_int_equal(fs_read(path, 100000, &text, NULL), 0);
    return str_take(&text);
}

static X509 *first_cert(const char *folder, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);

    fclose(file);
    assert_non_null(cert);
    return cert;
}

static int open_server(const char *folder, struct http_tls **ret, struct err *e)
{
    auto_free char *cert = xasprintf("%s/server.pem", folder);
    auto_free char *key = xasprintf("%s/server.key", folder);

    return http_tls_open(cert, key, ret, e);
}

static void what_is_missing_is_made_and_can_be_used(void **state)
{
    const char *folder = *state;
    static const char *const names[] = {"yard.example", "10.1.2.3", "bad name,DNS:evil"};
    struct http_tls *tls;
    struct stat status;
    X509 *ca, *leaf;

    assert_int_equal(http_tls_ensure(folder, names, 3, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        auto_free char *path = xasprintf("%s/%s", folder, files[i]);

        assert_return_code(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, str_ends(path, ".key") ? 0600 : 0644);
    }
    assert_int_equal(open_server(folder, &tls, NULL), 0);
    http_tls_free(tls);

    ca = first_cert(folder, "ca.pem");
    leaf = first_cert(folder, "server.pem");
    assert_int_equal(X509_check_ca(ca), 1);
    assert_int_equal(X509_check_ca(leaf), 0);
    assert_int_equal(X509_check_issued(ca, leaf), X509_V_OK);
    assert_int_equal(X509_check_host(leaf, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_ip_asc(leaf, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(leaf, "::1", 0), 1);
    assert_int_equal(X509_check_host(leaf, "yard.example", 0, 0, NULL), 1);
    assert_int_equal(X509_check_ip_asc(leaf, "10.1.2.3", 0), 1);
    assert_int_equal(X509_check_host(leaf, "evil", 0, 0, NULL), 0);
    X509_free(ca);
    X509_free(leaf);
}

static void what_is_there_and_good_is_left_alone(void **state)
{
    const char *folder = *state;
    static const char *const names[] = {"yard.example", "*.blob.yard.example", "10.1.2.3"};

    assert_int_equal(http_tls_ensure(folder, names, ARRAY_SIZE(names), NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        auto_free char *before = content(folder, files[i]);
        auto_free char *after = NULL;

        assert_int_equal(http_tls_ensure(folder, names, ARRAY_SIZE(names), NULL), 0);
        after = content(folder, files[i]);
        assert_string_equal(before, after);
    }
}

static void a_new_name_makes_a_new_leaf_of_the_same_authority(void **state)
{
    const char *folder = *state;
    static const char *const names[] = {"other.example"};
    auto_free char *ca_before = NULL, *ca_after = NULL, *before = NULL, *after = NULL;

    assert_int_equal(http_tls_ensure(folder, NULL, 0, NULL), 0);
    ca_before = content(folder, "ca.pem");
    before = content(folder, "server.pem");
    assert_int_equal(http_tls_ensure(folder, names, 1, NULL), 0);
    ca_after = content(folder, "ca.pem");
    after = content(folder, "server.pem");
    assert_string_equal(ca_before, ca_after);
    assert_string_not_equal(before, after);
}

static void a_damaged_leaf_is_made_anew(void **state)
{
    const char *folder = *state;
    auto_free char *path = xasprintf("%s/server.key", folder);
    struct http_tls *tls;

    assert_int_equal(http_tls_ensure(folder, NULL, 0, NULL), 0);
    assert_int_equal(fs_write_durably(path, "rubbish", 7, 0600, NULL), 0);
    assert_int_equal(http_tls_ensure(folder, NULL, 0, NULL), 0);
    assert_int_equal(open_server(folder, &tls, NULL), 0);
    http_tls_free(tls);
}

static void a_damaged_authority_is_not_replaced_in_silence(void **state)
{
    const char *folder = *state;
    auto_free char *path = xasprintf("%s/ca.key", folder);
    struct err e;

    assert_int_equal(http_tls_ensure(folder, NULL, 0, NULL), 0);
    unlink(path);
    assert_int_equal(http_tls_ensure(folder, NULL, 0, &e), -1);
    assert_non_null(strstr(e.msg, "remove both"));
}

static void an_authority_that_was_cut_off_in_its_making_is_made_anew(void **state)
{
    const char *folder = *state;
    auto_free char *path = xasprintf("%s/ca.pem", folder);
    struct http_tls *tls;

    assert_int_equal(http_tls_ensure(folder, NULL, 0, NULL), 0);
    unlink(path);
    assert_int_equal(http_tls_ensure(folder, NULL, 0, NULL), 0);
    assert_int_equal(open_server(folder, &tls, NULL), 0);
    http_tls_free(tls);
}

static void files_that_are_not_there_are_named(void **state)
{
    struct http_tls *tls = NULL;
    struct err e;

    assert_int_equal(open_server(*state, &tls, &e), -1);
    assert_non_null(strstr(e.msg, "server.pem"));
    assert_null(tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_missing_is_made_and_can_be_used, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_there_and_good_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_name_makes_a_new_leaf_of_the_same_authority,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_leaf_is_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_authority_is_not_replaced_in_silence, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            an_authority_that_was_cut_off_in_its_making_is_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_are_not_there_are_named, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
