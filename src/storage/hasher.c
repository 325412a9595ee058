/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/hasher.h"

#include "base/mem.h"
#include "loop/work.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum {
    READ_BYTES = 256 * 1024,  /* stays in the cache of a core until it is hashed */
    LEAST_BYTES = 512 * 1024, /* to wake a thread for */
};

struct hasher {
    struct work_pool *pool;
    int fd;
    EVP_MD_CTX *md5; /* of the thread that runs, else of the owner; as is the next */
    uint64_t hashed;
    atomic_bool is_given_up;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    uint64_t written;
    bool is_running;
    int error; /* errno, 0 = none */
};

struct hasher *hasher_new(struct work_pool *pool, int fd, EVP_MD_CTX *md5, uint64_t offset)
{
    struct hasher *hasher = xcalloc(1, sizeof(*hasher));

    hasher->pool = pool;
    hasher->fd = fd;
    hasher->md5 = md5;
    hasher->hashed = hasher->written = offset;
    pthread_mutex_init(&hasher->lock, NULL);
    pthread_cond_init(&hasher->wake, NULL);
    return hasher;
}

/* Hash up to there.  0, or errno. */
static int follow_to(struct hasher *hasher, char *buf, uint64_t end)
{
    while (hasher->hashed < end) {
        uint64_t left = end - hasher->hashed;
        ssize_t got = pread(hasher->fd, buf, left < READ_BYTES ? (size_t)left : READ_BYTES,
                            (off_t)hasher->hashed);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        if (hasher->is_given_up)
            return ECANCELED;
        EVP_DigestUpdate(hasher->md5, buf, (size_t)got);
        hasher->hashed += (uint64_t)got;
    }
    return 0;
}

/* On a thread of the pool, until it has caught up. */
static void follow(void *arg)
{
    struct hasher *hasher = arg;
    auto_free char *buf = xmalloc(READ_BYTES);
    int error = 0;

    pthread_mutex_lock(&hasher->lock);
    while (!error && hasher->written > hasher->hashed) {
        uint64_t end = hasher->written;

        pthread_mutex_unlock(&hasher->lock);
        error = follow_to(hasher, buf, end);
        pthread_mutex_lock(&hasher->lock);
    }
    hasher->error = error;
    hasher->is_running = false;
    pthread_cond_signal(&hasher->wake);
    pthread_mutex_unlock(&hasher->lock);
}

void hasher_advance(struct hasher *hasher, uint64_t written)
{
    bool is_due;

    pthread_mutex_lock(&hasher->lock);
    hasher->written = written;
    is_due = !hasher->is_running && !hasher->error && written - hasher->hashed >= LEAST_BYTES;
    hasher->is_running |= is_due;
    pthread_mutex_unlock(&hasher->lock);
    if (is_due)
        work_submit(hasher->pool, follow, hasher);
}

static int wait_for_it(struct hasher *hasher)
{
    int error;

    pthread_mutex_lock(&hasher->lock);
    while (hasher->is_running)
        pthread_cond_wait(&hasher->wake, &hasher->lock);
    error = hasher->error;
    pthread_mutex_unlock(&hasher->lock);
    return error;
}

int hasher_end(struct hasher *hasher, unsigned char digest[HASHER_MD5_BYTES], struct err *e)
{
    int error = wait_for_it(hasher);
    auto_free char *buf = xmalloc(READ_BYTES);

    if (!error)
        error = follow_to(hasher, buf, hasher->written);
    if (error)
        return err_sys(e, error, "could not read what was uploaded");
    EVP_DigestFinal_ex(hasher->md5, digest, NULL);
    return 0;
}

void hasher_free(struct hasher *hasher)
{
    if (!hasher)
        return;
    hasher->is_given_up = true; /* a loop thread may be waiting here */
    wait_for_it(hasher);
    EVP_MD_CTX_free(hasher->md5);
    pthread_mutex_destroy(&hasher->lock);
    pthread_cond_destroy(&hasher->wake);
    free(hasher);
}
