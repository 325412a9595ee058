/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sas.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The key and the account that the storage emulators share: published, no secret. */
#define ACCOUNT "devstoreaccount1"
#define KEY                                                                                    \
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define OTHER_KEY "AAECAwQFBgcICQoLDA0ODw=="
#define NOW       1767225600000 /* 2026-01-01 */
#define LIFE      "st=2024-01-01T00%3A00%3A00Z&se=2034-01-01T00%3A00%3A00Z&"

/* Signed by the JavaScript client; written as such clients write them. */
static const char account_query[] =
    "sv=2021-12-02&ss=bf&srt=sco&sp=rwdlac&" LIFE "spr=https,http&"
    "sig=Gpq4SOqL3zHG9aZtycx0%2BoYuAljr59HRexMbgaXp2Lw%3D";
static const char blob_query[] =
    "sv=2020-12-06&sr=b&sp=rcw&" LIFE "sig=S3ONJlBz21LhFIysyFN48qCeMkMOb0uUTlJGH%2BSWM3A%3D";
static const char old_blob_query[] =
    "sv=2018-11-09&sr=b&sp=rcw&" LIFE "sig=CziufwV5N45DYZ1+CA0A95tB/TYgeTcuwAACqJlTJ8o=";
static const char container_query[] =
    "sv=2026-10-06&sr=c&sp=rcwl&" LIFE "sig=KEAI0poLS%2BzVsafvSOkGKqYkFCjJYliS4C8FKOXZQ2I%3D";
static const char file_query[] =
    "sv=2025-07-05&sr=f&sp=rcw&" LIFE "sig=v/0ld56mY1UNrohzAjKG3rorKyvEdfclaOKIzeIQ7YQ%3D";

static struct sas_ask ask_blob(void)
{
    return (struct sas_ask){
        .service = "blob",
        .account = ACCOUNT,
        .container = "con",
        .object = "dir/a b.txt",
        .levels = "o",
        .permissions = "r",
        .is_service_ok = true,
        .peer = "127.0.0.1",
        .now_ms = NOW,
    };
}

static struct sas_ask ask_container(void)
{
    struct sas_ask ask = ask_blob();

    ask.object = NULL;
    ask.levels = "c";
    ask.permissions = "l";
    return ask;
}

static struct sas_ask ask_file(void)
{
    struct sas_ask ask = ask_blob();

    ask.service = "file";
    ask.container = "shr";
    ask.object = "d/f.txt";
    return ask;
}

/* NULL = allowed, else the reason. */
static const char *verdict(const char *query, const struct sas_ask *ask)
{
    autoptr(arena) arena = arena_new();
    char letters[SAS_LETTERS_BYTES];
    struct err e = {0};
    struct sas sas;

    if (sas_parse(query, arena, &sas, &e) == 0 &&
        sas_verify(&sas, ask, KEY, OTHER_KEY, NULL, letters, &e) == 0)
        return NULL;
    assert_int_equal(e.code, ERR_FORBIDDEN);
    return err_reason_of(&e);
}

static void check(const char *query, const struct sas_ask *ask, const char *want, int line)
{
    const char *got = verdict(query, ask);

    if (!str_equal(got, want))
        fail_msg("line %d: expected %s, got %s", line, want ? want : "success",
                 got ? got : "success");
}
#define CHECK(query, ask, want) check(query, ask, want, __LINE__)

static void what_clients_sign_is_accepted(void **state)
{
    struct sas_ask blob = ask_blob(), container = ask_container(), file = ask_file();

    (void)state;
    CHECK(account_query, &blob, NULL);
    CHECK(account_query, &container, NULL);
    CHECK(account_query, &file, NULL);
    CHECK(blob_query, &blob, NULL);
    CHECK(old_blob_query, &blob, NULL);
    CHECK(container_query, &container, NULL);
    CHECK(container_query, &blob, NULL);
    CHECK(file_query, &file, NULL);
}

/* Change each character of each parameter's value, one at a time: none may still be accepted.
 * What remains is the place of a parameter and the form of its letters, which the signature
 * covers after decoding. */
static void every_altered_byte_is_refused(void **state)
{
    static const char *const queries[] = {account_query, blob_query, container_query};
    struct sas_ask blob = ask_blob();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
        for (size_t at = 0; queries[i][at]; at++) {
            auto_free char *altered = xstrdup(queries[i]);

            altered[at] = altered[at] == 'x' ? 'y' : 'x';
            if (!verdict(altered, &blob))
                fail_msg("accepted: %s", altered);
        }
}

