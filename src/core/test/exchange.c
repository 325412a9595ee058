/* SPDX-License-Identifier: Apache-2.0 */
#include "core/exchange.h"

#include "base/mem.h"
#include "base/text.h"
#include "core/sharedkey.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define KEY "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define NOW 1767225600000

static const char *header_of(const struct outgoing *out, const char *name)
{
    for (size_t i = 0; i < out->count; i++) {
        size_t len = strlen(name);

        if (strncmp(out->headers[i], name, len) == 0 && out->headers[i][len] == ':')
            return out->headers[i] + len + 2;
    }
    return NULL;
}

static void start(struct outgoing *out)
{
    str_add(&out->url, "http://127.0.0.1:1/acct/con/a%20b");
    url_add_query(&out->url, NULL);
    url_add_query(&out->url, "");
    url_add_query(&out->url, "comp=block");
    outgoing_add(out, "x-ms-meta-a: %d", 1);
    outgoing_add(out, "If-Match: \"x\"");
}

static void a_signed_request_is_let_in_by_who_checks_it(void **state)
{
    auto_outgoing out = {0};
    auto_str key = {0};
    struct sharedkey_header headers[8];
    struct sharedkey_request request = {
        .verb = "PUT",
        .headers = headers,
        .raw_path = "/acct/con/a%20b",
        .raw_query = "comp=block",
        .account = "acct",
    };
    struct entry_pass pass = {.account = "acct", .key = &key};
    struct err e = {0};

    (void)state;
    assert_int_equal(text_base64_decode(&key, KEY, NULL), 0);
    start(&out);
    outgoing_seal(&out, &pass, "PUT", 5, NOW);
    assert_null(out.headers[out.count]);
    assert_string_equal(header_of(&out, "x-ms-date"), "Thu, 01 Jan 2026 00:00:00 GMT");
    for (size_t i = 0; i + 1 < out.count; i++) {
        char *colon = strchr(out.headers[i], ':');

        *colon = '\0';
        headers[request.header_count++] = (struct sharedkey_header){out.headers[i], colon + 2};
    }
    headers[request.header_count++] = (struct sharedkey_header){"Content-Length", "5"};
    if (sharedkey_verify(&request, header_of(&out, "Authorization"), KEY, NULL, NOW, &e) < 0)
        fail_msg("%s", e.msg);
    request.verb = "GET";
    assert_int_equal(
        sharedkey_verify(&request, header_of(&out, "Authorization"), KEY, NULL, NOW, NULL), -1);
}

static void a_pass_goes_where_it_belongs(void **state)
{
    static const struct entry_pass passes[] = {
        {.account = "acct"}, {.sas = "sig=a%2Fb"}, {.token = "secret"}};
    static const char *const urls[] = {"?comp=block", "?comp=block&sig=a%2Fb", "?comp=block"};
    static const char *const authorizations[] = {NULL, NULL, "Bearer secret"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(passes); i++) {
        auto_outgoing out = {0};
        const char *authorization;

        start(&out);
        outgoing_seal(&out, &passes[i], "GET", 0, NOW);
        authorization = header_of(&out, "Authorization");
        assert_string_equal(strchr(str_text(&out.url), '?'), urls[i]);
        assert_true(str_equal(authorization, authorizations[i]));
        assert_string_equal(header_of(&out, "x-ms-version"), EXCHANGE_VERSION);
    }
}

static void a_refusal_has_the_words_of_the_service(void **state)
{
    static const struct {
        int status;
        enum err_code want;
        const char *header, *body, *code, *text;
    } rows[] = {
        {404, ERR_NOT_FOUND, "BlobNotFound",
         "<Error><Code>Other</Code><Message>None.\nId</Message></Error>", "BlobNotFound",
         "(BlobNotFound) None."},
        {409, ERR_CONFLICT, NULL, "<Error><Code>Busy</Code><Message>Later.</Message></Error>",
         "Busy", "(Busy) Later."},
        {502, ERR_INTERNAL, NULL, "<html>", "",
         "(InternalServerError) the storage service refused it"},
        {418, ERR_INVALID, NULL, "<Code>never ends", "never ends",
         "(never ends) the storage service refused it"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct refusal refusal;
        struct err e = {0};

        assert_int_equal(
            refusal_read(rows[i].status, rows[i].header, rows[i].body, &refusal, &e), -1);
        assert_int_equal(e.code, rows[i].want);
        assert_string_equal(e.msg, rows[i].text);
        assert_string_equal(refusal.code, rows[i].code);
    }
}

static void only_what_may_pass_later_is_worth_another_try(void **state)
{
    static const int yes[] = {408, 429, 500, 502, 503, 504};
    static const int no[] = {400, 401, 403, 404, 409, 412, 416, 501, 505, 507};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
        assert_true(refusal_may_pass(yes[i], "ServerBusy"));
        assert_true(refusal_may_pass(yes[i], NULL));
    }
    for (size_t i = 0; i < ARRAY_SIZE(no); i++)
        assert_false(refusal_may_pass(no[i], ""));
    assert_false(refusal_may_pass(500, "FeatureNotSupported"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signed_request_is_let_in_by_who_checks_it),
        cmocka_unit_test(a_pass_goes_where_it_belongs),
        cmocka_unit_test(a_refusal_has_the_words_of_the_service),
        cmocka_unit_test(only_what_may_pass_later_is_worth_another_try),
    };

    return cmocka_run_group_tests_name("core/exchange", tests, NULL, NULL);
}
