/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai-internal.h"
#include "core/batchai.h"

#include "base/json.h"
#include "base/mem.h"

#include <string.h>

/* --- toolkits --- */

#define ARGUMENTS                                                                              \
    {                                                                                          \
        "commandLineArgs", SHAPE_TEXT, .may_be_empty = true, .most = SHAPE_MOST_COMMAND        \
    }
#define INTERPRETER                                                                            \
    {                                                                                          \
        "pythonInterpreterPath", SHAPE_TEXT, .problem = value_single_line                      \
    }
#define SCRIPT(needed)                                                                         \
    {                                                                                          \
        "pythonScriptFilePath", SHAPE_TEXT, .is_required = (needed),                           \
                                            .problem = value_single_line,                      \
                                            .hint = "the path of the script"                   \
    }
#define CONFIG                                                                                 \
    {                                                                                          \
        "configFilePath", SHAPE_TEXT, .problem = value_single_line                             \
    }
#define PROCESSES                                                                              \
    {                                                                                          \
        "processCount", SHAPE_INT, .least = 1, .most = SHAPE_MOST_PROCESSES                    \
    }

static const char *const languages[] = {"BrainScript", "Python", NULL};
static const char *const backends[] = {"TCP", "Gloo", "MPI", "NCCL", NULL};

static const struct shape cntk[] = {
    {"languageType", SHAPE_WORD, .words = languages},
    CONFIG,
    SCRIPT(false),
    INTERPRETER,
    ARGUMENTS,
    PROCESSES,
    {0},
};

static const struct shape pytorch[] = {
    SCRIPT(true),
    INTERPRETER,
    ARGUMENTS,
    PROCESSES,
    {"communicationBackend", SHAPE_WORD, .words = backends},
    {0},
};

static const struct shape tensorflow[] = {
    SCRIPT(true),
    INTERPRETER,
    {"masterCommandLineArgs", SHAPE_TEXT, .may_be_empty = true, .most = SHAPE_MOST_COMMAND},
    {"workerCommandLineArgs", SHAPE_TEXT, .may_be_empty = true, .most = SHAPE_MOST_COMMAND},
    {"parameterServerCommandLineArgs", SHAPE_TEXT, .may_be_empty = true,
     .most = SHAPE_MOST_COMMAND},
    {"workerCount", SHAPE_INT, .least = 1, .most = SHAPE_MOST_GANG},
    {"parameterServerCount", SHAPE_INT, .least = 1, .most = SHAPE_MOST_GANG},
    {0},
};

static const struct shape caffe[] = {
    CONFIG, SCRIPT(false), INTERPRETER, ARGUMENTS, PROCESSES, {0},
};
static const struct shape caffe2[] = {SCRIPT(true), INTERPRETER, ARGUMENTS, {0}};
static const struct shape chainer[] = {SCRIPT(true), INTERPRETER, ARGUMENTS, PROCESSES, {0}};
static const struct shape horovod[] = {SCRIPT(true), INTERPRETER, ARGUMENTS, PROCESSES, {0}};

static const struct shape custom[] = {
    {"commandLine", SHAPE_TEXT, .is_required = true, .most = SHAPE_MOST_COMMAND,
     .hint = "the command to run on the first node"},
    {0},
};

static const struct shape custom_mpi[] = {
    {"commandLine", SHAPE_TEXT, .is_required = true, .most = SHAPE_MOST_COMMAND,
     .hint = "the command that each rank runs"},
    PROCESSES,
    {0},
};

/* Fail unless exactly one of the two programs is there. */
static int check_program(struct reader *r, const json_t *kept)
{
    bool has_config = json_object_get(kept, "configFilePath") != NULL;
    bool has_script = json_object_get(kept, "pythonScriptFilePath") != NULL;

    if (has_config && has_script)
        return reader_fail(r, NULL,
                           "has both configFilePath and pythonScriptFilePath; give one of "
                           "them");
    if (!has_config && !has_script)
        return reader_fail(r, NULL,
                           "has neither configFilePath nor pythonScriptFilePath; give one of "
                           "them");
    if (has_config && json_object_get(kept, "pythonInterpreterPath"))
        return reader_fail(r, "pythonInterpreterPath",
                           "is for scripts; give pythonScriptFilePath, or leave it out");
    return 0;
}

