/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crypt.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void assert_digest(const unsigned char digest[CRYPT_SHA256_BYTES], const char *hex)
{
    auto_str text = {0};

    text_hex(&text, digest, CRYPT_SHA256_BYTES);
    assert_string_equal(str_text(&text), hex);
}

/* FIPS 180-4 examples. */
static void sha256_has_the_vectors_of_its_standard(void **state)
{
    static const struct {
        const char *text, *hex;
    } table[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        unsigned char digest[CRYPT_SHA256_BYTES];

        crypt_sha256(table[i].text, strlen(table[i].text), digest);
        assert_digest(digest, table[i].hex);
    }
}

/* RFC 4231, test cases 1 to 4, 6 and 7: a run of one byte as key, data as text. */
static void hmac_has_the_vectors_of_its_rfc(void **state)
{
    static const struct {
        int key_byte;
        size_t key_len;
        const char *data, *hex;
    } table[] = {
        {0x0b, 20, "Hi There",
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {0xaa, 131,
         "This is a test using a larger than block-size key and a larger than block-size data. "
         "The key needs to be hashed before being used by the HMAC algorithm.",
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    unsigned char digest[CRYPT_SHA256_BYTES], data[50];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        unsigned char key[131];

        memset(key, table[i].key_byte, table[i].key_len);
        crypt_hmac_sha256(key, table[i].key_len, table[i].data, strlen(table[i].data), digest);
        assert_digest(digest, table[i].hex);
    }
    crypt_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, digest);
    assert_digest(digest, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(data, 0xdd, sizeof(data));
    memset(digest, 0xaa, 20);
    crypt_hmac_sha256(digest, 20, data, sizeof(data), digest);
    assert_digest(digest, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    crypt_hmac_sha256("", 0, "", 0, digest);
    assert_digest(digest, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void equality_looks_at_every_byte(void **state)
{
    unsigned char a[32] = {0}, b[32] = {0};

    (void)state;
    assert_true(crypt_equal(a, b, sizeof(a)));
    for (size_t i = 0; i < sizeof(a); i++) {
        b[i] = 1;
        assert_false(crypt_equal(a, b, sizeof(a)));
        assert_true(crypt_equal(a, b, i));
        b[i] = 0;
    }
}

static void random_bytes_differ_and_large_requests_are_filled(void **state)
{
    enum { MANY = 1 << 20 };
    auto_free unsigned char *a = xcalloc(1, MANY), *b = xcalloc(1, MANY);
    size_t same = 0;

    (void)state;
    crypt_random(a, MANY);
    crypt_random(b, MANY);
    for (size_t i = 0; i < MANY; i++)
        same += a[i] == b[i];
    /* 4096 are expected, with a standard deviation of 64. */
    assert_in_range(same, 3400, 4800);
    assert_memory_not_equal(a + MANY - 32, b + MANY - 32, 32);
}

static void uuids_are_version_4_and_recognised(void **state)
{
    char a[CRYPT_UUID_BYTES], b[CRYPT_UUID_BYTES];

    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_true(crypt_is_uuid(crypt_uuid(a)));
        assert_int_equal(a[14], '4');
        assert_non_null(strchr("89ab", a[19]));
        assert_null(strpbrk(a, "ABCDEF"));
        assert_string_not_equal(a, crypt_uuid(b));
    }
}

static void what_is_no_uuid_is_not_recognised(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } table[] = {
        {"01234567-89ab-cdef-0123-456789abcdef", true},
        {"01234567-89AB-CDEF-0123-456789ABCDEF", true},
        {"", false},
        {"0123", false},
        {"01234567-89ab-cdef-0123-456789abcde", false},
        {"01234567-89ab-cdef-0123-456789abcdef0", false},
        {"01234567-89ab-cdef-0123-456789abcdeg", false},
        {"0123456789abcdef0123456789abcdef----", false},
        {"{1234567-89ab-cdef-0123-456789abcde}", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_int_equal(crypt_is_uuid(table[i].text), table[i].good);
}

static const unsigned char key[CRYPT_KEY_BYTES] = "0123456789abcdef0123456789abcde";
static const unsigned char other_key[CRYPT_KEY_BYTES] = "0123456789abcdef0123456789abcdX";

static void what_is_sealed_is_unsealed(void **state)
{
    static const char *const table[] = {"",
                                        "x",
                                        "a storage key",
                                        "gr\xc3\xbc\xc3\x9f",
                                        "sixteen bytes...",
                                        "a longer text than one block is"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_str sealed = {0}, plain = {0};

        crypt_seal(&sealed, key, "account/1", table[i]);
        if (strlen(table[i]) > 4)
            assert_null(strstr(str_text(&sealed), table[i]));
        assert_int_equal(crypt_unseal(&plain, key, "account/1", str_text(&sealed), NULL), 0);
        assert_string_equal(str_text(&plain), table[i]);
    }
}

static void an_empty_context_is_a_context(void **state)
{
    auto_str sealed = {0}, plain = {0};

    (void)state;
    crypt_seal(&sealed, key, "", "text");
    assert_int_equal(crypt_unseal(&plain, key, "", str_text(&sealed), NULL), 0);
    assert_int_equal(crypt_unseal(&plain, key, "x", str_text(&sealed), NULL), -1);
}

static void the_same_text_is_sealed_differently_each_time(void **state)
{
    auto_str a = {0}, b = {0};

    (void)state;
    crypt_seal(&a, key, "c", "text");
    crypt_seal(&b, key, "c", "text");
    assert_string_not_equal(str_text(&a), str_text(&b));
}

static void assert_refused(const unsigned char *with, const char *context, const char *sealed)
{
    struct err e = {0};
    auto_str out = {0};

    assert_int_equal(crypt_unseal(&out, with, context, sealed, &e), -1);
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_non_null(strstr(e.msg, "could not unseal"));
    assert_int_equal(out.len, 0);
}

static void another_key_or_context_does_not_unseal(void **state)
{
    auto_str sealed = {0};

    (void)state;
    crypt_seal(&sealed, key, "account/1", "secret");
    assert_refused(other_key, "account/1", str_text(&sealed));
    assert_refused(key, "account/2", str_text(&sealed));
    assert_refused(key, "", str_text(&sealed));
}

static void a_change_of_any_bit_is_noticed(void **state)
{
    auto_str sealed = {0}, raw = {0};

    (void)state;
    crypt_seal(&sealed, key, "c", "secret");
    assert_int_equal(text_base64_decode(&raw, str_text(&sealed), NULL), 0);
    assert_int_equal(raw.len, 1 + 12 + 6 + 16);
    assert_int_equal(raw.data[0], 1);
    for (size_t bit = 0; bit < raw.len * 8; bit++) {
        auto_str altered = {0};

        raw.data[bit / 8] ^= (char)(1 << bit % 8);
        text_base64(&altered, raw.data, raw.len);
        assert_refused(key, "c", str_text(&altered));
        raw.data[bit / 8] ^= (char)(1 << bit % 8);
    }
}

static void a_cut_or_foreign_text_is_refused(void **state)
{
    static const char *const table[] = {"", "AQ==", "not base64!", "AAAA"};
    auto_str sealed = {0}, raw = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_refused(key, "c", table[i]);
    crypt_seal(&sealed, key, "c", "secret");
    assert_int_equal(text_base64_decode(&raw, str_text(&sealed), NULL), 0);
    for (size_t len = 0; len < raw.len; len++) {
        auto_str cut = {0};

        text_base64(&cut, raw.data, len);
        assert_refused(key, "c", str_text(&cut));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_has_the_vectors_of_its_standard),
        cmocka_unit_test(hmac_has_the_vectors_of_its_rfc),
        cmocka_unit_test(equality_looks_at_every_byte),
        cmocka_unit_test(random_bytes_differ_and_large_requests_are_filled),
        cmocka_unit_test(uuids_are_version_4_and_recognised),
        cmocka_unit_test(what_is_no_uuid_is_not_recognised),
        cmocka_unit_test(what_is_sealed_is_unsealed),
        cmocka_unit_test(an_empty_context_is_a_context),
        cmocka_unit_test(the_same_text_is_sealed_differently_each_time),
        cmocka_unit_test(another_key_or_context_does_not_unseal),
        cmocka_unit_test(a_change_of_any_bit_is_noticed),
        cmocka_unit_test(a_cut_or_foreign_text_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
