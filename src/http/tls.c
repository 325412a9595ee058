/* tls.c - making certificates, and server contexts from them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/http-internal.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct http_tls {
    SSL_CTX *context;
};

enum {
    DAY_S = 24 * 60 * 60,
    CA_DAYS = 3652,
    LEAF_DAYS = 397, /* what browsers accept at most is 398 */
    RENEW_DAYS = 30,
    MOST_PEM = 64 * 1024,
};

/* Cleanup helpers for OpenSSL's types. */
static void key_done(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static void cert_done(X509 **cert)
{
    X509_free(*cert);
}

static void bio_done(BIO **bio)
{
    BIO_free(*bio);
}

#define auto_key  __attribute__((cleanup(key_done))) EVP_PKEY *
#define auto_cert __attribute__((cleanup(cert_done))) X509 *
#define auto_bio  __attribute__((cleanup(bio_done))) BIO *

/* The newest entry of OpenSSL's error queue, which is emptied. */
static int err_ssl(struct err *e, const char *what)
{
    char text[160] = "unknown reason";
    unsigned long code = ERR_peek_last_error();

    if (code)
        ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return err_set(e, ERR_INTERNAL, "could not %s: %s", what, text);
}

/* --- files --- */

static char *path_in(const char *folder, const char *name)
{
    return xasprintf("%s/%s", folder, name);
}

static EVP_PKEY *read_key(const char *path)
{
    auto_str text = {0};
    auto_bio bio = NULL;

    if (fs_read(path, MOST_PEM, &text, NULL) < 0)
        return NULL;
    bio = BIO_new_mem_buf(str_text(&text), (int)text.len);
    return bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
}

static X509 *read_cert(const char *path)
{
    auto_str text = {0};
    auto_bio bio = NULL;

    if (fs_read(path, MOST_PEM, &text, NULL) < 0)
        return NULL;
    bio = BIO_new_mem_buf(str_text(&text), (int)text.len);
    return bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
}

static int write_bio(const char *path, BIO *bio, mode_t mode, struct err *e)
{
    char *bytes;
    long len = BIO_get_mem_data(bio, &bytes);

    return fs_write_durably(path, bytes, (size_t)len, mode, e);
}

static int write_key(const char *path, EVP_PKEY *key, struct err *e)
{
    auto_bio bio = BIO_new(BIO_s_mem());

    if (!bio || !PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL))
        return err_ssl(e, "write a key");
    return write_bio(path, bio, 0600, e);
}

/* One certificate, and the one that signed it if there is one to tell. */
static int write_certs(const char *path, X509 *cert, X509 *issuer, struct err *e)
{
    auto_bio bio = BIO_new(BIO_s_mem());

    if (!bio || !PEM_write_bio_X509(bio, cert) || (issuer && !PEM_write_bio_X509(bio, issuer)))
        return err_ssl(e, "write a certificate");
    return write_bio(path, bio, 0644, e);
}

/* --- making --- */

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    bool is_added;

    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    is_added = extension && X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    return is_added;
}

static bool set_serial(X509 *cert)
{
    unsigned char bytes[16];
    BIGNUM *number;
    bool is_set;

    crypt_random(bytes, sizeof(bytes));
    bytes[0] &= 0x7f; /* positive */
    number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    is_set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return is_set;
}

/* Everything but the extensions and the signature.  An hour's slack for clocks that differ. */
static X509 *begin_cert(EVP_PKEY *key, const char *name, int days)
{
    X509 *cert = X509_new();
    X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;

    if (subject && X509_set_version(cert, 2) && set_serial(cert) &&
        X509_gmtime_adj(X509_getm_notBefore(cert), -3600) &&
        X509_gmtime_adj(X509_getm_notAfter(cert), (long)days * DAY_S) &&
        X509_set_pubkey(cert, key) &&
        X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8,
                                   (const unsigned char *)"Trainyard", -1, -1, 0) &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name,
                                   -1, -1, 0))
        return cert;
    X509_free(cert);
    return NULL;
}

static int make_ca(const char *cert_path, const char *key_path, struct err *e)
{
    auto_key key = EVP_EC_gen("P-256");
    auto_cert cert = key ? begin_cert(key, "Trainyard local authority", CA_DAYS) : NULL;

    if (!cert || !X509_set_issuer_name(cert, X509_get_subject_name(cert)) ||
        !add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(cert, cert, NID_subject_key_identifier, "hash") ||
        !X509_sign(cert, key, EVP_sha256()))
        return err_ssl(e, "make a certificate authority");
    if (write_key(key_path, key, e) < 0)
        return -1;
    return write_certs(cert_path, cert, NULL, e);
}

