/* sharedkey.h - requests signed with a storage account's key: SharedKey and SharedKeyLite.
 *
 * A client joins parts of its request into one text and sends that text's HMAC.  The parts and
 * their order are facts of the storage protocol.  Only the order of the x-ms headers is not the
 * same everywhere: Azure sorts as .NET does, and clients imitate it more or less, so each known
 * order is tried.
 *
 * Pure: the clock is passed in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SHAREDKEY_H
#define CORE_SHAREDKEY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct str;

struct sharedkey_header {
    const char *name, *value; /* the value without blanks around it */
};

struct sharedkey_request {
    const char *verb;
    const struct sharedkey_header *headers;
    size_t header_count;
    const char *raw_path;  /* as sent: still percent-encoded, with the account in path style */
    const char *raw_query; /* without '?' */
    const char *account;   /* without "-secondary" */
};

/* How the x-ms headers are sorted: by byte (Go), by .NET's culture rules (Azure, JavaScript),
 * or by the alphabet of the Python client.  They differ in names with '-' or '_' only. */
enum sharedkey_order {
    SHAREDKEY_BYTES,
    SHAREDKEY_CULTURE,
    SHAREDKEY_ALPHABET,
    SHAREDKEY_ORDERS,
};

enum {
    SHAREDKEY_SKEW_MS = 15 * 60 * 1000, /* what Azure lets a client's clock be off */
};

/* Append the text that is signed. */
void sharedkey_string(const struct sharedkey_request *request,
                      bool is_lite,
                      enum sharedkey_order order,
                      struct str *out);

/* Append the Authorization value of a request of ours, "SharedKey account:signature".  The key
 * is raw bytes.  Among the headers must be x-ms-date, and Content-Length when there is a body.
 */
void sharedkey_sign(const struct sharedkey_request *request,
                    const void *key,
                    size_t key_len,
                    struct str *out);

/* Is it an Authorization value of one of the two schemes? */
bool sharedkey_is_used(const char *authorization);

/* Check signature and date against both keys (base64; NULL or "" = there is none).  Fails with
 * ERR_FORBIDDEN, "AuthenticationFailed", or ERR_INVALID, "InvalidAuthenticationInfo" when the
 * header makes no sense. */
int sharedkey_verify(const struct sharedkey_request *request,
                     const char *authorization,
                     const char *key1,
                     const char *key2,
                     int64_t now_ms,
                     struct err *e);

#endif
