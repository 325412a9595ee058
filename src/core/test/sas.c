/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sas.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The key and the account that the storage emulators share: published, no secret. */
#define ACCOUNT "devstoreaccount1"
#define KEY                                                                                    \
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define START  "2024-01-01T00:00:00Z"
#define EXPIRY "2034-01-01T00:00:00Z"

/* Signatures of the same four requests at each version where the layout changed, and at some
 * where it did not. */
static const struct vector {
    const char *version;
    const char *account, *blob, *container, *file;
} vectors[] = {
    {"2018-11-09", "IYUysdB7duivnYx/IATKtZiyDMMpl4M+4ElOiQzMkAQ=",
     "CziufwV5N45DYZ1+CA0A95tB/TYgeTcuwAACqJlTJ8o=",
     "iRCaB1GMW3A4+knr5/hacM11OvUPhEHlJJicKM/gMkw=",
     "S7EV4BQpcAWERLu55kRj9gVGW7/cyHizE2Rs04oKpzo="},
    {"2020-10-02", "xCEi3NdhF+mq7rnLhRKK80nkg8zpML7eXjmU9eBW+kk=",
     "ta9oQB3ftegAMi2nyxPniOudREeCemGxMptrKq7jGvc=",
     "s7EkneKEzX1tfQK1GvgVZhdQcx4blkFqHIU/b+bJKOw=",
     "5vZzKYxG1i4WzfWmfvBj9pQ8/MwHvLmhlnMUsPphs4Q="},
    {"2020-12-06", "iW77tP0J5bHoqa1PAzb+ENKVTWRwlfSRQVEeip3edVE=",
     "S3ONJlBz21LhFIysyFN48qCeMkMOb0uUTlJGH+SWM3A=",
     "79w1NrHqRTKWOFkSW9QMeVQYF+lbgnkvhuZ/7sxKw90=",
     "dIOzFti791eDTLgj6v6QOzuebKKkB4KRjHpTEpkU6Tw="},
    {"2021-12-02", "Gpq4SOqL3zHG9aZtycx0+oYuAljr59HRexMbgaXp2Lw=",
     "IXprF9w6yUisjulu6nQwmkMg8qdJUC3VgOgb1+4J+aA=",
     "997uFaId5PbPRTrJnJItgf1/ydMxtbj81ApCeAGkZxM=",
     "LhiBPT0+JKoqJDo9r6DqCOw3E4y5Hmt4+XsEXFOdMz8="},
    {"2025-07-05", "yt1ssrOIKZfLMkhdHOGpIqH52cdK/AmxnYuNkBXbyEY=",
     "s/Yl4t7Nuq8YOshwujMc4VSk6n1pKjS6ncvJm1s9+qs=",
     "jn+UZJlcqRVvEP2mU7RPHKpi6cHYYomppEyUOAFNOic=",
     "v/0ld56mY1UNrohzAjKG3rorKyvEdfclaOKIzeIQ7YQ="},
    {"2026-10-06", "VtpX0yqzMrGMZM6cOLwZQN1HljDtR9MXCvtWXOu3hvw=",
     "tCleZ72Ab1JtfOzY2+cGC+iIgcwa9RbkE4pH52fKopA=",
     "KEAI0poLS+zVsafvSOkGKqYkFCjJYliS4C8FKOXZQ2I=",
     "fMtt7/CmY/zIxExIMubE1eSgrIv/354Sc9zCtdwUYN4="},
};

static struct sas_account account_of(const char *version)
{
    return (struct sas_account){
        .account = ACCOUNT,
        .permissions = "rwdlac",
        .services = "bf",
        .levels = "sco",
        .start = START,
        .expiry = EXPIRY,
        .protocol = "https,http",
        .version = version,
    };
}

static struct sas_service
service_of(const char *version, const char *resource, const char *kind, const char *permissions)
{
    return (struct sas_service){
        .resource = resource,
        .kind = kind,
        .permissions = permissions,
        .start = START,
        .expiry = EXPIRY,
        .version = version,
    };
}

static void check_service(const struct sas_service *sas, const char *wanted)
{
    char signature[SAS_SIGNATURE_BYTES];

    assert_int_equal(sas_sign_service(sas, KEY, signature, NULL), 0);
    assert_string_equal(signature, wanted);
}

static void signatures_are_those_of_the_protocol(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
        const struct vector *v = &vectors[i];
        struct sas_account account = account_of(v->version);
        struct sas_service blob =
            service_of(v->version, "/blob/" ACCOUNT "/con/dir/a b.txt", "b", "rcw");
        struct sas_service container =
            service_of(v->version, "/blob/" ACCOUNT "/con", "c", "rcwl");
        struct sas_service file =
            service_of(v->version, "/file/" ACCOUNT "/shr/d/f.txt", "f", "rcw");
        char signature[SAS_SIGNATURE_BYTES];

        assert_int_equal(sas_sign_account(&account, KEY, signature, NULL), 0);
        assert_string_equal(signature, v->account);
        check_service(&blob, v->blob);
        check_service(&container, v->container);
        check_service(&file, v->file);
    }
}

