/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-verb.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/rest.h"

#include <errno.h>
#include <stdlib.h>

const struct option_row batchai_workspace = {
    .names = "--workspace -w",
    .help = "Name of the workspace.",
    .required = true,
    .default_key = "workspace",
};
const struct option_row batchai_experiment = {
    .names = "--experiment -e",
    .help = "Name of the experiment.",
    .required = true,
    .default_key = "experiment",
};
const struct option_row batchai_config_file = {
    .names = "--config-file -f",
    .help = "File with the parameters as JSON; options on the command line win over it.",
};

const struct option_row batchai_user_name = {
    .names = "--user-name -u",
    .help = "Name of the account on the nodes; yours when not given.",
};
const struct option_row batchai_ssh_key = {
    .names = "--ssh-key -k",
    .help = "Public SSH key, or the file that holds it; ~/.ssh/id_rsa.pub when there is no "
            "password.",
};
const struct option_row batchai_password = {
    .names = "--password -p",
    .help = "Password of the account on the nodes.",
};
const struct option_row batchai_generate_keys = {
    .names = "--generate-ssh-keys",
    .help = "Make the key pair ~/.ssh/id_rsa when there is none.",
    .kind = OPTION_FLAG,
};

const struct option_row batchai_account_name = {
    .names = "--storage-account-name",
    .help = "Storage account of the shares and containers, and what "
            "<AZURE_BATCHAI_STORAGE_ACCOUNT> stands for; AZURE_BATCHAI_STORAGE_ACCOUNT when "
            "not given.",
};
const struct option_row batchai_account_key = {
    .names = "--storage-account-key",
    .help = "Its key; AZURE_BATCHAI_STORAGE_KEY when not given, else the yard is asked.",
};
const struct option_row batchai_afs = {
    .names = "--afs-name",
    .help = "Name of a file share to mount.",
};
const struct option_row batchai_afs_path = {
    .names = "--afs-mount-path",
    .help = "Where the share is mounted, below the mount root.",
    .default_text = "afs",
};
const struct option_row batchai_bfs = {
    .names = "--bfs-name",
    .help = "Name of a container of blobs to mount.",
};
const struct option_row batchai_bfs_path = {
    .names = "--bfs-mount-path",
    .help = "Where the container is mounted, below the mount root.",
    .default_text = "bfs",
};
const struct option_row batchai_nfs = {
    .names = "--nfs",
    .help = "Name or id of a file server to mount.",
};
const struct option_row batchai_nfs_path = {
    .names = "--nfs-mount-path",
    .help = "Where the file server is mounted, below the mount root.",
    .default_text = "nfs",
};

const struct option_row batchai_node_id = {
    .names = "--node-id -n",
    .help = "Id of the node; the first one when not given.",
};
const struct option_row batchai_exec = {
    .names = "--exec",
    .help = "Command to run there; without one and without -L a shell is opened.",
};
const struct option_row batchai_address = {
    .names = "--address -L",
    .help = "Lead a port of this machine to the node: LOCALPORT:HOST:PORT. May be given "
            "several times.",
    .repeats = true,
};
const struct option_row batchai_node_password = {
    .names = "--password -p",
    .help = "Password of the account on the node.",
};
const struct option_row batchai_private_key = {
    .names = "--ssh-private-key -k",
    .help = "File with the private SSH key.",
};

const struct option_row batchai_path = {
    .names = "--path -p",
    .help = "Folder below the output directory.",
    .default_text = ".",
};
const struct option_row batchai_expiry = {
    .names = "--expiry",
    .help = "How many minutes the links hold.",
    .default_text = "60",
};

int batchai_act(struct call *call,
                const char *pattern,
                const char *method,
                const json_t *body,
                bool wait,
                json_t **ret_result,
                struct err *e)
{
    auto_free char *path = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || arm_path(call, pattern, ARM_BATCHAI, &path, e) < 0)
        return -1;
    return rest_long(rest, method, path, body, wait, ret_result, e);
}

int batchai_list(struct call *call, const char *pattern, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || arm_path(call, pattern, ARM_BATCHAI, &path, e) < 0)
        return -1;
    return rest_list(rest, path, ret_result, e);
}

int batchai_post_list(
    struct call *call, const char *pattern, const char *more, json_t **ret_items, struct err *e)
{
    auto_free char *path = NULL, *whole = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || arm_path(call, pattern, ARM_BATCHAI, &path, e) < 0)
        return -1;
    /* The lists answer to GET, too, since clients follow their links with it. */
    whole = xasprintf("%s%s", path, more);
    return rest_list(rest, whole, ret_items, e);
}

int batchai_need_new(struct call *call, const char *pattern, const char *what, struct err *e)
{
    auto_json json_t *there = NULL;
    struct err why = {0};

    if (batchai_act(call, pattern, "GET", NULL, false, &there, &why) == 0)
        return err_set(e, ERR_CONFLICT, "%s of this name is there already: %.300s", what,
                       json_string_value(json_object_get(there, "id")));
    /* What is above it may be missing: the server's own answer to the PUT says so best. */
    if (why.code == ERR_NOT_FOUND)
        return 0;
    *e = why;
    return -1;
}

int batchai_number(
    struct call *call, const char *key, long least, long most, long *ret, struct err *e)
{
    const char *text = args_get(call->args, key);
    char *end;
    long number;

    if (!text)
        return 0;
    errno = 0;
    number = strtol(text, &end, 10);
    if (errno || end == text || *end || number < least || number > most)
        return args_fail(e, key, "--%s: \"%.64s\" is not a number from %ld to %ld", key, text,
                         least, most);
    *ret = number;
    return 0;
}

json_t *batchai_object(json_t *parent, const char *name)
{
    json_t *object = json_object_get(parent, name);

    if (!json_is_object(object)) {
        object = json_object();
        json_object_set_new(parent, name, object);
    }
    return object;
}

bool batchai_is_id(const char *text)
{
    auto_free char *group = arm_id_part(text, "resourceGroups");

    return str_starts_nocase(text, "/subscriptions/") && group;
}
