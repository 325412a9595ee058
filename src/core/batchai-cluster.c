/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai-internal.h"
#include "core/batchai.h"

#include "base/json.h"
#include "base/mem.h"
#include "core/vmsize.h"

#include <ctype.h>
#include <string.h>

const struct shape SHAPE_RESOURCE_ID[] = {
    {"id", SHAPE_TEXT, .is_required = true, .problem = value_resource_id,
     .hint = "the id of the resource"},
    {0},
};

/* --- who may log in --- */

const struct shape SHAPE_USER_ACCOUNT[] = {
    {"adminUserName", SHAPE_TEXT, .is_required = true, .problem = value_user_name,
     .hint = "the name of an account to log in with"},
    {"adminUserSshPublicKey", SHAPE_TEXT, .most = 16384, .problem = value_ssh_key},
    {"adminUserPassword", SHAPE_SECRET, .problem = value_single_line},
    {0},
};

/* A key read from a file ends with its line. */
int user_account_check(struct reader *r, json_t *account)
{
    const char *key = shape_text(account, "adminUserSshPublicKey");
    size_t len = key ? strlen(key) : 0;

    (void)r;
    while (len > 0 && isspace((unsigned char)key[len - 1]))
        len--;
    if (key)
        json_object_set_new(account, "adminUserSshPublicKey", json_stringn(key, len));
    return 0;
}

/* --- variables --- */

const struct shape SHAPE_VARIABLES[] = {
    {"name", SHAPE_TEXT, .is_required = true, .most = 256, .problem = value_variable_name,
     .hint = "the name of the variable"},
    {"value", SHAPE_TEXT, .is_required = true, .may_be_empty = true, .most = SHAPE_MOST_COMMAND,
     .hint = "the value of the variable"},
    {0},
};

const struct shape SHAPE_SECRETS[] = {
    {"name", SHAPE_TEXT, .is_required = true, .most = 256, .problem = value_variable_name,
     .hint = "the name of the variable"},
    {"valueSecretReference", SHAPE_REFUSED,
     .hint =
         "there is no Key Vault here; give value itself, it is kept sealed and never shown"},
    {"value", SHAPE_SECRET, .is_required = true, .may_be_empty = true,
     .most = SHAPE_MOST_COMMAND, .hint = "the value of the variable; it is never shown"},
    {0},
};

int variables_check(struct reader *r, const json_t *kept)
{
    static const char *const names[] = {"environmentVariables", "secrets"};
    auto_json json_t *seen = json_object();

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const json_t *array = json_object_get(kept, names[i]), *row;
        size_t j;

        json_array_foreach(array, j, row)
        {
            const char *name = shape_text(row, "name");
            auto_free char *member = xasprintf("%s[%zu].name", names[i], j);

            if (json_object_get(seen, name))
                return reader_fail(r, member, "\"%.100s\" is there twice; give it once", name);
            json_object_set_new(seen, name, json_true());
        }
    }
    return 0;
}

/* --- scale --- */

static const char *const deallocations[] = {
    "requeue",
    "terminate",
    "waitforjobcompletion",
    NULL,
};

static const struct shape manual[] = {
    {"targetNodeCount", SHAPE_INT, .is_required = true, .most = SHAPE_MOST_NODES,
     .hint = "how many nodes there shall be"},
    {"nodeDeallocationOption", SHAPE_WORD, .words = deallocations, .otherwise = "requeue"},
    {0},
};

static const struct shape automatic[] = {
    {"minimumNodeCount", SHAPE_INT, .is_required = true, .most = SHAPE_MOST_NODES,
     .hint = "how many nodes there shall be when there is nothing to do"},
    {"maximumNodeCount", SHAPE_INT, .is_required = true, .most = SHAPE_MOST_NODES,
     .hint = "how many nodes there may be"},
    {"initialNodeCount", SHAPE_INT, .most = SHAPE_MOST_NODES},
    {0},
};

