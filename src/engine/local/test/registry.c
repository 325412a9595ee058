/* Runtimes and registries that misbehave: made of shell scripts, on nodes that are folders.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

static int set_up(void **state)
{
    struct rig *rig = rig_new(true);

    rig_open(rig);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    rig_remove_all(rig, RIG_NODES);
    rig_close(rig);
    rig_free(rig);
    return 0;
}

/* A runtime of our own making in front of the others; the caller frees the PATH of before. */
static char *fake_runtime(struct rig *rig, const char *name, const char *script)
{
    char *before = xstrdup(getenv("PATH"));
    auto_free char *folder = xasprintf("%s/bin", rig->home);
    auto_free char *program = xasprintf("%s/%s", folder, name);

    assert_int_equal(mkdir(folder, 0755), 0);
    if (script)
        assert_int_equal(folder_write(program, script, strlen(script), 0755, NULL), 0);
    assert_int_equal(setenv("PATH", folder, 1), 0);
    return before;
}

static char *fake_podman(struct rig *rig, const char *script)
{
    return fake_runtime(rig, "podman", script);
}

static void run_in_image(struct rig *rig, int64_t stop_after_ms)
{
    auto_json json_t *spec = rig_job("true");

    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, "far.example/away:1", NULL, 0);
    if (stop_after_ms) {
        rig_pause(rig, stop_after_ms);
        rig->engine->ops->attempt_stop(rig->engine, 7);
    }
    rig_until(rig, rig->ended);
}

static void missing_runtime_is_told(void **state)
{
    struct rig *rig = *state;
    auto_free char *before = fake_podman(rig, NULL);

    run_in_image(rig, 0);
    setenv("PATH", before, 1);
    assert_int_equal(rig->result.end, ENDED_SETUP);
    assert_string_equal(rig->result.code, "FailedStartingContainer");
    assert_non_null(strstr(rig->result.info, "neither podman nor docker"));
}

static void missing_image_is_told(void **state)
{
    struct rig *rig = *state;
    auto_free char *before = fake_podman(
        rig, "#!/bin/sh\ncase $* in *pull*) echo manifest unknown >&2;; esac\nexit 1\n");

    run_in_image(rig, 0);
    setenv("PATH", before, 1);
    assert_int_equal(rig->result.end, ENDED_SETUP);
    assert_non_null(strstr(rig->result.info, "the registry has no such image"));
}

/* A runtime with one image, "image" in the yard's folder, that comes by a pull while there is
 * no "closed".  It writes down how it was called. */
#define REGISTRY                                                                               \
    "#!/bin/sh\nhome=%s\necho \"$*\" >> $home/calls\n"                                         \
    "case \"$*\" in\n"                                                                         \
    "*'run --detach'*) [ -e $home/runs ] || { echo 'no containers here' >&2; exit 1; };;\n"    \
    "*version*) echo 1;;\n"                                                                    \
    "*'image inspect'*) [ -e $home/image ] || exit 1; echo sha256:0123abcd;;\n"                \
    "*login*) /bin/cat > $home/password; /bin/ls -d $home/attempts/*/registry >> "             \
    "$home/calls;;\n"                                                                          \
    "*pull*) [ -e $home/closed ] && { echo unauthorized >&2; exit 1; }; : > $home/image\n"     \
    "[ ! -e $home/hangs ] || /bin/sleep 98766;;\n"                                             \
    "esac\n"

static char *calls_of(struct rig *rig)
{
    auto_free char *path = xasprintf("%s/calls", rig->home);
    struct str text = {0};

    assert_int_equal(fs_read(path, 1 << 16, &text, NULL), 0);
    return str_take(&text);
}

static void touch(struct rig *rig, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", rig->home, name);

    assert_int_equal(folder_write(path, "", 0, 0600, NULL), 0);
}

static void
submit_as(struct rig *rig, const char *user, const char *password, const char *image)
{
    auto_json json_t *spec = rig_job("true");

    rig->user = user;
    rig->password = password;
    rig_submit_full(rig, 1, spec, image, NULL, 0);
}

static void run_once_more(struct rig *rig, const char *user, const char *password)
{
    int before = rig->ended;

    crypt_uuid(rig->uuid);
    submit_as(rig, user, password, "far.example/away:1");
    rig_until(rig, rig->ended > before);
    assert_int_equal(rig->result.end, ENDED_SETUP);
}

