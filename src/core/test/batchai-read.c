/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/batchai.h"
#include "core/vmsize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

static int
read_as(const char *kind, const json_t *body, struct batchai_spec *ret_spec, struct err *e)
{
    if (str_equal(kind, "job"))
        return batchai_read_job(body, ret_spec, e);
    if (str_equal(kind, "cluster"))
        return batchai_read_cluster(body, sizes, ret_spec, e);
    return batchai_read_file_server(body, sizes, ret_spec, e);
}

static void assert_same(const char *about, const json_t *got, const json_t *want)
{
    auto_free char *ours = json_canonical(got), *theirs = json_canonical(want);

    if (strcmp(ours, theirs) != 0)
        fail_msg("%s\ngot  %s\nwant %s", about, ours, theirs);
}

/* --- what is right --- */

/* Read again with its secrets, the kept form is the same. */
static void assert_stable(const char *about, const char *kind, const struct batchai_spec *spec)
{
    auto_json json_t *whole = batchai_with_secrets(spec->kept, spec->secrets);
    auto_json json_t *body = json_pack("{sO}", "properties", whole);
    struct batchai_spec again = {0};
    struct err e = {0};

    if (read_as(kind, body, &again, &e) < 0)
        fail_msg("%s, again: %s", about, e.msg);
    assert_same(about, again.kept, spec->kept);
    assert_same(about, again.secrets, spec->secrets);
    batchai_spec_done(&again);
}

static void assert_hidden(const char *about, const struct batchai_spec *spec)
{
    auto_free char *shown = json_canonical(spec->kept);
    const char *pointer;
    json_t *secret;

    json_object_foreach(spec->secrets, pointer, secret)
    {
        const char *text = json_string_value(secret);

        if (*text && strstr(shown, text))
            fail_msg("%s: %s is shown", about, pointer);
    }
}

static void bodies_are_checked_filled_in_and_parted(void **state)
{
    auto_json json_t *golden = json_load_file(YARD_GOLDEN "/batchai/bodies.json", 0, NULL);
    const json_t *row;
    size_t i;

    (void)state;
    assert_non_null(golden);
    json_array_foreach(json_object_get(golden, "bodies"), i, row)
    {
        const char *about = json_string_value(json_object_get(row, "about"));
        const char *kind = json_string_value(json_object_get(row, "kind"));
        const char *tool = json_string_value(json_object_get(row, "tool"));
        struct batchai_spec spec = {0};
        struct err e = {0};

        if (read_as(kind, json_object_get(row, "sent"), &spec, &e) < 0)
            fail_msg("%s: %s", about, e.msg);
        assert_same(about, spec.kept, json_object_get(row, "kept"));
        assert_same(about, spec.secrets, json_object_get(row, "secrets"));
        assert_string_equal(batchai_tool(spec.kept), tool ? tool : "");
        assert_int_equal(batchai_tool_settings(spec.kept) != NULL, tool != NULL);
        assert_hidden(about, &spec);
        assert_stable(about, kind, &spec);
        batchai_spec_done(&spec);
    }
    assert_true(i > 20);
}

/* --- what is wrong --- */

#define CLUSTER_ID                                                                             \
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.BatchAI/workspaces/w/clusters/c"
#define SERVER_ID                                                                              \
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.BatchAI/workspaces/w/fileservers/f"

/* Whole bodies; a row of the tables below changes one place in one of them. */
static const char job_body[] =
    "{\"properties\": {\"cluster\": {\"id\": \"" CLUSTER_ID "\"}, \"nodeCount\": 2,"
    "\"stdOutErrPathPrefix\": \"/logs\", \"constraints\": {},"
    "\"containerSettings\": {\"imageSourceRegistry\": {\"image\": \"ubuntu\","
    "  \"credentials\": {\"username\": \"u\", \"password\": \"p\"}}},"
    "\"mountVolumes\": {"
    "  \"azureFileShares\": [{\"azureFileUrl\": \"https://acc.file.core.windows.net/one\","
    "    \"credentials\": {\"accountKey\": \"k\"}, \"relativeMountPath\": \"one\"}],"
    "  \"azureBlobFileSystems\": [{\"accountName\": \"acc\", \"containerName\": \"two\","
    "    \"credentials\": {}, \"relativeMountPath\": \"two\"}],"
    "  \"fileServers\": [{\"fileServer\": {\"id\": \"" SERVER_ID "\"},"
    "    \"relativeMountPath\": \"three\"}],"
    "  \"unmanagedFileSystems\": [{\"mountCommand\": \"m\", \"relativeMountPath\": \"four\"}]},"
    "\"customToolkitSettings\": {\"commandLine\": \"true\"},"
    "\"jobPreparation\": {\"commandLine\": \"true\"},"
    "\"inputDirectories\": [{\"id\": \"A\", \"path\": \"/in\"}, {\"id\": \"B\", \"path\": "
    "\"/in\"}],"
    "\"outputDirectories\": [{\"id\": \"A\", \"pathPrefix\": \"/out\", \"pathSuffix\": \"x\"},"
    "  {\"id\": \"B\", \"pathPrefix\": \"/out\"}],"
    "\"environmentVariables\": [{\"name\": \"A\", \"value\": \"\"}],"
    "\"secrets\": [{\"name\": \"B\", \"value\": \"hush-hush\"}]}}";

