/* Requests against a server of a few lines: a thread that answers each connection from a
 * script.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-wire.h"

#include "base/clock.h"
#include "core/sharedkey.h"
#include "scripted-server.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"

/* The request as a server reads it, checked as ours checks it. */
static void expect_signed(char *text, const char *path, const char *query)
{
    struct sharedkey_header headers[32];
    struct sharedkey_request r = {
        .headers = headers, .raw_path = path, .raw_query = query, .account = "lab"};
    const char *authorization = "";
    char *save = NULL, *line = strtok_r(text, "\r\n", &save);
    struct err e;

    *strchr(line, ' ') = '\0';
    r.verb = line;
    while ((line = strtok_r(NULL, "\r\n", &save)) && strchr(line, ':')) {
        char *colon = strchr(line, ':');

        *colon = '\0';
        headers[r.header_count++] = (struct sharedkey_header){line, colon + 2};
        if (str_equal_nocase(line, "Authorization"))
            authorization = colon + 2;
    }
    if (sharedkey_verify(&r, authorization, KEY, NULL, clock_wall_ms(), &e) < 0)
        fail_msg("%s", e.msg);
}

static void a_request_is_signed_as_it_is_sent(void **state)
{
    static const char *const headers[] = {"x-ms-meta-a_b: 1", "", "Content-Type: text/plain",
                                          "x-ms-meta-ab: 2", NULL};
    auto_server s = {.answers = {OK}};
    autoptr(storage_account) account = NULL;
    autoptr(wire) wire = NULL;
    auto_answer answer = {0};
    struct wire_request request = {
        .method = "PUT",
        .container = "con",
        .path = "a b/ü?.txt",
        .query = "comp=block&blockid=QQ%3D%3D",
        .headers = headers,
        .body = "12345",
        .body_len = 5,
    };

    (void)state;
    server_start(&s);
    account = account_of(&s, STORAGE_AUTH_KEY);
    wire = wire_to(account, 0);
    assert_int_equal(wire_call(wire, &request, &answer, NULL), 0);
    server_stop(&s);
    assert_string_equal(str_text(&answer.body), "hello");
    assert_true(str_starts(str_text(&s.requests[0]),
                           "PUT /lab/con/a%20b/%C3%BC%3F.txt?comp=block&blockid=QQ%3D%3D "));
    expect_signed(s.requests[0].data, "/lab/con/a%20b/%C3%BC%3F.txt",
                  "comp=block&blockid=QQ%3D%3D");
}

static void a_sas_goes_into_the_url(void **state)
{
    auto_server s = {.answers = {OK}};
    autoptr(storage_account) account = NULL;
    autoptr(wire) wire = NULL;
    struct wire_request request = {.method = "GET", .container = "con", .query = "comp=list"};

    (void)state;
    server_start(&s);
    account = account_of(&s, STORAGE_AUTH_SAS);
    wire = wire_to(account, 0);
    assert_int_equal(wire_call(wire, &request, NULL, NULL), 0);
    server_stop(&s);
    assert_true(
        str_starts(str_text(&s.requests[0]), "GET /lab/con?comp=list&sv=1&sig=x%2B HTTP"));
    assert_null(strcasestr(str_text(&s.requests[0]), "Authorization"));
}

static void errors_have_the_servers_words(void **state)
{
    auto_server s = {.answers = {"HTTP/1.1 404 x\r\nx-ms-error-code: BlobNotFound\r\n"
                                 "Connection: close\r\nContent-Length: 78\r\n\r\n"
                                 "<Error><Code>BlobNotFound</Code><Message>There is none.\n"
                                 "RequestId</Message></Error>"}};
    autoptr(storage_account) account = NULL;
    autoptr(wire) wire = NULL;
    struct wire_request request = {.method = "GET", .container = "con", .path = "b"};
    struct err e;

    (void)state;
    server_start(&s);
    account = account_of(&s, STORAGE_AUTH_KEY);
    wire = wire_to(account, 5000);
    assert_int_equal(wire_call(wire, &request, NULL, &e), -1);
    server_stop(&s);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(e.msg, "(BlobNotFound) There is none.");
    assert_true(wire_is_missing(wire));
    assert_string_equal(wire_code(wire), "BlobNotFound");
    assert_int_equal(s.seen, 1);
}

