/* settings.c - fuzz target: the file yardd.conf.
 *
 * What must hold beyond not crashing: a refusal names the file and the line; what was taken
 * lies within its bounds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/settings.h"

#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void write_file(const char *path, const uint8_t *bytes, size_t len)
{
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    require(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
}

static void check(const struct settings *s)
{
    require(s->address && s->host_names && s->tls_cert && s->tls_key);
    require(s->https_port >= 0 && s->https_port <= 65535);
    require(s->http_port >= 0 && s->http_port <= 65535);
    require(s->threads >= 0 && s->threads <= 256);
    require(s->most_per_commit >= 1 && s->max_body_kib >= 1 && s->max_connections >= 1);
    require(s->drain_seconds >= 0);
    require(s->log_level <= LOG_LEVEL_ERROR);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char home[] = "/tmp/yard-settings-XXXXXX";
    auto_free char *path = NULL, *option = NULL;
    char program[] = "yardd", *argv[] = {program, NULL, NULL};
    struct settings settings = {0};
    enum settings_verb verb;
    const char *argument = NULL;
    struct err e = {0};

    require(mkdtemp(home) != NULL);
    path = xasprintf("%s/yardd.conf", home);
    option = xasprintf("--home=%s", home);
    argv[1] = option;
    write_file(path, bytes, len);
    if (settings_read(2, argv, &settings, &verb, &argument, &e) < 0) {
        require(e.code == ERR_INVALID && str_starts(e.msg, path));
    } else {
        require(verb == SETTINGS_RUN);
        check(&settings);
        settings_done(&settings);
    }
    unlink(path);
    rmdir(home);
    return 0;
}
