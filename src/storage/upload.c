/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/crc64.h"
#include "base/crypt.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/str.h"
#include "base/text.h"
#include "storage/hasher.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    FLUSH_BYTES =
        8 << 20, /* start writing to disk this early, so that fsync finds little left */
    LARGE_BYTES = 1 << 20, /* from here on the MD5 is another thread's */
    COPY_BYTES = 1 << 20,
    MD5_BYTES = HASHER_MD5_BYTES,
};

struct upload {
    struct blobs *blobs;
    struct folder *folder;
    int fd;
    char tmp[TMP_NAME_BYTES]; /* "" = it is somebody else's now */
    uint64_t size;
    uint64_t flushed;
    EVP_MD_CTX *md5; /* NULL = not wanted: then it is reckoned from the file if asked for */
    struct hasher *hasher; /* of a large one: it has md5 then */
    bool is_synced;
    struct err
        failure; /* of bringing it to disk or of reading it: told as often as it is asked */
    bool has_crc;
    uint64_t crc;
    char md5_text[32], crc_text[16]; /* base64, "" = not reckoned yet */
};

void tmp_name(char name[TMP_NAME_BYTES])
{
    unsigned char random[16];
    auto_str hex = {0};

    crypt_random(random, sizeof(random));
    text_hex(&hex, random, sizeof(random));
    snprintf(name, TMP_NAME_BYTES, "tmp/%s", hex.data);
}

int tmp_open(struct folder *folder, char name[TMP_NAME_BYTES], int *ret_fd, struct err *e)
{
    int fd;

    tmp_name(name);
    fd = openat(folder->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        name[0] = '\0';
        return err_sys(e, errno, "could not make a temporary file");
    }
    *ret_fd = fd;
    return 0;
}

int upload_begin(struct blobs *blobs,
                 const char *account,
                 const char *container,
                 struct upload **ret_upload,
                 struct err *e)
{
    autoptr(upload) upload = xcalloc(1, sizeof(*upload));

    upload->blobs = blobs;
    upload->fd = -1;
    upload->has_crc = true;
    if (folder_take(blobs, account, container, &upload->folder, e) < 0 ||
        tmp_open(upload->folder, upload->tmp, &upload->fd, e) < 0)
        return -1;
    upload->md5 = EVP_MD_CTX_new();
    if (!upload->md5 || !EVP_DigestInit_ex(upload->md5, EVP_md5(), NULL))
        return err_set(e, ERR_INTERNAL, "could not start an MD5");
    *ret_upload = take_ptr(&upload);
    return 0;
}

void upload_expect(struct upload *upload, bool md5, bool crc)
{
    if (!md5) {
        EVP_MD_CTX_free(upload->md5);
        upload->md5 = NULL;
    }
    upload->has_crc = crc;
}

static void hash(struct upload *upload, const void *bytes, size_t len)
{
    if (upload->md5 && upload->size >= LARGE_BYTES)
        upload->hasher = hasher_new(upload->blobs->hashers, upload->fd, take_ptr(&upload->md5),
                                    upload->size);
    if (upload->hasher)
        hasher_advance(upload->hasher, upload->size + len);
    else if (upload->md5)
        EVP_DigestUpdate(upload->md5, bytes, len);
    if (upload->has_crc)
        upload->crc = crc64(upload->crc, bytes, len);
}

int upload_write(struct upload *upload, const void *bytes, size_t len, struct err *e)
{
    if (fs_write_all(upload->fd, bytes, len, e) < 0)
        return -1;
    hash(upload, bytes, len);
    upload->size += len;
    if (upload->size - upload->flushed >= FLUSH_BYTES) {
        /* Only a hint: what fails here fails again in fsync. */
        sync_file_range(upload->fd, (off64_t)upload->flushed,
                        (off64_t)(upload->size - upload->flushed), SYNC_FILE_RANGE_WRITE);
        upload->flushed = upload->size;
    }
    return 0;
}

/* Reckon from the file what was not reckoned as it came. */
static void read_again(struct upload *upload, EVP_MD_CTX *md5, uint64_t *crc)
{
    auto_free char *buf = xmalloc(COPY_BYTES);
    off_t offset = 0;
    ssize_t got;

    while ((got = pread(upload->fd, buf, COPY_BYTES, offset)) > 0) {
        if (md5)
            EVP_DigestUpdate(md5, buf, (size_t)got);
        if (crc)
            *crc = crc64(*crc, buf, (size_t)got);
        offset += got;
    }
}

static void encode(char *out, size_t room, const void *bytes, size_t len)
{
    auto_str text = {0};

    text_base64(&text, bytes, len);
    snprintf(out, room, "%s", text.data);
}

