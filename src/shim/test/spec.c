/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/spec.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LEAST "argv=true\0cwd=/\0stdout=/o\0stderr=/e\0"

static int parse(const char *bytes, size_t len, struct arena *arena, struct shim_spec *spec)
{
    struct err e = {0};
    int status = shim_spec_parse(bytes, len, arena, spec, &e);

    assert_int_equal(status < 0, e.code != ERR_NONE);
    return status;
}

static void what_is_written_reads_back(void **state)
{
    autoptr(arena) arena = arena_new();
    auto_str bytes = {0}, again = {0};
    struct shim_spec read;
    struct shim_spec spec = {
        .argv = (const char *[]){"bash", "-c", "exit 3", "", NULL},
        .env = (const char *[]){"PATH=/bin", "EMPTY=", "EQUALS=a=b", "LINES=a\nb", NULL},
        .cwd = "/work",
        .stdout_path = "/out/stdout.txt",
        .stderr_path = "/out/stderr.txt",
        .logs = "/out",
        .cpus = "0-3,8",
        .enter_pid = 77,
        .enter_start = UINT64_MAX,
        .namespaces = "mnu",
        .cgroups = (const char *[]){"/cg/a", "/cg/b", NULL},
        .memory = (const char *[]){"/cg/a/memory.events", NULL},
        .limits = (const char *[]){"core 0 0", "nofile 1024 unlimited", NULL},
        .grace_ms = 5,
        .has_user = true,
        .uid = 1000,
        .gid = 100,
        .umask = 027,
    };

    (void)state;
    shim_spec_format(&spec, &bytes);
    assert_int_equal(parse(bytes.data, bytes.len, arena, &read), 0);
    shim_spec_format(&read, &again);
    assert_int_equal(bytes.len, again.len);
    assert_memory_equal(bytes.data, again.data, bytes.len);
    assert_string_equal(read.argv[3], "");
    assert_null(read.argv[4]);
    assert_string_equal(read.env[3], "LINES=a\nb");
    assert_true(read.enter_start == UINT64_MAX);
    assert_int_equal(read.umask, 027);
    assert_int_equal(read.gid, 100);
    assert_string_equal(read.limits[1], "nofile 1024 unlimited");
    assert_string_equal(read.logs, "/out");
    assert_string_equal(read.cpus, "0-3,8");
}

static void what_is_not_said_has_its_default(void **state)
{
    static const char bytes[] = "yard-shim=1\0" LEAST;
    autoptr(arena) arena = arena_new();
    struct shim_spec spec;

    (void)state;
    assert_int_equal(parse(bytes, sizeof(bytes) - 1, arena, &spec), 0);
    assert_int_equal(spec.grace_ms, SHIM_GRACE_MS);
    assert_int_equal(spec.umask, SHIM_UMASK);
    assert_int_equal(spec.enter_pid, 0);
    assert_false(spec.has_user);
    assert_null(spec.logs);
    assert_null(spec.cpus);
    assert_null(spec.env[0]);
    assert_null(spec.cgroups[0]);
    assert_null(spec.memory[0]);
    assert_null(spec.limits[0]);
}

#define BAD(text)                                                                              \
    {                                                                                          \
        text, sizeof(text) - 1                                                                 \
    }

static void a_foreign_spec_is_refused(void **state)
{
    static const struct row {
        const char *bytes;
        size_t len;
    } rows[] = {
        BAD(""),
        BAD("yard-shim=1"),
        BAD("yard-shim=2\0" LEAST),
        BAD("yard-shim=1\0argv=true\0cwd=/\0stdout=/o\0stderr=/e"), /* cut off */
        BAD("yard-shim=1\0" LEAST "future=1\0"),
        BAD("yard-shim=1\0" LEAST "future\0"),
        BAD("yard-shim=1\0" LEAST "\0"),
        BAD("yard-shim=1\0" LEAST "cwd=/twice\0"),
        BAD("yard-shim=1\0cwd=/\0stdout=/o\0stderr=/e\0"), /* no command */
        BAD("yard-shim=1\0argv=\0cwd=/\0stdout=/o\0stderr=/e\0"),
        BAD("yard-shim=1\0argv=true\0stdout=/o\0stderr=/e\0"),
        BAD("yard-shim=1\0argv=true\0cwd=here\0stdout=/o\0stderr=/e\0"),
        BAD("yard-shim=1\0argv=true\0cwd=/\0stdout=o\0stderr=/e\0"),
        BAD("yard-shim=1\0" LEAST "env=NAMELESS\0"),
        BAD("yard-shim=1\0" LEAST "env==x\0"),
        BAD("yard-shim=1\0" LEAST "cgroup=relative\0"),
        BAD("yard-shim=1\0" LEAST "logs=relative\0"),
        BAD("yard-shim=1\0" LEAST "cpus=\0"),
        BAD("yard-shim=1\0" LEAST "cpus=3-1\0"),
        BAD("yard-shim=1\0" LEAST "cpus=1,\0"),
        BAD("yard-shim=1\0" LEAST "cpus=-1\0"),
        BAD("yard-shim=1\0" LEAST "cpus=99999\0"),
        BAD("yard-shim=1\0" LEAST "enter=1 2\0"), /* without namespaces */
        BAD("yard-shim=1\0" LEAST "namespaces=m\0"),
        BAD("yard-shim=1\0" LEAST "enter=0 2\0namespaces=m\0"),
        BAD("yard-shim=1\0" LEAST "enter=-1 2\0namespaces=m\0"),
        BAD("yard-shim=1\0" LEAST "enter=1\0namespaces=m\0"),
        BAD("yard-shim=1\0" LEAST "enter=1 2 3\0namespaces=m\0"),
        BAD("yard-shim=1\0" LEAST "enter=1 2\0namespaces=x\0"),
        BAD("yard-shim=1\0" LEAST "enter=1 2\0namespaces=\0"),
        BAD("yard-shim=1\0" LEAST "grace_ms=-1\0"),
        BAD("yard-shim=1\0" LEAST "grace_ms=1s\0"),
        BAD("yard-shim=1\0" LEAST "grace_ms=99999999999999999999\0"),
        BAD("yard-shim=1\0" LEAST "user=1\0"),
        BAD("yard-shim=1\0" LEAST "user=4294967295:0\0"),
        BAD("yard-shim=1\0" LEAST "user=0:4294967295\0"),
        BAD("yard-shim=1\0" LEAST "umask=8\0"),
        BAD("yard-shim=1\0" LEAST "umask=1000\0"),
        BAD("yard-shim=1\0" LEAST "limit=none 1 2\0"),
        BAD("yard-shim=1\0" LEAST "limit=core 1\0"),
        BAD("yard-shim=1\0" LEAST "limit=core -1 2\0"),
        BAD("yard-shim=1\0" LEAST "limit=core 1 2 3\0"),
    };
    autoptr(arena) arena = arena_new();
    struct shim_spec spec;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (parse(rows[i].bytes, rows[i].len, arena, &spec) == 0)
            fail_msg("row %zu was taken", i);
    }
}

static void limits_are_read(void **state)
{
    struct rlimit limit;
    int resource;

    (void)state;
    assert_int_equal(shim_limit_parse("nofile 16 unlimited", &resource, &limit, NULL), 0);
    assert_int_equal(resource, RLIMIT_NOFILE);
    assert_int_equal(limit.rlim_cur, 16);
    assert_true(limit.rlim_max == RLIM_INFINITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(what_is_not_said_has_its_default),
        cmocka_unit_test(a_foreign_spec_is_refused),
        cmocka_unit_test(limits_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
