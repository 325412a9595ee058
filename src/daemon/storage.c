/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/storage.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "control/identify.h"
#include "control/vault.h"
#include "core/access.h"
#include "core/names.h"
#include "daemon/home.h"
#include "daemon/listen.h"
#include "daemon/settings.h"
#include "http/server.h"
#include "loop/work.h"
#include "storage/files.h"
#include "storage/service.h"
#include "store/pool.h"
#include "store/store.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum {
    WORKERS =
        32, /* each waits for a disk most of the time; so many fsyncs share a journal commit */
    KEY_SLOTS = 64,
    MOST_SUFFIXES = 16,
    UPKEEP_S = 60 * 60,
    KEEP_STAGED_MS = 7 * 24 * 60 * 60 * 1000, /* a week, as the original */
};

/* The keys of an account as of a generation of the database. */
struct known_keys {
    uint64_t generation;
    char account[32];
    char key1[STORAGE_KEY_BYTES], key2[STORAGE_KEY_BYTES];
};

struct storage {
    struct storage_parts parts;
    char *root, *db_path, *blob_url, *file_url, *suffixes_text;
    const char *suffixes[MOST_SUFFIXES];
    struct blobs *blobs;
    struct files *files;
    struct work_pool *pool;
    struct storage_service *service;
    pthread_mutex_t keys_lock;
    struct known_keys keys[KEY_SLOTS];

    pthread_t upkeep;
    pthread_mutex_t upkeep_lock; /* guards the two below */
    pthread_cond_t upkeep_wake;
    bool is_stopping, has_upkeep;
};

/* --- what the service asks of the house --- */

static int find_account(struct storage *s,
                        struct store_reader *reader,
                        const char *account,
                        struct resource **ret_account,
                        struct err *e)
{
    if (store_pool_take(s->parts.pool, reader, e) < 0 ||
        store_find_account(reader->db, account, ret_account, e) < 0)
        return -1;
    if (!*ret_account)
        return resource_not_found(e, RESOURCE_STORAGE_ACCOUNT, account);
    return 0;
}

static int read_key(struct storage *s,
                    struct db *db,
                    int64_t account_row,
                    const char *name,
                    char ret_key[STORAGE_KEY_BYTES],
                    struct err *e)
{
    auto_str key = {0};
    int64_t created_ms;

    if (vault_get(s->parts.vault, db, account_row, name, &key, &created_ms, e) < 0)
        return -1;
    snprintf(ret_key, STORAGE_KEY_BYTES, "%s", str_text(&key));
    return 0;
}

static struct known_keys *slot_of(struct storage *s, const char *account)
{
    size_t hash = 5381;

    for (const char *p = account; *p; p++)
        hash = hash * 33 + (unsigned char)*p;
    return &s->keys[hash % KEY_SLOTS];
}

static bool recall(struct storage *s, const char *account, struct known_keys *ret_known)
{
    struct known_keys *slot = slot_of(s, account);
    bool holds;

    pthread_mutex_lock(&s->keys_lock);
    holds = slot->generation == control_generation(s->parts.control) &&
            str_equal(slot->account, account);
    if (holds)
        *ret_known = *slot;
    pthread_mutex_unlock(&s->keys_lock);
    return holds;
}

static int account_keys(void *context,
                        const char *account,
                        char key1[STORAGE_KEY_BYTES],
                        char key2[STORAGE_KEY_BYTES],
                        struct err *e)
{
    struct storage *s = context;
    autoptr(resource) found = NULL;
    auto_reader reader = {0};
    struct known_keys known = {0};

    /* A name that cannot be an account's needs no look, and fits no slot. */
    if (names_account_problem(account))
        return resource_not_found(e, RESOURCE_STORAGE_ACCOUNT, account);
    if (!recall(s, account, &known)) {
        known.generation = control_generation(s->parts.control);
        if (find_account(s, &reader, account, &found, e) < 0 ||
            read_key(s, reader.db, found->id, "key1", known.key1, e) < 0 ||
            read_key(s, reader.db, found->id, "key2", known.key2, e) < 0)
            return -1;
        snprintf(known.account, sizeof(known.account), "%s", account);
        if (known.generation % 2 == 0) {
            pthread_mutex_lock(&s->keys_lock);
            *slot_of(s, account) = known;
            pthread_mutex_unlock(&s->keys_lock);
        }
    }
    memcpy(key1, known.key1, STORAGE_KEY_BYTES);
    memcpy(key2, known.key2, STORAGE_KEY_BYTES);
    return 0;
}