static void every_altered_field_is_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"sp=rcwl", "sp=rcwld"},
        {"sp=rcwl", "sp="},
        {"sr=c", "sr=b"},
        {"sr=c", "sr=d&sdd=0"},
        {"sr=c", "sr=c&sr=c"},
        {"sr=c", "ss=b&srt=sco"},
        {"sr=c", "sr=c&ss=b"},
        {"sr=c", ""},
        {"se=2034", "se=2044"},
        {"st=2024", "st=2023"},
        {"sv=2026-10-06", "sv="},
        {"sv=2026-10-06", "sv=2014-02-14"},
        {"sv=2026-10-06", "sv=never"},
        {"sv=2026-10-06", "sv=2026-04-06"},
        {"sig=", "sip=127.0.0.1&sig="},
        {"sig=", "spr=https,http&sig="},
        {"sig=", "si=policy&sig="},
        {"sig=", "ses=scope&sig="},
        {"sig=", "rsct=text/html&sig="},
        {"sig=", "skoid=me&sig="},
        {"sig=", "srh=x-ms-a&sig="},
        {"sig=K", "sig=k"},
        {"sig=", "sig=x&sig="},
        {"%3D", "%3D%00"},
        {"%3D", "%3"},
        {"sig=", "SIG=x&sig="},
    };
    struct sas_ask ask = ask_container();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        const char *at = strstr(container_query, changes[i].from);
        auto_str altered = {0};

        assert_non_null(at);
        str_add_len(&altered, container_query, (size_t)(at - container_query));
        str_add(&altered, changes[i].to);
        str_add(&altered, at + strlen(changes[i].from));
        if (!verdict(str_text(&altered), &ask))
            fail_msg("accepted: %s", str_text(&altered));
    }
}

static void another_resource_is_refused(void **state)
{
    struct sas_ask ask = ask_blob();

    (void)state;
    ask.object = "dir/a b.tx";
    CHECK(blob_query, &ask, "AuthenticationFailed");
    ask.object = NULL;
    CHECK(blob_query, &ask, "AuthenticationFailed");
    ask = ask_blob();
    ask.container = "com";
    CHECK(blob_query, &ask, "AuthenticationFailed");
    CHECK(container_query, &ask, "AuthenticationFailed");
    ask.container = NULL;
    CHECK(container_query, &ask, "AuthenticationFailed");
    ask = ask_blob();
    ask.account = "other";
    CHECK(account_query, &ask, "AuthenticationFailed");
    ask = ask_blob();
    ask.service = "file";
    CHECK(container_query, &ask, "AuthenticationFailed");
    ask = ask_blob();
    ask.snapshot = "2026-01-01T00:00:00.0000000Z";
    CHECK(blob_query, &ask, "AuthorizationResourceTypeMismatch");
    CHECK(container_query, &ask, NULL);
}

static void each_limit_has_its_own_reason(void **state)
{
    struct sas_ask ask = ask_blob();

    (void)state;
    ask.permissions = "d";
    CHECK(blob_query, &ask, "AuthorizationPermissionMismatch");
    ask.permissions = "dw";
    CHECK(blob_query, &ask, NULL);
    ask.permissions = "";
    CHECK(account_query, &ask, "AuthorizationPermissionMismatch");
    ask.permissions = "*";
    CHECK(account_query, &ask, NULL);
    ask.is_service_ok = false;
    CHECK(account_query, &ask, NULL);
    CHECK(container_query, &ask, "AuthorizationPermissionMismatch");
}

static void an_account_sas_reaches_its_services_and_levels(void **state)
{
    const struct sas_account facts = {.account = ACCOUNT,
                                      .permissions = "r",
                                      .services = "f",
                                      .levels = "c",
                                      .expiry = "2034-01-01",
                                      .version = "2021-12-02"};
    struct sas_ask ask = ask_blob();
    auto_str query = {0};

    (void)state;
    assert_int_equal(sas_account_token(&facts, OTHER_KEY, &query, NULL), 0);
    CHECK(str_text(&query), &ask, "AuthorizationServiceMismatch");
    ask.service = "file";
    CHECK(str_text(&query), &ask, "AuthorizationResourceTypeMismatch");
    ask.levels = "sco";
    CHECK(str_text(&query), &ask, NULL);
}

