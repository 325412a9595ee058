/* File servers: folders of the yard that clusters and jobs share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/batchai-spec.h"
#include "cli/batchai-user.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"

#include <limits.h>

#define SERVER BATCHAI_SERVERS "/{name}"

static const struct option_row name = {
    .names = "--name -n",
    .help = "Name of the file server.",
    .required = true,
};
static const struct option_row vm_size = {
    .names = "--vm-size -s",
    .help = "Size of its machine. Kept and shown.",
};
static const struct option_row disk_count = {
    .names = "--disk-count",
    .help = "How many disks. Kept and shown.",
};
static const struct option_row disk_size = {
    .names = "--disk-size",
    .help = "Size of each, in GiB. Kept and shown.",
};
static const struct option_row caching_type = {
    .names = "--caching-type",
    .help = "How the disks are cached. Kept and shown.",
    .choices = "none readonly readwrite",
};
static const struct option_row storage_sku = {
    .names = "--storage-sku",
    .help = "Class of the disks; Premium_LRS when neither this nor the file says. Kept and "
            "shown.",
    .choices = "Premium_LRS Standard_LRS",
};
static const struct option_row subnet = {
    .names = "--subnet",
    .help = "Id of a subnet. Kept and shown.",
};

static int set_disks(struct call *call, json_t *properties, struct err *e)
{
    json_t *disks = batchai_object(properties, "dataDisks");
    const char *caching = args_get(call->args, "caching-type");
    const char *sku = args_get(call->args, "storage-sku");
    long count = 0, size = 0;

    if (batchai_number(call, "disk-count", 1, INT_MAX, &count, e) < 0 ||
        batchai_number(call, "disk-size", 1, INT_MAX, &size, e) < 0)
        return -1;
    if (count)
        json_object_set_new(disks, "diskCount", json_integer(count));
    if (size)
        json_object_set_new(disks, "diskSizeInGB", json_integer(size));
    if (caching)
        json_object_set_new(disks, "cachingType", json_string(caching));
    if (!sku && !json_object_get(disks, "storageAccountType"))
        sku = "Premium_LRS";
    if (sku)
        json_object_set_new(disks, "storageAccountType", json_string(sku));
    if (!json_object_get(disks, "diskCount") || !json_object_get(disks, "diskSizeInGB"))
        return args_fail(e, "--disk-count",
                         "which disks? take --disk-count and --disk-size, or dataDisks in the "
                         "configuration file");
    return 0;
}

static int set_machine(struct call *call, json_t *properties, struct err *e)
{
    const char *size = args_get(call->args, "vm-size");
    const char *net = args_get(call->args, "subnet");

    if (size)
        json_object_set_new(properties, "vmSize", json_string(size));
    if (!json_is_string(json_object_get(properties, "vmSize")))
        return args_fail(e, "--vm-size",
                         "which size of machine? take --vm-size, or vmSize in the "
                         "configuration file");
    if (net && !batchai_is_id(net))
        return args_fail(e, "--subnet", "--subnet: \"%.100s\" is not a resource id", net);
    if (net)
        json_object_set_new(properties, "subnet", json_pack("{s:s}", "id", net));
    return 0;
}

static int create(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *body = NULL;
    json_t *properties;

    if (batchai_need_new(call, SERVER, "a file server", e) < 0 ||
        batchai_read_config(call, &body, e) < 0)
        return -1;
    properties = json_object_get(body, "properties");
    if (set_machine(call, properties, e) < 0 || set_disks(call, properties, e) < 0 ||
        batchai_set_user(call, batchai_object(properties, "sshConfiguration"), e) < 0)
        return -1;
    return batchai_act(call, SERVER, "PUT", body, !args_flag(call->args, "no-wait"), ret_result,
                       e);
}

static int show(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_act(call, SERVER, "GET", NULL, false, ret_result, e);
}

static int list(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_list(call, BATCHAI_SERVERS, ret_result, e);
}

static int delete (struct call *call, json_t **ret_result, struct err *e)
{
    (void)ret_result;
    return batchai_act(call, SERVER, "DELETE", NULL, !args_flag(call->args, "no-wait"), NULL,
                       e);
}

static const char ids[] = "resourceGroups=resource-group workspaces=workspace fileservers=name";

const struct command file_server_commands[] = {
    {
        .path = "batchai file-server create",
        .summary = "Create a file server.",
        .options = OPTIONS(&name,
                           &option_resource_group,
                           &batchai_workspace,
                           &vm_size,
                           &disk_count,
                           &disk_size,
                           &caching_type,
                           &storage_sku,
                           BATCHAI_USER_OPTIONS,
                           &subnet,
                           &batchai_config_file,
                           &option_no_wait),
        .examples = {{"Make one.",
                      "yard batchai file-server create -n datasets -g recipes -w vision -s "
                      "Standard_D1_V2 --disk-count 2 --disk-size 10 --storage-sku Standard_LRS "
                      "--generate-ssh-keys"}},
        .run = create,
        .shape = &batchai_server_shape,
        .table = batchai_server_table,
    },
    {
        .path = "batchai file-server show",
        .summary = "Show a file server.",
        .options = OPTIONS(&name, &option_resource_group, &batchai_workspace),
        .examples = {{"As a table.",
                      "yard batchai file-server show -n datasets -g recipes -w vision -o "
                      "table"}},
        .run = show,
        .shape = &batchai_server_shape,
        .table = batchai_server_table,
        .ids = ids,
    },
    {
        .path = "batchai file-server list",
        .summary = "List the file servers of a workspace.",
        .options = OPTIONS(&option_resource_group, &batchai_workspace),
        .examples = {{"As a table.",
                      "yard batchai file-server list -g recipes -w vision -o table"}},
        .run = list,
        .shape = &batchai_server_shape,
        .table = batchai_server_table,
    },
    {
        .path = "batchai file-server delete",
        .summary = "Delete a file server with what is on it.",
        .options = OPTIONS(&name, &option_resource_group, &batchai_workspace, &option_no_wait),
        .examples = {{"Without being asked.",
                      "yard batchai file-server delete -n datasets -g recipes -w vision -y"}},
        .run = delete,
        .ids = ids,
        .confirms = true,
    },
    {0},
};
