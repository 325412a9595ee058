/* SPDX-License-Identifier: Apache-2.0 */
#include "store/test/yard.h"

static void add(struct yard *yard, int64_t at_ms, const char *detail)
{
    const struct event event = {0,       at_ms,  "ann",       "::1", "Groups_Put",
                                "/path", "id-1", "Succeeded", detail};
    struct err e = {0};

    assert_ok(store_add_event(yard->db, &event, &e), &e);
}

static void add_line(const struct event *v, void *context)
{
    str_addf(context, "%d@%d ", (int)v->seq, (int)v->at_ms);
}

static void check_page(struct yard *yard, int64_t before, size_t most, const char *wanted)
{
    auto_str out = {0};
    struct err e = {0};

    assert_ok(store_each_event(yard->db, before, most, add_line, &out, &e), &e);
    assert_string_equal(str_text(&out), wanted);
}

static void events_are_paged_newest_first_by_sequence_not_by_time(void **state)
{
    struct yard yard;

    (void)state;
    yard_init(&yard);
    check_page(&yard, 0, 10, "");
    add(&yard, 500, NULL);
    add(&yard, 400, NULL); /* the clock was set back */
    add(&yard, 600, NULL);
    check_page(&yard, 0, 10, "3@600 2@400 1@500 ");
    check_page(&yard, 0, 2, "3@600 2@400 ");
    check_page(&yard, 2, 2, "1@500 ");
    check_page(&yard, 1, 2, "");
    yard_done(&yard);
}

static void old_events_go_up_to_the_first_that_is_young_or_the_newest(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    add(&yard, 500, NULL);
    add(&yard, 700, NULL);
    add(&yard, 400, NULL); /* the clock was set back: what came before is not older */
    assert_ok(store_remove_old_events(yard.db, 450, &e), &e);
    check_page(&yard, 0, 10, "3@400 2@700 1@500 ");
    assert_ok(store_remove_old_events(yard.db, 600, &e), &e);
    check_page(&yard, 0, 10, "3@400 2@700 ");
    assert_ok(store_remove_old_events(yard.db, 800, &e), &e);
    check_page(&yard, 0, 10, "3@400 ");
    yard_done(&yard);
}

static void check_fields(const struct event *v, void *context)
{
    assert_string_equal(v->principal, "ann");
    assert_string_equal(v->peer, "::1");
    assert_string_equal(v->operation, "Groups_Put");
    assert_string_equal(v->target, "/path");
    assert_string_equal(v->request_id, "id-1");
    assert_string_equal(v->outcome, "Succeeded");
    assert_true(str_equal(v->detail, v->seq == 1 ? NULL : "because"));
    ++*(int *)context;
}

static void an_event_comes_back_as_it_was_added(void **state)
{
    struct yard yard;
    struct err e = {0};
    int count = 0;

    (void)state;
    yard_init(&yard);
    add(&yard, 1, NULL);
    add(&yard, 2, "because");
    assert_ok(store_each_event(yard.db, 0, 10, check_fields, &count, &e), &e);
    assert_int_equal(count, 2);
    yard_done(&yard);
}

static void a_sequence_number_is_never_given_again(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    add(&yard, 1, NULL);
    add(&yard, 2, NULL);
    assert_ok(store_remove_old_events(yard.db, 99, &e), &e); /* all are older */
    assert_ok(store_remove_old_events(yard.db, 99, &e), &e);
    yard_reopen(&yard);
    add(&yard, 3, NULL);
    check_page(&yard, 0, 10, "3@3 2@2 ");
    yard_done(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_events_go_up_to_the_first_that_is_young_or_the_newest),
        cmocka_unit_test(events_are_paged_newest_first_by_sequence_not_by_time),
        cmocka_unit_test(an_event_comes_back_as_it_was_added),
        cmocka_unit_test(a_sequence_number_is_never_given_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