/* The same for what is written for ssh into the container. */
static void planted_link_is_not_written_through_for_a_container(void **state)
{
    struct rig *rig = *state;
    auto_free char *script = xasprintf(REGISTRY, rig->home);
    auto_free char *elsewhere = xasprintf("%s/elsewhere", rig->home);
    auto_free char *command =
        xasprintf("cd $AZ_BATCHAI_MOUNT_ROOT/..; rm -rf configs; ln -s %s configs", elsewhere);
    auto_free char *victim = xasprintf("%s/enter", elsewhere), *before = NULL;
    auto_json json_t *spec = rig_job("true");
    auto_str text = {0};

    assert_int_equal(mkdir(elsewhere, 0755), 0);
    assert_int_equal(folder_write(victim, "keep", 4, 0600, NULL), 0);
    rig_add_up(rig, 1);
    assert_int_equal(rig_run(rig, 1, command), 0);
    touch(rig, "image");
    touch(rig, "runs");
    before = fake_podman(rig, script);
    crypt_uuid(rig->uuid);
    rig_submit_full(rig, 1, spec, "far.example/away:1", NULL, 0);
    rig_until(rig, rig->ended == 2);
    setenv("PATH", before, 1);
    assert_int_equal(rig->result.end, ENDED_SETUP);
    assert_int_equal(fs_read(victim, 100, &text, NULL), 0);
    assert_string_equal(str_text(&text), "keep");
}

static void private_image_that_is_here_wants_credentials(void **state)
{
    struct rig *rig = *state;
    auto_free char *script = xasprintf(REGISTRY, rig->home);
    auto_free char *before = fake_podman(rig, script);

    rig_add_up(rig, 1);
    run_once_more(rig, "me", "sesame");
    assert_string_equal(rig->result.message, "unable to start docker container");
    touch(rig, "closed");
    run_once_more(rig, "me", "sesame"); /* known: the registry is not asked */
    assert_string_equal(rig->result.message, "unable to start docker container");
    run_once_more(rig, NULL, NULL);
    assert_string_equal(rig->result.message, "unable to fetch the image");
    assert_non_null(strstr(rig->result.info, "it is private"));
    run_once_more(rig, "me", "a guess");
    assert_string_equal(rig->result.message, "unable to fetch the image");
    setenv("PATH", before, 1);
}

/* Nobody was there to note with whose credentials it came. */
static void image_of_a_fetch_that_was_cut_off_wants_credentials(void **state)
{
    struct rig *rig = *state;
    auto_free char *script = xasprintf(REGISTRY, rig->home);
    auto_free char *image = xasprintf("%s/image", rig->home);
    auto_free char *before = fake_podman(rig, script);

    touch(rig, "hangs");
    rig_add_up(rig, 1);
    submit_as(rig, "me", "sesame", "far.example/away:1");
    while (access(image, F_OK) < 0)
        rig_pause(rig, 10);
    rig->engine->ops->attempt_stop(rig->engine, 7);
    rig_until(rig, rig->ended);
    touch(rig, "closed");
    run_once_more(rig, NULL, NULL);
    assert_string_equal(rig->result.message, "unable to fetch the image");
    run_once_more(rig, "me", "a guess"); /* and being refused does not make it everybody's */
    run_once_more(rig, NULL, NULL);
    setenv("PATH", before, 1);
    assert_string_equal(rig->result.message, "unable to fetch the image");
}

/* podman would copy it from its own store, for whoever asks. */
static void image_is_not_fetched_from_this_machine(void **state)
{
    struct rig *rig = *state;
    auto_free char *script = xasprintf(REGISTRY, rig->home);
    auto_free char *before = fake_podman(rig, script);

    rig_add_up(rig, 1);
    submit_as(rig, NULL, NULL, "containers-storage:far.example/away:1");
    rig_until(rig, rig->ended);
    setenv("PATH", before, 1);
    assert_string_equal(rig->result.message, "unable to fetch the image");
    assert_non_null(strstr(rig->result.info, "take its name in a registry"));
}

static void token_that_a_dead_daemon_left_goes(void **state)
{
    struct rig *rig = *state;
    auto_free char *script = xasprintf(REGISTRY, rig->home);
    auto_free char *before = fake_podman(rig, script);
    auto_free char *attempt = xasprintf("%s/attempts/%s", rig->home, rig->uuid);
    auto_free char *folder = xasprintf("%s/registry", attempt);

    assert_int_equal(folder_make(folder, 0700, NULL), 0);
    touch(rig, "image");
    rig_add_up(rig, 1);
    submit_as(rig, NULL, NULL, "far.example/away:1");
    rig_until(rig, rig->ended);
    setenv("PATH", before, 1);
    assert_int_equal(access(attempt, F_OK), 0);
    assert_int_equal(access(folder, F_OK), -1);
}

