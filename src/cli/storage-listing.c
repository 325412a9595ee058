/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-listing.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/storage-wire.h"

enum {
    MOST_PAGES = 1000 * 1000, /* a server that never ends its list is not followed for ever */
};

int listing_walk(struct wire *wire,
                 const char *container,
                 const char *path,
                 const char *query,
                 listing_see *see,
                 void *context,
                 struct err *e)
{
    auto_free char *marker = NULL;

    for (int pages = 0; pages < MOST_PAGES; pages++) {
        auto_answer answer = {0};
        auto_str whole = {0};
        struct wire_request request = {.method = "GET", .container = container, .path = path};
        int rc;

        str_add(&whole, query);
        if (marker) {
            str_add(&whole, "&marker=");
            text_percent(&whole, marker);
        }
        request.query = str_text(&whole);
        if (wire_call(wire, &request, &answer, e) < 0)
            return -1;
        free(take_ptr(&marker));
        rc = listing_parse(str_text(&answer.body), answer.body.len, see, context, &marker, e);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        if (!marker)
            return 0;
    }
    return err_set(e, ERR_INTERNAL, "the list has more than %d pages", MOST_PAGES);
}
