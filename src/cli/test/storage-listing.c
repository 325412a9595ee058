/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-listing.h"

#include "scripted-server.h"

#define HEAD "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"

static int write_name(void *context, const struct listing_entry *entry, struct err *e)
{
    str_addf(context, "%s;", listing_name(entry));
    if (str_equal(listing_name(entry), "bad"))
        return err_set(e, ERR_INVALID, "as asked");
    return str_equal(listing_name(entry), "stop");
}

static int walk(struct server *s, struct str *out, struct err *e)
{
    autoptr(storage_account) account = NULL;
    autoptr(wire) wire = NULL;
    int rc;

    server_start(s);
    account = account_of(s, STORAGE_AUTH_KEY);
    wire = wire_to(account, 0);
    rc = listing_walk(wire, "con", NULL, "restype=container&comp=list", write_name, out, e);
    server_stop(s);
    return rc;
}

static void pages_are_followed_by_their_markers(void **state)
{
    auto_server s = {
        .answers = {HEAD "<L><Blob><Name>a</Name></Blob><NextMarker>x&amp;y</NextMarker></L>",
                    HEAD "<L><Blob><Name>b</Name></Blob><NextMarker>z</NextMarker></L>",
                    HEAD "<L><Blob><Name>c</Name></Blob><NextMarker/></L>"}};
    auto_str names = {0};
    struct err e;

    (void)state;
    if (walk(&s, &names, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(str_text(&names), "a;b;c;");
    assert_true(
        str_starts(str_text(&s.requests[0]), "GET /lab/con?restype=container&comp=list HTTP"));
    assert_non_null(strstr(str_text(&s.requests[1]), "&comp=list&marker=x%26y HTTP"));
    assert_non_null(strstr(str_text(&s.requests[2]), "&comp=list&marker=z HTTP"));
}

static void a_walk_ends_when_it_is_told_to(void **state)
{
    static const char page[] =
        HEAD "<L><Blob><Name>stop</Name></Blob><Blob><Name>b</Name></Blob><NextMarker>x"
             "</NextMarker></L>";
    static const char bad[] = HEAD "<L><Blob><Name>bad</Name></Blob></L>";
    auto_server well = {.answers = {page}}, badly = {.answers = {bad}};
    auto_str names = {0}, none = {0};
    struct err e;

    (void)state;
    assert_int_equal(walk(&well, &names, NULL), 0);
    assert_string_equal(str_text(&names), "stop;");
    assert_int_equal(walk(&badly, &none, &e), -1);
    assert_string_equal(e.msg, "as asked");
}

static void a_refusal_is_the_servers(void **state)
{
    auto_server s = {.answers = {"HTTP/1.1 404 x\r\nConnection: close\r\n"
                                 "x-ms-error-code: ContainerNotFound\r\n\r\n"}};
    auto_str names = {0};
    struct err e;

    (void)state;
    assert_int_equal(walk(&s, &names, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_true(str_starts(e.msg, "(ContainerNotFound)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_followed_by_their_markers),
        cmocka_unit_test(a_walk_ends_when_it_is_told_to),
        cmocka_unit_test(a_refusal_is_the_servers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
