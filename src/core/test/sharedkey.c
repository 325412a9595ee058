/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sharedkey.h"

#include "base/crypt.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The key and the account that the storage emulators share: published, no secret. */
#define ACCOUNT "devstoreaccount1"
#define KEY                                                                                    \
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define OTHER_KEY "AAECAwQFBgcICQoLDA0ODw=="
#define DATE      "Thu, 01 Jan 2026 00:00:00 GMT"
#define NOW       1767225600000

static const struct sharedkey_header list_headers[] = {
    {"X-MS-Version", "2021-12-02"},
    {"x-ms-date", DATE},
    {"Accept", "application/xml"},
};

/* Both signed by the Python client. */
static const struct sharedkey_request list_request = {
    .verb = "GET",
    .headers = list_headers,
    .header_count = ARRAY_SIZE(list_headers),
    .raw_path = "/" ACCOUNT "/con",
    .raw_query = "restype=container&comp=list&prefix=a%20b%2Fc&include=",
    .account = ACCOUNT,
};
static const char list_signed[] =
    "SharedKey " ACCOUNT ":Vt1WvyEQSFYkH1iij1XNMJGlqpBHILgVRO7UvkhOsdo=";

static const struct sharedkey_header put_headers[] = {
    {"x-ms-date", DATE},     {"x-ms-version", "2021-12-02"}, {"x-ms-meta-a_b", "1"},
    {"x-ms-meta-a1", "2"},   {"x-ms-meta-ab", "3"},          {"x-ms-blob-type", "BlockBlob"},
    {"content-length", "3"}, {"Content-Type", "text/plain"}, {"If-None-Match", "*"},
};
static const struct sharedkey_request put_request = {
    .verb = "PUT",
    .headers = put_headers,
    .header_count = ARRAY_SIZE(put_headers),
    .raw_path = "/" ACCOUNT "/con/dir%2Fa%20b.txt",
    .raw_query = "",
    .account = ACCOUNT,
};
static const char put_signed[] =
    "SharedKey " ACCOUNT ":sgvEqUnipLrQaBi2rK10KEBSa0HCpQSEaGhC4fS6qEI=";

static const char *verdict(const struct sharedkey_request *r, const char *authorization)
{
    struct err e = {0};

    if (sharedkey_verify(r, authorization, OTHER_KEY, KEY, NOW, &e) == 0)
        return "ok";
    return err_reason_of(&e);
}

static void what_a_client_signed_is_accepted_with_either_key(void **state)
{
    (void)state;
    assert_string_equal(verdict(&list_request, list_signed), "ok");
    assert_string_equal(verdict(&put_request, put_signed), "ok");
    assert_int_equal(sharedkey_verify(&list_request, list_signed, KEY, "", NOW, NULL), 0);
    assert_int_equal(sharedkey_verify(&list_request, list_signed, OTHER_KEY, NULL, NOW, NULL),
                     -1);
    assert_int_equal(sharedkey_verify(&list_request, list_signed, "", NULL, NOW, NULL), -1);
}

static void what_we_sign_is_what_a_client_signs(void **state)
{
    auto_str key = {0}, list = {0}, put = {0};

    (void)state;
    assert_int_equal(text_base64_decode(&key, KEY, NULL), 0);
    sharedkey_sign(&list_request, str_text(&key), key.len, &list);
    assert_string_equal(str_text(&list), list_signed);
    /* In another order than Python's, but one that is accepted. */
    sharedkey_sign(&put_request, str_text(&key), key.len, &put);
    assert_string_equal(verdict(&put_request, str_text(&put)), "ok");
}

static void the_whole_text_is_as_documented(void **state)
{
    static const struct sharedkey_header headers[] = {
        {"Date", "never seen"},       {"x-ms-meta-b", ""},
        {"x-ms-date", DATE},          {"X-Ms-Meta-A", "1"},
        {"x-ms-meta-a", "2"},         {"Content-Length", "0"},
        {"Content-Encoding", "gzip"}, {"Content-Language", "en"},
        {"Content-MD5", "md5"},       {"Content-Type", "text/plain"},
        {"If-Modified-Since", "ims"}, {"If-Match", "im"},
        {"If-None-Match", "inm"},     {"If-Unmodified-Since", "ius"},
        {"Range", "bytes=0-1"},
    };
    const struct sharedkey_request r = {
        .verb = "PUT",
        .headers = headers,
        .header_count = ARRAY_SIZE(headers),
        .raw_path = "/con/a%2Fb",
        .raw_query = "comp=x&&Include=b&include=a&empty&q=%41+%42",
        .account = "acct",
    };
    auto_str full = {0}, lite = {0};

    (void)state;
    sharedkey_string(&r, false, SHAREDKEY_BYTES, &full);
    assert_string_equal(str_text(&full),
                        "PUT\ngzip\nen\n\nmd5\ntext/plain\n\nims\nim\ninm\nius\nbytes=0-1\n"
                        "x-ms-date:" DATE "\nx-ms-meta-a:1,2\nx-ms-meta-b:\n"
                        "/acct/con/a%2Fb\ncomp:x\nempty:\ninclude:a,b\nq:A B");
    sharedkey_string(&r, true, SHAREDKEY_BYTES, &lite);
    assert_string_equal(str_text(&lite), "PUT\nmd5\ntext/plain\n\n"
                                         "x-ms-date:" DATE "\nx-ms-meta-a:1,2\nx-ms-meta-b:\n"
                                         "/acct/con/a%2Fb?comp=x");
}

