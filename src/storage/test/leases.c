/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "base/clock.h"

#define A "aaaaaaaa-0000-4000-8000-000000000000"
#define B "bbbbbbbb-0000-4000-8000-000000000000"

enum {
    NOW = 1000000,
};

/* A lease of A in each state, at NOW. */
static struct lease lease_in(const char *state)
{
    struct lease l = {.id = A, .held = true, .duration_s = 30, .expires_ms = NOW + 20000};

    if (strcmp(state, "available") == 0)
        return (struct lease){0};
    if (strcmp(state, "expired") == 0)
        l.expires_ms = NOW - 1;
    if (strcmp(state, "breaking") == 0)
        l.breaks_ms = NOW + 10000;
    if (strcmp(state, "broken") == 0)
        l.breaks_ms = NOW - 1;
    assert_string_equal(lease_state_name(&l, NOW), state);
    return l;
}

static const struct {
    const char *from;
    struct lease_request request;
    const char *to; /* the state after, or the reason of the refusal */
} table[] = {
    {"available", {.action = LEASE_ACQUIRE, .id = A, .duration_s = 15}, "leased"},
    {"available", {.action = LEASE_ACQUIRE, .duration_s = -1}, "leased"},
    {"available", {.action = LEASE_ACQUIRE, .id = A, .duration_s = 14}, "InvalidHeaderValue"},
    {"available", {.action = LEASE_ACQUIRE, .id = A, .duration_s = 61}, "InvalidHeaderValue"},
    {"available", {.action = LEASE_ACQUIRE, .id = "x", .duration_s = 15}, "InvalidHeaderValue"},
    {"available", {.action = LEASE_RENEW, .id = A}, "LeaseIdMismatchWithLeaseOperation"},
    {"available",
     {.action = LEASE_CHANGE, .id = A, .proposed = B},
     "LeaseNotPresentWithLeaseOperation"},
    {"available", {.action = LEASE_RELEASE, .id = A}, "LeaseIdMismatchWithLeaseOperation"},
    {"available", {.action = LEASE_BREAK, .break_s = -1}, "LeaseNotPresentWithLeaseOperation"},

    {"leased", {.action = LEASE_ACQUIRE, .id = A, .duration_s = -1}, "leased"},
    {"leased", {.action = LEASE_ACQUIRE, .id = B, .duration_s = 15}, "LeaseAlreadyPresent"},
    {"leased", {.action = LEASE_ACQUIRE, .duration_s = 15}, "LeaseAlreadyPresent"},
    {"leased", {.action = LEASE_RENEW, .id = A}, "leased"},
    {"leased", {.action = LEASE_RENEW, .id = B}, "LeaseIdMismatchWithLeaseOperation"},
    {"leased", {.action = LEASE_CHANGE, .id = A, .proposed = B}, "leased"},
    {"leased", {.action = LEASE_CHANGE, .id = B, .proposed = A}, "leased"},
    {"leased",
     {.action = LEASE_CHANGE, .id = B, .proposed = B},
     "LeaseIdMismatchWithLeaseOperation"},
    {"leased", {.action = LEASE_CHANGE, .id = A, .proposed = "x"}, "InvalidHeaderValue"},
    {"leased", {.action = LEASE_RELEASE, .id = A}, "available"},
    {"leased", {.action = LEASE_RELEASE, .id = B}, "LeaseIdMismatchWithLeaseOperation"},
    {"leased", {.action = LEASE_BREAK, .break_s = 0}, "broken"},
    {"leased", {.action = LEASE_BREAK, .break_s = 5}, "breaking"},
    {"leased", {.action = LEASE_BREAK, .break_s = -1}, "breaking"},
    {"leased", {.action = LEASE_BREAK, .break_s = 61}, "InvalidHeaderValue"},

    {"expired", {.action = LEASE_ACQUIRE, .id = B, .duration_s = 15}, "leased"},
    {"expired", {.action = LEASE_RENEW, .id = A}, "leased"},
    {"expired", {.action = LEASE_RENEW, .id = B}, "LeaseIdMismatchWithLeaseOperation"},
    {"expired",
     {.action = LEASE_CHANGE, .id = A, .proposed = B},
     "LeaseNotPresentWithLeaseOperation"},
    {"expired", {.action = LEASE_RELEASE, .id = A}, "available"},
    {"expired", {.action = LEASE_BREAK, .break_s = -1}, "broken"},

    {"breaking",
     {.action = LEASE_ACQUIRE, .id = A, .duration_s = 15},
     "LeaseIsBreakingAndCannotBeAcquired"},
    {"breaking", {.action = LEASE_ACQUIRE, .id = B, .duration_s = 15}, "LeaseAlreadyPresent"},
    {"breaking", {.action = LEASE_RENEW, .id = A}, "LeaseIsBrokenAndCannotBeRenewed"},
    {"breaking",
     {.action = LEASE_CHANGE, .id = A, .proposed = B},
     "LeaseIsBreakingAndCannotBeChanged"},
    {"breaking", {.action = LEASE_RELEASE, .id = A}, "available"},
    {"breaking", {.action = LEASE_BREAK, .break_s = 0}, "broken"},
    {"breaking", {.action = LEASE_BREAK, .break_s = -1}, "breaking"},

    {"broken", {.action = LEASE_ACQUIRE, .id = B, .duration_s = 15}, "leased"},
    {"broken", {.action = LEASE_RENEW, .id = A}, "LeaseIsBrokenAndCannotBeRenewed"},
    {"broken",
     {.action = LEASE_CHANGE, .id = A, .proposed = B},
     "LeaseNotPresentWithLeaseOperation"},
    {"broken", {.action = LEASE_RELEASE, .id = A}, "available"},
    {"broken", {.action = LEASE_BREAK, .break_s = -1}, "broken"},
};

