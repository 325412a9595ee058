/* SPDX-License-Identifier: Apache-2.0 */
#include "control/principals.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/store.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct entry {
    char token_hash[2 * CRYPT_SHA256_BYTES + 1];
    struct identity identity;
};

struct list {
    struct entry *entries;
    size_t count;
};

struct principals {
    pthread_rwlock_t lock;
    struct list list;
};

struct principals *principals_new(void)
{
    struct principals *p = xcalloc(1, sizeof(*p));
    pthread_rwlockattr_t attr;

    /* Readers without end would keep the writer thread, and so every change, waiting. */
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&p->lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    return p;
}

void principals_free(struct principals *p)
{
    if (!p)
        return;
    pthread_rwlock_destroy(&p->lock);
    free(p->list.entries);
    free(p);
}

static void add(const struct principal *from, void *context)
{
    struct list *list = context;
    struct entry *to;

    list->entries = xreallocarray(list->entries, list->count + 1, sizeof(*list->entries));
    to = &list->entries[list->count++];
    memset(to, 0, sizeof(*to));
    snprintf(to->token_hash, sizeof(to->token_hash), "%s", from->token_hash);
    snprintf(to->identity.name, sizeof(to->identity.name), "%s", from->name);
    snprintf(to->identity.client_id, sizeof(to->identity.client_id), "%s", from->client_id);
    snprintf(to->identity.scope, sizeof(to->identity.scope), "%s", from->scope);
    to->identity.role = from->role;
    to->identity.expires_ms = from->expires_ms;
}

int principals_load(struct principals *p, struct db *db, struct err *e)
{
    struct list fresh = {0}, old;

    if (store_each_principal(db, add, &fresh, e) < 0) {
        free(fresh.entries);
        return -1;
    }
    pthread_rwlock_wrlock(&p->lock);
    old = p->list;
    p->list = fresh;
    pthread_rwlock_unlock(&p->lock);
    free(old.entries);
    return 0;
}

/* A yard has tens of principals: a scan is quicker than anything clever. */
static bool find(struct principals *p,
                 bool (*fits)(const struct entry *entry, const char *wanted),
                 const char *wanted,
                 struct identity *ret_identity)
{
    bool found = false;

    pthread_rwlock_rdlock(&p->lock);
    for (size_t i = 0; i < p->list.count && !found; i++) {
        if (fits(&p->list.entries[i], wanted)) {
            *ret_identity = p->list.entries[i].identity;
            found = true;
        }
    }
    pthread_rwlock_unlock(&p->lock);
    return found;
}

static bool has_token(const struct entry *entry, const char *hash)
{
    return str_equal(entry->token_hash, hash);
}

static bool has_client_id(const struct entry *entry, const char *client_id)
{
    return str_equal_nocase(entry->identity.client_id, client_id);
}

bool principals_by_token(struct principals *p, const char *hash, struct identity *ret_identity)
{
    return find(p, has_token, hash, ret_identity);
}

bool principals_by_client(struct principals *p, const char *id, struct identity *ret_identity)
{
    return find(p, has_client_id, id, ret_identity);
}

void principals_hash_token(const char *token, char ret_hash[2 * CRYPT_SHA256_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[CRYPT_SHA256_BYTES];

    crypt_sha256(token, strlen(token), digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        ret_hash[2 * i] = digits[digest[i] >> 4];
        ret_hash[2 * i + 1] = digits[digest[i] & 15];
    }
    ret_hash[2 * sizeof(digest)] = '\0';
}
