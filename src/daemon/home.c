/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/home.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "control/principals.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    LOCK_TRIES = 200, /* two seconds */
    LOCK_PAUSE_US = 10 * 1000,
};

const char *const home_backup_files[] = {
    "secret.key", "token",          "tls/ca.pem",     "tls/ca.key",
    "yardd.conf", "tls/server.pem", "tls/server.key", NULL,
};

/* Who has the lock, as it wrote itself down. */
static long read_holder(int fd)
{
    char text[32];
    ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

    text[got > 0 ? got : 0] = '\0';
    return strtol(text, NULL, 10);
}

/* A daemon that was killed while it started a program leaves its lock with that one until it
 * has been executed: a moment.  One that lives keeps it. */
static int lock(int fd)
{
    for (int left = LOCK_TRIES; flock(fd, LOCK_EX | LOCK_NB) < 0; left--) {
        long holder = read_holder(fd);

        if (left == 0 || holder <= 0 || kill((pid_t)holder, 0) == 0 || errno != ESRCH)
            return -1;
        usleep(LOCK_PAUSE_US);
    }
    return 0;
}

static int take_lock(struct home *home, struct err *e)
{
    auto_free char *path = xasprintf("%s/lock", home->folder);
    auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char pid[32];
    int len;

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%s\"", path);
    if (lock(fd) < 0)
        return err_set(e, ERR_BUSY, "the data folder \"%s\" is held by another yardd, pid %ld",
                       home->folder, read_holder(fd));
    len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)len, 0) != len)
        return err_sys(e, errno, "could not write \"%s\"", path);
    home->lock_fd = take_fd(&fd);
    return 0;
}

int home_open(const char *folder, struct home *ret_home, struct err *e)
{
    auto_free char *run_folder = xasprintf("%s/run", folder);
    struct home home = {.lock_fd = -1};

    if (fs_make_folders(folder, 0700, e) < 0 || fs_make_folders(run_folder, 0700, e) < 0)
        return -1;
    home.folder = xstrdup(folder);
    home.db_path = xasprintf("%s/yard.db", folder);
    home.key_path = xasprintf("%s/secret.key", folder);
    home.token_path = xasprintf("%s/token", folder);
    home.tls_folder = xasprintf("%s/tls", folder);
    home.run_path = xasprintf("%s/yardd.json", run_folder);
    if (take_lock(&home, e) < 0) {
        home_done(&home);
        return -1;
    }
    *ret_home = home;
    return 0;
}

void home_done(struct home *home)
{
    free(home->folder);
    free(home->db_path);
    free(home->key_path);
    free(home->token_path);
    free(home->tls_folder);
    free(home->run_path);
    if (home->lock_fd >= 0)
        close(home->lock_fd);
    *home = (struct home){.lock_fd = -1};
}

/* A fact that is a UUID, made when it is missing. */
static int uuid_fact(struct db *db, const char *name, char **ret_value, struct err *e)
{
    char id[CRYPT_UUID_BYTES];

    if (store_get_meta(db, name, ret_value, e) < 0)
        return -1;
    if (*ret_value)
        return 0;
    *ret_value = xstrdup(crypt_uuid(id));
    return store_put_meta(db, name, *ret_value, e);
}

int home_facts(struct db *db, char **ret_subscription, char **ret_tenant, struct err *e)
{
    if (uuid_fact(db, "subscription_id", ret_subscription, e) < 0)
        return -1;
    return uuid_fact(db, "tenant_id", ret_tenant, e);
}

static int read_token(const struct home *home, struct str *token, struct err *e)
{
    unsigned char raw[32];
    struct err why = {0};

    if (fs_read(home->token_path, 4096, token, &why) == 0) {
        while (token->len && strchr(" \t\r\n", token->data[token->len - 1]))
            str_truncate(token, token->len - 1);
        if (token->len >= 16)
            return 0;
        return err_set(e, ERR_INVALID,
                       "the token in \"%s\" is too short; delete the file to have a new one",
                       home->token_path);
    }
    if (why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    crypt_random(raw, sizeof(raw));
    text_base64url(token, raw, sizeof(raw));
    return fs_write_durably(home->token_path, str_text(token), token->len, 0600, e);
}

int home_owner(const struct home *home, struct db *db, struct err *e)
{
    autoptr(principal) owner = NULL;
    char hash[2 * CRYPT_SHA256_BYTES + 1], id[CRYPT_UUID_BYTES];
    auto_str token = {0};

    if (read_token(home, &token, e) < 0)
        return -1;
    principals_hash_token(str_text(&token), hash);
    if (store_find_principal(db, "owner", &owner, e) < 0)
        return -1;
    if (owner && str_equal(owner->token_hash, hash))
        return 0;
    if (!owner) {
        owner = xcalloc(1, sizeof(*owner));
        owner->name = xstrdup("owner");
        owner->client_id = xstrdup(crypt_uuid(id));
        owner->created_ms = clock_wall_ms();
    }
    owner->role = ACCESS_OWNER;
    owner->expires_ms = 0;
    free(owner->scope);
    owner->scope = xstrdup("");
    free(owner->token_hash);
    owner->token_hash = xstrdup(hash);
    return store_put_principal(db, owner, e);
}

int home_announce(const struct home *home, const struct home_addresses *where, struct err *e)
{
    auto_json json_t *facts =
        json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "pid",
                  (json_int_t)getpid(), "version", YARD_VERSION, "apiUrl", where->api_url,
                  "httpUrl", where->http_url, "blobUrl", where->blob_url, "fileUrl",
                  where->file_url, "caFile", where->ca_file, "tokenFile", home->token_path,
                  "subscriptionId", where->subscription_id, "tenantId", where->tenant_id);
    char now[CLOCK_ISO_BYTES];
    auto_str text = {0};

    json_object_set_new(facts, "startedAt",
                        json_string(clock_format_iso(clock_wall_ms(), now)));
    json_write(&text, facts);
    str_add_char(&text, '\n');
    return fs_write_durably(home->run_path, str_text(&text), text.len, 0600, e);
}

void home_withdraw(const struct home *home)
{
    fs_remove(home->run_path, NULL);
}
