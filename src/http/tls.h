/* tls.h - certificates of the yard's own authority, and server contexts made from them.
 *
 * A folder holds ca.pem, ca.key, server.pem (leaf and CA) and server.key; keys are mode 0600.
 * What is missing is made: an EC P-256 CA for ten years and a leaf for localhost, the loopback
 * addresses, this host's name and the extra names.  A leaf that ends within 30 days, or lacks a
 * wanted name, is made anew; the CA stays, so that clients who trust it go on trusting.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include "base/err.h"

#include <stddef.h>

struct http_tls; /* opaque: a server-side SSL_CTX; TLS 1.2 and later */

int http_tls_ensure(const char *folder, const char *const *names, size_t count, struct err *e);
int http_tls_open(const char *cert_file,
                  const char *key_file,
                  struct http_tls **ret_tls,
                  struct err *e);
void http_tls_free(struct http_tls *tls);

#endif
