/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "base/clock.h"
#include "base/json.h"

/* The blob of these tests: ETag 0x8D1, changed at second 1000. */
#define CHANGED_MS 1000400

enum verdict { HOLDS, UNCHANGED, REFUSED, EXISTS, INVALID };

static const char *const reasons[] = {
    [REFUSED] = "ConditionNotMet",
    [EXISTS] = "BlobAlreadyExists",
    [INVALID] = "UnsatisfiableCondition",
};

static const struct {
    struct conditions conditions;
    enum verdict read, create, change, missing;
} table[] = {
    {{0}, HOLDS, HOLDS, HOLDS, HOLDS},
    {{.if_match = "\"0x8D1\""}, HOLDS, HOLDS, HOLDS, REFUSED},
    {{.if_match = "0x8D1"}, HOLDS, HOLDS, HOLDS, REFUSED},
    {{.if_match = "\"0x8D\""}, REFUSED, REFUSED, REFUSED, REFUSED},
    {{.if_match = "\"a\", \"0x8D1\""}, HOLDS, HOLDS, HOLDS, REFUSED},
    {{.if_match = "*"}, HOLDS, HOLDS, HOLDS, REFUSED},
    {{.if_none_match = "*"}, INVALID, EXISTS, REFUSED, HOLDS},
    {{.if_none_match = "\"0x8D1\""}, UNCHANGED, REFUSED, REFUSED, HOLDS},
    {{.if_none_match = "\"0x8D2\""}, HOLDS, HOLDS, HOLDS, HOLDS},
    {{.if_modified_since_ms = 1000000}, UNCHANGED, REFUSED, REFUSED, HOLDS},
    {{.if_modified_since_ms = 1000999}, UNCHANGED, REFUSED, REFUSED, HOLDS},
    {{.if_modified_since_ms = 999999}, HOLDS, HOLDS, HOLDS, HOLDS},
    {{.if_unmodified_since_ms = 1000000}, HOLDS, HOLDS, HOLDS, HOLDS},
    {{.if_unmodified_since_ms = 999999}, REFUSED, REFUSED, REFUSED, HOLDS},
    {{.if_unmodified_since_ms = 1001000}, HOLDS, HOLDS, HOLDS, HOLDS},
    /* Reads want both of the first pair, and one of the second. */
    {{.if_match = "\"0x8D1\"", .if_unmodified_since_ms = 1}, REFUSED, HOLDS, HOLDS, REFUSED},
    {{.if_none_match = "\"0x8D1\"", .if_modified_since_ms = 1}, HOLDS, REFUSED, REFUSED, HOLDS},
    {{.if_none_match = "\"0x8D2\"", .if_modified_since_ms = 2000000},
     HOLDS,
     HOLDS,
     HOLDS,
     HOLDS},
    {{.if_none_match = "\"0x8D1\"", .if_modified_since_ms = 2000000},
     UNCHANGED,
     REFUSED,
     REFUSED,
     HOLDS},
    {{.if_tags = "\"kind\" = 'cat'"}, HOLDS, HOLDS, HOLDS, REFUSED},
    {{.if_tags = "kind='cat' AND \"it''s\" = 'o''k'"}, HOLDS, HOLDS, HOLDS, REFUSED},
    {{.if_tags = "\"kind\" = 'dog'"}, REFUSED, REFUSED, REFUSED, REFUSED},
    {{.if_tags = "\"kind\" = 'cat' AND \"other\" = 'x'"}, REFUSED, REFUSED, REFUSED, REFUSED},
};

static void judge(size_t row, const char *how, enum verdict want, int rc, const struct err *e)
{
    bool wants_failure = want == REFUSED || want == EXISTS || want == INVALID;

    if ((rc < 0) != wants_failure)
        fail_msg("row %zu, %s: %s", row, how, rc < 0 ? err_reason_of(e) : "taken");
    if (rc < 0)
        assert_string_equal(err_reason_of(e), reasons[want]);
}

