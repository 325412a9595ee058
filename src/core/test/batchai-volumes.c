/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/batchai.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SEGMENT "s/g/workspaces/w/experiments/e/jobs/j/uuid"

static const char job_text[] =
    "{\"mountVolumes\": {"
    "\"unmanagedFileSystems\": [{\"mountCommand\": \"mount x\", \"relativeMountPath\": "
    "\"own\"}],"
    "\"azureBlobFileSystems\": [{\"accountName\": \"acc\", \"containerName\": \"con\","
    "  \"credentials\": {}, \"relativeMountPath\": \"a/bfs\", \"mountOptions\": \"-o ro\"}],"
    "\"azureFileShares\": ["
    "  {\"azureFileUrl\": \"https://acc.file.core.windows.net/one\", \"relativeMountPath\": "
    "\"afs\","
    "   \"credentials\": {\"accountKey\": \"key\"}},"
    "  {\"azureFileUrl\": \"http://127.0.0.1:10004/other/two\", \"relativeMountPath\": "
    "\"afs2\"}],"
    "\"fileServers\": [{\"fileServer\": {\"id\": \"/f\"}, \"sourceDirectory\": \"/x/y\","
    "  \"relativeMountPath\": \"nfs\"},"
    "  {\"fileServer\": {\"id\": \"/f\"}, \"sourceDirectory\": \"/\", \"relativeMountPath\": "
    "\"all\"}]},"
    "\"stdOutErrPathPrefix\": \"$AZ_BATCHAI_JOB_MOUNT_ROOT/afs/logs/\","
    "\"outputDirectories\": ["
    "  {\"id\": \"BLOB\", \"pathPrefix\": \"${AZ_BATCHAI_JOB_MOUNT_ROOT}/a/bfs\", "
    "\"pathSuffix\": \"m/n\"},"
    "  {\"id\": \"AFS2\", \"pathPrefix\": \"$AZ_BATCHAI_JOB_MOUNT_ROOT//afs2\"},"
    "  {\"id\": \"AFS3\", \"pathPrefix\": \"$AZ_BATCHAI_JOB_MOUNT_ROOT/afs3\"},"
    "  {\"id\": \"ROOT\", \"pathPrefix\": \"$AZ_BATCHAI_JOB_MOUNT_ROOT\"},"
    "  {\"id\": \"ROOTS\", \"pathPrefix\": \"$AZ_BATCHAI_JOB_MOUNT_ROOTS/afs\"},"
    "  {\"id\": \"CLUSTER\", \"pathPrefix\": \"$AZ_BATCHAI_MOUNT_ROOT/share/x\", "
    "\"pathSuffix\": \"y\"},"
    "  {\"id\": \"PLAIN\", \"pathPrefix\": \"/mnt/batch/tasks/shared/LS_root/mounts/share\"},"
    "  {\"id\": \"NFS\", \"pathPrefix\": \"$AZ_BATCHAI_JOB_MOUNT_ROOT/nfs\"},"
    "  {\"id\": \"OWN\", \"pathPrefix\": \"$AZ_BATCHAI_JOB_MOUNT_ROOT/own\"},"
    "  {\"id\": \"TEMP\", \"pathPrefix\": \"$AZ_BATCHAI_JOB_TEMP/afs\"},"
    "  {\"id\": \"DISK\", \"pathPrefix\": \"/data\"}]}";

static const char cluster_text[] =
    "{\"nodeSetup\": {\"mountVolumes\": {\"azureFileShares\": [{"
    "\"azureFileUrl\": \"https://acc.file.yard.example:10004/three/\", \"relativeMountPath\": "
    "\"share\"}]}}}";