/* A field of a service SAS and whether blobs and files sign it at the newest version. */
static void every_signed_field_changes_the_signature(void **state)
{
    static const struct {
        size_t at;
        bool in_blob, in_file;
    } fields[] = {
        {offsetof(struct sas_service, resource), true, true},
        {offsetof(struct sas_service, kind), true, false},
        {offsetof(struct sas_service, permissions), true, true},
        {offsetof(struct sas_service, start), true, true},
        {offsetof(struct sas_service, expiry), true, true},
        {offsetof(struct sas_service, identifier), true, true},
        {offsetof(struct sas_service, ip), true, true},
        {offsetof(struct sas_service, protocol), true, true},
        {offsetof(struct sas_service, version), true, true},
        {offsetof(struct sas_service, snapshot), true, false},
        {offsetof(struct sas_service, scope), true, false},
        {offsetof(struct sas_service, cache_control), true, true},
        {offsetof(struct sas_service, disposition), true, true},
        {offsetof(struct sas_service, encoding), true, true},
        {offsetof(struct sas_service, language), true, true},
        {offsetof(struct sas_service, type), true, true},
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(fields); i++) {
        bool is_blob = i % 2;
        struct sas_service sas = service_of(
            "2021-12-02", is_blob ? "/blob/a/c/b" : "/file/a/s/f", is_blob ? "b" : "f", "r");
        bool is_signed = is_blob ? fields[i / 2].in_blob : fields[i / 2].in_file;
        char before[SAS_SIGNATURE_BYTES], after[SAS_SIGNATURE_BYTES];

        assert_int_equal(sas_sign_service(&sas, KEY, before, NULL), 0);
        *(const char **)(void *)((char *)&sas + fields[i / 2].at) =
            fields[i / 2].at == offsetof(struct sas_service, resource)
                ? (is_blob ? "/blob/a/c/x" : "/file/a/s/x")
                : "2022-11-02";
        assert_int_equal(sas_sign_service(&sas, KEY, after, NULL), 0);
        if ((strcmp(before, after) != 0) != is_signed)
            fail_msg("field %zu of a %s: %s", i / 2, is_blob ? "blob" : "file",
                     is_signed ? "not signed" : "signed");
    }
}

static void a_token_names_what_is_set_and_escapes_it(void **state)
{
    struct sas_account account = account_of("2021-12-02");
    struct sas_service service =
        service_of("2021-12-02", "/blob/" ACCOUNT "/con/dir/a b.txt", "b", "rcw");
    auto_str account_token = {0}, service_token = {0};

    (void)state;
    assert_int_equal(sas_account_token(&account, KEY, &account_token, NULL), 0);
    assert_string_equal(str_text(&account_token),
                        "sv=2021-12-02&ss=bf&srt=sco&sp=rwdlac&st=2024-01-01T00%3A00%3A00Z"
                        "&se=2034-01-01T00%3A00%3A00Z&spr=https%2Chttp"
                        "&sig=Gpq4SOqL3zHG9aZtycx0%2BoYuAljr59HRexMbgaXp2Lw%3D");
    assert_int_equal(sas_service_token(&service, KEY, &service_token, NULL), 0);
    assert_string_equal(str_text(&service_token),
                        "sv=2021-12-02&sr=b&sp=rcw&st=2024-01-01T00%3A00%3A00Z"
                        "&se=2034-01-01T00%3A00%3A00Z"
                        "&sig=IXprF9w6yUisjulu6nQwmkMg8qdJUC3VgOgb1%2B4J%2BaA%3D");
}

static void an_empty_field_is_signed_as_an_absent_one(void **state)
{
    struct sas_account absent = account_of("2021-12-02"), empty = absent;
    char one[SAS_SIGNATURE_BYTES], other[SAS_SIGNATURE_BYTES];

    (void)state;
    empty.ip = empty.scope = "";
    assert_int_equal(sas_sign_account(&absent, KEY, one, NULL), 0);
    assert_int_equal(sas_sign_account(&empty, KEY, other, NULL), 0);
    assert_string_equal(one, other);
}

static void a_damaged_key_is_our_fault_and_makes_no_token(void **state)
{
    struct sas_account account = account_of("2021-12-02");
    struct sas_service service = service_of("2021-12-02", "/blob/a/c", "c", "r");
    struct err e = {0};
    auto_str token = {0};

    (void)state;
    assert_int_equal(sas_account_token(&account, "not base64!", &token, &e), -1);
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_null(strstr(e.msg, "not base64!")); /* a key is a secret, a damaged one too */
    assert_int_equal(sas_service_token(&service, "not base64!", &token, &e), -1);
    assert_int_equal(token.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_those_of_the_protocol),
        cmocka_unit_test(every_signed_field_changes_the_signature),
        cmocka_unit_test(a_token_names_what_is_set_and_escapes_it),
        cmocka_unit_test(an_empty_field_is_signed_as_an_absent_one),
        cmocka_unit_test(a_damaged_key_is_our_fault_and_makes_no_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
