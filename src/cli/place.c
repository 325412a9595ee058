/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/config.h"
#include "http/client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_CARD_BYTES = 64 * 1024,
    MOST_TOKEN_BYTES = 64 * 1024,
};

int place_home(char **ret_home, struct err *e)
{
    const char *home = getenv("YARD_HOME");

    if (home && *home) {
        auto_free char *here = home[0] == '/' ? NULL : getcwd(NULL, 0);

        /* The daemon does not share our working folder. */
        *ret_home = here ? xasprintf("%s/%s", here, home) : xstrdup(home);
        return 0;
    }
    home = getenv("HOME");
    if (!home || !*home) {
        struct passwd *user = getpwuid(getuid());

        home = user ? user->pw_dir : NULL;
    }
    if (!home || home[0] != '/')
        return err_set(e, ERR_INVALID, "there is no home folder; set YARD_HOME");
    *ret_home = xasprintf("%s/.trainyard", home);
    return 0;
}

void place_free(struct place *place)
{
    if (!place)
        return;
    free(place->api_url);
    free(place->token);
    free(place->ca_file);
    free(place->subscription_id);
    free(place->tenant_id);
    free(place);
}

int place_card(const char *home, json_t **ret_card, struct err *e)
{
    auto_free char *path = xasprintf("%s/run/yardd.json", home);
    auto_str text = {0};
    auto_json json_t *card = NULL;

    if (fs_read(path, MOST_CARD_BYTES, &text, e) < 0)
        return -1;
    if (json_parse(str_text(&text), text.len, &card, e) < 0)
        return err_wrap(e, "could not read \"%s\"", path);
    if (!json_is_object(card))
        return err_set(e, ERR_INVALID, "\"%s\" does not hold an object", path);
    *ret_card = json_incref(card);
    return 0;
}

/* Is there a flock by pid on the inode?  /proc/locks is asked rather than the lock itself,
 * since trying it would make a daemon that starts at this moment believe that another one has
 * it. */
static bool locks_tell(pid_t pid, ino_t inode)
{
    FILE *locks = fopen("/proc/locks", "re");
    char line[256];
    bool found = false;

    while (locks && !found && fgets(line, sizeof(line), locks)) {
        int holder;
        uintmax_t number;

        if (sscanf(line, "%*[^:]: FLOCK %*s WRITE %d %*x:%*x:%ju", &holder, &number) == 2)
            found = holder == pid && number == inode;
    }
    if (locks)
        fclose(locks);
    return found;
}

pid_t place_holder(const char *home)
{
    auto_free char *path = xasprintf("%s/lock", home);
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[32] = "";
    struct stat st;
    long pid;

    if (fd < 0 || fstat(fd, &st) < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        return 0;
    pid = strtol(text, NULL, 10);
    if (pid <= 0 || (kill((pid_t)pid, 0) < 0 && errno == ESRCH))
        return 0;
    if (locks_tell((pid_t)pid, st.st_ino))
        return (pid_t)pid;
    /* The pid lives, but the table does not show its lock: another pid namespace, or a pid used
     * again. */
    if (flock(fd, LOCK_SH | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? (pid_t)pid : 0;
}

int place_check_url(const char *url, char **ret_url, struct err *e)
{
    auto_free char *clean = xstrdup(url);
    size_t len = strlen(clean);
    const char *host = strstr(clean, "://");
    bool https = str_starts_nocase(clean, "https://");

    while (len && clean[len - 1] == '/')
        clean[--len] = '\0';
    if (!host || !host[3] || host[3] == '/' || (!https && !str_starts_nocase(clean, "http://")))
        return err_set(e, ERR_INVALID,
                       "\"%.200s\" is not the address of a yard; write it like "
                       "https://host:7443",
                       url);
    if (strpbrk(host + 3, "/?#@ \t\r\n"))
        return err_set(e, ERR_INVALID,
                       "the address of a yard is a host and a port, without "
                       "user, path or query: \"%.200s\"",
                       url);
    if (!https && !http_url_is_loopback(clean))
        return err_set(e, ERR_INVALID,
                       "plain http would show the token to the network; use https for "
                       "\"%.200s\"",
                       url);
    *ret_url = take_ptr(&clean);
    return 0;
}

int place_read_token(const char *path, char **ret_token, struct err *e)
{
    auto_str text = {0};

    if (fs_read(path, MOST_TOKEN_BYTES, &text, e) < 0)
        return err_wrap(e, "reading the token");
    str_truncate(&text, strcspn(str_text(&text), "\r\n"));
    if (!text.len)
        return err_set(e, ERR_INVALID, "the token file \"%s\" is empty", path);
    *ret_token = str_take(&text);
    return 0;
}

static char *copy_or_null(const char *text)
{
    return text && *text ? xstrdup(text) : NULL;
}

static int from_card(const char *home, struct place *place, struct err *e)
{
    auto_json json_t *card = NULL;
    const char *api_url = NULL, *token_file = NULL, *ca_file = NULL, *id = NULL, *tenant = NULL;

    if (!place_holder(home)) {
        err_set(e, ERR_BUSY, "no yard is running on \"%s\"; start one with: yard up", home);
        return err_reason(e, "YardNotRunning");
    }
    if (place_card(home, &card, e) < 0) {
        if (e && e->code == ERR_NOT_FOUND)
            return err_set(e, ERR_BUSY, "the yard on \"%s\" is still starting; try again",
                           home);
        return -1;
    }
    if (json_get_string(card, "apiUrl", &api_url, e) < 0 ||
        json_get_string(card, "tokenFile", &token_file, e) < 0 ||
        json_get_string(card, "caFile", &ca_file, e) < 0 ||
        json_get_string(card, "subscriptionId", &id, e) < 0 ||
        json_get_string(card, "tenantId", &tenant, e) < 0)
        return -1;
    if (!api_url)
        return err_set(e, ERR_INTERNAL, "the yard on \"%s\" does not tell its address", home);
    place->is_local = true;
    place->api_url = xstrdup(api_url);
    place->ca_file = copy_or_null(ca_file);
    place->subscription_id = copy_or_null(id);
    place->tenant_id = copy_or_null(tenant);
    return token_file ? place_read_token(token_file, &place->token, e) : 0;
}

static int from_config(const struct config *config, struct place *place, struct err *e)
{
    if (place_check_url(config_get(config, "remote", "url"), &place->api_url, e) < 0)
        return err_wrap(e, "in \"%s\"", config_path(config));
    place->token = copy_or_null(config_get(config, "remote", "token"));
    place->ca_file = copy_or_null(config_get(config, "remote", "ca_file"));
    place->subscription_id = copy_or_null(config_get(config, "remote", "subscription"));
    place->tenant_id = copy_or_null(config_get(config, "remote", "tenant"));
    return 0;
}

static void override(char **field, const char *variable)
{
    const char *text = getenv(variable);

    if (!text || !*text)
        return;
    free(*field);
    *field = xstrdup(text);
}

int place_find(const char *home,
               const struct config *config,
               struct place **ret_place,
               struct err *e)
{
    autoptr(place) place = xcalloc(1, sizeof(*place));
    const char *url = getenv("YARD_URL");
    int rc;

    if (url && *url)
        rc = place_check_url(url, &place->api_url, e) < 0 ? err_wrap(e, "YARD_URL") : 0;
    else if (config_get(config, "remote", "url"))
        rc = from_config(config, place, e);
    else
        rc = from_card(home, place, e);
    if (rc < 0)
        return -1;
    override(&place->token, "YARD_TOKEN");
    override(&place->ca_file, "YARD_CA_FILE");
    *ret_place = take_ptr(&place);
    return 0;
}