static int check_caffe(struct reader *r, json_t *kept)
{
    return check_program(r, kept);
}

static int check_cntk(struct reader *r, json_t *kept)
{
    const char *language = shape_text(kept, "languageType"), *found;

    if (check_program(r, kept) < 0)
        return -1;
    found = json_object_get(kept, "configFilePath") ? "BrainScript" : "Python";
    if (language && !str_equal(language, found))
        return reader_fail(
            r, "languageType", "\"%s\" goes with %s, which is not given", language,
            str_equal(found, "Python") ? "configFilePath" : "pythonScriptFilePath");
    json_object_set_new(kept, "languageType", json_string(found));
    return 0;
}

static const struct {
    const char *block;
    const char *type; /* toolType */
    bool has_processes;
} tools[] = {
    {"cntkSettings", "cntk", true},
    {"pyTorchSettings", "pytorch", true},
    {"tensorFlowSettings", "tensorflow", false},
    {"caffeSettings", "caffe", true},
    {"caffe2Settings", "caffe2", false},
    {"chainerSettings", "chainer", true},
    {"customToolkitSettings", "custom", false},
    {"customMpiSettings", "custommpi", true},
    {"horovodSettings", "horovod", true},
};

/* The row of the settings block that is there; ARRAY_SIZE(tools) when there is none. */
static size_t tool_of(const json_t *kept)
{
    size_t i = 0;

    while (i < ARRAY_SIZE(tools) && !json_object_get(kept, tools[i].block))
        i++;
    return i;
}

const char *batchai_tool(const json_t *kept)
{
    size_t tool = tool_of(kept);

    return tool < ARRAY_SIZE(tools) ? tools[tool].type : "";
}

const json_t *batchai_tool_settings(const json_t *kept)
{
    size_t tool = tool_of(kept);

    return tool < ARRAY_SIZE(tools) ? json_object_get(kept, tools[tool].block) : NULL;
}

/* --- containers --- */

static const struct shape registry_credentials[] = {
    {"username", SHAPE_TEXT, .is_required = true, .most = 256, .problem = value_registry_user,
     .hint = "the name to log in to the registry with"},
    {"passwordSecretReference", SHAPE_REFUSED,
     .hint = "there is no Key Vault here; give password itself, it is kept sealed and never "
             "shown"},
    {"password", SHAPE_SECRET, .is_required = true, .problem = value_single_line,
     .hint = "the password of the registry; it is never shown"},
    {0},
};

static const struct shape image_source[] = {
    {"serverUrl", SHAPE_TEXT, .most = 512, .problem = value_registry},
    {"image", SHAPE_TEXT, .is_required = true, .most = 512, .problem = value_image,
     .hint = "the name of the image"},
    {"credentials", SHAPE_OBJECT, .members = registry_credentials},
    {0},
};

static const struct shape container[] = {
    {"imageSourceRegistry", SHAPE_OBJECT, .is_required = true, .members = image_source,
     .hint = "{\"image\": ...}"},
    {"shmSize", SHAPE_TEXT, .most = 32, .problem = value_size},
    {0},
};

/* --- folders --- */

static const struct shape input[] = {
    {"id", SHAPE_TEXT, .is_required = true, .most = 64, .problem = value_directory_id,
     .hint = "a short name; the job finds the path in AZ_BATCHAI_INPUT_<id>"},
    {"path", SHAPE_TEXT, .is_required = true, .problem = value_node_path,
     .hint = "the path of the folder"},
    {0},
};

static const struct shape output[] = {
    {"id", SHAPE_TEXT, .is_required = true, .most = 64, .problem = value_directory_id,
     .hint = "a short name; the job finds the path in AZ_BATCHAI_OUTPUT_<id>"},
    {"pathPrefix", SHAPE_TEXT, .is_required = true, .problem = value_node_path,
     .hint = "where to make the folder, such as \"$AZ_BATCHAI_JOB_MOUNT_ROOT/out\""},
    {"pathSuffix", SHAPE_TEXT, .problem = value_beneath},
    {0},
};

