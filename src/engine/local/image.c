/* The image of a job's container: found on this machine, or fetched from its registry.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "engine/local/admit.h"
#include "engine/local/container-internal.h"
#include "engine/local/folder.h"

#include <string.h>

/* Of this attempt alone: the runtime's own place for tokens is every job's. */
static const char *token_folder(const struct container_wish *wish, struct arena *arena)
{
    return arena_printf(arena, "%s/registry", wish->folder);
}

/* Begin a call that uses the token: podman has a file for it, docker a folder. */
static void begin_with_token(const struct box *box,
                             const struct container_wish *wish,
                             struct arena *arena,
                             struct args *args,
                             const char *verb)
{
    const char *folder = token_folder(wish, arena);

    if (box->is_podman) {
        args_begin(box, args, verb);
        args_add_pair(args, "--authfile", arena_printf(arena, "%s/auth.json", folder));
        return;
    }
    args_begin(box, args, "--config");
    args_add_pair(args, folder, verb);
}

/* "registry.example.org/x/y" -> "registry.example.org"; the default one otherwise.  By the
 * rule of the runtimes: a password must not go to a server that it is not for. */
static const char *server_of(const struct container_wish *wish, struct arena *arena)
{
    size_t first = strcspn(wish->image, "/");
    const char *server = wish->server;

    if (server && *server) {
        server = strstr(server, "://") ? strstr(server, "://") + 3 : server;
        return arena_strndup(arena, server, strcspn(server, "/"));
    }
    if (wish->image[first] &&
        (strcspn(wish->image, ".:") < first || str_starts(wish->image, "localhost/")))
        return arena_strndup(arena, wish->image, first);
    return "docker.io";
}

static int log_in(struct box *box,
                  const struct container_wish *wish,
                  struct arena *arena,
                  struct container_failure *failure)
{
    auto_outcome outcome = {0};
    auto_str line = {0};
    struct args args;
    struct err e = {0};

    begin_with_token(box, wish, arena, &args, "login");
    args_add_pair(&args, "--username", wish->user);
    args_add(&args, "--password-stdin");
    args_add(&args, server_of(wish, arena));
    args.input = wish->password;
    if (box_run(-1, &args, BOX_ASK_MS, wish, &outcome, &e) < 0)
        return box_fail(failure, "FailedStartingContainer", "unable to log in to the registry",
                        e.msg);
    if (outcome.code == 0)
        return 0;
    command_last_line(&outcome.errors, &line);
    return box_fail(failure, "FailedStartingContainer", "unable to log in to the registry",
                    outcome.is_late ? "the registry does not answer" : str_text(&line));
}

/* What a person can do something about. */
static const char *explain_pull(const struct command_outcome *outcome)
{
    static const struct {
        const char *said, *means;
    } causes[] = {
        {"unauthorized", "the registry wants other credentials"},
        {"authentication required", "the registry wants credentials"},
        {"denied", "the registry refuses access, or has no such image"},
        {"manifest unknown", "the registry has no such image"},
        {"not found", "the registry has no such image"},
        {"no such host", "the registry cannot be reached: its name is not known here"},
        {"name resolution", "the registry cannot be reached: its name is not known here"},
        {"connection refused", "the registry cannot be reached"},
        {"network is unreachable", "the registry cannot be reached"},
        {"i/o timeout", "the registry cannot be reached"},
        {"short-name", "the image is not here, and its name has no registry in it"},
    };
    const char *text = str_text(&outcome->errors);

    if (outcome->is_late)
        return "fetching it took too long";
    for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
        if (strcasestr(text, causes[i].said))
            return causes[i].means;
    }
    return "it could not be fetched";
}

/* The id of the image, NULL when it is not here. */
static const char *
find_image(struct box *box, const struct container_wish *wish, struct arena *arena)
{
    auto_outcome outcome = {0};
    struct args args;
    const char *id;

    args_begin(box, &args, "image");
    args_add(&args, "inspect");
    args_add_pair(&args, "--format", "{{.Id}}");
    args_add(&args, wish->image);
    if (box_run(-1, &args, BOX_ASK_MS, wish, &outcome, NULL) < 0 || outcome.code != 0)
        return NULL;
    id = str_text(&outcome.out);
    return arena_strndup(arena, id, strcspn(id, "\r\n "));
}