static void the_date_line_is_used_when_there_is_no_other(void **state)
{
    static const struct sharedkey_header header = {"Date", DATE};
    const struct sharedkey_request r = {.verb = "GET",
                                        .headers = &header,
                                        .header_count = 1,
                                        .raw_path = "/",
                                        .raw_query = "",
                                        .account = "a"};
    auto_str text = {0};

    (void)state;
    sharedkey_string(&r, true, SHAREDKEY_BYTES, &text);
    assert_string_equal(str_text(&text), "GET\n\n\n" DATE "\n/a/");
}

static void headers_are_sorted_in_each_known_order(void **state)
{
    static const struct sharedkey_header headers[] = {
        {"x-ms-ab", ""},  {"x-ms-a-b", ""}, {"x-ms-a1", ""},
        {"x-ms-a_b", ""}, {"x-ms-a-c", ""}, {"x-ms-a", ""},
    };
    static const char *const want[SHAREDKEY_ORDERS] = {
        [SHAREDKEY_BYTES] = "x-ms-a:\nx-ms-a-b:\nx-ms-a-c:\nx-ms-a1:\nx-ms-a_b:\nx-ms-ab:\n",
        [SHAREDKEY_CULTURE] = "x-ms-a:\nx-ms-a_b:\nx-ms-a1:\nx-ms-ab:\nx-ms-a-b:\nx-ms-a-c:\n",
        [SHAREDKEY_ALPHABET] = "x-ms-a:\nx-ms-a-b:\nx-ms-a-c:\nx-ms-a_b:\nx-ms-a1:\nx-ms-ab:\n",
    };
    const struct sharedkey_request r = {.verb = "GET",
                                        .headers = headers,
                                        .header_count = ARRAY_SIZE(headers),
                                        .raw_path = "/",
                                        .raw_query = "",
                                        .account = "a"};

    (void)state;
    for (int order = 0; order < SHAREDKEY_ORDERS; order++) {
        auto_str text = {0};

        sharedkey_string(&r, true, (enum sharedkey_order)order, &text);
        assert_non_null(strstr(str_text(&text), want[order]));
    }
}

static char *sign(const struct sharedkey_request *r, bool is_lite, enum sharedkey_order order)
{
    auto_str text = {0}, key = {0}, signature = {0};
    unsigned char digest[CRYPT_SHA256_BYTES];

    sharedkey_string(r, is_lite, order, &text);
    assert_int_equal(text_base64_decode(&key, KEY, NULL), 0);
    crypt_hmac_sha256(str_text(&key), key.len, str_text(&text), text.len, digest);
    text_base64(&signature, digest, sizeof(digest));
    return xasprintf("%s " ACCOUNT ":%s", is_lite ? "SharedKeyLite" : "SharedKey",
                     str_text(&signature));
}

static void every_order_and_both_schemes_are_accepted(void **state)
{
    (void)state;
    for (int order = 0; order < SHAREDKEY_ORDERS; order++)
        for (int is_lite = 0; is_lite < 2; is_lite++) {
            auto_free char *header = sign(&put_request, is_lite, (enum sharedkey_order)order);

            assert_string_equal(verdict(&put_request, header), "ok");
            header[strlen(header) - 3] ^= 1;
            assert_string_equal(verdict(&put_request, header), "AuthenticationFailed");
        }
}

/* Every part of the request that is signed, changed: none may be accepted. */
static void an_altered_request_is_refused(void **state)
{
    struct sharedkey_request r = put_request;
    struct sharedkey_header headers[ARRAY_SIZE(put_headers)];

    (void)state;
    r.verb = "GET";
    assert_string_equal(verdict(&r, put_signed), "AuthenticationFailed");
    r = put_request;
    r.raw_path = "/" ACCOUNT "/con/dir/a%20b.txt";
    assert_string_equal(verdict(&r, put_signed), "AuthenticationFailed");
    r = put_request;
    r.raw_query = "comp=metadata";
    assert_string_equal(verdict(&r, put_signed), "AuthenticationFailed");
    r = put_request;
    r.account = "other";
    assert_string_equal(verdict(&r, put_signed), "AuthenticationFailed");
    r = put_request;
    r.header_count--;
    assert_string_equal(verdict(&r, put_signed), "AuthenticationFailed");
    r = put_request;
    r.headers = headers;
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        memcpy(headers, put_headers, sizeof(headers));
        headers[i].value = "Thu, 01 Jan 2026 00:00:01 GMT";
        assert_string_equal(verdict(&r, put_signed), "AuthenticationFailed");
    }
}