static int make_leaf(
    const char *folder, X509 *ca, EVP_PKEY *ca_key, const char *alternatives, struct err *e)
{
    auto_free char *cert_path = path_in(folder, "server.pem");
    auto_free char *key_path = path_in(folder, "server.key");
    auto_key key = EVP_EC_gen("P-256");
    auto_cert cert = key ? begin_cert(key, "localhost", LEAF_DAYS) : NULL;

    if (!cert || !X509_set_issuer_name(cert, X509_get_subject_name(ca)) ||
        !add_extension(cert, ca, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(cert, ca, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(cert, ca, NID_ext_key_usage, "serverAuth") ||
        !add_extension(cert, ca, NID_subject_key_identifier, "hash") ||
        !add_extension(cert, ca, NID_authority_key_identifier, "keyid:always") ||
        !add_extension(cert, ca, NID_subject_alt_name, alternatives) ||
        !X509_sign(cert, ca_key, EVP_sha256()))
        return err_ssl(e, "make a server certificate");
    if (write_key(key_path, key, e) < 0)
        return -1;
    return write_certs(cert_path, cert, ca, e);
}

/* --- what is wanted, and what is there --- */

static bool is_address(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* The text goes into OpenSSL's little language: nothing but names may. */
static bool is_name(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789-._*") == strlen(name);
}

static bool cert_has(X509 *cert, const char *name)
{
    /* A wildcard is there when what it covers is. */
    auto_free char *covered = *name == '*' ? xasprintf("x%s", name + 1) : xstrdup(name);

    return is_address(name) ? X509_check_ip_asc(cert, name, 0) == 1
                            : X509_check_host(cert, covered, 0, 0, NULL) == 1;
}

/* Add a name to the list for the certificate; says whether the present one has it. */
static bool want(struct str *alternatives, X509 *present, const char *name)
{
    if (!is_address(name) && !is_name(name))
        return true;
    str_addf(alternatives, "%s%s:%s", alternatives->len ? "," : "",
             is_address(name) ? "IP" : "DNS", name);
    return present && cert_has(present, name);
}

static bool is_fresh(X509 *cert, int days)
{
    time_t then = time(NULL) + (time_t)days * DAY_S;

    return X509_cmp_time(X509_get0_notAfter(cert), &then) > 0;
}

static bool is_pair(X509 *cert, EVP_PKEY *key)
{
    bool is = cert && key && X509_check_private_key(cert, key) == 1;

    ERR_clear_error();
    return is;
}

/* Is the leaf there, ours, not about to end, and for all names?  Lists the names on the way. */
static bool is_leaf_good(const char *folder,
                         X509 *ca,
                         const char *const *names,
                         size_t count,
                         struct str *alternatives)
{
    static const char *const always[] = {"localhost", "127.0.0.1", "::1"};
    auto_free char *cert_path = path_in(folder, "server.pem");
    auto_free char *key_path = path_in(folder, "server.key");
    auto_cert cert = read_cert(cert_path);
    auto_key key = read_key(key_path);
    auto_key ca_public = X509_get_pubkey(ca);
    char host[256] = "";
    bool is_good =
        is_pair(cert, key) && is_fresh(cert, RENEW_DAYS) && X509_verify(cert, ca_public) == 1;

    for (size_t i = 0; i < ARRAY_SIZE(always); i++)
        is_good &= want(alternatives, cert, always[i]);
    if (gethostname(host, sizeof(host) - 1) == 0 && *host)
        is_good &= want(alternatives, cert, host);
    for (size_t i = 0; i < count; i++)
        is_good &= want(alternatives, cert, names[i]);
    ERR_clear_error();
    return is_good;
}

int http_tls_ensure(const char *folder, const char *const *names, size_t count, struct err *e)
{
    auto_free char *cert_path = path_in(folder, "ca.pem");
    auto_free char *key_path = path_in(folder, "ca.key");
    auto_str alternatives = {0};
    auto_cert ca = NULL;
    auto_key ca_key = NULL;

    if (fs_make_folders(folder, 0700, e) < 0)
        return -1;
    /* The key is written first: one without a certificate is a first start that was cut off. */
    if (access(cert_path, F_OK) < 0 && make_ca(cert_path, key_path, e) < 0)
        return err_wrap(e, "%s", folder);
    ca = read_cert(cert_path);
    ca_key = read_key(key_path);
    if (!is_pair(ca, ca_key))
        return err_set(e, ERR_INTERNAL,
                       "cannot use the authority in \"%s\": ca.pem and ca.key do not belong "
                       "together; remove both to have a new one made",
                       folder);
    if (is_leaf_good(folder, ca, names, count, &alternatives))
        return 0;
    return make_leaf(folder, ca, ca_key, str_text(&alternatives), e);
}

/* --- server contexts --- */

/* Only what we speak; a client that offers others alone gets no protocol, and then http/1.1 all
 * the same. */
static int choose_protocol(SSL *ssl,
                           const unsigned char **ret,
                           unsigned char *ret_len,
                           const unsigned char *offered,
                           unsigned offered_len,
                           void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&chosen, ret_len, ours, sizeof(ours) - 1, offered, offered_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int
configure(SSL_CTX *context, const char *cert_file, const char *key_file, struct err *e)
{
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context,
                                   SSL_SESS_CACHE_OFF); /* tickets need no memory here */
    SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    if (SSL_CTX_use_certificate_chain_file(context, cert_file) != 1) {
        err_ssl(e, "read the certificate");
        return err_wrap(e, "%s", cert_file);
    }
    if (SSL_CTX_use_PrivateKey_file(context, key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        err_ssl(e, "use the key");
        return err_wrap(e, "%s", key_file);
    }
    return 0;
}

int http_tls_open(const char *cert_file,
                  const char *key_file,
                  struct http_tls **ret_tls,
                  struct err *e)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    struct http_tls *tls;

    if (!context)
        return err_ssl(e, "make a TLS context");
    if (configure(context, cert_file, key_file, e) < 0) {
        SSL_CTX_free(context);
        return -1;
    }
    tls = xmalloc(sizeof(*tls));
    tls->context = context;
    *ret_tls = tls;
    return 0;
}

void http_tls_free(struct http_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->context);
    free(tls);
}

struct ssl_ctx_st *http_tls_context(struct http_tls *tls)
{
    return tls->context;
}
