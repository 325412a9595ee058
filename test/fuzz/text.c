/* text.c - fuzz target: the decoders of base64 and percent-encoding.
 *
 * The first byte says which.  What must hold beyond not crashing: a refusal adds nothing; what
 * was decoded, encoded and decoded again is the same.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_same(const struct str *a, const struct str *b)
{
    require(a->len == b->len && memcmp(str_text(a), str_text(b), a->len) == 0);
}

static void require_untouched(const struct str *out, const struct err *e)
{
    require(out->len == 1 && e->code == ERR_INVALID);
}

static void base64(const char *text)
{
    auto_str out = {0}, standard = {0}, url = {0}, again = {0};
    struct err e = {0};

    str_add_char(&out, '!');
    if (text_base64_decode(&out, text, &e) < 0) {
        require_untouched(&out, &e);
        return;
    }
    text_base64(&standard, out.data, out.len);
    text_base64url(&url, out.data, out.len);
    require(text_base64_decode(&again, str_text(&standard), NULL) == 0);
    require_same(&again, &out);
    str_truncate(&again, 0);
    require(text_base64_decode(&again, str_text(&url), NULL) == 0);
    require_same(&again, &out);
}

static void percent(const char *text, size_t len, bool plus)
{
    auto_str out = {0}, encoded = {0}, again = {0};
    struct err e = {0};

    str_add_char(&out, '!');
    if (text_percent_decode(&out, text, len, plus, &e) < 0) {
        require_untouched(&out, &e);
        return;
    }
    require(out.len <= len + 1 && strlen(out.data) == out.len); /* no NUL gets in */
    text_percent(&encoded, out.data);
    require(text_percent_decode(&again, encoded.data, encoded.len, plus, NULL) == 0);
    require_same(&again, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    auto_free char *text = NULL;

    if (len == 0)
        return 0;
    text = xstrndup((const char *)bytes + 1, len - 1);
    if (bytes[0] % 4 == 0)
        base64(text);
    else if (bytes[0] % 4 == 3)
        text_is_utf8((const char *)bytes + 1, len - 1);
    else
        percent((const char *)bytes + 1, len - 1, bytes[0] % 4 == 1);
    return 0;
}
