/* batchai-recorded.c - what clients sent to the real service, what it answered, and the recipes
 * people have.  They lie beside the tree, not in it: where they are not there, nothing is
 * tested, and the test says so.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/batchai.h"
#include "core/launch.h"
#include "core/vmsize.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CLUSTER                                                                                \
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.BatchAI/workspaces/w/clusters/c"

static struct vmsizes *sizes;

static int set_up(void **state)
{
    (void)state;
    sizes = vmsizes_new(2, 4096, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    vmsizes_free(sizes);
    return 0;
}

/* Call each(path, document) for all files of a pattern; how many there are. */
static size_t each_file(const char *pattern, void (*each)(const char *path, json_t *document))
{
    auto_free char *whole = xasprintf("%s/%s", YARD_RECORDED, pattern);
    glob_t found = {0};
    size_t count;

    glob(whole, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        auto_json json_t *document = json_load_file(found.gl_pathv[i], 0, NULL);

        assert_non_null(document);
        each(found.gl_pathv[i], document);
    }
    count = found.gl_pathc;
    globfree(&found);
    if (count == 0) {
        print_message("%s is not there: nothing to compare with\n", whole);
        skip();
    }
    return count;
}

/* --- recorded traffic --- */

enum kind {
    CLUSTERS,
    JOBS,
    FILE_SERVERS,
    OTHERS,
};

/* The path of a URI without host and query, in lower case; caller frees. */
static char *path_of(const char *uri)
{
    const char *path = strchr(strstr(uri, "//") + 2, '/');
    auto_free char *cut = xstrndup(path, strcspn(path, "?"));

    return str_lower(cut);
}

static enum kind kind_of(const char *path)
{
    static const char *const kinds[] = {"/clusters/", "/jobs/", "/fileservers/"};

    for (int i = CLUSTERS; i < OTHERS; i++) {
        const char *at = strstr(path, kinds[i]);

        if (at && !strchr(at + strlen(kinds[i]), '/'))
            return (enum kind)i;
    }
    return OTHERS;
}

/* Bodies were recorded as Python prints bytes: b'...'. */
static json_t *body_of(const json_t *interaction)
{
    json_t *recorded = json_object_get(interaction, "requestBody"), *body;
    const char *text = json_string_value(recorded);
    auto_str plain = {0};

    if (!text)
        return json_incref(recorded);
    if (text[0] != 'b')
        return json_loads(text, 0, NULL);
    for (const char *p = text + 2; p[1]; p++) {
        if (*p == '\\' && (p[1] == '\\' || p[1] == '\''))
            p++;
        str_add_char(&plain, *p);
    }
    body = json_loads(str_text(&plain), 0, NULL);
    assert_non_null(body);
    return body;
}

static void
read_body(enum kind kind, const json_t *body, const char *path, struct batchai_spec *ret)
{
    struct err e = {0};
    int rc = kind == JOBS       ? batchai_read_job(body, ret, &e)
             : kind == CLUSTERS ? batchai_read_cluster(body, sizes, ret, &e)
                                : batchai_read_file_server(body, sizes, ret, &e);

    if (rc < 0)
        fail_msg("%s: %s", path, e.msg);
}

/* What the service adds, and what it fills in from elsewhere. */
static void drop_own(json_t *properties)
{
    static const char *const names[] = {
        "provisioningState",
        "allocationState",
        "creationTime",
        "allocationStateTransitionTime",
        "provisioningStateTransitionTime",
        "currentNodeCount",
        "nodeStateCounts",
        "errors",
        "executionState",
        "executionStateTransitionTime",
        "executionInfo",
        "experimentName",
        "jobOutputDirectoryPathSegment",
        "toolType",
        "mountSettings",
        "subnet",
    };
    json_t *setup = json_object_get(properties, "nodeSetup");

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        json_object_del(properties, names[i]);
    json_object_del(json_object_get(setup, "setupTask"), "stdOutErrPathSuffix");
}

static size_t compared;

static void compare(const char *path, const json_t *kept, const json_t *answer)
{
    auto_json json_t *shown = json_deep_copy(json_object_get(answer, "properties"));
    auto_free char *ours = NULL, *theirs = NULL;

    drop_own(shown);
    ours = json_canonical(kept);
    theirs = json_canonical(shown);
    if (strcmp(ours, theirs) != 0)
        fail_msg("%s\nours   %s\ntheirs %s", path, ours, theirs);
    compared++;
}

/* The next answer that shows the resource, before it is changed again. */
static const json_t *answer_to(const json_t *interactions, size_t after, const char *path)
{
    for (size_t i = after + 1; i < json_array_size(interactions); i++) {
        const json_t *interaction = json_array_get(interactions, i);
        auto_free char *other = path_of(json_string_value(json_object_get(interaction, "uri")));
        const json_t *answer = json_object_get(interaction, "responseBody");
        const char *method = json_string_value(json_object_get(interaction, "method"));

        if (!str_equal(other, path))
            continue;
        if (str_equal(method, "GET") && json_object_get(answer, "properties"))
            return answer;
        if (!str_equal(method, "GET"))
            return NULL;
    }
    return NULL;
}

static void check_put(const json_t *interactions, size_t at, const char *path)
{
    const json_t *answer = answer_to(interactions, at, path);
    auto_json json_t *body = body_of(json_array_get(interactions, at));
    struct batchai_spec spec = {0};

    read_body(kind_of(path), body, path, &spec);
    if (answer) {
        const char *type = json_string_value(
            json_object_get(json_object_get(answer, "properties"), "toolType"));

        compare(path, spec.kept, answer);
        if (type)
            assert_string_equal(batchai_tool(spec.kept), type);
    }
    batchai_spec_done(&spec);
}