static const char cluster_body[] =
    "{\"properties\": {\"vmSize\": \"STANDARD_D1\","
    "\"scaleSettings\": {\"manual\": {\"targetNodeCount\": 1}},"
    "\"virtualMachineConfiguration\": {\"imageReference\": {\"publisher\": \"p\","
    "  \"offer\": \"o\", \"sku\": \"s\"}},"
    "\"nodeSetup\": {\"setupTask\": {\"commandLine\": \"true\","
    "    \"stdOutErrPathPrefix\": \"$AZ_BATCHAI_MOUNT_ROOT/x\","
    "    \"environmentVariables\": [{\"name\": \"A\", \"value\": \"v\"}],"
    "    \"secrets\": [{\"name\": \"B\", \"value\": \"v\"}]},"
    "  \"mountVolumes\": {\"azureFileShares\": [{\"accountName\": \"acc\","
    "    \"azureFileUrl\": \"https://acc.file.core.windows.net/one\","
    "    \"credentials\": {\"accountKey\": \"k\"}, \"relativeMountPath\": \"one\"}]},"
    "  \"performanceCountersSettings\": {\"appInsightsReference\": {"
    "    \"component\": {\"id\": \"/subscriptions/s/a/b\"}, \"instrumentationKey\": \"k\"}}},"
    "\"userAccountSettings\": {\"adminUserName\": \"me\", \"adminUserPassword\": \"p\","
    "  \"adminUserSshPublicKey\": \"ssh-rsa AAAA\"},"
    "\"subnet\": {\"id\": \"/subscriptions/s/a/b\"}}}";

static const char server_body[] =
    "{\"properties\": {\"vmSize\": \"STANDARD_D1\","
    "\"sshConfiguration\": {\"publicIPsToAllow\": [\"*\"],"
    "  \"userAccountSettings\": {\"adminUserName\": \"me\", \"adminUserPassword\": \"p\"}},"
    "\"dataDisks\": {\"diskSizeInGB\": 1, \"diskCount\": 1,"
    "  \"storageAccountType\": \"Standard_LRS\"}, \"subnet\": {\"id\": \"/subscriptions/s\"}}}";

/* Set the member at a path ("a/0/b") to the value; NULL takes it away. */
static void change(json_t *properties, const char *path, const char *value)
{
    auto_free char *copy = xstrdup(path);
    char *name = copy, *slash;
    json_t *at = properties;
    auto_json json_t *parsed = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;

    if (value && !parsed)
        fail_msg("the test's own JSON is wrong: %s", value);
    while ((slash = strchr(name, '/'))) {
        *slash = '\0';
        at = json_is_array(at) ? json_array_get(at, strtoul(name, NULL, 10))
                               : json_object_get(at, name);
        name = slash + 1;
    }
    assert_non_null(at);
    if (!parsed)
        json_object_del(at, name);
    else if (json_is_array(at))
        json_array_set(at, strtoul(name, NULL, 10), parsed);
    else
        json_object_set(at, name, parsed);
}

struct bad_row {
    const char *path;   /* what is changed */
    const char *value;  /* to what; NULL = it is taken away */
    const char *target; /* the place that the error names; NULL = that of `path` */
    const char *says;   /* part of the message */
};

static char *place_of(const char *path)
{
    auto_free char *copy = xstrdup(path);
    auto_str place = {0};
    char *rest = copy, *name;

    str_add(&place, "properties");
    while ((name = strsep(&rest, "/"))) {
        if (name[0] >= '0' && name[0] <= '9')
            str_addf(&place, "[%s]", name);
        else
            str_addf(&place, ".%s", name);
    }
    return str_take(&place);
}

static void refuse(const char *kind, const char *text, const struct bad_row *row)
{
    auto_json json_t *body = json_loads(text, 0, NULL);
    auto_free char *place =
        row->target ? xasprintf("properties%s%s", *row->target ? "." : "", row->target)
                    : place_of(row->path);
    auto_free char *start = xasprintf("%s: ", place);
    struct batchai_spec spec = {0};
    struct err e = {0};

    assert_non_null(body);
    change(json_object_get(body, "properties"), row->path, row->value);
    if (read_as(kind, body, &spec, &e) == 0)
        fail_msg("%s = %s should be refused", row->path, row->value);
    assert_null(spec.kept);
    assert_null(spec.secrets);
    assert_int_equal(e.code, ERR_INVALID);
    if (!str_starts(e.msg, start) || !strstr(e.msg, row->says))
        fail_msg("%s = %s: got \"%s\", want \"%s...%s\"", row->path, row->value, e.msg, start,
                 row->says);
    if (strncmp(e.target, place, sizeof(e.target) - 1) != 0)
        fail_msg("%s: target %s", place, e.target);
    if (strstr(e.msg, "hush-hush"))
        fail_msg("%s: a secret is in the message", row->path);
}

static void accept(const char *kind, const char *text, const char *path, const char *value)
{
    auto_json json_t *body = json_loads(text, 0, NULL);
    struct batchai_spec spec = {0};
    struct err e = {0};

    change(json_object_get(body, "properties"), path, value);
    if (read_as(kind, body, &spec, &e) < 0)
        fail_msg("%s = %s: %s", path, value, e.msg);
    batchai_spec_done(&spec);
}

