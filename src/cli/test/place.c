/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void addresses_are_checked(void **state)
{
    static const struct row {
        const char *url, *want; /* NULL = refused */
    } rows[] = {
        {"https://host:7443", "https://host:7443"},
        {"https://host:7443/", "https://host:7443"},
        {"http://127.0.0.1:7480", "http://127.0.0.1:7480"},
        {"http://localhost:7480//", "http://localhost:7480"},
        {"http://[::1]:7480", "http://[::1]:7480"},
        {"http://host:7480", NULL},
        {"http://127.example.com", NULL},
        {"http://localhost.example.com", NULL},
        {"ftp://host", NULL},
        {"host:7443", NULL},
        {"https://", NULL},
        {"https:///path", NULL},
        {"https://user@host", NULL},
        {"https://host/path", NULL},
        {"https://host?q", NULL},
        {"https://ho st", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *url = NULL;
        struct err e;
        int rc = place_check_url(rows[i].url, &url, &e);

        if ((rc == 0) != (rows[i].want != NULL) || !str_equal(url, rows[i].want))
            fail_msg("%s: %s", rows[i].url, url ? url : e.msg);
    }
}

struct yard {
    char *home;
    int lock_fd;
};

static void write_file(const char *home, const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", home, name);

    assert_int_equal(fs_write_durably(path, text, strlen(text), 0600, NULL), 0);
}

/* A data folder as a running daemon leaves it, this process being the daemon. */
static int make_yard(void **state)
{
    struct yard *yard = xcalloc(1, sizeof(*yard));
    auto_free char *run = NULL, *lock = NULL, *card = NULL, *pid = NULL;

    yard->home = xstrdup("/tmp/yard-place-XXXXXX");
    assert_non_null(mkdtemp(yard->home));
    run = xasprintf("%s/run", yard->home);
    assert_int_equal(mkdir(run, 0700), 0);
    lock = xasprintf("%s/lock", yard->home);
    pid = xasprintf("%d\n", (int)getpid());
    write_file(yard->home, "lock", pid);
    write_file(yard->home, "token", "secret\n");
    card = xasprintf("{\"pid\":%d,\"apiUrl\":\"https://127.0.0.1:7443\",\"caFile\":\"/ca\","
                     "\"tokenFile\":\"%s/token\",\"subscriptionId\":\"s\",\"tenantId\":\"t\"}",
                     (int)getpid(), yard->home);
    write_file(yard->home, "run/yardd.json", card);
    yard->lock_fd = open(lock, O_RDWR | O_CLOEXEC);
    assert_true(yard->lock_fd >= 0);
    assert_int_equal(flock(yard->lock_fd, LOCK_EX | LOCK_NB), 0);
    unsetenv("YARD_URL");
    unsetenv("YARD_TOKEN");
    unsetenv("YARD_CA_FILE");
    *state = yard;
    return 0;
}

static int drop_yard(void **state)
{
    static const char *const files[] = {"lock", "token", "cli.ini", "run/yardd.json", "run"};
    struct yard *yard = *state;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        auto_free char *path = xasprintf("%s/%s", yard->home, files[i]);

        if (unlink(path) < 0)
            rmdir(path);
    }
    rmdir(yard->home);
    close(yard->lock_fd);
    free(yard->home);
    free(yard);
    return 0;
}

static void a_running_yard_is_found_without_any_option(void **state)
{
    struct yard *yard = *state;
    autoptr(config) config = NULL;
    autoptr(place) place = NULL;
    struct err e = {0};

    assert_int_equal(config_open(yard->home, &config, &e), 0);
    if (place_find(yard->home, config, &place, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(place->is_local);
    assert_string_equal(place->api_url, "https://127.0.0.1:7443");
    assert_string_equal(place->token, "secret");
    assert_string_equal(place->ca_file, "/ca");
    assert_string_equal(place->subscription_id, "s");
    assert_int_equal(place_holder(yard->home), getpid());
}

static void without_the_lock_nothing_runs_whatever_the_files_say(void **state)
{
    struct yard *yard = *state;
    autoptr(config) config = NULL;
    autoptr(place) place = NULL;
    struct err e = {0};

    assert_int_equal(flock(yard->lock_fd, LOCK_UN), 0);
    assert_int_equal(place_holder(yard->home), 0);
    assert_int_equal(config_open(yard->home, &config, &e), 0);
    assert_int_equal(place_find(yard->home, config, &place, &e), -1);
    assert_non_null(strstr(e.msg, "yard up"));
    write_file(yard->home, "lock", "999999999\n");
    assert_int_equal(place_holder(yard->home), 0);
    write_file(yard->home, "lock", "rubbish");
    assert_int_equal(place_holder(yard->home), 0);
}

static void the_remembered_yard_goes_before_the_local_one(void **state)
{
    struct yard *yard = *state;
    autoptr(config) config = NULL;
    autoptr(place) place = NULL;
    struct err e = {0};

    assert_int_equal(config_open(yard->home, &config, &e), 0);
    config_set(config, "remote", "url", "https://far:1", NULL);
    config_set(config, "remote", "token", "far-secret", NULL);
    assert_int_equal(place_find(yard->home, config, &place, &e), 0);
    assert_false(place->is_local);
    assert_string_equal(place->api_url, "https://far:1");
    assert_string_equal(place->token, "far-secret");
    assert_null(place->ca_file);
}

static void the_environment_goes_before_everything(void **state)
{
    struct yard *yard = *state;
    autoptr(config) config = NULL;
    autoptr(place) place = NULL;
    autoptr(place) local = NULL;
    struct err e = {0};

    assert_int_equal(config_open(yard->home, &config, &e), 0);
    setenv("YARD_TOKEN", "env-secret", 1);
    assert_int_equal(place_find(yard->home, config, &local, &e), 0);
    assert_string_equal(local->token, "env-secret");
    assert_true(local->is_local);
    config_set(config, "remote", "url", "https://far:1", NULL);
    setenv("YARD_URL", "http://127.0.0.1:9/", 1);
    setenv("YARD_CA_FILE", "/env-ca", 1);
    assert_int_equal(place_find(yard->home, config, &place, &e), 0);
    assert_string_equal(place->api_url, "http://127.0.0.1:9");
    assert_string_equal(place->token, "env-secret");
    assert_string_equal(place->ca_file, "/env-ca");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test_setup_teardown(a_running_yard_is_found_without_any_option, make_yard,
                                        drop_yard),
        cmocka_unit_test_setup_teardown(without_the_lock_nothing_runs_whatever_the_files_say,
                                        make_yard, drop_yard),
        cmocka_unit_test_setup_teardown(the_remembered_yard_goes_before_the_local_one,
                                        make_yard, drop_yard),
        cmocka_unit_test_setup_teardown(the_environment_goes_before_everything, make_yard,
                                        drop_yard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