static struct credentials credentials_of(const struct container_wish *wish, struct arena *arena)
{
    return (struct credentials){server_of(wish, arena), wish->user, wish->password};
}

static int pull(struct box *box,
                const struct container_wish *wish,
                struct arena *arena,
                bool is_here,
                struct container_failure *failure)
{
    auto_outcome outcome = {0};
    auto_str line = {0};
    struct args args;
    struct err e = {0};
    const char *info;

    if (wish->user && admit_expect(wish->images, wish->image, &e) < 0)
        return box_fail(failure, "FailedStartingContainer", "unable to fetch the image", e.msg);
    if (wish->user)
        begin_with_token(box, wish, arena, &args, "pull");
    else
        args_begin(box, &args, "pull");
    args_add(&args, "--quiet");
    args_add(&args, wish->image);
    if (box_run(-1, &args, wish->pull_ms, wish, &outcome, &e) < 0)
        return box_fail(failure, "FailedStartingContainer", "unable to fetch the image", e.msg);
    if (outcome.code == 0)
        return 0;
    if (outcome.code > 0 && wish->user && !is_here)
        admit_settle(wish->images, wish->image); /* killed, it may have come all the same */
    command_last_line(&outcome.errors, &line);
    info =
        arena_printf(arena, "image %s: %s%s (%s)", wish->image,
                     is_here ? "it is private, and this job's credentials are not known: " : "",
                     explain_pull(&outcome), str_text(&line));
    return box_fail(failure, "FailedStartingContainer", "unable to fetch the image", info);
}

static int note_credentials(struct box *box,
                            const struct container_wish *wish,
                            struct arena *arena,
                            struct container_failure *failure)
{
    struct credentials who = credentials_of(wish, arena);
    const char *id = find_image(box, wish, arena);
    struct err e = {0};

    if (!id || admit_note(wish->images, id, &who, &e) < 0)
        return box_fail(failure, "FailedStartingContainer", "unable to fetch the image",
                        id ? e.msg : "it was fetched, and is not here");
    admit_settle(wish->images, wish->image);
    return 0;
}

/* Words that podman takes before a name for a place on this machine: what is "fetched" from
 * there has passed no registry, and may be another's private image. */
static bool is_of_registry(const char *image)
{
    static const char *const places[] = {
        "atomic:",        "containers-storage:",
        "dir:",           "docker-archive:",
        "docker-daemon:", "oci:",
        "oci-archive:",   "ostree:",
        "sif:",           "tarball:",
    };

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (str_starts(image, places[i]))
            return false;
    }
    return true;
}

/* Outside of the node: what is fetched belongs to all, and the token is not the node's. */
int image_fetch(struct box *box,
                const struct container_wish *wish,
                struct arena *arena,
                struct container_failure *failure)
{
    struct credentials who = credentials_of(wish, arena);
    const char *id = find_image(box, wish, arena), *folder = token_folder(wish, arena);
    struct err e = {0};
    int rc = 0;

    folder_remove(folder, NULL); /* of a daemon that died while it fetched */
    if (!is_of_registry(wish->image))
        return box_fail(
            failure, "FailedStartingContainer", "unable to fetch the image",
            arena_printf(arena, "image %s: take its name in a registry", wish->image));
    if (id && !admit_is_expected(wish->images, wish->image) &&
        admit_is_known(wish->images, id, &who))
        return 0;
    if (wish->user && folder_make(folder, 0700, &e) < 0)
        return box_fail(failure, "FailedStartingContainer", "unable to log in to the registry",
                        e.msg);
    if (wish->user)
        rc = log_in(box, wish, arena, failure);
    if (rc == 0)
        rc = pull(box, wish, arena, id != NULL, failure);
    folder_remove(folder, NULL);
    return rc == 0 ? note_credentials(box, wish, arena, failure) : -1;
}
