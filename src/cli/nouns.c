/* The list of nouns, in the order of help, and the groups they stand in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>

static const struct command *const nouns[] = {
    daemon_commands,     run_commands,         logs_commands,      top_commands,
    group_commands,      storage_commands,     container_commands, blob_commands,
    blob_batch_commands, share_commands,       directory_commands, file_commands,
    file_batch_commands, copy_commands,        sync_commands,      data_commands,
    mount_commands,      batchai_commands,     cluster_commands,   job_commands,
    job_file_commands,   file_server_commands, image_commands,     account_commands,
    configure_commands,  login_commands,       rest_commands,      query_commands,
    token_commands,      audit_commands,       doctor_commands,    backup_commands,
    meta_commands,
};

static const struct group groups[] = {
    {"group", "Manage resource groups."},
    {"storage", "Manage storage."},
    {"storage account", "Manage storage accounts."},
    {"storage account keys", "Manage the keys of a storage account."},
    {"storage container", "Manage containers of blobs."},
    {"storage blob", "Send, fetch and manage blobs."},
    {"storage share", "Manage file shares."},
    {"storage directory", "Manage the folders of a file share."},
    {"storage file", "Send, fetch and manage the files of a share."},
    {"batchai", "Manage training: workspaces, clusters, experiments, jobs."},
    {"batchai workspace", "Manage workspaces."},
    {"batchai cluster", "Manage clusters."},
    {"batchai cluster node", "Work with the nodes of a cluster."},
    {"batchai cluster file", "Work with what the set-up task of a cluster has written."},
    {"batchai experiment", "Manage experiments."},
    {"batchai job", "Manage jobs."},
    {"batchai job file", "Work with the files that a job writes."},
    {"batchai job node", "Work with the nodes of a job."},
    {"batchai file-server", "Manage file servers."},
    {"image", "Manage which image stands in for which."},
    {"account", "Look at the subscription that commands act on."},
    {"token", "Manage the tokens that let people and programs in."},
};

const struct option_row option_resource_group = {
    .names = "--resource-group -g",
    .help = "Name of the resource group.",
    .required = true,
    .default_key = "group",
};
const struct option_row option_resource_group_optional = {
    .names = "--resource-group -g",
    .help = "Name of the resource group.",
    .default_key = "group",
};
const struct option_row option_location = {
    .names = "--location -l",
    .help = "Location, for example eastus.",
    .default_key = "location",
};
const struct option_row option_tags = {
    .names = "--tags",
    .help = "Tags as key[=value], separated by spaces; \"\" takes all away.",
    .kind = OPTION_LIST,
};
const struct option_row option_no_wait = {
    .names = "--no-wait",
    .help = "Do not wait for the operation to end.",
    .kind = OPTION_FLAG,
};

static const struct option_row option_yes = {
    .names = "--yes -y",
    .help = "Do not ask for confirmation.",
    .kind = OPTION_FLAG,
};
static const struct option_row option_ids = {
    .names = "--ids",
    .help = "One or more resource ids, instead of the options that name the resource.",
    .kind = OPTION_LIST,
};

static const struct option_row global_options[] = {
    {.names = "--help -h", .help = "Show this help and exit.", .kind = OPTION_FLAG},
    {.names = "--output -o",
     .help = "Output format.",
     .choices = "json jsonc none table tsv yaml yamlc"},
    {.names = "--query", .help = "JMESPath expression to pick from the result."},
    {.names = "--subscription", .help = "Name or id of the subscription."},
    {.names = "--verbose", .help = "Say more about what is done.", .kind = OPTION_FLAG},
    {.names = "--debug", .help = "Show every request and answer.", .kind = OPTION_FLAG},
    {.names = "--only-show-errors", .help = "Say nothing but errors.", .kind = OPTION_FLAG},
};

const struct command *command_at(size_t index)
{
    for (size_t i = 0; i < ARRAY_SIZE(nouns); i++) {
        for (const struct command *row = nouns[i]; row->path; row++) {
            if (index-- == 0)
                return row;
        }
    }
    return NULL;
}

const struct group *group_at(size_t index)
{
    return index < ARRAY_SIZE(groups) ? &groups[index] : NULL;
}

const struct command *command_find(const char *path)
{
    const struct command *row;

    for (size_t i = 0; (row = command_at(i)); i++) {
        if (str_equal(row->path, path))
            return row;
    }
    return NULL;
}

const struct group *group_find(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        if (str_equal(groups[i].path, path))
            return &groups[i];
    }
    return NULL;
}

const struct option_row *global_option_at(size_t index)
{
    return index < ARRAY_SIZE(global_options) ? &global_options[index] : NULL;
}

const struct option_row *command_option_at(const struct command *command, size_t index)
{
    for (const struct option_row *const *p = command->options; p && *p; p++) {
        if (index-- == 0)
            return *p;
    }
    if (command->ids && index-- == 0)
        return &option_ids;
    if (command->confirms && index-- == 0)
        return &option_yes;
    return global_option_at(index);
}

bool option_spelling(const struct option_row *row, size_t index, char buf[OPTION_BYTES])
{
    const char *p = row->names;
    size_t len;

    while (index--) {
        p += strcspn(p, " ");
        p += strspn(p, " ");
    }
    len = strcspn(p, " ");
    if (!len)
        return false;
    assert(len < OPTION_BYTES);
    memcpy(buf, p, len);
    buf[len] = '\0';
    return true;
}

const char *option_key(const struct option_row *row, char buf[OPTION_BYTES])
{
    option_spelling(row, 0, buf);
    return buf + strspn(buf, "-");
}

bool option_has_key(const struct option_row *row, const char *key)
{
    char buf[OPTION_BYTES];

    return str_equal(option_key(row, buf), key);
}

bool option_is_positional(const struct option_row *row)
{
    return row->names[0] != '-';
}

void words_each(const char *text, bool (*see)(void *context, const char *word), void *context)
{
    for (const char *p = text; p && *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        auto_free char *word = xstrndup(p, len);

        if (!see(context, word))
            return;
        p += len;
    }
}

/* The word of `path` directly below `parent`, or NULL when it is not below it. */
static char *child_word(const char *path, const char *parent)
{
    size_t len = strlen(parent);

    if (len) {
        if (!str_starts(path, parent) || path[len] != ' ')
            return NULL;
        path += len + 1;
    }
    return xstrndup(path, strcspn(path, " "));
}

void command_children(
    const char *path,
    void (*see)(void *context, const char *word, const char *summary, bool is_group),
    void *context)
{
    const struct command *row;
    const struct group *group;

    for (size_t i = 0; (group = group_at(i)); i++) {
        auto_free char *word = child_word(group->path, path);

        if (word && strlen(group->path) == (*path ? strlen(path) + 1 : 0) + strlen(word))
            see(context, word, group->summary, true);
    }
    for (size_t i = 0; (row = command_at(i)); i++) {
        auto_free char *word = child_word(row->path, path);

        if (word && !row->hidden &&
            strlen(row->path) == (*path ? strlen(path) + 1 : 0) + strlen(word))
            see(context, word, row->summary, false);
    }
}
