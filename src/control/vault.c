/* SPDX-License-Identifier: Apache-2.0 */
#include "control/vault.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

static int make_key(const char *path, struct db *db, struct vault *ret_vault, struct err *e)
{
    auto_str text = {0};
    bool has_secrets;

    if (store_has_secrets(db, &has_secrets, e) < 0)
        return -1;
    if (has_secrets)
        return err_set(e, ERR_INVALID,
                       "the key file \"%s\" is missing; put it back from a backup: without it "
                       "the storage account keys cannot be read",
                       path);
    crypt_random(ret_vault->key, sizeof(ret_vault->key));
    text_base64(&text, ret_vault->key, sizeof(ret_vault->key));
    str_add_char(&text, '\n');
    return fs_write_durably(path, str_text(&text), text.len, 0600, e);
}

int vault_open(const char *path, struct db *db, struct vault *ret_vault, struct err *e)
{
    auto_str text = {0}, raw = {0};
    struct err why = {0};

    if (fs_read(path, 1024, &text, &why) < 0) {
        if (why.code != ERR_NOT_FOUND) {
            if (e)
                *e = why;
            return -1;
        }
        return make_key(path, db, ret_vault, e);
    }
    while (text.len && strchr("\r\n ", text.data[text.len - 1]))
        str_truncate(&text, text.len - 1);
    if (text_base64_decode(&raw, str_text(&text), NULL) < 0 ||
        raw.len != sizeof(ret_vault->key))
        return err_set(e, ERR_INVALID,
                       "the key file \"%s\" is damaged; restore it from a backup: without it "
                       "the storage account keys cannot be read",
                       path);
    memcpy(ret_vault->key, raw.data, sizeof(ret_vault->key));
    return 0;
}

static char *place(int64_t resource_id, const char *name)
{
    return xasprintf("%" PRId64 "/%s", resource_id, name);
}

int vault_put(const struct vault *vault,
              struct db *db,
              int64_t resource_id,
              const char *name,
              const char *plain,
              int64_t now_ms,
              struct err *e)
{
    auto_free char *context = place(resource_id, name);
    auto_str sealed = {0};

    crypt_seal(&sealed, vault->key, context, plain);
    return store_put_secret(db, resource_id, name, str_text(&sealed), now_ms, e);
}

int vault_get(const struct vault *vault,
              struct db *db,
              int64_t resource_id,
              const char *name,
              struct str *out,
              int64_t *ret_created_ms,
              struct err *e)
{
    auto_free char *context = place(resource_id, name);
    auto_free char *sealed = NULL;

    if (store_get_secret(db, resource_id, name, &sealed, ret_created_ms, e) < 0)
        return -1;
    if (!sealed)
        return err_set(e, ERR_NOT_FOUND, "there is no secret \"%.64s\"", name);
    return crypt_unseal(out, vault->key, context, sealed, e);
}

/* A key of its own for tokens, so that the sealing key signs nothing. */
static void token_mac(const struct vault *vault,
                      const char *payload,
                      size_t len,
                      unsigned char digest[CRYPT_SHA256_BYTES])
{
    static const char label[] = "trainyard token v1";
    unsigned char key[CRYPT_SHA256_BYTES];

    crypt_hmac_sha256(vault->key, sizeof(vault->key), label, sizeof(label) - 1, key);
    crypt_hmac_sha256(key, sizeof(key), payload, len, digest);
}

void vault_issue_token(const struct vault *vault,
                       const char *client_id,
                       int64_t expires_ms,
                       struct str *out)
{
    auto_free char *payload = xasprintf("%s %" PRId64, client_id, expires_ms);
    unsigned char digest[CRYPT_SHA256_BYTES];

    token_mac(vault, payload, strlen(payload), digest);
    str_add(out, "yt1.");
    text_base64url(out, payload, strlen(payload));
    str_add_char(out, '.');
    text_base64url(out, digest, sizeof(digest));
}

int vault_read_token(const struct vault *vault,
                     const char *token,
                     struct str *ret_client_id,
                     int64_t *ret_expires_ms,
                     struct err *e)
{
    auto_str payload = {0}, mac = {0};
    auto_free char *middle = NULL;
    unsigned char digest[CRYPT_SHA256_BYTES];
    const char *dot, *space;

    if (!str_starts(token, "yt1.") || !(dot = strchr(token + 4, '.')))
        return err_set(e, ERR_UNAUTHORIZED, "the token is not known");
    middle = xstrndup(token + 4, (size_t)(dot - token - 4));
    if (text_base64_decode(&payload, middle, NULL) < 0 ||
        text_base64_decode(&mac, dot + 1, NULL) < 0 || mac.len != sizeof(digest))
        return err_set(e, ERR_UNAUTHORIZED, "the token is malformed");
    token_mac(vault, str_text(&payload), payload.len, digest);
    if (!crypt_equal(digest, mac.data, sizeof(digest)))
        return err_set(e, ERR_UNAUTHORIZED, "the token's signature is wrong");
    space = strchr(str_text(&payload), ' ');
    if (!space)
        return err_set(e, ERR_UNAUTHORIZED, "the token is malformed");
    str_add_len(ret_client_id, payload.data, (size_t)(space - payload.data));
    *ret_expires_ms = strtoll(space + 1, NULL, 10);
    return 0;
}
