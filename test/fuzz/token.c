/* token.c - fuzz target: a bearer token that claims to be signed by this yard.
 *
 * What must hold beyond not crashing: what is taken was made with the key: made anew from what
 * it says, it has the same signature.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/vault.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const struct vault vault = {"a key that everybody may know.."};
    auto_free char *token = xstrndup((const char *)bytes, len);
    auto_str client = {0}, again = {0}, mac = {0}, mac_again = {0};
    int64_t expires_ms = 42;
    struct err e = {0};

    if (vault_read_token(&vault, token, &client, &expires_ms, &e) < 0) {
        require(e.code == ERR_UNAUTHORIZED && client.len == 0 && expires_ms == 42);
        return 0;
    }
    vault_issue_token(&vault, str_text(&client), expires_ms, &again);
    require(text_base64_decode(&mac, strchr(token + 4, '.') + 1, NULL) == 0);
    require(text_base64_decode(&mac_again, strchr(again.data + 4, '.') + 1, NULL) == 0);
    require(mac.len == mac_again.len && memcmp(mac.data, mac_again.data, mac.len) == 0);
    return 0;
}