static void volumes_come_in_the_order_they_are_mounted(void **state)
{
    static const struct volume want[] = {
        {.kind = VOLUME_FILE_SERVER, .server_id = "/f", .folder = "x/y", .path = "nfs"},
        {.kind = VOLUME_FILE_SERVER, .server_id = "/f", .path = "all"},
        {.kind = VOLUME_FILE_SHARE,
         .account = "acc",
         .name = "one",
         .key = "key",
         .path = "afs"},
        {.kind = VOLUME_FILE_SHARE, .account = "other", .name = "two", .path = "afs2"},
        {.kind = VOLUME_BLOBS,
         .account = "acc",
         .name = "con",
         .options = "-o ro",
         .path = "a/bfs"},
        {.kind = VOLUME_UNMANAGED, .command = "mount x", .path = "own"},
    };
    auto_json json_t *job = json_loads(job_text, 0, NULL);
    autoptr(arena) arena = arena_new();
    struct volume *got;
    size_t count;

    (void)state;
    assert_non_null(job);
    assert_int_equal(batchai_volumes(job, arena, &got, &count, NULL), 0);
    assert_int_equal(count, ARRAY_SIZE(want));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(got[i].kind, want[i].kind);
        assert_true(str_equal(got[i].account, want[i].account));
        assert_true(str_equal(got[i].name, want[i].name));
        assert_true(str_equal(got[i].key, want[i].key));
        assert_true(str_equal(got[i].server_id, want[i].server_id));
        assert_true(str_equal(got[i].folder, want[i].folder));
        assert_true(str_equal(got[i].command, want[i].command));
        assert_true(str_equal(got[i].options, want[i].options));
        assert_string_equal(got[i].path, want[i].path);
    }
}