static int check_ids(struct reader *r, const json_t *kept, const char *list)
{
    auto_json json_t *seen = json_object();
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(kept, list), i, row)
    {
        const char *id = shape_text(row, "id");
        auto_free char *member = xasprintf("%s[%zu].id", list, i);

        if (json_object_get(seen, id))
            return reader_fail(r, member, "\"%s\" is there twice; give each folder its own",
                               id);
        if (str_equal_nocase(id, "stdouterr") && str_equal(list, "outputDirectories"))
            return reader_fail(r, member, "\"%s\" is the folder of the logs; take another", id);
        json_object_set_new(seen, id, json_true());
    }
    return 0;
}

/* --- limits --- */

static const struct shape constraints[] = {
    {"maxWallClockTime", SHAPE_TEXT, .most = 64, .otherwise = "P7D"},
    {"maxAttempts", SHAPE_INT, .least = 1, .most = 100},
    {0},
};

static int check_constraints(struct reader *r, json_t *kept)
{
    const char *text = shape_text(kept, "maxWallClockTime");
    bool is_iso;
    int64_t ms;

    if (duration_read(text, &ms, &is_iso, NULL) < 0)
        return reader_fail(r, "maxWallClockTime",
                           "\"%.64s\" is no duration; take one such as \"PT12H\", \"P7D\" or "
                           "\"P1DT2H30M\"",
                           text);
    if (!is_iso) { /* kept as clients can read it again */
        auto_free char *iso = duration_iso(ms);

        json_object_set_new(kept, "maxWallClockTime", json_string(iso));
    }
    return 0;
}

/* --- the whole --- */

static const char *const priorities[] = {"low", "normal", "high", NULL};

static const struct shape cluster_id[] = {
    {"id", SHAPE_TEXT, .is_required = true, .problem = value_cluster_id,
     .hint = "the id of the cluster"},
    {0},
};

static const struct shape preparation[] = {
    {"commandLine", SHAPE_TEXT, .is_required = true, .most = SHAPE_MOST_COMMAND,
     .hint = "the command to run on each node before the job"},
    {0},
};

static const struct shape job_shape[] = {
    {"schedulingPriority", SHAPE_WORD, .words = priorities, .otherwise = "normal"},
    {"cluster", SHAPE_OBJECT, .is_required = true, .members = cluster_id,
     .hint = "the cluster to run on, {\"id\": ...}"},
    {"nodeCount", SHAPE_INT, .is_required = true, .least = 1, .most = SHAPE_MOST_GANG,
     .hint = "how many nodes the job runs on"},
    {"containerSettings", SHAPE_OBJECT, .members = container},
    {"mountVolumes", SHAPE_OBJECT, .members = SHAPE_MOUNT_VOLUMES, .check = volumes_check},
    {"cntkSettings", SHAPE_OBJECT, .members = cntk, .check = check_cntk},
    {"pyTorchSettings", SHAPE_OBJECT, .members = pytorch},
    {"tensorFlowSettings", SHAPE_OBJECT, .members = tensorflow},
    {"caffeSettings", SHAPE_OBJECT, .members = caffe, .check = check_caffe},
    {"caffe2Settings", SHAPE_OBJECT, .members = caffe2},
    {"chainerSettings", SHAPE_OBJECT, .members = chainer},
    {"customToolkitSettings", SHAPE_OBJECT, .members = custom},
    {"customMpiSettings", SHAPE_OBJECT, .members = custom_mpi},
    {"horovodSettings", SHAPE_OBJECT, .members = horovod},
    {"jobPreparation", SHAPE_OBJECT, .members = preparation},
    {"stdOutErrPathPrefix", SHAPE_TEXT, .is_required = true, .problem = value_node_path,
     .hint = "where its logs go, such as \"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs\""},
    {"inputDirectories", SHAPE_LIST, .members = input},
    {"outputDirectories", SHAPE_LIST, .members = output},
    {"environmentVariables", SHAPE_LIST, .members = SHAPE_VARIABLES},
    {"secrets", SHAPE_LIST, .members = SHAPE_SECRETS},
    {"constraints", SHAPE_OBJECT, .is_always = true, .members = constraints,
     .check = check_constraints},
    {0},
};

