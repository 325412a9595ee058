/* SPDX-License-Identifier: Apache-2.0 */
#include "core/listing.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Entries as "kind name size;". */
static int see(void *context, const struct listing_entry *entry, struct err *e)
{
    struct str *out = context;

    if (str_equal(listing_name(entry), "stop"))
        return 1;
    if (str_equal(listing_name(entry), "fail"))
        return err_set(e, ERR_INVALID, "as asked");
    str_addf(out, "%s %s %lld;", listing_kind(entry), listing_name(entry),
             (long long)listing_size(entry));
    return 0;
}

static int parse(const char *text, struct str *out, char **ret_marker, struct err *e)
{
    return listing_parse(text, strlen(text), see, out, ret_marker, e);
}

static void the_entries_of_every_kind_are_seen(void **state)
{
    static const struct {
        const char *xml, *entries, *marker;
    } rows[] = {
        {"<EnumerationResults ContainerName=\"c\"><Prefix>p</Prefix><Blobs><Blob><Name>a "
         "b</Name>"
         "<Properties><Content-Length>12</Content-Length></Properties></"
         "Blob><BlobPrefix><Name>d/"
         "</Name></BlobPrefix></Blobs><NextMarker>m&amp;1</NextMarker></EnumerationResults>",
         "Blob a b 12;BlobPrefix d/ 0;", "m&1"},
        {"<E><Entries><File><Name>x&lt;y</Name><Properties><Content-Length>1</Content-Length>"
         "</Properties></File><Directory><Name>n</Name></Directory></Entries><NextMarker/></E>",
         "File x<y 1;Directory n 0;", NULL},
        {"<E><Blobs><Blob><Name Encoded=\"true\">a%01b</Name></Blob></Blobs></E>",
         "Blob a\001b 0;", NULL},
        {"<E><Containers><Container><Name>c</Name></Container></Containers></E>",
         "Container c 0;", NULL},
        {"<E><Blobs><Blob><Name>a</Name></Blob><Blob><Name>stop</Name></Blob><Blob><Name>b</"
         "Name>"
         "</Blob></Blobs></E>",
         "Blob a 0;", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_str out = {0};
        auto_free char *marker = NULL;

        assert_true(parse(rows[i].xml, &out, &marker, NULL) >= 0);
        assert_string_equal(str_text(&out), rows[i].entries);
        if (rows[i].marker)
            assert_string_equal(marker, rows[i].marker);
        else
            assert_null(marker);
    }
}

static int see_times(void *context, const struct listing_entry *entry, struct err *e)
{
    (void)e;
    *(int64_t *)context = listing_modified_ms(entry);
    assert_string_equal(listing_get(entry, "Properties/Etag"), "0x1");
    assert_null(listing_get(entry, "Etag"));
    return 0;
}

static void facts_are_found_by_their_path(void **state)
{
    static const char xml[] =
        "<E><Blobs><Blob><Name>a</Name><Properties><Etag>0x1</Etag><Last-Modified>Wed, 06 Jun "
        "2018 18:39:26 GMT</Last-Modified></Properties></Blob></Blobs></E>";
    auto_free char *marker = NULL;
    int64_t ms = 0;

    (void)state;
    assert_int_equal(listing_parse(xml, strlen(xml), see_times, &ms, &marker, NULL), 0);
    assert_int_equal(ms, 1528310366000);
}

static void what_is_no_list_is_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "text",
        "<E><Blobs><Blob>",
        "<E></F>",
        "<!DOCTYPE E [<!ENTITY x \"y\">]><E>&x;</E>",
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></a></"
        "a>"
        "</a></a></a></a></a></a></a>",
        "<E><Blobs><Blob><Name>fail</Name></Blob></Blobs></E>",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_str out = {0};
        auto_free char *marker = NULL;
        struct err e = {0};

        assert_int_equal(parse(rows[i], &out, &marker, &e), -1);
        assert_true(e.msg[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_entries_of_every_kind_are_seen),
        cmocka_unit_test(facts_are_found_by_their_path),
        cmocka_unit_test(what_is_no_list_is_refused),
    };

    return cmocka_run_group_tests_name("core/listing", tests, NULL, NULL);
}
