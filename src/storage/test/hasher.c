/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/hasher.h"
#include "scene.h"

#include "loop/work.h"

#include <openssl/evp.h>

static int open_unnamed(void)
{
    char path[] = "/tmp/hasher-test-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

static EVP_MD_CTX *new_md5(void)
{
    EVP_MD_CTX *md5 = EVP_MD_CTX_new();

    assert_true(EVP_DigestInit_ex(md5, EVP_md5(), NULL));
    return md5;
}

/* Of a file written in steps, with a part hashed by the owner before. */
static void check_md5_of(size_t size, size_t step, size_t before)
{
    struct work_pool *pool = work_pool_new(2);
    auto_free unsigned char *bytes = xmalloc(size);
    auto_close int fd = open_unnamed();
    unsigned char digest[HASHER_MD5_BYTES], wanted[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *md5 = new_md5();
    struct hasher *hasher;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 24);
    assert_int_equal(write(fd, bytes, before), before);
    EVP_DigestUpdate(md5, bytes, before);
    hasher = hasher_new(pool, fd, md5, before);
    for (size_t at = before; at < size; at += step) {
        size_t len = size - at < step ? size - at : step;

        assert_int_equal(write(fd, bytes + at, len), len);
        hasher_advance(hasher, at + len);
    }
    assert_int_equal(hasher_end(hasher, digest, NULL), 0);
    assert_true(EVP_Digest(bytes, size, wanted, NULL, EVP_md5(), NULL));
    assert_memory_equal(digest, wanted, sizeof(digest));
    hasher_free(hasher);
    work_pool_free(pool);
}

static void a_file_written_in_steps_has_the_md5_of_all(void **state)
{
    (void)state;
    check_md5_of(5 << 20, 64 * 1024, 1 << 20);
    check_md5_of((3 << 20) + 17, 100001, 0);
    check_md5_of(1 << 20, 1 << 20, 1 << 20); /* nothing is left to do */
    check_md5_of((1 << 20) + 1, 1, 1 << 20);
}

static void a_file_that_cannot_be_read_is_told(void **state)
{
    struct work_pool *pool = work_pool_new(1);
    auto_close int fd = open_unnamed();
    struct hasher *hasher = hasher_new(pool, fd, new_md5(), 0);
    unsigned char digest[HASHER_MD5_BYTES];
    struct err e = {0};

    (void)state;
    hasher_advance(hasher, 4 << 20); /* it is empty */
    assert_int_equal(hasher_end(hasher, digest, &e), -1);
    assert_int_not_equal(e.code, ERR_NONE);
    hasher_free(hasher);
    work_pool_free(pool);
}

static void a_hasher_can_be_given_up(void **state)
{
    struct work_pool *pool = work_pool_new(1);
    auto_close int fd = open_unnamed();
    struct hasher *hasher = hasher_new(pool, fd, new_md5(), 0);

    (void)state;
    assert_int_equal(ftruncate(fd, 8 << 20), 0);
    hasher_advance(hasher, 8 << 20);
    hasher_free(hasher);
    work_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_written_in_steps_has_the_md5_of_all),
        cmocka_unit_test(a_file_that_cannot_be_read_is_told),
        cmocka_unit_test(a_hasher_can_be_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