const char *upload_md5(struct upload *upload)
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    unsigned int len = MD5_BYTES;

    if (upload->md5_text[0])
        return upload->md5_text;
    if (!upload->md5 && !upload->hasher) {
        upload->md5 = EVP_MD_CTX_new();
        EVP_DigestInit_ex(upload->md5, EVP_md5(), NULL);
        read_again(upload, upload->md5, NULL);
    }
    if (upload->hasher) {
        upload_sync(upload, NULL); /* while the other thread is still at it */
        hasher_end(upload->hasher, digest, &upload->failure);
    } else {
        EVP_DigestFinal_ex(upload->md5, digest, &len);
    }
    encode(upload->md5_text, sizeof(upload->md5_text), digest, MD5_BYTES);
    return upload->md5_text;
}

const char *upload_crc64(struct upload *upload)
{
    uint64_t little;

    if (upload->crc_text[0])
        return upload->crc_text;
    if (!upload->has_crc) {
        read_again(upload, NULL, &upload->crc);
        upload->has_crc = true;
    }
    little = htole64(upload->crc);
    encode(upload->crc_text, sizeof(upload->crc_text), &little, sizeof(little));
    return upload->crc_text;
}

static int check_one(const char *wanted,
                     const char *got,
                     size_t bytes,
                     const char *mismatch,
                     const char *invalid,
                     struct err *e)
{
    auto_str decoded = {0};

    if (text_base64_decode(&decoded, wanted, NULL) < 0 || decoded.len != bytes) {
        err_set(e, ERR_INVALID, "a checksum is %zu bytes in base64", bytes);
        return err_reason(e, invalid);
    }
    if (str_equal(wanted, got))
        return 0;
    err_set(e, ERR_INVALID, "the checksum of what came is %s, not %s", got, wanted);
    return err_reason(e, mismatch);
}

int upload_check(struct upload *upload, const char *md5, const char *crc, struct err *e)
{
    if (md5 &&
        check_one(md5, upload_md5(upload), MD5_BYTES, "Md5Mismatch", "InvalidMd5", e) < 0)
        return -1;
    if (crc && check_one(crc, upload_crc64(upload), sizeof(uint64_t), "Crc64Mismatch",
                         "InvalidHeaderValue", e) < 0)
        return -1;
    return 0;
}

uint64_t upload_size(const struct upload *upload)
{
    return upload->size;
}

int upload_sync(struct upload *upload, struct err *e)
{
    if (!upload->is_synced && fsync(upload->fd) < 0)
        err_sys(&upload->failure, errno, "could not write the upload to disk");
    upload->is_synced = true;
    if (upload->failure.code != ERR_NONE) {
        if (e)
            *e = upload->failure;
        return -1;
    }
    FAULT("storage.after-file-sync");
    return 0;
}

struct folder *upload_folder(struct upload *upload)
{
    return upload->folder;
}

int upload_fd(struct upload *upload)
{
    return upload->fd;
}

const char *upload_tmp(struct upload *upload)
{
    return upload->tmp;
}

void upload_keep(struct upload *upload)
{
    upload->tmp[0] = '\0';
}

void upload_free(struct upload *upload)
{
    if (!upload)
        return;
    if (upload->tmp[0])
        unlinkat(upload->folder->fd, upload->tmp, 0);
    hasher_free(upload->hasher);
    mem_close_fd(&upload->fd);
    EVP_MD_CTX_free(upload->md5);
    folder_drop(upload->blobs, upload->folder);
    free(upload);
}

/* --- copying --- */

static int copy_by_hand(
    int from, int64_t from_offset, int to, int64_t to_offset, int64_t len, struct err *e)
{
    auto_free char *buf = xmalloc(COPY_BYTES);

    while (len > 0) {
        size_t want = len < COPY_BYTES ? (size_t)len : COPY_BYTES;
        ssize_t got = pread(from, buf, want, from_offset), put;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, errno, "could not read while copying");
        if (got == 0)
            return err_set(e, ERR_CONFLICT, "the source became shorter while it was copied");
        for (ssize_t done = 0; done < got; done += put) {
            put = pwrite(to, buf + done, (size_t)(got - done), to_offset + done);
            if (put < 0 && errno == EINTR)
                put = 0;
            if (put < 0)
                return err_sys(e, errno, "could not write while copying");
        }
        from_offset += got;
        to_offset += got;
        len -= got;
    }
    return 0;
}

int copy_range(
    int from, int64_t from_offset, int to, int64_t to_offset, int64_t len, struct err *e)
{
    while (len > 0) {
        off64_t in = from_offset, out = to_offset;
        ssize_t done = copy_file_range(from, &in, to, &out, (size_t)len, 0);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
            return err_sys(e, errno, "could not copy");
        if (done <= 0)
            return copy_by_hand(from, from_offset, to, to_offset, len, e);
        from_offset += done;
        to_offset += done;
        len -= done;
    }
    return 0;
}
