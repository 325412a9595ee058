/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/pages.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "mount/remote.h"

#include <string.h>

enum {
    MOST_PAGES = 100 * 1000, /* a server that never ends its list is not followed for ever */
};

int pages_walk(struct remote *remote,
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
        struct remote_call call = {.method = "GET", .path = path};

        str_add(&whole, query);
        if (marker) {
            str_add(&whole, "&marker=");
            text_percent(&whole, marker);
        }
        call.query = str_text(&whole);
        if (remote_call(remote, &call, &answer, e) < 0)
            return -1;
        free(take_ptr(&marker));
        if (listing_parse(str_text(&answer.body), answer.body.len, see, context, &marker, e) <
            0)
            return -1;
        if (!marker)
            return 0;
    }
    return err_set(e, ERR_INTERNAL, "the list has more than %d pages", MOST_PAGES);
}

char *pages_etag(const struct listing_entry *entry)
{
    const char *text = listing_get(entry, "Properties/Etag");
    size_t len = text ? strlen(text) : 0;

    if (!len)
        return NULL;
    if (len >= 2 && text[0] == '"' && text[len - 1] == '"')
        return xstrndup(text + 1, len - 2);
    return xstrdup(text);
}