static void a_life_is_written_in_many_ways(void **state)
{
    static const struct {
        const char *start, *expiry, *want;
    } table[] = {
        {NULL, "2026-01-02", NULL},
        {NULL, "2026-01-01T00:01Z", NULL},
        {NULL, "2026-01-01T00:00:01Z", NULL},
        {NULL, "2026-01-01T00:00:00.0010000Z", NULL},
        {NULL, "2026-01-01", "AuthenticationFailed"},
        {NULL, "2026-01-01T00:00Z", "AuthenticationFailed"},
        {NULL, "2025-12-31T23:59:59.9999999Z", "AuthenticationFailed"},
        {NULL, "tomorrow", "AuthenticationFailed"},
        {NULL, NULL, "AuthenticationFailed"},
        {"2026-01-01", "2027-01-01", NULL},
        {"2026-01-01T00:00:00Z", "2027-01-01", NULL},
        {"2026-01-01T00:00:01Z", "2027-01-01", "AuthenticationFailed"},
        {"now", "2027-01-01", "AuthenticationFailed"},
    };
    struct sas_ask ask = ask_blob();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct sas_service facts = {.resource = "/blob/" ACCOUNT "/con",
                                          .kind = "c",
                                          .permissions = "r",
                                          .start = table[i].start,
                                          .expiry = table[i].expiry,
                                          .version = "2021-12-02"};
        auto_str query = {0};

        assert_int_equal(sas_service_token(&facts, KEY, &query, NULL), 0);
        CHECK(str_text(&query), &ask, table[i].want);
    }
}

static void source_and_protocol_are_checked(void **state)
{
    static const struct {
        const char *ip, *protocol, *peer;
        bool is_tls;
        const char *want;
    } table[] = {
        {"10.0.0.1", NULL, "10.0.0.1", false, NULL},
        {"10.0.0.1", NULL, "::ffff:10.0.0.1", false, NULL},
        {"10.0.0.1", NULL, "10.0.0.2", false, "AuthorizationSourceIPMismatch"},
        {"10.0.0.1-10.0.0.9", NULL, "10.0.0.9", false, NULL},
        {"10.0.0.1-10.0.0.9", NULL, "10.0.0.10", false, "AuthorizationSourceIPMismatch"},
        {"10.0.0.1-10.0.0.9", NULL, "10.0.0.0", false, "AuthorizationSourceIPMismatch"},
        {"10.0.0.1-", NULL, "10.0.0.1", false, "AuthorizationSourceIPMismatch"},
        {"10.0.0", NULL, "10.0.0.1", false, "AuthorizationSourceIPMismatch"},
        {"10.0.0.256", NULL, "10.0.1.0", false, "AuthorizationSourceIPMismatch"},
        {"0.0.0.0-255.255.255.255", NULL, "::1", false, "AuthorizationSourceIPMismatch"},
        {"::1", NULL, "::1", false, NULL},
        {NULL, "https", "10.0.0.1", true, NULL},
        {NULL, "https", "10.0.0.1", false, "AuthorizationProtocolMismatch"},
        {NULL, "https,http", "10.0.0.1", false, NULL},
        {NULL, "http", "10.0.0.1", false, "AuthorizationProtocolMismatch"},
    };
    struct sas_ask ask = ask_blob();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct sas_service facts = {.resource = "/blob/" ACCOUNT "/con",
                                          .kind = "c",
                                          .permissions = "r",
                                          .expiry = "2027-01-01",
                                          .ip = table[i].ip,
                                          .protocol = table[i].protocol,
                                          .version = "2021-12-02"};
        auto_str query = {0};

        ask.peer = table[i].peer;
        ask.is_tls = table[i].is_tls;
        assert_int_equal(sas_service_token(&facts, KEY, &query, NULL), 0);
        CHECK(str_text(&query), &ask, table[i].want);
    }
}

static void a_policy_adds_and_limits(void **state)
{
    static const struct {
        const char *permissions, *expiry;
        struct sas_policy policy;
        bool is_there;
        const char *want;
    } table[] = {
        {NULL, NULL, {NULL, "2027-01-01", "r"}, true, NULL},
        {NULL, NULL, {NULL, "2027-01-01", "w"}, true, "AuthorizationPermissionMismatch"},
        {NULL, NULL, {NULL, "2025-01-01", "r"}, true, "AuthenticationFailed"},
        {NULL, NULL, {"2026-06-01", "2027-01-01", "r"}, true, "AuthenticationFailed"},
        {NULL, NULL, {NULL, NULL, "r"}, true, "AuthenticationFailed"},
        {"r", "2027-01-01", {NULL, NULL, NULL}, true, NULL},
        {"r", "2027-01-01", {NULL, "2025-01-01", NULL}, true, "AuthenticationFailed"},
        {"r", "2027-01-01", {NULL, NULL, "w"}, true, "AuthorizationPermissionMismatch"},
        {"r", "2027-01-01", {NULL, NULL, NULL}, false, "AuthenticationFailed"},
    };
    struct sas_ask ask = ask_blob();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct sas_service facts = {.resource = "/blob/" ACCOUNT "/con",
                                          .kind = "c",
                                          .permissions = table[i].permissions,
                                          .expiry = table[i].expiry,
                                          .identifier = "mine",
                                          .version = "2021-12-02"};
        autoptr(arena) arena = arena_new();
        char letters[SAS_LETTERS_BYTES];
        struct err e = {0};
        struct sas sas;
        auto_str query = {0};
        int rc;

        assert_int_equal(sas_service_token(&facts, KEY, &query, NULL), 0);
        assert_int_equal(sas_parse(str_text(&query), arena, &sas, NULL), 0);
        rc = sas_verify(&sas, &ask, NULL, KEY, table[i].is_there ? &table[i].policy : NULL,
                        letters, &e);
        if (!str_equal(rc < 0 ? err_reason_of(&e) : NULL, table[i].want))
            fail_msg("row %zu: %s", i, rc < 0 ? e.msg : "accepted");
    }
}

