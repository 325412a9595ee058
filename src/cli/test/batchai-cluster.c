/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-cluster.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void scale_follows_az(void **state)
{
    static const struct row {
        long target, min, max;
        const char *want; /* NULL = refused, "" = none */
    } rows[] = {
        {-1, -1, -1, ""},
        {2, -1, -1, "{\"manual\":{\"targetNodeCount\":2}}"},
        {0, -1, -1, "{\"manual\":{\"targetNodeCount\":0}}"},
        {-1, 3, 3, "{\"manual\":{\"targetNodeCount\":3}}"},
        {3, 3, 3, "{\"manual\":{\"targetNodeCount\":3}}"},
        {-1, 0, 4,
         "{\"autoScale\":{\"initialNodeCount\":0,\"maximumNodeCount\":4,\"minimumNodeCount\":0}"
         "}"},
        {2, 0, 4,
         "{\"autoScale\":{\"initialNodeCount\":2,\"maximumNodeCount\":4,\"minimumNodeCount\":0}"
         "}"},
        {1, 3, 3,
         "{\"autoScale\":{\"initialNodeCount\":1,\"maximumNodeCount\":3,\"minimumNodeCount\":3}"
         "}"},
        {-1, 1, -1, NULL},
        {-1, -1, 1, NULL},
        {-1, 2, 1, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_json json_t *scale = NULL;
        struct err e = {0};
        int rc = batchai_scale(rows[i].target, rows[i].min, rows[i].max, &scale, &e);
        auto_free char *got = scale ? json_canonical(scale) : xstrdup("");

        assert_int_equal(rc, rows[i].want ? 0 : -1);
        if (rc < 0)
            assert_true(args_failed(&e));
        else
            assert_string_equal(got, rows[i].want);
    }
}

static void images_have_aliases_and_four_parts(void **state)
{
    static const struct row {
        const char *text, *want; /* NULL = refused */
    } rows[] = {
        {"UbuntuLTS",
         "{\"offer\":\"UbuntuServer\",\"publisher\":\"Canonical\",\"sku\":\"16.04-LTS\"}"},
        {"ubuntults",
         "{\"offer\":\"UbuntuServer\",\"publisher\":\"Canonical\",\"sku\":\"16.04-LTS\"}"},
        {"UbuntuDSVM", "{\"offer\":\"linux-data-science-vm-ubuntu\",\"publisher\":"
                       "\"microsoft-ads\",\"sku\":\"linuxdsvmubuntu\"}"},
        {"p:o:s:1.0",
         "{\"offer\":\"o\",\"publisher\":\"p\",\"sku\":\"s\",\"version\":\"1.0\"}"},
        {"p:o:s:", "{\"offer\":\"o\",\"publisher\":\"p\",\"sku\":\"s\"}"},
        {"p:o:s", NULL},
        {"p:o:s:v:x", NULL},
        {"p::s:v", NULL},
        {"", NULL},
        {"Debian", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_json json_t *image = NULL;
        struct err e = {0};
        int rc = batchai_image(rows[i].text, &image, &e);
        auto_free char *got = image ? json_canonical(image) : NULL;

        if (!str_equal(got, rows[i].want) || rc != (rows[i].want ? 0 : -1))
            fail_msg("%s: %s", rows[i].text, got ? got : "(refused)");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_follows_az),
        cmocka_unit_test(images_have_aliases_and_four_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