#define SHARE  "mountVolumes/azureFileShares/0/"
#define BLOBS  "mountVolumes/azureBlobFileSystems/0/"
#define SERVER "mountVolumes/fileServers/0/"
#define OTHER  "mountVolumes/unmanagedFileSystems/0/"
#define IMAGE  "containerSettings/imageSourceRegistry/"

static const struct bad_row bad_jobs[] = {
    /* counts */
    {"nodeCount", NULL, NULL, "is missing; give how many nodes"},
    {"nodeCount", "0", NULL, "0 is out of range; take 1 to 1000"},
    {"nodeCount", "-1", NULL, "out of range"},
    {"nodeCount", "1001", NULL, "out of range"},
    {"nodeCount", "9223372036854775807", NULL, "out of range"},
    {"nodeCount", "\"2\"", NULL, "expected an integer, got a string"},
    {"nodeCount", "2.0", NULL, "expected an integer, got a fraction"},
    {"nodeCount", "true", NULL, "expected an integer, got a boolean"},
    {"nodeCount", "null", NULL, "is missing"},
    {"nodeCount", "[1]", NULL, "expected an integer, got an array"},
    /* the cluster */
    {"cluster", NULL, NULL, "is missing; give the cluster to run on"},
    {"cluster", "\"c\"", NULL, "expected an object, got a string"},
    {"cluster", "{}", "cluster.id", "is missing"},
    {"cluster/id", "\"c\"", NULL, "take the id of a cluster"},
    {"cluster/id", "\"\"", NULL, "is empty; give the id of the cluster"},
    {"cluster/id", "\"" SERVER_ID "\"", NULL, "take the id of a cluster"},
    {"cluster/id", "\"" CLUSTER_ID "/\"", NULL, "take the id of a cluster"},
    {"cluster/id", "\"" CLUSTER_ID "/jobs/j\"", NULL, "take the id of a cluster"},
    {"cluster/id",
     "\"/subscriptions/s/resourceGroups//providers/Microsoft.BatchAI/workspaces/w/"
     "clusters/c\"",
     NULL, "take the id of a cluster"},
    {"cluster/id", "7", NULL, "expected a string, got an integer"},
    /* words */
    {"schedulingPriority", "\"urgent\"", NULL,
     "\"urgent\" is unknown; take low, normal or high"},
    {"schedulingPriority", "3", NULL, "expected a string"},
    /* toolkits */
    {"customToolkitSettings", NULL, "", "has no toolkit; give one of cntkSettings"},
    {"customMpiSettings", "{\"commandLine\": \"x\"}", NULL,
     "is there beside customToolkitSettings"},
    {"cntkSettings", "{\"configFilePath\": \"x\"}", "customToolkitSettings",
     "beside cntkSettings"},
    {"customToolkitSettings", "\"true\"", NULL, "expected an object"},
    {"customToolkitSettings", "{}", "customToolkitSettings.commandLine", "is missing"},
    {"customToolkitSettings/commandLine", "\"\"", NULL, "is empty; give the command"},
    {"customToolkitSettings/commandLine", "[\"true\"]", NULL,
     "expected a string, got an array"},
    /* logs and folders */
    {"stdOutErrPathPrefix", NULL, NULL, "is missing; give where its logs go"},
    {"stdOutErrPathPrefix", "\"logs\"", NULL, "take an absolute path"},
    {"stdOutErrPathPrefix", "\"./logs\"", NULL, "take an absolute path"},
    {"stdOutErrPathPrefix", "\"$HOME/logs\"", NULL, "take an absolute path"},
    {"stdOutErrPathPrefix", "\"$AZ_BATCHAI_MOUNTROOT/x\"", NULL, "take an absolute path"},
    {"stdOutErrPathPrefix", "\"/a/../b\"", NULL, "it has a \"..\""},
    {"stdOutErrPathPrefix", "\"$AZ_BATCHAI_JOB_MOUNT_ROOT/..\"", NULL, "it has a \"..\""},
    {"stdOutErrPathPrefix", "\"/a\\nb\"", NULL, "control characters"},
    {"inputDirectories", "{}", NULL, "expected an array, got an object"},
    {"inputDirectories/0", "\"/in\"", NULL, "expected an object, got a string"},
    {"inputDirectories/0/id", NULL, NULL, "is missing"},
    {"inputDirectories/0/id", "\"A-B\"", NULL, "letters, digits and '_'"},
    {"inputDirectories/0/id", "\"A=B\"", NULL, "letters, digits and '_'"},
    {"inputDirectories/0/id", "\"A B\"", NULL, "letters, digits and '_'"},
    {"inputDirectories/0/id", "\"\\u00e4\"", NULL, "letters, digits and '_'"},
    {"inputDirectories/0/id", "\"B\"", "inputDirectories[1].id", "is there twice"},
    {"inputDirectories/0/path", NULL, NULL, "is missing"},
    {"inputDirectories/0/path", "\"in\"", NULL, "take an absolute path"},
    {"outputDirectories/1/id", "\"A\"", NULL, "is there twice"},
    {"outputDirectories/1/id", "\"StdOutErr\"", NULL, "is the folder of the logs"},
    {"outputDirectories/0/pathPrefix", "\"../out\"", NULL, "it has a \"..\""},
    {"outputDirectories/0/pathPrefix", NULL, NULL, "is missing"},
    {"outputDirectories/0/pathSuffix", "\"../x\"", NULL, "take a relative path"},
    {"outputDirectories/0/pathSuffix", "\"/x\"", NULL, "take a relative path"},
    {"outputDirectories/0/pathSuffix", "\"a//b\"", NULL, "take a relative path"},
    /* variables */
    {"environmentVariables", "{\"A\": \"b\"}", NULL, "expected an array"},
    {"environmentVariables/0/name", NULL, NULL, "is missing; give the name"},
    {"environmentVariables/0/name", "\"\"", NULL, "is empty"},
    {"environmentVariables/0/name", "\"A=B\"", NULL, "take letters, digits"},
    {"environmentVariables/0/name", "\"1A\"", NULL, "not beginning with a digit"},
    {"environmentVariables/0/name", "\"-x\"", NULL, "take letters, digits"},
    {"environmentVariables/0/name", "\"A B\"", NULL, "take letters, digits"},
    {"environmentVariables/0/name", "\"A\\nB\"", NULL, "take letters, digits"},
    {"environmentVariables/0/name", "\"AZ_BATCHAI_INPUT_A\"", NULL, "set by the service"},
    {"environmentVariables/0/value", NULL, NULL, "is missing; give the value"},
    {"environmentVariables/0/value", "1", NULL, "expected a string, got an integer"},
    {"environmentVariables/0/name", "\"B\"", "secrets[0].name", "is there twice"},
    {"secrets/0/value", NULL, NULL, "is missing; give the value"},
    {"secrets/0/value", "{}", NULL, "expected a string"},
    {"secrets/0/valueSecretReference", "{\"secretUrl\": \"https://v/s\"}", NULL,
     "there is no Key Vault here; give value itself"},
    /* limits */
    {"constraints", "\"P7D\"", NULL, "expected an object"},
    {"constraints/maxWallClockTime", "\"7 days\"", NULL, "is no duration; take one such as"},
    {"constraints/maxWallClockTime", "\"P1Y\"", NULL, "is no duration"},
    {"constraints/maxWallClockTime", "\"\"", NULL, "is empty"},
    {"constraints/maxWallClockTime", "3600", NULL, "expected a string"},
    {"constraints/maxAttempts", "0", NULL, "take 1 to 100"},
    /* containers */
    {"containerSettings", "{}", "containerSettings.imageSourceRegistry", "is missing"},
    {"containerSettings/imageSourceRegistry", "\"ubuntu\"", NULL, "expected an object"},
    {IMAGE "image", NULL, NULL, "is missing; give the name of the image"},
    {IMAGE "image", "\"\"", NULL, "is empty"},
    {IMAGE "image", "\"--privileged\"", NULL, "take the name of an image"},
    {IMAGE "image", "\"-v\"", NULL, "take the name of an image"},
    {IMAGE "image", "\"ubuntu; id\"", NULL, "take the name of an image"},
    {IMAGE "image", "\"ubuntu\\nx\"", NULL, "take the name of an image"},
    {IMAGE "image", "\"$(id)\"", NULL, "take the name of an image"},
    {IMAGE "serverUrl", "\"-x\"", NULL, "take the URL or host of a registry"},
    {IMAGE "serverUrl", "\"https://--get-login\"", NULL, "take the URL or host of a registry"},
    {IMAGE "serverUrl", "\"https://\"", NULL, "take the URL or host of a registry"},
    {IMAGE "serverUrl", "\"https://u:p@r/\"", NULL, "take the URL or host of a registry"},
    {IMAGE "credentials/username", NULL, NULL, "is missing"},
    {IMAGE "credentials/username", "\"-u\"", NULL, "not beginning with '-'"},
    {IMAGE "credentials/password", NULL, NULL, "is missing; give the password"},
    {IMAGE "credentials/password", "\"hush-hush\\n\"", NULL, "control characters"},
    {IMAGE "credentials/passwordSecretReference", "{}", NULL, "give password itself"},
    {"containerSettings/shmSize", "\"big\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "\"16 gb\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "\"-1g\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "\"0\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "\"0.0g\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "\"1.2.3g\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "\"1gbb\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "\"1i\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "\"1x\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "\"1.g\"", NULL, "take a size such as"},
    {"containerSettings/shmSize", "1024", NULL, "expected a string"},
    /* preparation */
    {"jobPreparation", "\"true\"", NULL, "expected an object"},
    {"jobPreparation", "{}", "jobPreparation.commandLine", "is missing"},
    /* volumes */
    {"mountVolumes", "[]", NULL, "expected an object, got an array"},
    {SHARE "relativeMountPath", NULL, NULL, "is missing; give the folder"},
    {SHARE "relativeMountPath", "\"\"", NULL, "is empty"},
    {SHARE "relativeMountPath", "\"/\"", NULL, "take a relative path"},
    {SHARE "relativeMountPath", "\"/one\"", NULL, "take a relative path"},
    {SHARE "relativeMountPath", "\".\"", NULL, "take a relative path"},
    {SHARE "relativeMountPath", "\"..\"", NULL, "take a relative path"},
    {SHARE "relativeMountPath", "\"a/../../etc\"", NULL, "take a relative path"},
    {SHARE "relativeMountPath", "\"a/./b\"", NULL, "take a relative path"},
    {SHARE "relativeMountPath", "\"a//b\"", NULL, "take a relative path"},
    {SHARE "relativeMountPath", "\"a/\"", NULL, "take a relative path"},
    {SHARE "relativeMountPath", "\"a\\u0001\"", NULL, "control characters"},
    {SHARE "relativeMountPath", "\"three\"", NULL, "the same place"},
    {BLOBS "relativeMountPath", "\"one/x\"", NULL, "lie within one another"},
    {OTHER "relativeMountPath", "\"two\"", NULL, "give each volume a folder of its own"},
    {SHARE "azureFileUrl", NULL, NULL, "is missing"},
    {SHARE "azureFileUrl", "\"acc/one\"", NULL, "take https://ACCOUNT.file"},
    {SHARE "azureFileUrl", "\"ftp://acc.file.core.windows.net/one\"", NULL, "take https://"},
    {SHARE "azureFileUrl", "\"https://acc.file.core.windows.net/\"", NULL, "take https://"},
    {SHARE "azureFileUrl", "\"https://acc.file.core.windows.net\"", NULL, "take https://"},
    {SHARE "azureFileUrl", "\"https://acc.file.core.windows.net/one/folder\"", NULL,
     "take https:"},
    {SHARE "azureFileUrl", "\"https://acc.file.core.windows.net/one?sv=1\"", NULL,
     "take https://"},
    {SHARE "azureFileUrl", "\"https://acc.file.core.windows.net/%2e%2e\"", NULL,
     "take https://"},
    {SHARE "azureFileUrl", "\"https://acc.file.core.windows.net/../one\"", NULL,
     "take https://"},
    {SHARE "azureFileUrl", "\"https://x@acc.file.core.windows.net/one\"", NULL,
     "take https://"},
    {SHARE "azureFileUrl", "\"https://ACC_.file.core.windows.net/one\"", NULL, "take https://"},
    {SHARE "azureFileUrl", "\"https://127.0.0.1:10004/one\"", NULL, "take https://"},
    {SHARE "azureFileUrl", "\"https:///acc/one\"", NULL, "take https://"},
    {SHARE "azureFileUrl", "\"<AZURE_BATCHAI_STORAGE_ACCOUNT>\"", NULL, "take https://"},
    {SHARE "accountName", "\"other\"", NULL, "is not the account of azureFileUrl, \"acc\""},
    {SHARE "accountName", "\"<AZURE_BATCHAI_STORAGE_ACCOUNT>\"", NULL, "lower-case letters"},
    {SHARE "credentials", "\"k\"", NULL, "expected an object"},
    {SHARE "credentials/accountKey", "7", NULL, "expected a string"},
    {SHARE "credentials/accountKey", "\"hush-hush\\u0001\"", NULL, "control characters"},
    {SHARE "credentials/accountKeySecretReference", "{}", NULL, "give accountKey itself"},
    {SHARE "fileMode", "\"rw\"", NULL, "take an octal mode"},
    {SHARE "directoryMode", "\"0999\"", NULL, "take an octal mode"},
    {BLOBS "accountName", NULL, NULL, "is missing"},
    {BLOBS "accountName", "\"../x\"", NULL, "lower-case letters"},
    {BLOBS "containerName", NULL, NULL, "is missing"},
    {BLOBS "containerName", "\"a/b\"", NULL, "3 to 63 lower-case letters"},
    {BLOBS "containerName", "\"..\"", NULL, "3 to 63 lower-case letters"},
    {BLOBS "mountOptions", "\"a\\nb\"", NULL, "control characters"},
    {SERVER "fileServer", NULL, NULL, "is missing"},
    {SERVER "fileServer/id", "\"f\"", NULL, "take the id of a file server"},
    {SERVER "fileServer/id", "\"" CLUSTER_ID "\"", NULL, "take the id of a file server"},
    {SERVER "sourceDirectory", "\"/a/../..\"", NULL, "take a relative path"},
    {OTHER "mountCommand", NULL, NULL, "is missing; give the command that mounts it"},
    {OTHER "mountCommand", "\"\"", NULL, "is empty"},
};

