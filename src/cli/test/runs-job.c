/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs-job.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/runs-place.h"
#include "cli/storage-account.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {"./train", "it's", "$x", "a b"};
static const char *const env[] = {"SEED=1", "EMPTY=", "EQ=a=b"};

static const char *property(const json_t *body, const char *block, const char *name)
{
    const json_t *properties = json_object_get(body, "properties");
    const char *text =
        json_string_value(json_object_get(json_object_get(properties, block), name));

    return text ? text : "";
}

static void names_are_made_from_the_program(void **state)
{
    auto_free char *train = runs_job_name("./bin/train.py");
    auto_free char *again = runs_job_name("./bin/train.py");
    auto_free char *odd = runs_job_name("/.,;");

    (void)state;
    assert_true(str_starts(train, "train-") && strlen(train) == 12);
    assert_string_not_equal(train, again);
    assert_true(str_starts(odd, "run-"));
}

static void wrong_names_and_variables_are_refused(void **state)
{
    static const char *const bad_env[] = {"1A=2", "=x", "NONE", "A B=1"};
    static const char *const bad_names[] = {"", "a b", "a/b", "\xc3\xa9"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad_env); i++) {
        auto_runs_job job = {.name = xstrdup("ok"), .env = &bad_env[i], .env_count = 1};

        assert_int_equal(runs_job_check(&job, &e), -1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad_names); i++) {
        auto_runs_job job = {.name = xstrdup(bad_names[i])};

        assert_int_equal(runs_job_check(&job, &e), -1);
    }
}

static void the_command_runs_in_the_snapshot_as_it_was_typed(void **state)
{
    char name[] = "acct", key[] = "c2VjcmV0", id[] = "/cluster";
    struct storage_account account = {.name = name, .auth = STORAGE_AUTH_KEY, .secret = key};
    const struct runs_place place = {.account = &account, .cluster_id = id};
    auto_runs_job job = {.name = xstrdup("j"),
                         .words = words,
                         .word_count = ARRAY_SIZE(words),
                         .env = env,
                         .env_count = ARRAY_SIZE(env),
                         .nodes = 2,
                         .procs = 4};
    auto_json json_t *many = NULL, *one = NULL;
    auto_free char *want = NULL, *variables = NULL;
    struct err e;

    (void)state;
    assert_int_equal(runs_job_check(&job, &e), 0);
    want =
        xasprintf("cd \"$AZ_BATCHAI_JOB_MOUNT_ROOT/run/%s\" && exec './train' 'it'\\''s' '$x' "
                  "'a b'",
                  job.folder);
    many = runs_job_body(&job, &place);
    assert_string_equal(property(many, "customMpiSettings", "commandLine"), want);
    assert_string_equal(property(many, "cluster", "id"), "/cluster");
    variables = json_canonical(
        json_object_get(json_object_get(many, "properties"), "environmentVariables"));
    assert_string_equal(variables, "[{\"name\":\"SEED\",\"value\":\"1\"},{\"name\":\"EMPTY\","
                                   "\"value\":\"\"},{\"name\":\"EQ\",\"value\":\"a=b\"}]");
    job.procs = job.nodes = 1;
    job.image = "ubuntu";
    one = runs_job_body(&job, &place);
    assert_string_equal(property(one, "customToolkitSettings", "commandLine"), want);
    assert_string_equal(property(one, "customMpiSettings", "commandLine"), "");
    assert_non_null(json_object_get(
        json_object_get(json_object_get(one, "properties"), "containerSettings"),
        "imageSourceRegistry"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_made_from_the_program),
        cmocka_unit_test(wrong_names_and_variables_are_refused),
        cmocka_unit_test(the_command_runs_in_the_snapshot_as_it_was_typed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