static int check_access(struct storage *s,
                        const struct identity *who,
                        const char *account,
                        bool write,
                        struct err *e)
{
    autoptr(resource) found = NULL;
    autoptr(arena) arena = arena_new();
    auto_reader reader = {0};
    char *group_key;

    if (find_account(s, &reader, account, &found, e) < 0)
        return -1;
    group_key = resource_group_key(arena, found->arm_id);
    if (access_allows(who->role, who->scope, write ? ACCESS_WRITE : ACCESS_READ, group_key))
        return 0;
    return err_set(e, ERR_FORBIDDEN, "the token \"%s\" may not %s the data of %s", who->name,
                   write ? "change" : "read", account);
}

static int bearer(void *context,
                  const char *token,
                  const char *account,
                  bool write,
                  char ret_who[CRYPT_UUID_BYTES],
                  struct err *e)
{
    struct storage *s = context;
    struct identity who;

    if (identify_token(control_principals(s->parts.control), s->parts.vault, token, &who, e) <
        0)
        return -1;
    snprintf(ret_who, CRYPT_UUID_BYTES, "%s", who.client_id);
    return check_access(s, &who, account, write, e);
}

static int
principal(void *context, const char *client_id, const char *account, bool write, struct err *e)
{
    struct storage *s = context;
    struct identity who;

    if (!principals_by_client(control_principals(s->parts.control), client_id, &who) ||
        (who.expires_ms && clock_wall_ms() >= who.expires_ms))
        return err_set(e, ERR_FORBIDDEN, "whoever signed this is not known any more");
    return check_access(s, &who, account, write, e);
}

/* --- opening and closing --- */

int storage_purge(struct storage *s, const char *account, struct err *e)
{
    auto_free char *folder = xasprintf("%s/%s", s->root, account);

    if (access(folder, F_OK) < 0 && errno == ENOENT)
        return 0; /* quick: control waits for it */
    if (blobs_remove_account(s->blobs, account, e) < 0)
        return -1;
    return files_remove_account(s->files, account, e);
}

struct scrubbing {
    void (*finding)(const char *name, bool ok, const char *detail, void *to);
    void *to;
    size_t count;
};

static void found(const char *what, const char *where, void *context)
{
    struct scrubbing *scrubbing = context;

    scrubbing->count++;
    scrubbing->finding(what, false, where, scrubbing->to);
}

int storage_scrub(struct storage *s,
                  void (*finding)(const char *name, bool ok, const char *detail, void *to),
                  void *to,
                  struct err *e)
{
    struct scrubbing scrubbing = {finding, to, 0};

    if (blobs_scrub(s->blobs, found, &scrubbing, e) < 0 ||
        files_scrub(s->files, found, &scrubbing, e) < 0)
        return -1;
    if (scrubbing.count == 0)
        finding("every stored file is known, and everything known is there", true, "", to);
    return 0;
}

/* --- upkeep: uploads that nobody finished --- */

/* Wait for the next round.  False when the service stops. */
static bool wait_round(struct storage *s)
{
    struct timespec until;
    bool goes_on;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += UPKEEP_S;
    pthread_mutex_lock(&s->upkeep_lock);
    while (!s->is_stopping &&
           pthread_cond_timedwait(&s->upkeep_wake, &s->upkeep_lock, &until) != ETIMEDOUT)
        continue;
    goes_on = !s->is_stopping;
    pthread_mutex_unlock(&s->upkeep_lock);
    return goes_on;
}

static void *upkeep_main(void *arg)
{
    struct storage *s = arg;

    pthread_setname_np(pthread_self(), "upkeep");
    do {
        struct err e = {0};

        if (blobs_collect_staged(s->blobs, clock_wall_ms() - KEEP_STAGED_MS, &e) < 0)
            log_warning("event=upkeep error=\"%s\", trying again in an hour", e.msg);
    } while (wait_round(s));
    return NULL;
}