static void a_job_that_is_wrong_is_refused_with_place_and_remedy(void **state)
{
    (void)state;
    accept("job", job_body, "nodeCount", "1");
    for (size_t i = 0; i < ARRAY_SIZE(bad_jobs); i++)
        refuse("job", job_body, &bad_jobs[i]);
}

#define SETUP    "nodeSetup/setupTask/"
#define INSIGHTS "nodeSetup/performanceCountersSettings/appInsightsReference/"

static const struct bad_row bad_clusters[] = {
    {"vmSize", NULL, NULL, "is missing; give the size of its nodes"},
    {"vmSize", "\"STANDARD_D11_V3\"", NULL,
     "there is no VM size \"STANDARD_D11_V3\", did you mean"},
    {"vmSize", "6", NULL, "expected a string"},
    {"vmSize", "\"\"", NULL, "is empty"},
    {"vmPriority", "\"cheap\"", NULL, "take dedicated or lowpriority"},
    {"scaleSettings", "7", NULL, "expected an object"},
    {"scaleSettings", "{}", NULL, "has neither manual nor autoScale"},
    {"scaleSettings/autoScale", "{\"minimumNodeCount\": 0, \"maximumNodeCount\": 1}",
     "scaleSettings", "has both manual and autoScale; give one"},
    {"scaleSettings/manual", "{}", "scaleSettings.manual.targetNodeCount", "is missing"},
    {"scaleSettings/manual/targetNodeCount", "-1", NULL, "take 0 to 10000"},
    {"scaleSettings/manual/targetNodeCount", "10001", NULL, "take 0 to 10000"},
    {"scaleSettings/manual/targetNodeCount", "\"1\"", NULL, "expected an integer"},
    {"scaleSettings/manual/nodeDeallocationOption", "\"kill\"", NULL,
     "take requeue, terminate or waitforjobcompletion"},
    {"scaleSettings", "{\"autoScale\": {\"minimumNodeCount\": 2, \"maximumNodeCount\": 1}}",
     "scaleSettings.autoScale.minimumNodeCount", "2 is more than maximumNodeCount, 1"},
    {"scaleSettings",
     "{\"autoScale\": {\"minimumNodeCount\": 0, \"maximumNodeCount\": 1, \"initialNodeCount\": "
     "2}}",
     "scaleSettings.autoScale.initialNodeCount", "2 is more than maximumNodeCount, 1"},
    {"scaleSettings", "{\"autoScale\": {\"minimumNodeCount\": 0}}",
     "scaleSettings.autoScale.maximumNodeCount", "is missing"},
    {"scaleSettings", "{\"autoScale\": {\"maximumNodeCount\": 1}}",
     "scaleSettings.autoScale.minimumNodeCount", "is missing"},
    {"scaleSettings", "{\"autoScale\": {\"minimumNodeCount\": -1, \"maximumNodeCount\": 1}}",
     "scaleSettings.autoScale.minimumNodeCount", "out of range"},
    {"virtualMachineConfiguration", "[]", NULL, "expected an object"},
    {"virtualMachineConfiguration/imageReference/offer", NULL, NULL, "is missing"},
    {"virtualMachineConfiguration/imageReference/virtualMachineImageId", "\"x\"", NULL,
     "take the id of a resource"},
    {"userAccountSettings", NULL, NULL, "is missing; give an account to log in with"},
    {"userAccountSettings/adminUserName", NULL, NULL, "is missing"},
    {"userAccountSettings/adminUserName", "\"a b\"", NULL, "take 1 to 32 letters"},
    {"userAccountSettings/adminUserName", "\"-r\"", NULL, "take 1 to 32 letters"},
    {"userAccountSettings/adminUserName", "\"a:b\"", NULL, "take 1 to 32 letters"},
    {"userAccountSettings/adminUserName", "\"../x\"", NULL, "take 1 to 32 letters"},
    {"userAccountSettings/adminUserSshPublicKey", "\"AAAA\"", NULL, "take the content of"},
    {"userAccountSettings/adminUserSshPublicKey", "\"ssh-rsa\"", NULL, "take the content of"},
    {"userAccountSettings/adminUserSshPublicKey", "\"ssh-rsa AA\\nssh-rsa BB\"", NULL,
     "one key"},
    {"userAccountSettings/adminUserSshPublicKey", "\"command=\\\"id\\\" ssh-rsa AA\"", NULL,
     "take the content of"},
    {"userAccountSettings/adminUserPassword", "{}", NULL, "expected a string"},
    {"nodeSetup", "[]", NULL, "expected an object"},
    {SETUP "commandLine", NULL, NULL, "is missing; give the command"},
    {SETUP "stdOutErrPathPrefix", NULL, NULL, "is missing; give where"},
    {SETUP "stdOutErrPathPrefix", "\"x\"", NULL, "take an absolute path"},
    {SETUP "environmentVariables/0/name", "\"B\"", "nodeSetup.setupTask.secrets[0].name",
     "twice"},
    {SETUP "secrets/0/valueSecretReference", "{}", NULL, "give value itself"},
    {"nodeSetup/" SHARE "relativeMountPath", "\"../x\"", NULL, "take a relative path"},
    {INSIGHTS "component", NULL, NULL, "is missing"},
    {INSIGHTS "component/id", "\"x\"", NULL, "take the id of a resource"},
    {INSIGHTS "instrumentationKeySecretReference", "{}", NULL,
     "give instrumentationKey itself"},
    {"nodeSetup/performanceCountersSettings", "{}",
     "nodeSetup.performanceCountersSettings.appInsightsReference", "is missing"},
    {"subnet", "{}", "subnet.id", "is missing"},
    {"subnet/id", "\"/subscriptions\"", NULL, "take the id of a resource"},
    {"subnet/id", "\"/x/y\"", NULL, "take the id of a resource"},
};

