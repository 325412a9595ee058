/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-setup.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define VOLUMES                                                                                \
    "\"mountVolumes\":{\"azureFileShares\":[{\"accountName\":\"acct\",\"azureFileUrl\":"       \
    "\"https://acct.file.core.windows.net/logs\",\"relativeMountPath\":\"afs\"}],"             \
    "\"azureBlobFileSystems\":[{\"accountName\":\"other\",\"containerName\":\"data\","         \
    "\"relativeMountPath\":\"bfs/deep\"}]}"
#define CLUSTER(prefix)                                                                        \
    "{\"properties\":{\"nodeSetup\":{\"setupTask\":{\"commandLine\":\"x\","                    \
    "\"stdOutErrPathPrefix\":\"" prefix "\",\"stdOutErrPathSuffix\":\"s/u/f\"}," VOLUMES "}}}"

static void output_is_found_on_what_is_mounted(void **state)
{
    static const struct row {
        const char *cluster, *name, *path; /* NULL = refused */
        enum storage_service service;
    } rows[] = {
        {CLUSTER("$AZ_BATCHAI_MOUNT_ROOT/afs"), "logs", "s/u/f", STORAGE_FILE},
        {CLUSTER("$AZ_BATCHAI_MOUNT_ROOT/afs/"), "logs", "s/u/f", STORAGE_FILE},
        {CLUSTER("${AZ_BATCHAI_MOUNT_ROOT}/afs/a/b"), "logs", "a/b/s/u/f", STORAGE_FILE},
        {CLUSTER("$AZ_BATCHAI_MOUNT_ROOT/bfs/deep/x"), "data", "x/s/u/f", STORAGE_BLOB},
        {CLUSTER("$AZ_BATCHAI_MOUNT_ROOT/afsx"), NULL, NULL, STORAGE_FILE},
        {CLUSTER("/tmp"), NULL, NULL, STORAGE_FILE},
        {"{\"properties\":{}}", NULL, NULL, STORAGE_FILE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        __attribute__((cleanup(batchai_output_done))) struct batchai_output place = {0};
        auto_json json_t *cluster = NULL;
        struct err e = {0};
        int rc;

        assert_int_equal(json_parse(rows[i].cluster, strlen(rows[i].cluster), &cluster, &e), 0);
        rc = batchai_setup_place(cluster, &place, &e);
        if (rc != (rows[i].name ? 0 : -1))
            fail_msg("%s: %s", rows[i].cluster, e.msg);
        if (rc < 0)
            continue;
        assert_string_equal(place.name, rows[i].name);
        assert_string_equal(place.path, rows[i].path);
        assert_int_equal(place.service, rows[i].service);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_is_found_on_what_is_mounted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
