/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai-internal.h"
#include "core/batchai.h"

#include "base/json.h"

static const char *const cachings[] = {"none", "readonly", "readwrite", NULL};
static const char *const disk_types[] = {"Standard_LRS", "Premium_LRS", NULL};

static const struct shape ssh[] = {
    {"publicIPsToAllow", SHAPE_TEXTS, .problem = value_address_range},
    {"userAccountSettings", SHAPE_OBJECT, .is_required = true, .members = SHAPE_USER_ACCOUNT,
     .check = user_account_check, .hint = "an account to log in with"},
    {0},
};

static int check_ssh(struct reader *r, json_t *kept)
{
    size_t count = json_array_size(json_object_get(kept, "publicIPsToAllow"));

    if (count > 400)
        return reader_fail(r, "publicIPsToAllow", "has %zu ranges; at most 400 are taken",
                           count);
    return 0;
}

static const struct shape disks[] = {
    {"diskSizeInGB", SHAPE_INT, .is_required = true, .least = 1, .most = 65536,
     .hint = "the size of each disk"},
    {"cachingType", SHAPE_WORD, .words = cachings, .otherwise = "none"},
    {"diskCount", SHAPE_INT, .is_required = true, .least = 1, .most = 64,
     .hint = "how many disks there shall be"},
    {"storageAccountType", SHAPE_WORD, .is_required = true, .words = disk_types,
     .hint = "Standard_LRS or Premium_LRS"},
    {0},
};

static const struct shape file_server_shape[] = {
    {"vmSize", SHAPE_TEXT, .is_required = true, .most = 64, .problem = value_single_line,
     .hint = "the size of the machine, such as \"STANDARD_D1\" or \"host\""},
    {"sshConfiguration", SHAPE_OBJECT, .is_required = true, .members = ssh, .check = check_ssh,
     .hint = "{\"userAccountSettings\": ...}"},
    {"dataDisks", SHAPE_OBJECT, .is_required = true, .members = disks,
     .hint = "{\"diskSizeInGB\": ..., \"diskCount\": ..., \"storageAccountType\": ...}"},
    {"subnet", SHAPE_OBJECT, .members = SHAPE_RESOURCE_ID},
    {0},
};

int batchai_read_file_server(const json_t *body,
                             const struct vmsizes *sizes,
                             struct batchai_spec *ret_spec,
                             struct err *e)
{
    __attribute__((cleanup(reader_done))) struct reader r = {.secrets = json_object(), .e = e};
    auto_json json_t *kept = NULL;

    if (shape_read_body(&r, body, file_server_shape, &kept) < 0 ||
        size_check(&r, kept, sizes) < 0)
        return -1;
    *ret_spec = (struct batchai_spec){json_incref(kept), json_incref(r.secrets)};
    return 0;
}
