/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-account.h"

#include "base/json.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/place.h"
#include "cli/rest.h"
#include "http/client.h"

#include <string.h>

#define ACCOUNTS     "/providers/Microsoft.Storage/storageAccounts"
#define CLOUD_SUFFIX "core.windows.net"

void storage_account_free(struct storage_account *account)
{
    if (!account)
        return;
    free(account->name);
    free(account->endpoints[STORAGE_BLOB]);
    free(account->endpoints[STORAGE_FILE]);
    free(account->secret);
    free(account->ca_file);
    free(account);
}

static void replace(char **field, const char *text)
{
    free(*field);
    *field = xstrdup(text);
}

static void
set_endpoint(struct storage_account *a, enum storage_service service, const char *url)
{
    if (!url || !*url)
        return;
    replace(&a->endpoints[service], url);
    for (size_t len = strlen(url); len && url[len - 1] == '/'; len--)
        a->endpoints[service][len - 1] = '\0';
}

static void set_secret(struct storage_account *a, enum storage_auth auth, const char *secret)
{
    a->auth = auth;
    replace(&a->secret, auth == STORAGE_AUTH_SAS && *secret == '?' ? secret + 1 : secret);
}

static void
set_default_endpoints(struct storage_account *a, const char *protocol, const char *suffix)
{
    for (int s = STORAGE_BLOB; s <= STORAGE_FILE; s++) {
        if (!a->endpoints[s])
            a->endpoints[s] = xasprintf("%s://%s.%s.%s", protocol, a->name,
                                        storage_service_name((enum storage_service)s), suffix);
    }
}

/* --- connection strings --- */

/* The value of "Name=value;": the caller frees; NULL when it is not there. */
static char *text_part(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = text; *p; p += strcspn(p, ";"), p += *p == ';') {
        if (str_starts_nocase(p, name) && p[len] == '=')
            return xstrndup(p + len + 1, strcspn(p + len + 1, ";"));
    }
    return NULL;
}

int storage_account_of_text(const char *text,
                            struct storage_account **ret_account,
                            struct err *e)
{
    autoptr(storage_account) a = xcalloc(1, sizeof(*a));
    auto_free char *key = text_part(text, "AccountKey"),
                   *blob = text_part(text, "BlobEndpoint");
    auto_free char *sas = text_part(text, "SharedAccessSignature");
    auto_free char *file = text_part(text, "FileEndpoint");
    auto_free char *protocol = text_part(text, "DefaultEndpointsProtocol");
    auto_free char *suffix = text_part(text, "EndpointSuffix");

    a->name = text_part(text, "AccountName");
    if (!a->name && (blob || file)) {
        auto_address address = {0};

        if (address_parse(blob ? blob : file, &address, e) < 0 || address.is_local)
            return err_wrap(e, "in the connection string");
        a->name = take_ptr(&address.account);
    }
    if (!a->name || (!key && !sas))
        return err_set(
            e, ERR_INVALID,
            "the connection string needs AccountName and AccountKey, or a "
            "SharedAccessSignature; see: yard storage account show-connection-string");
    set_endpoint(a, STORAGE_BLOB, blob);
    set_endpoint(a, STORAGE_FILE, file);
    set_default_endpoints(a, protocol ? protocol : "https", suffix ? suffix : CLOUD_SUFFIX);
    if (key)
        set_secret(a, STORAGE_AUTH_KEY, key);
    else
        set_secret(a, STORAGE_AUTH_SAS, sas);
    *ret_account = take_ptr(&a);
    return 0;
}

char *storage_account_text(const struct storage_account *a)
{
    static const char *const names[] = {"BlobEndpoint", "FileEndpoint"};
    const char *blob = a->endpoints[STORAGE_BLOB];
    auto_str text = {0};

    str_addf(&text, "DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s",
             blob && str_starts(blob, "https:") ? "https" : "http", a->name, a->secret);
    for (int s = STORAGE_BLOB; s <= STORAGE_FILE; s++) {
        const char *url = a->endpoints[s];

        if (url)
            str_addf(&text, ";%s=%s%s", names[s], url, str_ends(url, "/") ? "" : "/");
    }
    return str_take(&text);
}