static void what_may_work_later_is_tried_again(void **state)
{
    static const char busy[] =
        "HTTP/1.1 503 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    static const char cut[] =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhel";
    auto_server s = {.answers = {busy, "", cut, OK}};
    autoptr(storage_account) account = NULL;
    autoptr(wire) wire = NULL;
    char buf[5];
    struct wire_request request = {
        .method = "GET", .container = "con", .path = "b", .into = buf, .into_len = 5};
    struct err e;

    (void)state;
    server_start(&s);
    account = account_of(&s, STORAGE_AUTH_KEY);
    wire = wire_to(account, 20000);
    if (wire_call(wire, &request, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    server_stop(&s);
    assert_memory_equal(buf, "hello", 5);
    assert_int_equal(s.seen, 4);
}

static void an_answer_of_another_length_is_no_answer(void **state)
{
    auto_server s = {.answers = {OK, OK}};
    autoptr(storage_account) account = NULL;
    autoptr(wire) wire = NULL;
    char buf[6];
    struct wire_request longer = {
        .method = "GET", .container = "con", .path = "b", .into = buf, .into_len = 6};
    struct wire_request shorter = {
        .method = "GET", .container = "con", .path = "b", .into = buf, .into_len = 4};

    (void)state;
    server_start(&s);
    account = account_of(&s, STORAGE_AUTH_KEY);
    wire = wire_to(account, 0);
    assert_int_equal(wire_call(wire, &longer, NULL, NULL), -1);
    assert_int_equal(wire_call(wire, &shorter, NULL, NULL), -1);
    server_stop(&s);
}

static void stopping_ends_the_waiting(void **state)
{
    atomic_bool stop = true;
    auto_server s = {.answers = {OK}};
    autoptr(storage_account) account = NULL;
    autoptr(wire) wire = NULL;
    struct wire_config config = {.patience_ms = 60000, .stop = &stop};
    struct wire_request request = {.method = "GET", .container = "con"};

    (void)state;
    server_start(&s);
    config.account = account = account_of(&s, STORAGE_AUTH_KEY);
    assert_int_equal(wire_new(&config, &wire, NULL), 0);
    assert_int_equal(wire_call(wire, &request, NULL, NULL), -1);
    server_stop(&s);
    assert_int_equal(s.seen, 0);
}

static void urls_for_others_carry_a_signature_of_their_own(void **state)
{
    auto_server s = {.port = 1};
    autoptr(storage_account) account = account_of(&s, STORAGE_AUTH_KEY);
    autoptr(wire) wire = wire_to(account, 0);
    auto_free char *plain = wire_url(wire, "con", "a b"), *url = NULL;

    (void)state;
    assert_string_equal(plain, "http://127.0.0.1:1/lab/con/a%20b");
    assert_int_equal(wire_readable_url(wire, "con", "a b", &url, NULL), 0);
    assert_true(str_starts(url, "http://127.0.0.1:1/lab/con/a%20b?sv="));
    assert_non_null(strstr(url, "&sr=c&sp=r&se="));
    assert_non_null(strstr(url, "&sig="));
    assert_null(strstr(url, KEY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_signed_as_it_is_sent),
        cmocka_unit_test(a_sas_goes_into_the_url),
        cmocka_unit_test(errors_have_the_servers_words),
        cmocka_unit_test(what_may_work_later_is_tried_again),
        cmocka_unit_test(an_answer_of_another_length_is_no_answer),
        cmocka_unit_test(stopping_ends_the_waiting),
        cmocka_unit_test(urls_for_others_carry_a_signature_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