static int check_automatic(struct reader *r, json_t *kept)
{
    int least = shape_int(kept, "minimumNodeCount");
    int most = shape_int(kept, "maximumNodeCount");
    int initial = shape_int(kept, "initialNodeCount");

    if (least > most)
        return reader_fail(r, "minimumNodeCount",
                           "%d is more than maximumNodeCount, %d; take at most that", least,
                           most);
    if (initial > most)
        return reader_fail(r, "initialNodeCount",
                           "%d is more than maximumNodeCount, %d; take at most that", initial,
                           most);
    if (!json_object_get(kept, "initialNodeCount"))
        json_object_set_new(kept, "initialNodeCount", json_integer(0));
    return 0;
}

static const struct shape scale[] = {
    {"manual", SHAPE_OBJECT, .members = manual},
    {"autoScale", SHAPE_OBJECT, .members = automatic, .check = check_automatic},
    {0},
};

static int check_scale(struct reader *r, json_t *kept)
{
    if (json_object_size(kept) == 2)
        return reader_fail(r, NULL, "has both manual and autoScale; give one of them");
    if (json_object_size(kept) == 0)
        return reader_fail(r, NULL, "has neither manual nor autoScale; give one of them");
    return 0;
}

/* --- the machine --- */

static const struct shape image[] = {
    {"publisher", SHAPE_TEXT, .is_required = true, .problem = value_single_line},
    {"offer", SHAPE_TEXT, .is_required = true, .problem = value_single_line},
    {"sku", SHAPE_TEXT, .is_required = true, .problem = value_single_line},
    {"version", SHAPE_TEXT, .problem = value_single_line, .otherwise = "latest"},
    {"virtualMachineImageId", SHAPE_TEXT, .problem = value_resource_id},
    {0},
};

static const struct shape machine[] = {
    {"imageReference", SHAPE_OBJECT, .members = image},
    {0},
};

static int check_machine(struct reader *r, json_t *kept)
{
    (void)r;
    if (!json_object_get(kept, "imageReference"))
        json_object_set_new(kept, "imageReference",
                            json_pack("{ss ss ss ss}", "publisher", "Canonical", "offer",
                                      "UbuntuServer", "sku", "16.04-LTS", "version", "latest"));
    return 0;
}

/* --- set-up --- */

static const struct shape setup_task[] = {
    {"commandLine", SHAPE_TEXT, .is_required = true, .most = SHAPE_MOST_COMMAND,
     .hint = "the command to run on each new node"},
    {"environmentVariables", SHAPE_LIST, .members = SHAPE_VARIABLES},
    {"secrets", SHAPE_LIST, .members = SHAPE_SECRETS},
    {"stdOutErrPathPrefix", SHAPE_TEXT, .is_required = true, .problem = value_node_path,
     .hint = "where its output goes, such as \"$AZ_BATCHAI_MOUNT_ROOT/logs\""},
    {0},
};

static int check_setup_task(struct reader *r, json_t *kept)
{
    return variables_check(r, kept);
}

static const struct shape insights[] = {
    {"component", SHAPE_OBJECT, .is_required = true, .members = SHAPE_RESOURCE_ID},
    {"instrumentationKey", SHAPE_SECRET, .problem = value_single_line},
    {"instrumentationKeySecretReference", SHAPE_REFUSED,
     .hint = "there is no Key Vault here; give instrumentationKey itself, it is never shown"},
    {0},
};

static const struct shape counters[] = {
    {"appInsightsReference", SHAPE_OBJECT, .is_required = true, .members = insights},
    {0},
};

static const struct shape node_setup[] = {
    {"setupTask", SHAPE_OBJECT, .members = setup_task, .check = check_setup_task},
    {"mountVolumes", SHAPE_OBJECT, .members = SHAPE_MOUNT_VOLUMES, .check = volumes_check},
    {"performanceCountersSettings", SHAPE_OBJECT, .members = counters},
    {0},
};

/* --- the whole --- */

static const char *const vm_priorities[] = {"dedicated", "lowpriority", NULL};

