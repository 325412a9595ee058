/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-listing.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int write_entry(void *context, const struct listing_entry *entry, struct err *e)
{
    struct str *out = context;

    (void)e;
    str_addf(out, "%s %s %lld %lld;", listing_kind(entry), listing_name(entry),
             (long long)listing_size(entry), (long long)listing_modified_ms(entry));
    return str_equal(listing_name(entry), "stop");
}

static int read_text(const char *text, struct str *out, char **marker, struct err *e)
{
    return listing_parse(text, strlen(text), write_entry, out, marker, e);
}

static void blobs_and_prefixes_are_read(void **state)
{
    static const char text[] =
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
        "<EnumerationResults ServiceEndpoint=\"x\" ContainerName=\"c\"><Prefix>a</Prefix>"
        "<Blobs><BlobPrefix><Name>d/</Name></BlobPrefix>"
        "<Blob><Name>a&amp;b ü</Name><Properties><Last-Modified>Thu, 01 Jan 1970 00:00:02 "
        "GMT</Last-Modified><Content-Length>17</Content-Length><Content-MD5 /></Properties>"
        "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>"
        "<Blob><Name Encoded=\"true\">a%01b%25</Name><Properties/></Blob>"
        "</Blobs><NextMarker>m&amp;1</NextMarker></EnumerationResults>";
    auto_free char *marker = NULL;
    auto_str out = {0};
    struct err e;

    (void)state;
    if (read_text(text, &out, &marker, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(str_text(&out),
                        "BlobPrefix d/ 0 -1;Blob a&b ü 17 2000;Blob a\001b% 0 -1;");
    assert_string_equal(marker, "m&1");
}

static int see_fields(void *context, const struct listing_entry *entry, struct err *e)
{
    (void)context;
    (void)e;
    assert_string_equal(listing_get(entry, "Properties/Content-Length"), "5");
    assert_string_equal(listing_get(entry, "Metadata/b"), "2");
    assert_null(listing_get(entry, "Metadata/c"));
    assert_null(listing_get(entry, "b"));
    return 0;
}

static void fields_are_found_by_their_path(void **state)
{
    static const char text[] =
        "<EnumerationResults><Entries><File><Name>f</Name><Properties><Content-Length>5"
        "</Content-Length></Properties><Metadata><a>1</a><b>2</b></Metadata></File></Entries>"
        "<NextMarker/></EnumerationResults>";
    auto_free char *marker = NULL;

    (void)state;
    assert_int_equal(listing_parse(text, strlen(text), see_fields, NULL, &marker, NULL), 0);
    assert_null(marker);
}

static void blocks_have_sizes(void **state)
{
    static const char text[] = "<BlockList><UncommittedBlocks><Block><Name>QQ==</Name><Size>9"
                               "</Size></Block></UncommittedBlocks></BlockList>";
    auto_free char *marker = NULL;
    auto_str out = {0};

    (void)state;
    assert_int_equal(read_text(text, &out, &marker, NULL), 0);
    assert_string_equal(str_text(&out), "Block QQ== 9 -1;");
}

static void a_walk_can_be_ended(void **state)
{
    static const char text[] = "<L><Blob><Name>stop</Name></Blob><Blob><Name>b</Name></Blob>"
                               "<NextMarker>m</NextMarker></L>";
    auto_free char *marker = NULL;
    auto_str out = {0};

    (void)state;
    assert_int_equal(read_text(text, &out, &marker, NULL), 1);
    assert_string_equal(str_text(&out), "Blob stop 0 -1;");
    assert_null(marker);
}

static void nonsense_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "<a>",
        "<a></b>",
        "{\"json\": 1}",
        "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
        ("<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a>"
         "</a></a></a></a></a></a></a></a></a>"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        auto_free char *marker = NULL;
        auto_str out = {0};

        if (read_text(texts[i], &out, &marker, NULL) != -1)
            fail_msg("\"%s\" was taken", texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blobs_and_prefixes_are_read),
        cmocka_unit_test(fields_are_found_by_their_path),
        cmocka_unit_test(blocks_have_sizes),
        cmocka_unit_test(a_walk_can_be_ended),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