static void password_goes_to_the_server_of_the_image(void **state)
{
    struct rig *rig = *state;
    auto_free char *script = xasprintf(REGISTRY, rig->home);
    auto_free char *before = fake_podman(rig, script);
    auto_free char *calls = NULL;

    rig_add_up(rig, 1);
    submit_as(rig, "me", "sesame", "localhost:5000/away:1");
    rig_until(rig, rig->ended);
    setenv("PATH", before, 1);
    calls = calls_of(rig);
    assert_non_null(strstr(calls, "--password-stdin localhost:5000\n"));
}

static void image_that_came_without_credentials_is_everybodys(void **state)
{
    struct rig *rig = *state;
    auto_free char *script = xasprintf(REGISTRY, rig->home);
    auto_free char *before = fake_podman(rig, script);

    touch(rig, "image");
    touch(rig, "closed");
    rig_add_up(rig, 1);
    run_once_more(rig, NULL, NULL);
    setenv("PATH", before, 1);
    assert_string_equal(rig->result.message, "unable to start docker container");
}

static void token_of_docker_is_the_attempts_alone(void **state)
{
    struct rig *rig = *state;
    auto_free char *script = xasprintf(REGISTRY, rig->home);
    auto_free char *before = fake_runtime(rig, "docker", script);
    auto_free char *folder = NULL, *login = NULL, *pull = NULL, *calls = NULL;

    rig_add_up(rig, 1);
    run_once_more(rig, "me", "sesame");
    setenv("PATH", before, 1);
    folder = xasprintf("%s/attempts/%s/registry", rig->home, rig->uuid);
    login = xasprintf("--config %s login --username me --password-stdin far.example\n%s\n",
                      folder, folder);
    pull = xasprintf("--config %s pull --quiet far.example/away:1\n", folder);
    calls = calls_of(rig);
    assert_non_null(strstr(calls, login)); /* and it was there then */
    assert_non_null(strstr(calls, pull));
    assert_int_equal(access(folder, F_OK), -1);
}

static void docker_gets_the_folder_of_a_volume_and_its_read_only(void **state)
{
    struct rig *rig = *state;
    auto_free char *script = xasprintf(REGISTRY, rig->home);
    auto_free char *before = fake_runtime(rig, "docker", script);
    auto_free char *source = xasprintf("%s/share", rig->home);
    auto_free char *inner = xasprintf("%s/share/a/b", rig->home);
    struct engine_volume volumes[] = {
        {.volume =
             {.kind = VOLUME_FILE_SERVER, .path = "nfs", .folder = "a/b", .options = "rw,ro"},
         .source = source},
        {.volume = {.kind = VOLUME_FILE_SHARE, .path = "afs"}, .source = source},
    };
    auto_json json_t *spec = rig_job("true");
    auto_free char *calls = NULL, *read_only = NULL, *plain = NULL;

    assert_int_equal(folder_make(inner, 0755, NULL), 0);
    touch(rig, "image");
    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, "far.example/away:1", volumes, ARRAY_SIZE(volumes));
    rig_until(rig, rig->ended);
    setenv("PATH", before, 1);
    calls = calls_of(rig);
    read_only = xasprintf("--volume %s:%s/nodes/tvm-1-1/root/jobs/w/e/j/mounts/nfs:ro ", inner,
                          rig->home);
    plain = xasprintf("--volume %s:%s/nodes/tvm-1-1/root/jobs/w/e/j/mounts/afs ", source,
                      rig->home);
    if (!strstr(calls, read_only) || !strstr(calls, plain))
        fail_msg("%s", calls);
}

static void hanging_registry_does_not_hold_a_job(void **state)
{
    struct rig *rig = *state;
    auto_free char *before = fake_podman(
        rig, "#!/bin/sh\ncase $* in *pull*) /bin/sleep 98767;; *rm*) exit 0;; esac\nexit 1\n");
    int64_t began_ms = clock_mono_ms();

    run_in_image(rig, 300);
    setenv("PATH", before, 1);
    assert_int_equal(rig->result.end, ENDED_STOPPED);
    assert_true(clock_mono_ms() - began_ms < 20000);
    assert_int_equal(rig_count_processes("sleep 98767"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(planted_link_is_not_written_through_for_a_container,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(private_image_that_is_here_wants_credentials, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(image_of_a_fetch_that_was_cut_off_wants_credentials,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(image_is_not_fetched_from_this_machine, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(token_that_a_dead_daemon_left_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(password_goes_to_the_server_of_the_image, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(image_that_came_without_credentials_is_everybodys,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(token_of_docker_is_the_attempts_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(docker_gets_the_folder_of_a_volume_and_its_read_only,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_runtime_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_image_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hanging_registry_does_not_hold_a_job, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