static const struct shape cluster_shape[] = {
    {"vmSize", SHAPE_TEXT, .is_required = true, .most = 64, .problem = value_single_line,
     .hint = "the size of its nodes, such as \"STANDARD_NC6\" or \"host\""},
    {"vmPriority", SHAPE_WORD, .words = vm_priorities, .otherwise = "dedicated"},
    {"scaleSettings", SHAPE_OBJECT, .members = scale, .check = check_scale},
    {"virtualMachineConfiguration", SHAPE_OBJECT, .is_always = true, .members = machine,
     .check = check_machine},
    {"userAccountSettings", SHAPE_OBJECT, .is_required = true, .members = SHAPE_USER_ACCOUNT,
     .check = user_account_check,
     .hint = "an account to log in with: {\"adminUserName\": ..., \"adminUserSshPublicKey\": "
             "...}"},
    {"nodeSetup", SHAPE_OBJECT, .members = node_setup},
    {"subnet", SHAPE_OBJECT, .members = SHAPE_RESOURCE_ID},
    {0},
};

/* Without scale settings a cluster has no nodes until it is resized. */
static void fill_scale(json_t *kept)
{
    if (!json_object_get(kept, "scaleSettings"))
        json_object_set_new(kept, "scaleSettings",
                            json_pack("{s{si ss}}", "manual", "targetNodeCount", 0,
                                      "nodeDeallocationOption", "requeue"));
}

int size_check(struct reader *r, const json_t *kept, const struct vmsizes *sizes)
{
    const struct vmsize *size;

    if (vmsizes_find(sizes, shape_text(kept, "vmSize"), &size, r->e) == 0)
        return 0;
    err_wrap(r->e, "properties.vmSize");
    return err_target(r->e, "properties.vmSize");
}

int batchai_read_cluster(const json_t *body,
                         const struct vmsizes *sizes,
                         struct batchai_spec *ret_spec,
                         struct err *e)
{
    __attribute__((cleanup(reader_done))) struct reader r = {.secrets = json_object(), .e = e};
    auto_json json_t *kept = NULL;

    if (shape_read_body(&r, body, cluster_shape, &kept) < 0 || size_check(&r, kept, sizes) < 0)
        return -1;
    fill_scale(kept);
    *ret_spec = (struct batchai_spec){json_incref(kept), json_incref(r.secrets)};
    return 0;
}

int batchai_read_scale(const json_t *body, json_t **ret_scale, struct err *e)
{
    static const struct shape patch[] = {
        {"scaleSettings", SHAPE_OBJECT, .is_required = true, .members = scale,
         .check = check_scale,
         .hint = "the new settings: {\"manual\": {...}} or {\"autoScale\": {...}}"},
        {0},
    };
    __attribute__((cleanup(reader_done))) struct reader r = {.secrets = json_object(), .e = e};
    auto_json json_t *kept = NULL;

    if (shape_read_body(&r, body, patch, &kept) < 0)
        return -1;
    *ret_scale = json_incref(json_object_get(kept, "scaleSettings"));
    return 0;
}

void batchai_fill_cluster(const json_t *kept, struct yard_cluster *cluster)
{
    const json_t *settings = json_object_get(kept, "scaleSettings");
    const json_t *fixed = json_object_get(settings, "manual");
    const json_t *between = json_object_get(settings, "autoScale");
    const char *option = shape_text(fixed, "nodeDeallocationOption");

    cluster->is_automatic = between != NULL;
    cluster->target = shape_int(fixed, "targetNodeCount");
    cluster->least = shape_int(between, "minimumNodeCount");
    cluster->most = shape_int(between, "maximumNodeCount");
    cluster->initial = shape_int(between, "initialNodeCount");
    cluster->deallocation = str_equal(option, "terminate")              ? DEALLOCATE_TERMINATE
                            : str_equal(option, "waitforjobcompletion") ? DEALLOCATE_WAIT
                                                                        : DEALLOCATE_REQUEUE;
}