static void check_patch(const json_t *interaction, const char *path)
{
    auto_json json_t *body = body_of(interaction), *settings = NULL;
    const json_t *answer = json_object_get(interaction, "responseBody");
    auto_free char *ours = NULL, *theirs = NULL;
    struct err e = {0};

    if (batchai_read_scale(body, &settings, &e) < 0)
        fail_msg("%s: %s", path, e.msg);
    ours = json_canonical(settings);
    theirs =
        json_canonical(json_object_get(json_object_get(answer, "properties"), "scaleSettings"));
    assert_string_equal(ours, theirs);
    compared++;
}

static void check_recording(const char *file, json_t *document)
{
    const json_t *interactions = json_object_get(document, "interactions"), *interaction;
    size_t i;

    (void)file;
    json_array_foreach(interactions, i, interaction)
    {
        auto_free char *path = path_of(json_string_value(json_object_get(interaction, "uri")));
        const char *method = json_string_value(json_object_get(interaction, "method"));

        if (kind_of(path) == OTHERS || !json_object_get(interaction, "requestBody"))
            continue;
        if (str_equal(method, "PUT"))
            check_put(interactions, i, path);
        else if (str_equal(method, "PATCH"))
            check_patch(interaction, path);
    }
}

static void what_was_sent_is_kept_as_the_service_showed_it(void **state)
{
    (void)state;
    compared = 0;
    each_file("wire/*.json", check_recording);
    print_message("%zu answers compared\n", compared);
    assert_true(compared >= 20);
}

/* --- recipes --- */

/* As the command line prepares a file: the account's name in place of its placeholder, and what
 * is missing. */
static json_t *prepare(const json_t *document)
{
    static const char placeholder[] = "<AZURE_BATCHAI_STORAGE_ACCOUNT>";
    auto_free char *text = json_canonical(document);
    auto_str filled = {0};
    json_t *body;

    for (const char *p = text; *p; p++) {
        if (!str_starts(p, placeholder)) {
            str_add_char(&filled, *p);
            continue;
        }
        str_add(&filled, "recipes0");
        p += strlen(placeholder) - 1;
    }
    body = json_loads(str_text(&filled), 0, NULL);
    assert_non_null(body);
    return body;
}

static void plan_job(const char *file, const json_t *kept, bool has_ssh)
{
    const struct launch_node nodes[] = {
        {"tvm-1-1", "10.0.0.4", "/mnt/batch/tasks/shared/LS_root", 6, 1, "0"},
        {"tvm-1-2", "10.0.0.5", "/mnt/batch/tasks/shared/LS_root", 6, 1, "1"},
    };
    const struct launch_input input = {
        .job = kept,
        .workspace = "w",
        .experiment = "e",
        .name = "j",
        .cluster = "c",
        .segment = "s/g/workspaces/w/experiments/e/jobs/j/u",
        .nodes = nodes,
        .node_count = (size_t)json_integer_value(json_object_get(kept, "nodeCount")),
        .is_container = json_object_get(kept, "containerSettings") != NULL,
        .has_ssh = has_ssh,
        .attempt = 1,
    };
    autoptr(arena) arena = arena_new();
    struct launch_plan plan;
    struct err e = {0};

    if (launch_plan(&input, arena, &plan, &e) < 0)
        fail_msg("%s: %s", file, e.msg);
    assert_true(plan.task_count >= 1);
    assert_int_equal(plan.tasks[0].role, LAUNCH_MASTER);
    for (size_t i = 0; i < plan.task_count; i++) {
        assert_true(*plan.tasks[i].command);
        assert_true(str_starts(plan.tasks[i].stdout_path, plan.stdouterr_folder));
    }
}

static void read_and_plan(const char *file, json_t *document)
{
    auto_json json_t *body = prepare(document);
    json_t *properties = json_object_get(body, "properties");
    struct batchai_spec spec = {0};

    if (!json_object_get(properties, "cluster"))
        json_object_set_new(properties, "cluster", json_pack("{ss}", "id", CLUSTER));
    read_body(JOBS, body, file, &spec);
    plan_job(file, spec.kept, true);
    plan_job(file, spec.kept, false);
    batchai_spec_done(&spec);
}

static void every_recipe_is_read_and_planned(void **state)
{
    (void)state;
    print_message("%zu recipes\n", each_file("recipes/*/job*.json", read_and_plan));
}

static void read_cli_file(const char *file, json_t *document)
{
    auto_json json_t *body = prepare(document);
    json_t *properties = json_object_get(body, "properties");
    struct batchai_spec spec = {0};

    if (strstr(file, "job")) {
        read_and_plan(file, document);
        return;
    }
    if (strstr(file, "file_server")) {
        read_body(FILE_SERVERS, body, file, &spec);
    } else { /* the command line fills in who is to log in */
        if (!json_object_get(properties, "userAccountSettings"))
            json_object_set_new(properties, "userAccountSettings",
                                json_pack("{ss}", "adminUserName", "me"));
        read_body(CLUSTERS, body, file, &spec);
    }
    batchai_spec_done(&spec);
}

static void every_file_of_the_command_line_is_read(void **state)
{
    (void)state;
    print_message("%zu files\n", each_file("cli-testdata/*.json", read_cli_file));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_is_kept_as_the_service_showed_it),
        cmocka_unit_test(every_recipe_is_read_and_planned),
        cmocka_unit_test(every_file_of_the_command_line_is_read),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