static const struct sas_delegation delegation = {
    .object_id = "00000000-0000-0000-0000-000000000001",
    .tenant_id = "00000000-0000-0000-0000-000000000002",
    .key_start = "2025-12-31T00:00:00Z",
    .key_expiry = "2026-01-05T00:00:00Z",
    .key_service = "b",
    .key_version = "2021-12-02",
};

static void add_param(struct str *out, const char *name, const char *value)
{
    str_addf(out, "&%s=%s", name, value);
}

static void delegation_query(const struct sas_service *facts, const char *key, struct str *out)
{
    const struct sas_delegation *d = facts->delegation;
    char signature[SAS_SIGNATURE_BYTES];

    assert_int_equal(sas_sign_service(facts, key, signature, NULL), 0);
    str_addf(out, "sv=%s&sr=%s&sp=%s&se=%s", facts->version, facts->kind, facts->permissions,
             facts->expiry);
    add_param(out, "skoid", d->object_id);
    add_param(out, "sktid", d->tenant_id);
    add_param(out, "skt", d->key_start);
    add_param(out, "ske", d->key_expiry);
    add_param(out, "sks", d->key_service);
    add_param(out, "skv", d->key_version);
    if (d->delegated_user)
        add_param(out, "sduoid", d->delegated_user);
    add_param(out, "sig", signature);
}

static const char *delegation_verdict(const char *query)
{
    autoptr(arena) arena = arena_new();
    struct sas_ask ask = ask_blob();
    char key[SAS_SIGNATURE_BYTES], letters[SAS_LETTERS_BYTES];
    struct err e = {0};
    struct sas sas;

    if (sas_parse(query, arena, &sas, &e) < 0)
        return err_reason_of(&e);
    if (sas.kind != SAS_DELEGATION)
        return "AnotherKind";
    sas_delegation_key(&sas.delegation, ACCOUNT, "secret", 6, key);
    return sas_verify(&sas, &ask, key, NULL, NULL, letters, &e) < 0 ? err_reason_of(&e) : NULL;
}

static void a_user_delegation_sas_stands_on_its_key(void **state)
{
    static const char *const versions[] = {"2018-11-09", "2020-02-10", "2020-12-06",
                                           "2025-07-05", "2026-04-06", "2026-10-06"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        struct sas_service facts = {.resource = "/blob/" ACCOUNT "/con",
                                    .kind = "c",
                                    .permissions = "r",
                                    .expiry = "2026-01-04",
                                    .version = versions[i],
                                    .delegation = &delegation};
        char key[SAS_SIGNATURE_BYTES];
        auto_str query = {0};

        sas_delegation_key(&delegation, ACCOUNT, "secret", 6, key);
        delegation_query(&facts, key, &query);
        assert_null(delegation_verdict(str_text(&query)));
        /* The key is bound to its owner and its life. */
        for (const char *p = str_text(&query); (p = strstr(p + 1, "&sk")) != NULL;) {
            auto_free char *altered = xstrdup(str_text(&query));
            char *value = strchr(altered + (p - str_text(&query)), '=');

            value[1] = value[1] == '2' ? '1' : '2';
            assert_string_equal(delegation_verdict(altered), "AuthenticationFailed");
        }
    }
}