static void the_clock_may_be_off_by_a_quarter_of_an_hour(void **state)
{
    static const struct {
        int64_t off_ms;
        int want;
    } table[] = {
        {SHAREDKEY_SKEW_MS, 0},
        {-SHAREDKEY_SKEW_MS, 0},
        {SHAREDKEY_SKEW_MS + 1, -1},
        {-SHAREDKEY_SKEW_MS - 1, -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_int_equal(sharedkey_verify(&list_request, list_signed, KEY, NULL,
                                          NOW + table[i].off_ms, NULL),
                         table[i].want);
}

static void a_request_without_a_date_is_refused(void **state)
{
    static const struct sharedkey_header header = {"x-ms-date", "yesterday"};
    struct sharedkey_request r = list_request;
    auto_free char *signed_text = NULL;

    (void)state;
    r.header_count = 0;
    signed_text = sign(&r, false, SHAREDKEY_BYTES);
    assert_string_equal(verdict(&r, signed_text), "AuthenticationFailed");
    r.headers = &header;
    r.header_count = 1;
    assert_string_equal(verdict(&r, signed_text), "AuthenticationFailed");
}

static void the_secondary_may_be_signed_with_and_without_its_suffix(void **state)
{
    struct sharedkey_request r = list_request, other = list_request;
    auto_free char *as_sent = NULL, *as_primary = NULL;

    (void)state;
    r.raw_path = "/" ACCOUNT "-secondary/con";
    as_sent = sign(&r, false, SHAREDKEY_BYTES);
    as_primary = sign(&other, false, SHAREDKEY_BYTES);
    assert_string_equal(verdict(&r, as_sent), "ok");
    assert_string_equal(verdict(&r, as_primary), "ok");
    other.raw_path = "/" ACCOUNT "-other/con";
    assert_string_equal(verdict(&other, as_primary), "AuthenticationFailed");
}

static void a_header_that_makes_no_sense_is_refused(void **state)
{
    static const struct {
        const char *header, *want;
    } table[] = {
        {"", "InvalidAuthenticationInfo"},
        {"SharedKey", "InvalidAuthenticationInfo"},
        {"SharedKey " ACCOUNT, "InvalidAuthenticationInfo"},
        {"SharedKey " ACCOUNT ":*", "InvalidAuthenticationInfo"},
        {"Basic abc", "InvalidAuthenticationInfo"},
        {"SharedKey " ACCOUNT ":", "AuthenticationFailed"},
        {"SharedKey " ACCOUNT ":AAAA", "AuthenticationFailed"},
        {"SharedKey other:Vt1WvyEQSFYkH1iij1XNMJGlqpBHILgVRO7UvkhOsdo=",
         "AuthenticationFailed"},
        {"SharedKey " ACCOUNT "x:Vt1WvyEQSFYkH1iij1XNMJGlqpBHILgVRO7UvkhOsdo=",
         "AuthenticationFailed"},
        {"SharedKeyLite " ACCOUNT ":Vt1WvyEQSFYkH1iij1XNMJGlqpBHILgVRO7UvkhOsdo=",
         "AuthenticationFailed"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_string_equal(verdict(&list_request, table[i].header), table[i].want);
    assert_true(sharedkey_is_used("SharedKey x"));
    assert_true(sharedkey_is_used("sharedkeylite x"));
    assert_false(sharedkey_is_used("Bearer x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_client_signed_is_accepted_with_either_key),
        cmocka_unit_test(what_we_sign_is_what_a_client_signs),
        cmocka_unit_test(the_whole_text_is_as_documented),
        cmocka_unit_test(the_date_line_is_used_when_there_is_no_other),
        cmocka_unit_test(headers_are_sorted_in_each_known_order),
        cmocka_unit_test(every_order_and_both_schemes_are_accepted),
        cmocka_unit_test(an_altered_request_is_refused),
        cmocka_unit_test(the_clock_may_be_off_by_a_quarter_of_an_hour),
        cmocka_unit_test(a_request_without_a_date_is_refused),
        cmocka_unit_test(the_secondary_may_be_signed_with_and_without_its_suffix),
        cmocka_unit_test(a_header_that_makes_no_sense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