static void each_action_in_each_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct lease lease = lease_in(table[i].from);
        struct err e = {0};
        int left_s = -1;
        int rc = lease_apply(&lease, &table[i].request, NOW, &left_s, &e);
        const char *got = rc < 0 ? err_reason_of(&e) : lease_state_name(&lease, NOW);

        if (strcmp(got, table[i].to) != 0)
            fail_msg("row %zu from %s: %s, not %s", i, table[i].from, got, table[i].to);
    }
}

static void a_break_takes_the_shorter_of_wish_and_rest(void **state)
{
    static const struct {
        const char *from;
        int break_s, left_s;
    } rows[] = {
        {"leased", -1, 20}, {"leased", 5, 5},     {"leased", 60, 20}, {"breaking", -1, 10},
        {"breaking", 3, 3}, {"breaking", 50, 10}, {"broken", 9, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct lease_request request = {.action = LEASE_BREAK,
                                              .break_s = rows[i].break_s};
        struct lease lease = lease_in(rows[i].from);
        int left_s = -1;

        assert_int_equal(lease_apply(&lease, &request, NOW, &left_s, NULL), 0);
        assert_int_equal(left_s, rows[i].left_s);
    }
}

static void a_lease_without_end_breaks_at_once_and_stays_locked_until_then(void **state)
{
    const struct lease_request request = {.action = LEASE_BREAK, .break_s = -1};
    struct lease lease = {.id = A, .held = true, .duration_s = -1};

    (void)state;
    assert_true(lease_is_locked(&lease, NOW));
    assert_int_equal(lease_apply(&lease, &request, NOW, NULL, NULL), 0);
    assert_string_equal(lease_state_name(&lease, NOW), "broken");
    assert_false(lease_is_locked(&lease, NOW));
}

static void a_blobs_lease_survives_overwriting_and_a_restart(void **state)
{
    struct scene *s = *state;
    const struct blob_address at = at_name("a");
    const struct lease_request acquire = {
        .action = LEASE_ACQUIRE, .id = A, .duration_s = -1, .break_s = -1};
    const struct conditions mine = {.lease_id = A};
    autoptr(blob) blob = NULL;

    put_text(s, "a", "1");
    assert_int_equal(blobs_lease(s->blobs, &at, &acquire, NULL, &blob, NULL, &s->e), 0);
    assert_string_equal(blob->lease.id, A);
    assert_refused(s, put_if(s, "a", "2", NULL, NULL), "LeaseIdMissing");
    assert_refused(s, delete_name(s, "a"), "LeaseIdMissing");
    assert_int_equal(put_if(s, "a", "3", &mine, NULL), 0);
    scene_reopen(s);
    assert_refused(s, put_if(s, "a", "4", NULL, NULL), "LeaseIdMissing");
    assert_text(s, "a", "3");
}

static void leasing_changes_no_etag(void **state)
{
    struct scene *s = *state;
    const struct blob_address at = at_name("by-mount");
    const struct lease_request acquire = {
        .action = LEASE_ACQUIRE, .id = A, .duration_s = 15, .break_s = -1};
    autoptr(blob) before = NULL, *leased = NULL, *after = NULL;

    plant(s, "tree/by-mount", "1"); /* has no row yet */
    before = find(s, "by-mount");
    assert_int_equal(blobs_lease(s->blobs, &at, &acquire, NULL, &leased, NULL, &s->e), 0);
    after = find(s, "by-mount");
    assert_string_equal(before->etag, after->etag);
    assert_int_equal(before->modified_ms, after->modified_ms);
    assert_true(lease_is_locked(&after->lease, clock_wall_ms()));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_action_in_each_state),
        cmocka_unit_test(a_break_takes_the_shorter_of_wish_and_rest),
        cmocka_unit_test(a_lease_without_end_breaks_at_once_and_stays_locked_until_then),
        TEST(a_blobs_lease_survives_overwriting_and_a_restart),
        TEST(leasing_changes_no_etag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