static int check_tool(struct reader *r, const json_t *kept)
{
    size_t first = tool_of(kept);

    if (first == ARRAY_SIZE(tools))
        return reader_fail(
            r, NULL,
            "has no toolkit; give one of cntkSettings, pyTorchSettings, "
            "tensorFlowSettings, caffeSettings, caffe2Settings, chainerSettings, "
            "customToolkitSettings, customMpiSettings and horovodSettings");
    for (size_t i = first + 1; i < ARRAY_SIZE(tools); i++) {
        if (json_object_get(kept, tools[i].block))
            return reader_fail(r, tools[i].block, "is there beside %s; give one toolkit",
                               tools[first].block);
    }
    return 0;
}

/* One process a node unless something else was said; parameter servers only where there is
 * something to share. */
static int fill_counts(struct reader *r, json_t *kept)
{
    size_t tool = tool_of(kept);
    json_t *settings = json_object_get(kept, tools[tool].block);
    json_t *nodes = json_object_get(kept, "nodeCount");
    bool is_distributed = json_integer_value(nodes) > 1 ||
                          shape_int(settings, "workerCount") > 1 ||
                          shape_int(settings, "parameterServerCount") > 0;

    if (tools[tool].has_processes && !json_object_get(settings, "processCount"))
        json_object_set(settings, "processCount", nodes);
    if (!str_equal(tools[tool].type, "tensorflow") || !is_distributed)
        return 0;
    if (!json_object_get(settings, "workerCount"))
        json_object_set(settings, "workerCount", nodes);
    if (!json_object_get(settings, "parameterServerCount"))
        json_object_set_new(settings, "parameterServerCount", json_integer(1));
    if (shape_int(settings, "parameterServerCount") > json_integer_value(nodes))
        return reader_fail(r, "tensorFlowSettings.parameterServerCount",
                           "%d is more than nodeCount, %lld; there is at most one on each node",
                           shape_int(settings, "parameterServerCount"),
                           (long long)json_integer_value(nodes));
    return 0;
}

int batchai_read_job(const json_t *body, struct batchai_spec *ret_spec, struct err *e)
{
    __attribute__((cleanup(reader_done))) struct reader r = {.secrets = json_object(), .e = e};
    auto_json json_t *kept = NULL;

    if (shape_read_body(&r, body, job_shape, &kept) < 0 || check_tool(&r, kept) < 0 ||
        fill_counts(&r, kept) < 0 || check_ids(&r, kept, "inputDirectories") < 0 ||
        check_ids(&r, kept, "outputDirectories") < 0 || variables_check(&r, kept) < 0)
        return -1;
    *ret_spec = (struct batchai_spec){json_incref(kept), json_incref(r.secrets)};
    return 0;
}

const char *batchai_job_cluster(const json_t *kept)
{
    return shape_text(json_object_get(kept, "cluster"), "id");
}

void batchai_fill_job(const json_t *kept, struct yard_job *job)
{
    const json_t *limits = json_object_get(kept, "constraints");
    const char *priority = shape_text(kept, "schedulingPriority");
    const char *wall = shape_text(limits, "maxWallClockTime");
    int attempts = shape_int(limits, "maxAttempts");

    job->node_count = shape_int(kept, "nodeCount");
    job->priority = str_equal(priority, "high")  ? PRIORITY_HIGH
                    : str_equal(priority, "low") ? PRIORITY_LOW
                                                 : PRIORITY_NORMAL;
    if (attempts)
        job->most_attempts = attempts; /* else the caller's */
    job->wall_ms = (int64_t)7 * 24 * 3600 * 1000;
    if (wall)
        batchai_read_duration(wall, &job->wall_ms, NULL);
}
