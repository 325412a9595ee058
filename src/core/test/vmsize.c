/* SPDX-License-Identifier: Apache-2.0 */
#include "core/vmsize.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void the_sizes_of_recipes_are_known_in_any_case(void **state)
{
    static const struct {
        const char *name;
        const char *family;
        int cores, memory_mib, gpus;
        bool has_infiniband;
    } rows[] = {
        {"Standard_NC6", "NC", 6, 56 * 1024, 1, false},
        {"STANDARD_NC24R", "NC", 24, 224 * 1024, 4, true},
        {"standard_nc24rs_v3", "NCv3", 24, 448 * 1024, 4, true},
        {"STANDARD_NC12S_V2", "NCv2", 12, 224 * 1024, 2, false},
        {"STANDARD_ND24rs", "ND", 24, 448 * 1024, 4, true},
        {"STANDARD_NV12", "NV", 12, 112 * 1024, 2, false},
        {"STANDARD_D1", "D", 1, 3584, 0, false},
        {"STANDARD_D2_V2", "Dv2", 2, 7168, 0, false},
        {"Standard_DS1", "DS", 1, 3584, 0, false},
        {"Standard_DS14", "DS", 16, 112 * 1024, 0, false},
        {"Standard_DS3_v2", "DSv2", 4, 14 * 1024, 0, false},
        {"Standard_DS15_v2", "DSv2", 20, 140 * 1024, 0, false},
        {"Standard_F4s", "FS", 4, 8192, 0, false},
        {"Standard_E8s_v3", "ESv3", 8, 64 * 1024, 0, false},
        {"STANDARD_D64_V3", "Dv3", 64, 256 * 1024, 0, false},
        {"STANDARD_F2", "F", 2, 4096, 0, false},
        {"STANDARD_H16r", "H", 16, 112 * 1024, 0, true},
        {"STANDARD_A9", "A", 16, 112 * 1024, 0, true},
        {"Host", "", 2, 7000, 3, false},
    };
    autoptr(vmsizes) sizes = vmsizes_new(2, 7000, 3);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct vmsize *size = NULL;
        struct err e = {0};

        if (vmsizes_find(sizes, rows[i].name, &size, &e) < 0)
            fail_msg("%s: %s", rows[i].name, e.msg);
        assert_string_equal(size->family, rows[i].family);
        assert_int_equal(size->cores, rows[i].cores);
        assert_int_equal(size->memory_mib, rows[i].memory_mib);
        assert_int_equal(size->gpus, rows[i].gpus);
        assert_int_equal(size->has_infiniband, rows[i].has_infiniband);
    }
}

static void every_size_is_sane_and_there_once(void **state)
{
    autoptr(vmsizes) sizes = vmsizes_new(1, 1, 0);
    const struct vmsize *size, *found;
    size_t count = 0;

    (void)state;
    assert_string_equal(vmsizes_at(sizes, 0)->name, "host");
    for (; (size = vmsizes_at(sizes, count)); count++) {
        assert_int_equal(vmsizes_find(sizes, size->name, &found, NULL), 0);
        if (found != size)
            fail_msg("%s is there twice", size->name);
        if (count == 0)
            continue;
        assert_true(str_starts(size->name, "STANDARD_"));
        assert_in_range(size->cores, 1, 128);
        assert_in_range(size->memory_mib, 1024, 2000 * 1024);
        assert_in_range(size->memory_mib / size->cores, 896, 20480);
        /* Families with GPUs begin with N, and no other. */
        assert_int_equal(size->gpus > 0, size->family[0] == 'N');
        assert_int_equal(size->name[strlen("STANDARD_")], size->family[0]);
    }
    assert_true(count > 100);
}

static void an_unknown_size_names_its_neighbour(void **state)
{
    autoptr(vmsizes) sizes = vmsizes_new(1, 1, 0);
    const struct vmsize *size = NULL;
    struct err e = {0};

    (void)state;
    assert_int_equal(vmsizes_find(sizes, "STANDARD_NC66", &size, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_string_equal(e.target, "vmSize");
    assert_non_null(strstr(e.msg, "did you mean STANDARD_NC6?"));
    assert_int_equal(vmsizes_find(sizes, "something else entirely", &size, &e), -1);
    assert_null(strstr(e.msg, "did you mean"));
    assert_int_equal(vmsizes_find(sizes, "", &size, &e), -1);
    assert_null(size);
}

static void a_config_adds_sizes_and_changes_them(void **state)
{
    autoptr(vmsizes) sizes = vmsizes_new(1, 1, 0);
    const struct vmsize *before, *size;
    struct err e = {0};

    (void)state;
    assert_int_equal(vmsizes_find(sizes, "STANDARD_D1", &before, &e), 0);
    if (vmsizes_add(sizes, "box 96 1024 8 DGX, small 1 0.5 0\n\n standard_d1 2 4 0\r\n", &e) <
        0)
        fail_msg("%s", e.msg);
    assert_int_equal(vmsizes_find(sizes, "BOX", &size, &e), 0);
    assert_string_equal(size->name, "box");
    assert_string_equal(size->family, "DGX");
    assert_int_equal(size->cores, 96);
    assert_int_equal(size->memory_mib, 1024 * 1024);
    assert_int_equal(size->gpus, 8);
    assert_int_equal(vmsizes_find(sizes, "small", &size, &e), 0);
    assert_int_equal(size->memory_mib, 512);
    assert_string_equal(size->family, "");
    assert_int_equal(before->cores, 2); /* what was found before is still the row */
    assert_int_equal(before->memory_mib, 4096);
    assert_string_equal(before->family, "D");
}

static void bad_rows_are_refused_with_the_form(void **state)
{
    static const char *const rows[] = {
        "box",           "box 1 1",     "box 1 1 0 a b", "box 0 1 0",
        "box -1 1 0",    "box 1 0 0",   "box 1 -1 0",    "box 1 1 65",
        "box 1 1 -1",    "box 1e3 1 0", "box 1.5 1 0",   "box 1 1.2.3 0",
        "box 1 .5 0",    "b/x 1 1 0",   "box 1 1 0 f/g", "box 9999 1 0",
        "box 1 99999 0", "host 4 4 0",  "b\x01x 1 1 0",  "box 1 1 99999999999999999999",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(vmsizes) sizes = vmsizes_new(1, 1, 0);
        struct err e = {0};

        if (vmsizes_add(sizes, rows[i], &e) == 0)
            fail_msg("\"%s\" should be refused", rows[i]);
        assert_int_equal(e.code, ERR_INVALID);
        assert_non_null(strstr(e.msg, "name cores memory_gib gpus [family]"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sizes_of_recipes_are_known_in_any_case),
        cmocka_unit_test(every_size_is_sane_and_there_once),
        cmocka_unit_test(an_unknown_size_names_its_neighbour),
        cmocka_unit_test(a_config_adds_sizes_and_changes_them),
        cmocka_unit_test(bad_rows_are_refused_with_the_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