static void a_delegation_key_has_limits(void **state)
{
    struct sas_delegation wrong[] = {delegation, delegation, delegation, delegation};

    (void)state;
    wrong[0].key_expiry = "2025-12-31T12:00:00Z";
    wrong[1].key_expiry = "2026-02-05T00:00:00Z";
    wrong[2].key_service = "f";
    wrong[3].delegated_user = "00000000-0000-0000-0000-000000000003";
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct sas_service facts = {.resource = "/blob/" ACCOUNT "/con",
                                    .kind = "c",
                                    .permissions = "r",
                                    .expiry = "2026-01-04",
                                    .version = "2026-10-06",
                                    .delegation = &wrong[i]};
        char key[SAS_SIGNATURE_BYTES];
        auto_str query = {0};

        sas_delegation_key(&wrong[i], ACCOUNT, "secret", 6, key);
        delegation_query(&facts, key, &query);
        assert_string_equal(delegation_verdict(str_text(&query)), "AuthenticationFailed");
    }
}

static void a_directory_sas_covers_what_is_below_it(void **state)
{
    static const struct {
        const char *object, *depth, *want;
    } table[] = {
        {"a/b/c.txt", "2", NULL},
        {"a/b", "2", NULL},
        {"a/b/c/d", "2", NULL},
        {"a/bc", "2", "AuthenticationFailed"},
        {"a", "2", "AuthenticationFailed"},
        {"a//b", "2", "AuthenticationFailed"},
        {"a/b/c", "1", "AuthenticationFailed"},
        {"a/b/c", "3", "AuthenticationFailed"},
        {"a/b/c", "0", "AuthenticationFailed"},
        {"a/b/c", "-2", "AuthenticationFailed"},
        {"a/b/c", "2x", "AuthenticationFailed"},
    };
    static const struct sas_service facts = {.resource = "/blob/" ACCOUNT "/con/a/b",
                                             .kind = "d",
                                             .permissions = "r",
                                             .expiry = "2027-01-01",
                                             .version = "2021-12-02"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct sas_ask ask = ask_blob();
        auto_str query = {0};

        ask.object = table[i].object;
        assert_int_equal(sas_service_token(&facts, KEY, &query, NULL), 0);
        str_addf(&query, "&sdd=%s", table[i].depth);
        CHECK(str_text(&query), &ask, table[i].want);
    }
}

/* Where sr was not signed, it must not be changed to something wider. */
static void an_old_blob_sas_is_no_directory_or_snapshot_sas(void **state)
{
    static const struct sas_service facts = {.resource = "/blob/" ACCOUNT "/con/a",
                                             .kind = "b",
                                             .permissions = "r",
                                             .expiry = "2027-01-01",
                                             .version = "2018-03-28"};
    struct sas_ask ask = ask_blob();
    auto_str query = {0}, directory = {0}, snapshot = {0};

    (void)state;
    assert_int_equal(sas_service_token(&facts, KEY, &query, NULL), 0);
    ask.object = "a";
    CHECK(str_text(&query), &ask, NULL);
    str_addf(&directory, "sv=2018-03-28&sr=d&sdd=1%s", strstr(str_text(&query), "&sp="));
    ask.object = "a/b";
    CHECK(str_text(&directory), &ask, "AuthenticationFailed");
    str_addf(&snapshot, "sv=2018-03-28&sr=bs%s", strstr(str_text(&query), "&sp="));
    ask.object = "a";
    ask.snapshot = "2026-01-01T00:00:00.0000000Z";
    CHECK(str_text(&snapshot), &ask, "AuthenticationFailed");
}

static void a_sas_is_known_by_its_signature(void **state)
{
    (void)state;
    assert_true(sas_is_in("sig=x"));
    assert_true(sas_is_in("a=b&SIG=x"));
    assert_false(sas_is_in("a=sig=x"));
    assert_false(sas_is_in("design=x"));
    assert_false(sas_is_in(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_clients_sign_is_accepted),
        cmocka_unit_test(every_altered_byte_is_refused),
        cmocka_unit_test(every_altered_field_is_refused),
        cmocka_unit_test(another_resource_is_refused),
        cmocka_unit_test(each_limit_has_its_own_reason),
        cmocka_unit_test(an_account_sas_reaches_its_services_and_levels),
        cmocka_unit_test(a_life_is_written_in_many_ways),
        cmocka_unit_test(source_and_protocol_are_checked),
        cmocka_unit_test(a_policy_adds_and_limits),
        cmocka_unit_test(a_user_delegation_sas_stands_on_its_key),
        cmocka_unit_test(a_delegation_key_has_limits),
        cmocka_unit_test(a_directory_sas_covers_what_is_below_it),
        cmocka_unit_test(an_old_blob_sas_is_no_directory_or_snapshot_sas),
        cmocka_unit_test(a_sas_is_known_by_its_signature),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
