/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-user.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <pwd.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    KEY_BITS = 2048,
    MOST_KEY_BYTES = 16 * 1024,
};

/* --- reading --- */

/* A key's own bytes begin with its kind, length first: "ssh-rsa AAAA..." says it twice. */
static bool is_key(const char *text)
{
    size_t kind = strcspn(text, " ");
    const char *body = text + kind + strspn(text + kind, " ");
    auto_free char *coded = xstrndup(body, strcspn(body, " \t"));
    auto_str bytes = {0};

    if (!kind || !*coded || text_base64_decode(&bytes, coded, NULL) < 0 || bytes.len < 4 + kind)
        return false;
    return bytes.data[0] == 0 && bytes.data[1] == 0 && bytes.data[2] == 0 &&
           (size_t)bytes.data[3] == kind && memcmp(bytes.data + 4, text, kind) == 0;
}

static void trim_end(struct str *text)
{
    while (text->len && strchr(" \t\r\n", text->data[text->len - 1]))
        str_truncate(text, text->len - 1);
}

static char *expand_home(const char *path)
{
    const char *home = getenv("HOME");

    if (!str_starts(path, "~/") || !home)
        return xstrdup(path);
    return xasprintf("%s%s", home, path + 1);
}

int batchai_read_key(const char *text, struct str *ret_key, struct err *e)
{
    auto_free char *path = expand_home(text);
    auto_str key = {0};

    if (access(path, F_OK) == 0) {
        if (fs_read(path, MOST_KEY_BYTES, &key, e) < 0)
            return -1;
    } else {
        str_add(&key, text);
    }
    trim_end(&key);
    if (strchr(str_text(&key), '\n') || !is_key(str_text(&key)))
        return args_fail(e, "--ssh-key",
                         "--ssh-key: \"%.60s\" is neither a public SSH key nor a file that "
                         "holds one; make one with --generate-ssh-keys",
                         text);
    str_add(ret_key, str_text(&key));
    return 0;
}

/* --- making --- */

static void add_number(struct str *out, uint32_t number)
{
    const unsigned char bytes[] = {(unsigned char)(number >> 24), (unsigned char)(number >> 16),
                                   (unsigned char)(number >> 8), (unsigned char)number};

    str_add_len(out, bytes, sizeof(bytes));
}

/* An mpint: a zero before a number whose first bit would be a sign. */
static void add_bignum(struct str *out, const BIGNUM *number)
{
    int len = BN_num_bytes(number);
    bool is_padded = BN_num_bits(number) % 8 == 0;
    unsigned char *bytes = xmalloc((size_t)len + 1);

    bytes[0] = 0;
    BN_bn2bin(number, bytes + 1);
    add_number(out, (uint32_t)len + is_padded);
    str_add_len(out, bytes + !is_padded, (size_t)len + is_padded);
    free(bytes);
}

static int format_public(EVP_PKEY *key, struct str *out, struct err *e)
{
    static const char kind[] = "ssh-rsa";
    BIGNUM *modulus = NULL, *exponent = NULL;
    auto_str blob = {0};
    int rc = -1;

    if (EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_N, &modulus) &&
        EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent)) {
        add_number(&blob, (uint32_t)strlen(kind));
        str_add(&blob, kind);
        add_bignum(&blob, exponent);
        add_bignum(&blob, modulus);
        str_addf(out, "%s ", kind);
        text_base64(out, blob.data, blob.len);
        str_add_char(out, '\n');
        rc = 0;
    }
    BN_free(modulus);
    BN_free(exponent);
    return rc < 0 ? err_set(e, ERR_INTERNAL, "could not read the key's numbers") : 0;
}

static int write_private(EVP_PKEY *key, const char *path, struct err *e)
{
    BIO *memory = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    long len = 0;
    int rc;

    if (memory && PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL))
        len = BIO_get_mem_data(memory, &bytes);
    rc = len > 0 ? fs_write_durably(path, bytes, (size_t)len, 0600, e)
                 : err_set(e, ERR_INTERNAL, "could not write the key");
    BIO_free(memory);
    return rc;
}

static EVP_PKEY *read_private(const char *path)
{
    FILE *file = fopen(path, "re");
    EVP_PKEY *key = file ? PEM_read_PrivateKey(file, NULL, NULL, NULL) : NULL;

    if (file)
        fclose(file);
    return key;
}