static void a_cluster_that_is_wrong_is_refused_with_place_and_remedy(void **state)
{
    (void)state;
    accept("cluster", cluster_body, "vmSize", "\"host\"");
    for (size_t i = 0; i < ARRAY_SIZE(bad_clusters); i++)
        refuse("cluster", cluster_body, &bad_clusters[i]);
}

static const struct bad_row bad_servers[] = {
    {"vmSize", NULL, NULL, "is missing"},
    {"vmSize", "\"STANDARD_D99\"", NULL, "there is no VM size"},
    {"sshConfiguration", NULL, NULL, "is missing"},
    {"sshConfiguration/userAccountSettings", NULL, NULL, "is missing"},
    {"sshConfiguration/publicIPsToAllow", "\"*\"", NULL, "expected an array"},
    {"sshConfiguration/publicIPsToAllow/0", "\"me\"", NULL, "take addresses such as"},
    {"sshConfiguration/publicIPsToAllow/0", "7", NULL, "expected a string"},
    {"dataDisks", NULL, NULL, "is missing"},
    {"dataDisks/diskSizeInGB", "0", NULL, "take 1 to 65536"},
    {"dataDisks/diskCount", "0", NULL, "take 1 to 64"},
    {"dataDisks/diskCount", NULL, NULL, "is missing"},
    {"dataDisks/storageAccountType", "\"Gold\"", NULL, "take Standard_LRS or Premium_LRS"},
    {"dataDisks/cachingType", "\"some\"", NULL, "take none, readonly or readwrite"},
    {"subnet/id", "\"\"", NULL, "is empty"},
};