static void every_combination_has_its_verdict(void **state)
{
    auto_json json_t *tags = json_pack("{ssss}", "kind", "cat", "it''s", "o'k");
    const struct blob blob = {.etag = "0x8D1", .modified_ms = CHANGED_MS, .tags = tags};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct conditions *c = &table[i].conditions;
        struct err e = {0};
        bool unchanged = false;
        int rc = conditions_check_read(c, &blob, &unchanged, &e);

        judge(i, "read", table[i].read, rc, &e);
        assert_int_equal(unchanged, table[i].read == UNCHANGED);
        if (table[i].read == UNCHANGED)
            judge(i, "read", REFUSED, conditions_check_read(c, &blob, NULL, &e), &e);
        judge(i, "create", table[i].create,
              conditions_check_write(c, &blob, CONDITION_CREATE, &e), &e);
        judge(i, "change", table[i].change,
              conditions_check_write(c, &blob, CONDITION_CHANGE, &e), &e);
        judge(i, "missing", table[i].missing,
              conditions_check_write(c, NULL, CONDITION_CREATE, &e), &e);
    }
}

static void tags_that_make_no_sense_are_invalid(void **state)
{
    static const char *const terms[] = {
        "kind",        "kind =",      "kind = cat",
        "= 'cat'",     "kind <> 'a'", "kind = 'cat' OR kind = 'dog'",
        "kind = 'cat", "\"kind"};
    auto_json json_t *tags = json_object();
    const struct blob blob = {.etag = "0x8D1", .tags = tags};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(terms); i++) {
        const struct conditions c = {.if_tags = terms[i]};
        struct err e = {0};

        assert_int_equal(conditions_check_write(&c, &blob, CONDITION_CHANGE, &e), -1);
        assert_string_equal(err_reason_of(&e), "InvalidHeaderValue");
    }
}

static void a_lease_binds_who_writes(void **state)
{
    static const char *const held = "aaaaaaaa-0000-4000-8000-000000000000";
    static const char *const other = "bbbbbbbb-0000-4000-8000-000000000000";
    const int64_t now = clock_wall_ms();
    const struct {
        struct lease lease;
        const char *id, *reason;
        enum condition_kind kind;
    } rows[] = {
        {{.held = true, .duration_s = -1}, NULL, "LeaseIdMissing", CONDITION_CREATE},
        {{.held = true, .duration_s = -1}, NULL, NULL, CONDITION_FREE},
        {{.held = true, .duration_s = -1}, held, NULL, CONDITION_CHANGE},
        {{.held = true}, "AAAAAAAA-0000-4000-8000-000000000000", NULL, CONDITION_CHANGE},
        {{.held = true}, other, "LeaseIdMismatchWithBlobOperation", CONDITION_CHANGE},
        {{.held = true}, other, "LeaseIdMismatchWithBlobOperation", CONDITION_FREE},
        {{.held = true, .expires_ms = 1}, NULL, NULL, CONDITION_CHANGE},
        {{.held = true, .expires_ms = 1}, held, "LeaseLost", CONDITION_CHANGE},
        {{.held = true, .breaks_ms = now + 60000}, NULL, "LeaseIdMissing", CONDITION_CHANGE},
        {{.held = true, .breaks_ms = now + 60000}, held, NULL, CONDITION_CHANGE},
        {{.held = true, .breaks_ms = 1}, NULL, NULL, CONDITION_CHANGE},
        {{.id = ""}, NULL, NULL, CONDITION_CHANGE},
        {{.id = ""}, held, "LeaseNotPresentWithBlobOperation", CONDITION_CHANGE},
    };
    auto_json json_t *tags = json_object();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct conditions c = {.lease_id = rows[i].id};
        struct blob blob = {.etag = "0x8D1", .tags = tags, .lease = rows[i].lease};
        struct err e = {0};
        int rc;

        memcpy(blob.lease.id, held, strlen(held) + 1);
        rc = conditions_check_write(&c, &blob, rows[i].kind, &e);
        if ((rc < 0) != (rows[i].reason != NULL))
            fail_msg("row %zu: %s", i, e.msg);
        if (rc < 0)
            assert_string_equal(err_reason_of(&e), rows[i].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_has_its_verdict),
        cmocka_unit_test(tags_that_make_no_sense_are_invalid),
        cmocka_unit_test(a_lease_binds_who_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
