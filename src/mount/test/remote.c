/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/remote.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_failure_means_what_programs_expect(void **state)
{
    static const struct {
        const char *reason;
        enum err_code code;
        int errno_value;
    } rows[] = {
        {NULL, ERR_NOT_FOUND, ENOENT},
        {"ParentNotFound", ERR_NOT_FOUND, ENOENT},
        {NULL, ERR_FORBIDDEN, EACCES},
        {"ShareSizeLimitReached", ERR_FORBIDDEN, ENOSPC},
        {"ResourceAlreadyExists", ERR_CONFLICT, EEXIST},
        {"DirectoryNotEmpty", ERR_CONFLICT, ENOTEMPTY},
        {NULL, ERR_CONFLICT, EBUSY},
        {"ConditionNotMet", ERR_PRECONDITION, ESTALE},
        {NULL, ERR_NO_SPACE, ENOSPC},
        {NULL, ERR_BUSY, EIO},
        {NULL, ERR_TIMEOUT, EIO},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct err e = {.code = rows[i].code, .reason = rows[i].reason};

        assert_int_equal(remote_errno(&e), rows[i].errno_value);
    }
}

static void urls_are_encoded_by_segment_and_carry_the_signature(void **state)
{
    const struct remote_config config = {
        .endpoint = "http://127.0.0.1:1/acct",
        .account = "acct",
        .container = "con",
        .auth = REMOTE_SAS,
        .secret = "sig=a%2Fb",
    };
    autoptr(remote) remote = NULL;
    auto_free char *url = NULL;

    (void)state;
    assert_int_equal(remote_new(&config, &remote, NULL), 0);
    url = remote_url(remote, "a b/c?/100%/\xc3\xbc");
    assert_string_equal(url, "http://127.0.0.1:1/acct/con/a%20b/c%3F/100%25/%C3%BC?sig=a%2Fb");
}

static void a_server_that_is_away_is_given_up_on_in_time(void **state)
{
    struct remote_config config = {
        .endpoint = "http://127.0.0.1:1/acct", /* nobody listens there */
        .account = "acct",
        .container = "con",
        .auth = REMOTE_KEY,
        .secret = "AAECAw==",
        .patience_ms = 200,
    };
    const struct remote_call call = {.method = "GET", .path = "x"};
    autoptr(remote) remote = NULL;
    struct err e = {0};

    (void)state;
    assert_int_equal(remote_new(&config, &remote, NULL), 0);
    assert_int_equal(remote_call(remote, &call, NULL, &e), -1);
    assert_int_equal(remote_errno(&e), EIO);
    remote_stop(remote);
    assert_int_equal(remote_call(remote, &call, NULL, &e), -1);
    config.secret = "no base64!";
    assert_int_equal(remote_new(&config, &remote, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_means_what_programs_expect),
        cmocka_unit_test(urls_are_encoded_by_segment_and_carry_the_signature),
        cmocka_unit_test(a_server_that_is_away_is_given_up_on_in_time),
    };

    return cmocka_run_group_tests_name("mount/remote", tests, NULL, NULL);
}