static void a_cluster_has_its_volumes_in_its_set_up(void **state)
{
    auto_json json_t *cluster = json_loads(cluster_text, 0, NULL), *none = json_object();
    autoptr(arena) arena = arena_new();
    struct volume *got;
    size_t count;

    (void)state;
    assert_int_equal(batchai_volumes(cluster, arena, &got, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_string_equal(got[0].account, "acc");
    assert_string_equal(got[0].name, "three");
    assert_int_equal(batchai_volumes(none, arena, &got, &count, NULL), 0);
    assert_int_equal(count, 0);
}

static void addresses_of_shares_name_account_and_share(void **state)
{
    static const struct {
        const char *url, *account, *share; /* NULL = refused */
    } rows[] = {
        {"https://acc.file.core.windows.net/share", "acc", "share"},
        {"HTTPS://acc.File.core.windows.net/share/", "acc", "share"},
        {"http://acc.file.localhost:10004/share", "acc", "share"},
        {"http://127.0.0.1:10004/acc/share", "acc", "share"},
        {"http://[::1]:10004/acc/share", "acc", "share"},
        {"https://yard.example.com/acc/share/", "acc", "share"},
        {"http://files:10004/acc/share", "acc", "share"},
        {"https://acc.blob.core.windows.net/share", NULL, NULL},
        {"https://acc.file/share", NULL, NULL},
        {"https://yard.example.com/acc", NULL, NULL},
        {"https://yard.example.com/acc/share/more", NULL, NULL},
        {"https://yard.example.com//share", NULL, NULL},
        {"//acc.file.core.windows.net/share", NULL, NULL},
        {"https:", NULL, NULL},
        {"", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_json json_t *kept =
            json_pack("{s{s[{ss ss}]}}", "mountVolumes", "azureFileShares", "azureFileUrl",
                      rows[i].url, "relativeMountPath", "x");
        autoptr(arena) arena = arena_new();
        struct volume *got;
        struct err e = {0};
        size_t count;
        int rc = batchai_volumes(kept, arena, &got, &count, &e);

        if (rc != (rows[i].account ? 0 : -1))
            fail_msg("%s: %s", rows[i].url, e.msg);
        if (rc < 0) {
            assert_true(str_starts(e.msg, "azureFileShares[0]: azureFileUrl: "));
            continue;
        }
        assert_string_equal(got[0].account, rows[i].account);
        assert_string_equal(got[0].name, rows[i].share);
    }
}

static void outputs_are_found_on_their_volume(void **state)
{
    static const struct {
        const char *id, *volume, *path; /* volume NULL = refused */
    } rows[] = {
        {"stdouterr", "one", "logs/" SEGMENT "/stdouterr"},
        {"BLOB", "con", SEGMENT "/outputs/m/n"},
        {"AFS2", "two", SEGMENT "/outputs"},
        {"CLUSTER", "three", "x/" SEGMENT "/outputs/y"},
        {"PLAIN", "three", SEGMENT "/outputs"},
        {"AFS3", NULL, NULL},
        {"ROOT", NULL, NULL},
        {"ROOTS", NULL, NULL},
        {"NFS", NULL, NULL},
        {"OWN", NULL, NULL},
        {"TEMP", NULL, NULL},
        {"DISK", NULL, NULL},
    };
    auto_json json_t *job = json_loads(job_text, 0, NULL);
    auto_json json_t *cluster = json_loads(cluster_text, 0, NULL);
    autoptr(arena) arena = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct volume volume = {0};
        const char *path = NULL;
        struct err e = {0};
        int rc =
            batchai_output_place(job, cluster, SEGMENT, rows[i].id, arena, &volume, &path, &e);

        if (rc != (rows[i].volume ? 0 : -1))
            fail_msg("%s: %s", rows[i].id, e.msg);
        if (rc < 0) {
            auto_free char *want =
                xasprintf("The specified outputDirectoryId %s is not present on a mount root",
                          rows[i].id);

            assert_string_equal(e.msg, want);
            assert_int_equal(e.code, ERR_INVALID);
            continue;
        }
        assert_string_equal(volume.name, rows[i].volume);
        assert_string_equal(path, rows[i].path);
    }
}

static void an_unknown_output_is_not_found(void **state)
{
    auto_json json_t *job = json_loads(job_text, 0, NULL);
    autoptr(arena) arena = arena_new();
    struct volume volume;
    const char *path;
    struct err e = {0};

    (void)state;
    assert_int_equal(
        batchai_output_place(job, NULL, SEGMENT, "blob", arena, &volume, &path, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void the_volumes_of_a_deleted_cluster_are_not_guessed(void **state)
{
    auto_json json_t *job = json_loads(job_text, 0, NULL);
    autoptr(arena) arena = arena_new();
    struct volume volume;
    const char *path;
    struct err e = {0};

    (void)state;
    assert_int_equal(
        batchai_output_place(job, NULL, SEGMENT, "CLUSTER", arena, &volume, &path, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(e.msg, "the cluster was deleted; its files are still on the share"));
    assert_non_null(strstr(e.msg, "/" SEGMENT "\" there"));
}

static void durations_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* 0 = refused */
    } rows[] = {
        {"P7D", 604800000},
        {"P1W", 604800000},
        {"PT1H", 3600000},
        {"P1DT2H3M4S", 93784000},
        {"PT0.5S", 500},
        {"PT1.2345S", 1234},
        {"PT0,5H", 1800000},
        {"PT90M", 5400000},
        {"P36500D", 3153600000000},
        {"7.00:00:00", 604800000},
        {"1.02:03:04.5", 93784500},
        {"23:59:59", 86399000},
        {"00:00:01", 1000},
        {"", 0},
        {"P", 0},
        {"PT", 0},
        {"P1DT", 0},
        {"PT0S", 0},
        {"P0D", 0},
        {"P-1D", 0},
        {"-P1D", 0},
        {"P1Y", 0},
        {"P1M", 0},
        {"P1H", 0},
        {"PT1D", 0},
        {"PT1S1H", 0},
        {"PT1H1H", 0},
        {"PT1HT1M", 0},
        {"PT.5S", 0},
        {"PT5", 0},
        {"p7d", 0},
        {"P36501D", 0},
        {"P99999999999999999999D", 0},
        {"PT99999999999999999999S", 0},
        {"7", 0},
        {"7.", 0},
        {"7.0:0", 0},
        {"24:00:00", 0},
        {"00:60:00", 0},
        {"00:00:60", 0},
        {"00:00:00", 0},
        {"1.-2:00:00", 0},
        {"00:-1:00", 0},
        {"+1:00:00", 0},
        {" P7D", 0},
        {"P7D ", 0},
        {"99999999.00:00:00", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t ms = 0;
        struct err e = {0};
        int rc = batchai_read_duration(rows[i].text, &ms, &e);

        if (rc != (rows[i].ms ? 0 : -1) || ms != rows[i].ms)
            fail_msg("\"%s\": %lld", rows[i].text, (long long)ms);
        if (rc < 0)
            assert_int_equal(e.code, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(volumes_come_in_the_order_they_are_mounted),
        cmocka_unit_test(a_cluster_has_its_volumes_in_its_set_up),
        cmocka_unit_test(addresses_of_shares_name_account_and_share),
        cmocka_unit_test(outputs_are_found_on_their_volume),
        cmocka_unit_test(an_unknown_output_is_not_found),
        cmocka_unit_test(the_volumes_of_a_deleted_cluster_are_not_guessed),
        cmocka_unit_test(durations_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