/* --- the yard's own --- */

int storage_account_list(struct call *call, json_t **ret_accounts, struct err *e)
{
    auto_free char *path = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || arm_path(call, ACCOUNTS, ARM_STORAGE, &path, e) < 0)
        return -1;
    return rest_list(rest, path, ret_accounts, e);
}

static const char *name_in(const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "name"));

    return name ? name : "";
}

static const char *endpoint_in(const json_t *row, enum storage_service service)
{
    const json_t *properties = json_object_get(row, "properties");
    const json_t *endpoints = json_object_get(properties, "primaryEndpoints");
    const char *url =
        json_string_value(json_object_get(endpoints, storage_service_name(service)));

    return url ? url : "";
}

static json_t *find_row(json_t *rows, const char *name)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if (str_equal_nocase(name_in(row), name))
            return row;
    }
    return NULL;
}

static struct storage_account *account_of_row(const struct place *place, const json_t *row)
{
    struct storage_account *a = xcalloc(1, sizeof(*a));

    a->name = xstrdup(name_in(row));
    a->is_ours = true;
    a->ca_file = place->ca_file ? xstrdup(place->ca_file) : NULL;
    set_endpoint(a, STORAGE_BLOB, endpoint_in(row, STORAGE_BLOB));
    set_endpoint(a, STORAGE_FILE, endpoint_in(row, STORAGE_FILE));
    return a;
}

/* Plain http shows the token to the network. */
static bool may_get_token(const char *url)
{
    return !url || str_starts(url, "https://") || http_url_is_loopback(url);
}

static int use_token(const struct place *place, struct storage_account *a, struct err *e)
{
    if (!place->token)
        return err_set(e, ERR_UNAUTHORIZED, "there is no token; come in with: yard login URL");
    if (!may_get_token(a->endpoints[STORAGE_BLOB]) ||
        !may_get_token(a->endpoints[STORAGE_FILE]))
        return err_set(
            e, ERR_FORBIDDEN,
            "the account \"%s\" is reached over plain http, where the token would be "
            "seen; use a shared access signature",
            a->name);
    set_secret(a, STORAGE_AUTH_TOKEN, place->token);
    return 0;
}

/* Ask the yard for the account's key; who may not see keys comes with the token. */
static int
use_own_key(struct call *call, const json_t *row, struct storage_account *a, struct err *e)
{
    const char *id = json_string_value(json_object_get(row, "id"));
    auto_free char *path = xasprintf("%s/listKeys?api-version=%s", id ? id : "", ARM_STORAGE);
    auto_json json_t *answer = NULL;
    const char *key;
    struct rest *rest;
    struct place *place;

    if (call_place(call, &place, e) < 0 || call_rest(call, &rest, e) < 0)
        return -1;
    if (rest_call(rest, "POST", path, NULL, &answer, e) < 0) {
        if (e && e->code == ERR_FORBIDDEN)
            return use_token(place, a, e);
        return -1;
    }
    key = json_string_value(
        json_object_get(json_array_get(json_object_get(answer, "keys"), 0), "value"));
    if (!key)
        return err_set(e, ERR_INTERNAL, "the account \"%s\" has no key", a->name);
    set_secret(a, STORAGE_AUTH_KEY, key);
    return 0;
}

static int no_account(const char *name, struct err *e)
{
    return err_set(e, ERR_NOT_FOUND,
                   "(ResourceNotFound) there is no storage account \"%.64s\"; see them with: "
                   "yard storage account list",
                   name);
}

/* The account of that name, or the only one there is. */
static int
choose_row(struct call *call, json_t *rows, const char *name, json_t **ret_row, struct err *e)
{
    auto_str names = {0};
    json_t *row;
    size_t i;

    (void)call;
    if (name) {
        *ret_row = find_row(rows, name);
        return *ret_row ? 0 : no_account(name, e);
    }
    if (json_array_size(rows) == 1) {
        *ret_row = json_array_get(rows, 0);
        return 0;
    }
    json_array_foreach(rows, i, row) str_addf(&names, "%s%s", i ? ", " : "", name_in(row));
    if (!names.len)
        return err_set(
            e, ERR_NOT_FOUND,
            "there is no storage account; make one with: yard storage account create");
    return args_fail(e, "--account-name",
                     "which account? take --account-name with one of: %.300s",
                     str_text(&names));
}

