/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-headers.h"

#include "base/mem.h"
#include "cli/args.h"
#include "cli/call.h"

#include <string.h>

void headers_done(struct headers *headers)
{
    for (size_t i = 0; i < headers->count; i++)
        free((char *)headers->rows[i]);
    headers->count = 0;
}

void headers_add(struct headers *headers, const char *format, ...)
{
    va_list args;

    if (headers->count == HEADERS_MOST)
        abort(); /* our own requests, and none has so many */
    va_start(args, format);
    headers->rows[headers->count++] = xvasprintf(format, args);
    va_end(args);
}

void headers_add_all(struct headers *headers, const char *const *rows)
{
    for (size_t i = 0; rows && rows[i]; i++)
        headers_add(headers, "%s", rows[i]);
}

int headers_add_metadata(struct headers *headers, struct call *call, struct err *e)
{
    size_t count;
    const char *const *texts = args_list(call->args, "metadata", &count);

    if (count > HEADERS_MOST_METADATA)
        return args_fail(e, "--metadata", "--metadata: more than %d pairs are too many",
                         HEADERS_MOST_METADATA);
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(texts[i], '=');

        if (!equals || equals == texts[i] || strpbrk(texts[i], "\r\n"))
            return args_fail(e, "--metadata", "--metadata: \"%.64s\" is not key=value",
                             texts[i]);
        headers_add(headers, "x-ms-meta-%.*s: %s", (int)(equals - texts[i]), texts[i],
                    equals + 1);
    }
    return 0;
}