static void a_file_server_that_is_wrong_is_refused_with_place_and_remedy(void **state)
{
    (void)state;
    accept("fileserver", server_body, "vmSize", "\"host\"");
    for (size_t i = 0; i < ARRAY_SIZE(bad_servers); i++)
        refuse("fileserver", server_body, &bad_servers[i]);
}

static void toolkits_that_are_wrong_are_refused(void **state)
{
    static const struct {
        const char *block, *value, *target, *says;
    } rows[] = {
        {"horovodSettings", "{}", ".pythonScriptFilePath", "is missing; give the path"},
        {"horovodSettings", "{\"pythonScriptFilePath\": \"x\", \"processCount\": 0}",
         ".processCount", "take 1 to 16000"},
        {"horovodSettings", "{\"pythonScriptFilePath\": \"a\\nb\"}", ".pythonScriptFilePath",
         "control characters"},
        {"chainerSettings", "{\"pythonScriptFilePath\": 1}", ".pythonScriptFilePath",
         "expected a string"},
        {"caffe2Settings", "{}", ".pythonScriptFilePath", "is missing"},
        {"customMpiSettings", "{}", ".commandLine", "is missing"},
        {"pyTorchSettings",
         "{\"pythonScriptFilePath\": \"x\", \"communicationBackend\": \"udp\"}",
         ".communicationBackend", "take TCP, Gloo, MPI or NCCL"},
        {"cntkSettings", "{}", "", "has neither configFilePath nor pythonScriptFilePath"},
        {"cntkSettings", "{\"configFilePath\": \"a\", \"pythonScriptFilePath\": \"b\"}", "",
         "has both"},
        {"cntkSettings", "{\"configFilePath\": \"a\", \"languageType\": \"Python\"}",
         ".languageType", "goes with pythonScriptFilePath, which is not given"},
        {"cntkSettings", "{\"configFilePath\": \"a\", \"languageType\": \"C\"}",
         ".languageType", "take BrainScript or Python"},
        {"cntkSettings", "{\"configFilePath\": \"a\", \"pythonInterpreterPath\": \"p\"}",
         ".pythonInterpreterPath", "is for scripts"},
        {"caffeSettings", "{\"configFilePath\": \"a\", \"pythonScriptFilePath\": \"b\"}", "",
         "has both"},
        {"caffeSettings", "{\"commandLineArgs\": \"a\"}", "", "has neither"},
        {"tensorFlowSettings", "{}", ".pythonScriptFilePath", "is missing"},
        {"tensorFlowSettings", "{\"pythonScriptFilePath\": \"x\", \"workerCount\": 0}",
         ".workerCount", "take 1 to 1000"},
        {"tensorFlowSettings", "{\"pythonScriptFilePath\": \"x\", \"parameterServerCount\": 3}",
         ".parameterServerCount", "3 is more than nodeCount, 2"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_json json_t *body = json_loads(job_body, 0, NULL);
        json_t *properties = json_object_get(body, "properties");
        auto_free char *start = xasprintf("properties.%s%s: ", rows[i].block, rows[i].target);
        struct batchai_spec spec = {0};
        struct err e = {0};

        json_object_del(properties, "customToolkitSettings");
        change(properties, rows[i].block, rows[i].value);
        if (batchai_read_job(body, &spec, &e) == 0)
            fail_msg("%s %s should be refused", rows[i].block, rows[i].value);
        if (!str_starts(e.msg, start) || !strstr(e.msg, rows[i].says))
            fail_msg("%s: got %s, want %s...%s", rows[i].value, e.msg, start, rows[i].says);
    }
}

/* --- sizes --- */

static char *quoted_run(size_t len)
{
    char *text = xmalloc(len + 3);

    memset(text, 'x', len + 2);
    text[0] = text[len + 1] = '"';
    text[len + 2] = '\0';
    return text;
}

static void texts_have_their_limits(void **state)
{
    static const struct {
        const char *path;
        size_t most;
    } rows[] = {
        {"customToolkitSettings/commandLine", 65536},
        {"jobPreparation/commandLine", 65536},
        {"environmentVariables/0/name", 256},
        {"environmentVariables/0/value", 65536},
        {"secrets/0/value", 65536},
        {"inputDirectories/0/id", 64},
        {IMAGE "image", 512},
        {IMAGE "credentials/password", 4096},
        {OTHER "mountCommand", 4096},
        {OTHER "relativeMountPath", 255},
        {SHARE "credentials/accountKey", 4096},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *most = quoted_run(rows[i].most), *more = quoted_run(rows[i].most + 1);
        const struct bad_row row = {rows[i].path, more, NULL,
                                    rows[i].most == 255 ? "take a relative path"
                                                        : "bytes; at most"};

        accept("job", job_body, rows[i].path, most);
        refuse("job", job_body, &row);
    }
}

static void lists_have_their_limits(void **state)
{
    auto_json json_t *body = json_loads(job_body, 0, NULL);
    json_t *properties = json_object_get(body, "properties"), *list = json_array();
    struct batchai_spec spec = {0};
    struct err e = {0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        auto_free char *name = xasprintf("V%d", i);

        json_array_append_new(list, json_pack("{ss ss}", "name", name, "value", "v"));
    }
    json_object_set_new(properties, "environmentVariables", list);
    json_object_del(properties, "secrets");
    assert_int_equal(batchai_read_job(body, &spec, &e), 0);
    batchai_spec_done(&spec);
    json_array_append_new(list, json_pack("{ss ss}", "name", "W", "value", "v"));
    assert_int_equal(batchai_read_job(body, &spec, &e), -1);
    assert_non_null(strstr(e.msg, "has 1001 elements; at most 1000 are taken"));
}

static void a_body_needs_properties(void **state)
{
    static const char *const bodies[] = {"{}",
                                         "[]",
                                         "7",
                                         "null",
                                         "{\"properties\": null}",
                                         "{\"properties\": []}",
                                         "{\"properties\": \"x\"}"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        auto_json json_t *body = json_loads(bodies[i], JSON_DECODE_ANY, NULL), *scale = NULL;
        struct batchai_spec spec = {0};
        struct err e = {0};

        assert_int_equal(batchai_read_job(body, &spec, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_int_equal(batchai_read_cluster(body, sizes, &spec, &e), -1);
        assert_int_equal(batchai_read_file_server(body, sizes, &spec, &e), -1);
        assert_int_equal(batchai_read_scale(body, &scale, &e), -1);
        assert_null(scale);
    }
}

/* --- PATCH --- */

static void a_patch_takes_scale_settings_alone(void **state)
{
    static const struct {
        const char *given, *want; /* NULL = refused */
    } rows[] = {
        {"{\"scaleSettings\": {\"manual\": {\"targetNodeCount\": 2}}, \"vmSize\": \"x\"}",
         "{\"manual\":{\"nodeDeallocationOption\":\"requeue\",\"targetNodeCount\":2}}"},
        {"{\"scaleSettings\": {\"autoScale\": {\"minimumNodeCount\": 1, \"maximumNodeCount\": "
         "1}}}",
         "{\"autoScale\":{\"initialNodeCount\":0,\"maximumNodeCount\":1,\"minimumNodeCount\":1}"
         "}"},
        {"{}", NULL},
        {"{\"scaleSettings\": {}}", NULL},
        {"{\"scaleSettings\": {\"manual\": {}}}", NULL},
        {"{\"scaleSettings\": null}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_json json_t *properties = json_loads(rows[i].given, 0, NULL), *scale = NULL;
        auto_json json_t *body = json_pack("{sO}", "properties", properties);
        auto_free char *got = NULL;
        struct err e = {0};

        assert_int_equal(batchai_read_scale(body, &scale, &e), rows[i].want ? 0 : -1);
        if (!rows[i].want) {
            assert_true(str_starts(e.msg, "properties.scaleSettings"));
            continue;
        }
        got = json_canonical(scale);
        assert_string_equal(got, rows[i].want);
    }
}

static void a_secret_without_its_place_is_left_out(void **state)
{
    auto_json json_t *kept = json_pack("{s[{ss}]}", "secrets", "name", "A");
    auto_json json_t *secrets = json_pack("{ss ss ss}", "/secrets/0/value", "a",
                                          "/secrets/1/value", "b", "/gone/accountKey", "c");
    auto_json json_t *whole = batchai_with_secrets(kept, secrets);
    auto_free char *text = json_canonical(whole), *before = json_canonical(kept);

    (void)state;
    assert_string_equal(text, "{\"secrets\":[{\"name\":\"A\",\"value\":\"a\"}]}");
    assert_string_equal(before, "{\"secrets\":[{\"name\":\"A\"}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_checked_filled_in_and_parted),
        cmocka_unit_test(a_job_that_is_wrong_is_refused_with_place_and_remedy),
        cmocka_unit_test(a_cluster_that_is_wrong_is_refused_with_place_and_remedy),
        cmocka_unit_test(a_file_server_that_is_wrong_is_refused_with_place_and_remedy),
        cmocka_unit_test(toolkits_that_are_wrong_are_refused),
        cmocka_unit_test(texts_have_their_limits),
        cmocka_unit_test(lists_have_their_limits),
        cmocka_unit_test(a_body_needs_properties),
        cmocka_unit_test(a_patch_takes_scale_settings_alone),
        cmocka_unit_test(a_secret_without_its_place_is_left_out),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