/* --- for verbs with options --- */

static const char *environment(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

struct given {
    const char *name, *key, *sas, *text;
    bool wants_token;
};

static void read_options(const struct args *args, struct given *given)
{
    const char *mode = args_get(args, "auth-mode");
    const char *env_name = environment("AZURE_STORAGE_ACCOUNT");
    const char *typed = args_get(args, "account-name");
    bool is_same = !typed || !env_name || str_equal(typed, env_name);

    if (!mode)
        mode = environment("AZURE_STORAGE_AUTH_MODE");
    *given = (struct given){
        .name = typed,
        .key = args_get(args, "account-key"),
        .sas = args_get(args, "sas-token"),
        .text = args_get(args, "connection-string"),
        .wants_token = mode && str_equal(mode, "login"),
    };
    /* What was typed is not mixed with what the environment says of another account. */
    if (!given->text && !typed && !given->key && !given->sas)
        given->text = environment("AZURE_STORAGE_CONNECTION_STRING");
    if (given->text)
        return;
    if (!given->name)
        given->name = env_name;
    if (!given->key && !given->sas && is_same && given->name) {
        given->key = environment("AZURE_STORAGE_KEY");
        given->sas = given->key ? NULL : environment("AZURE_STORAGE_SAS_TOKEN");
    }
}

static void override_endpoint(const struct args *args, struct storage_account *a)
{
    const char *url = args_get(args, "blob-endpoint");

    if (!url)
        return;
    set_endpoint(a, STORAGE_BLOB, url);
    set_endpoint(a, STORAGE_FILE, url);
}

/* A key or SAS is there, the addresses are not: the yard may know them, else it is the cloud.
 */
static int with_secret(struct call *call,
                       const struct given *given,
                       struct storage_account **ret_account,
                       struct err *e)
{
    autoptr(storage_account) a = NULL;
    auto_json json_t *rows = NULL;
    struct place *place;
    json_t *row = NULL;

    if (!given->name)
        return args_fail(e, "--account-name", "whose key is it? add --account-name");
    if (!args_has(call->args, "blob-endpoint") && call_place(call, &place, NULL) == 0 &&
        storage_account_list(call, &rows, NULL) == 0)
        row = find_row(rows, given->name);
    if (row) {
        a = account_of_row(place, row);
    } else {
        a = xcalloc(1, sizeof(*a));
        a->name = xstrdup(given->name);
        set_default_endpoints(a, "https", CLOUD_SUFFIX);
    }
    set_secret(a, given->key ? STORAGE_AUTH_KEY : STORAGE_AUTH_SAS,
               given->key ? given->key : given->sas);
    *ret_account = take_ptr(&a);
    return 0;
}

static int from_yard(struct call *call,
                     const struct given *given,
                     struct storage_account **ret_account,
                     struct err *e)
{
    autoptr(storage_account) a = NULL;
    auto_json json_t *rows = NULL;
    json_t *row = NULL;
    struct place *place;

    if (call_place(call, &place, e) < 0 || storage_account_list(call, &rows, e) < 0 ||
        choose_row(call, rows, given->name, &row, e) < 0)
        return -1;
    a = account_of_row(place, row);
    if ((given->wants_token ? use_token(place, a, e) : use_own_key(call, row, a, e)) < 0)
        return -1;
    *ret_account = take_ptr(&a);
    return 0;
}

int storage_account_of_args(struct call *call,
                            struct storage_account **ret_account,
                            struct err *e)
{
    autoptr(storage_account) a = NULL;
    struct given given;
    int rc;

    read_options(call->args, &given);
    if (given.text)
        rc = storage_account_of_text(given.text, &a, e);
    else if (given.key || given.sas)
        rc = with_secret(call, &given, &a, e);
    else
        rc = from_yard(call, &given, &a, e);
    if (rc < 0)
        return -1;
    override_endpoint(call->args, a);
    *ret_account = take_ptr(&a);
    return 0;
}

/* --- for URLs --- */

static bool
is_endpoint_of(const struct address *address, const json_t *row, enum storage_service service)
{
    auto_address known = {0};

    return address_parse(endpoint_in(row, service), &known, NULL) == 0 && !known.is_local &&
           str_equal_nocase(known.account, address->account) &&
           address_same_host(known.host, address->host);
}

/* Is it an account of the yard?  Then the address is told the service and the endpoint. */
static bool is_own(struct address *address, const json_t *row)
{
    if (!address->endpoint) /* account/container was typed */
        return true;
    if (address->is_public_cloud) {
        replace(&address->endpoint, endpoint_in(row, address->service));
        return *address->endpoint != '\0';
    }
    for (int s = STORAGE_BLOB; s <= STORAGE_FILE; s++) {
        if (is_endpoint_of(address, row, (enum storage_service)s)) {
            address->service = (enum storage_service)s;
            return true;
        }
    }
    return false;
}

/* The account at an address that is not the yard's, or is not asked to be. */
static struct storage_account *stranger(const struct address *address)
{
    struct storage_account *a = xcalloc(1, sizeof(*a));

    a->name = xstrdup(address->account);
    for (int s = STORAGE_BLOB; s <= STORAGE_FILE; s++) {
        if (address->service == STORAGE_UNKNOWN || address->service == (enum storage_service)s)
            set_endpoint(a, (enum storage_service)s, address->endpoint);
    }
    return a;
}

/* What the environment says of this very account. */
static bool use_environment(struct storage_account *a)
{
    const char *text = environment("AZURE_STORAGE_CONNECTION_STRING");
    const char *name = environment("AZURE_STORAGE_ACCOUNT");
    const char *key = environment("AZURE_STORAGE_KEY");
    const char *sas = environment("AZURE_STORAGE_SAS_TOKEN");
    autoptr(storage_account) said = NULL;

    if (text && storage_account_of_text(text, &said, NULL) == 0 &&
        str_equal(said->name, a->name)) {
        set_secret(a, said->auth, said->secret);
        return true;
    }
    if (!name || !str_equal(name, a->name) || (!key && !sas))
        return false;
    set_secret(a, key ? STORAGE_AUTH_KEY : STORAGE_AUTH_SAS, key ? key : sas);
    return true;
}

static int no_credential(const struct address *address, const struct err *why, struct err *e)
{
    if (why->msg[0])
        return err_set(
            e, ERR_UNAUTHORIZED,
            "nothing lets us into %.200s: there is no shared access signature in the "
            "URL, and the yard cannot be asked: %.200s",
            address->endpoint, why->msg);
    return err_set(e, ERR_UNAUTHORIZED,
                   "nothing lets us into %.200s: it is no account of this yard; add a shared "
                   "access signature to the URL",
                   address->endpoint);
}

/* The yard's row of the account the address names, or NULL. */
static json_t *
own_row(struct call *call, struct address *address, json_t **rows, struct err *why)
{
    json_t *row;

    if (storage_account_list(call, rows, why) < 0)
        return NULL;
    row = find_row(*rows, address->account);
    return row && is_own(address, row) ? row : NULL;
}

int storage_account_of_address(struct call *call,
                               struct address *address,
                               struct storage_account **ret_account,
                               struct err *e)
{
    autoptr(storage_account) a = NULL;
    auto_json json_t *rows = NULL;
    struct err why = {0};
    json_t *row = own_row(call, address, &rows, &why);
    struct place *place;

    if (!row && !address->endpoint) {
        if (why.msg[0]) {
            *e = why;
            return -1;
        }
        return no_account(address->account, e);
    }
    if (row && call_place(call, &place, e) < 0)
        return -1;
    a = row ? account_of_row(place, row) : stranger(address);
    /* The scheme and the name of the host are those that were typed. */
    if (row && address->endpoint && !address->is_public_cloud)
        set_endpoint(a, address->service, address->endpoint);
    if (address->sas)
        set_secret(a, STORAGE_AUTH_SAS, address->sas);
    else if (row ? use_own_key(call, row, a, e) < 0 : !use_environment(a))
        return row ? -1 : no_credential(address, &why, e);
    *ret_account = take_ptr(&a);
    return 0;
}