/* The private key that is there, or a new one. */
static int need_private(const char *path, EVP_PKEY **ret_key, struct err *e)
{
    if (access(path, F_OK) == 0) {
        *ret_key = read_private(path);
        if (!*ret_key)
            return err_set(e, ERR_CONFLICT,
                           "\"%s\" is there without its public half; make that with: "
                           "ssh-keygen -y -f %s > %s.pub",
                           path, path, path);
        return 0;
    }
    *ret_key = EVP_RSA_gen(KEY_BITS);
    return *ret_key ? write_private(*ret_key, path, e)
                    : err_set(e, ERR_INTERNAL, "could not make a key");
}

int batchai_make_keys(const char *folder, bool *ret_made, struct err *e)
{
    auto_free char *own = xasprintf("%s/id_rsa", folder);
    auto_free char *public = xasprintf("%s/id_rsa.pub", folder);
    auto_str text = {0};
    EVP_PKEY *key = NULL;
    int rc;

    *ret_made = access(public, F_OK) < 0;
    if (!*ret_made)
        return 0;
    if (fs_make_folders(folder, 0700, e) < 0)
        return -1;
    rc = need_private(own, &key, e);
    if (rc == 0)
        rc = format_public(key, &text, e);
    if (rc == 0)
        rc = fs_write_durably(public, str_text(&text), text.len, 0644, e);
    EVP_PKEY_free(key);
    return rc;
}

/* --- the account --- */

int batchai_key_folder(char **ret_folder, struct err *e)
{
    const char *home = getenv("HOME");

    if (!home || home[0] != '/')
        return err_set(e, ERR_INVALID, "there is no home folder for keys; set HOME");
    *ret_folder = xasprintf("%s/.ssh", home);
    return 0;
}

static int generate(struct call *call, struct err *e)
{
    auto_free char *folder = NULL;
    bool is_made;

    if (!args_flag(call->args, "generate-ssh-keys"))
        return 0;
    if (batchai_key_folder(&folder, e) < 0 || batchai_make_keys(folder, &is_made, e) < 0)
        return -1;
    if (is_made)
        call_say(call,
                 "SSH key files '%s/id_rsa' and '%s/id_rsa.pub' have been generated; keep "
                 "them safe.",
                 folder, folder);
    return 0;
}

/* The option, else what the file says. */
static const char *effective(struct call *call, const char *key, json_t *user, const char *name)
{
    const char *typed = args_get(call->args, key);

    return typed ? typed : json_string_value(json_object_get(user, name));
}

static const char *current_user(void)
{
    const struct passwd *row = getpwuid(getuid());

    return row ? row->pw_name : "yard";
}

/* The default key counts only when it is there: without it nobody can log in, which is no
 * reason to have no nodes. */
static int set_key(struct call *call, json_t *user, bool has_password, struct err *e)
{
    const char *given = effective(call, "ssh-key", user, "adminUserSshPublicKey");
    auto_free char *folder = NULL, *usual = NULL;
    auto_str key = {0};

    if (!given && !has_password) {
        if (batchai_key_folder(&folder, NULL) == 0)
            usual = xasprintf("%s/id_rsa.pub", folder);
        if (usual && access(usual, F_OK) == 0)
            given = usual;
        else
            call_say(call, "There is no SSH key: nobody can log in to the nodes. Take "
                           "--generate-ssh-keys for one.");
    }
    if (!given)
        return 0;
    if (batchai_read_key(given, &key, e) < 0)
        return -1;
    json_object_set_new(user, "adminUserSshPublicKey", json_string(str_text(&key)));
    return 0;
}

int batchai_set_user(struct call *call, json_t *parent, struct err *e)
{
    json_t *user = batchai_object(parent, "userAccountSettings");
    const char *name, *password;

    if (generate(call, e) < 0)
        return -1;
    name = effective(call, "user-name", user, "adminUserName");
    password = effective(call, "password", user, "adminUserPassword");
    json_object_set_new(user, "adminUserName", json_string(name ? name : current_user()));
    if (args_get(call->args, "password"))
        json_object_set_new(user, "adminUserPassword", json_string(password));
    return set_key(call, user, password != NULL, e);
}

void batchai_set_own_user(json_t *parent)
{
    json_t *user = batchai_object(parent, "userAccountSettings");
    auto_str key = {0};

    json_object_set_new(user, "adminUserName", json_string(current_user()));
    if (batchai_read_key("~/.ssh/id_rsa.pub", &key, NULL) == 0)
        json_object_set_new(user, "adminUserSshPublicKey", json_string(str_text(&key)));
}