static int start_upkeep(struct storage *s, struct err *e)
{
    pthread_condattr_t monotonic;
    int rc;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->upkeep_wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&s->upkeep_lock, NULL);
    rc = pthread_create(&s->upkeep, NULL, upkeep_main, s);
    if (rc != 0)
        return err_sys(e, rc, "could not start the upkeep thread");
    s->has_upkeep = true;
    return 0;
}

static void stop_upkeep(struct storage *s)
{
    if (!s->has_upkeep)
        return;
    pthread_mutex_lock(&s->upkeep_lock);
    s->is_stopping = true;
    pthread_cond_signal(&s->upkeep_wake);
    pthread_mutex_unlock(&s->upkeep_lock);
    pthread_join(s->upkeep, NULL);
    s->has_upkeep = false;
}

static size_t split_suffixes(struct storage *s)
{
    char *saved = NULL;
    size_t count = 0;

    s->suffixes_text = xstrdup(s->parts.settings->storage_suffix);
    for (char *p = strtok_r(s->suffixes_text, ", ", &saved); p && count < MOST_SUFFIXES;
         p = strtok_r(NULL, ", ", &saved))
        s->suffixes[count++] = p;
    return count;
}

static void make_service(struct storage *s)
{
    static const char label[] = "trainyard user delegation v1";
    struct storage_config config = {
        .blobs = s->blobs,
        .files = s->files,
        .pool = s->pool,
        .hosts = s->parts.names->names,
        .host_count = s->parts.names->count,
        .suffixes = s->suffixes,
        .tenant_id = s->parts.tenant_id,
        .account_keys = account_keys,
        .bearer = bearer,
        .principal = principal,
        .context = s,
    };

    config.suffix_count = split_suffixes(s);
    crypt_hmac_sha256(s->parts.vault->key, sizeof(s->parts.vault->key), label,
                      sizeof(label) - 1, config.delegation_secret);
    s->service = storage_service_new(&config);
}

int storage_open(const struct storage_parts *parts, struct storage **ret_storage, struct err *e)
{
    struct storage *s = xcalloc(1, sizeof(*s));

    s->parts = *parts;
    pthread_mutex_init(&s->keys_lock, NULL);
    s->root = xasprintf("%s/storage", parts->home->folder);
    s->db_path = xasprintf("%s/storage.db", parts->home->folder);
    if (blobs_open(s->root, s->db_path, &s->blobs, e) < 0) {
        storage_close(s);
        return err_wrap(e, "storage");
    }
    blobs_when_broken(s->blobs, parts->broken, parts->context);
    if (files_open(s->blobs, &s->files, e) < 0 || start_upkeep(s, e) < 0) {
        storage_close(s);
        return err_wrap(e, "storage");
    }
    s->pool = work_pool_new(WORKERS);
    make_service(s);
    *ret_storage = s;
    return 0;
}

int storage_listen(struct storage *s,
                   struct http_server *server,
                   struct http_tls *tls,
                   struct err *e)
{
    const struct settings *settings = s->parts.settings;
    const struct http_app blob = {storage_on_blob_request, NULL, s->service};
    const struct http_app file = {storage_on_file_request, NULL, s->service};

    if (listen_app(settings, server, tls, "blob", settings->blob_port, &blob, &s->blob_url, e) <
        0)
        return -1;
    return listen_app(settings, server, tls, "file", settings->file_port, &file, &s->file_url,
                      e);
}

const char *storage_blob_url(const struct storage *s)
{
    return s->blob_url;
}

const char *storage_file_url(const struct storage *s)
{
    return s->file_url;
}

struct blobs *storage_blobs(const struct storage *s)
{
    return s->blobs;
}

struct files *storage_files(const struct storage *s)
{
    return s->files;
}

void storage_stop(struct storage *s)
{
    if (!s)
        return;
    stop_upkeep(s);
    work_pool_free(s->pool);
    s->pool = NULL;
}

void storage_close(struct storage *s)
{
    if (!s)
        return;
    stop_upkeep(s);
    storage_service_free(s->service);
    files_free(s->files);
    blobs_free(s->blobs);
    pthread_mutex_destroy(&s->keys_lock);
    free(s->root);
    free(s->db_path);
    free(s->blob_url);
    free(s->file_url);
    free(s->suffixes_text);
    free(s);
}
