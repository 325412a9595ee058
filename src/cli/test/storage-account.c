/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-account.h"

#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void connection_strings_are_read(void **state)
{
    static const struct row {
        const char *text, *name, *blob, *file, *secret;
        enum storage_auth auth;
    } rows[] = {
        {"DefaultEndpointsProtocol=http;AccountName=lab;AccountKey=a2V5==;"
         "BlobEndpoint=http://127.0.0.1:10000/lab/;FileEndpoint=http://127.0.0.1:10004/lab",
         "lab", "http://127.0.0.1:10000/lab", "http://127.0.0.1:10004/lab",
         "a2V5==", STORAGE_AUTH_KEY},
        {"AccountName=lab;AccountKey=k;EndpointSuffix=yard.example", "lab",
         "https://lab.blob.yard.example", "https://lab.file.yard.example", "k",
         STORAGE_AUTH_KEY},
        {"accountname=lab;ACCOUNTKEY=k", "lab", "https://lab.blob.core.windows.net",
         "https://lab.file.core.windows.net", "k", STORAGE_AUTH_KEY},
        {"BlobEndpoint=http://127.0.0.1:10000/lab;SharedAccessSignature=?sv=1&sig=x", "lab",
         "http://127.0.0.1:10000/lab", "https://lab.file.core.windows.net", "sv=1&sig=x",
         STORAGE_AUTH_SAS},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(storage_account) a = NULL;
        struct err e;

        if (storage_account_of_text(rows[i].text, &a, &e) < 0)
            fail_msg("%s: %s", rows[i].text, e.msg);
        assert_string_equal(a->name, rows[i].name);
        assert_string_equal(a->endpoints[STORAGE_BLOB], rows[i].blob);
        assert_string_equal(a->endpoints[STORAGE_FILE], rows[i].file);
        assert_string_equal(a->secret, rows[i].secret);
        assert_int_equal(a->auth, rows[i].auth);
    }
}

static void half_a_connection_string_is_refused(void **state)
{
    static const char *const texts[] = {"", "AccountName=lab", "AccountKey=k", "nonsense",
                                        "BlobEndpoint=here;AccountKey=k"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        autoptr(storage_account) a = NULL;

        assert_int_equal(storage_account_of_text(texts[i], &a, NULL), -1);
    }
}

static void what_is_written_reads_back(void **state)
{
    static const char text[] =
        "DefaultEndpointsProtocol=http;AccountName=lab;AccountKey=k;BlobEndpoint=http://"
        "127.0.0.1:10000/lab/;FileEndpoint=http://127.0.0.1:10004/lab/";
    autoptr(storage_account) a = NULL;
    auto_free char *again = NULL;

    (void)state;
    assert_int_equal(storage_account_of_text(text, &a, NULL), 0);
    again = storage_account_text(a);
    assert_string_equal(again, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection_strings_are_read),
        cmocka_unit_test(half_a_connection_string_is_refused),
        cmocka_unit_test(what_is_written_reads_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
