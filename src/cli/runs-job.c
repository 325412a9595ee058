/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs-job.h"

#include "base/crypt.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/batchai-nodes.h"
#include "cli/runs-place.h"
#include "cli/storage-account.h"

#include <ctype.h>
#include <string.h>

enum {
    MOST_STEM = 40, /* of a name that is made, before its random end */
    MOST_NAME = 64,
    TAG_BYTES = 3,        /* a handful of runs a day never meet */
    FOLDER_TAG_BYTES = 8, /* snapshots never do */
};

#define MOUNT "run"
#define ROOT  "$AZ_BATCHAI_JOB_MOUNT_ROOT/" MOUNT

void runs_job_done(struct runs_job *job)
{
    free(job->name);
    free(job->folder);
}

static void add_tag(struct str *out, size_t len)
{
    unsigned char bytes[FOLDER_TAG_BYTES];

    crypt_random(bytes, sizeof(bytes));
    text_hex(out, bytes, len);
}

char *runs_job_name(const char *program)
{
    const char *slash = strrchr(program, '/');
    auto_str name = {0};

    for (const char *p = slash ? slash + 1 : program; *p && *p != '.' && name.len < MOST_STEM;
         p++) {
        if (isalnum((unsigned char)*p) || *p == '-' || *p == '_')
            str_add_char(&name, *p);
    }
    str_add(&name, name.len ? "-" : "run-");
    add_tag(&name, TAG_BYTES);
    return str_take(&name);
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);

    for (const char *p = text; *p; p++) {
        if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
            return false;
    }
    return len && len <= MOST_NAME;
}

static bool is_variable(const char *text)
{
    size_t len = strcspn(text, "=");

    for (size_t i = 0; i < len; i++) {
        if (!isalpha((unsigned char)text[i]) && text[i] != '_' &&
            !(i && isdigit((unsigned char)text[i])))
            return false;
    }
    return len && text[len] == '=';
}

int runs_job_check(struct runs_job *job, struct err *e)
{
    auto_str folder = {0};

    if (!is_name(job->name))
        return args_fail(e, "--name",
                         "--name: \"%.100s\": take 1 to %d letters, digits, - and _", job->name,
                         MOST_NAME);
    for (size_t i = 0; i < job->env_count; i++) {
        if (!is_variable(job->env[i]))
            return args_fail(e, "--env", "--env: \"%.60s\" is not NAME=VALUE", job->env[i]);
    }
    str_addf(&folder, "code/%s-", job->name);
    add_tag(&folder, FOLDER_TAG_BYTES);
    free(job->folder);
    job->folder = str_take(&folder);
    return 0;
}

/* Each word reaches the program as it was typed. */
static json_t *command_of(const struct runs_job *job)
{
    auto_str line = {0};

    str_addf(&line, "cd \"" ROOT "/%s\" && exec", job->folder);
    for (size_t i = 0; i < job->word_count; i++) {
        str_add_char(&line, ' ');
        batchai_quote(&line, job->words[i]);
    }
    return json_string(str_text(&line));
}

static json_t *variables_of(const struct runs_job *job)
{
    json_t *list = job->env_count ? json_array() : NULL;

    for (size_t i = 0; i < job->env_count; i++) {
        const char *equals = strchr(job->env[i], '=');

        json_array_append_new(list,
                              json_pack("{s:s%, s:s}", "name", job->env[i],
                                        (size_t)(equals - job->env[i]), "value", equals + 1));
    }
    return list;
}

static json_t *share_of(const struct storage_account *account)
{
    json_t *share =
        json_pack("{s:s, s:o, s:s, s:{}}", "accountName", account->name, "azureFileUrl",
                  json_sprintf("https://%s.file.core.windows.net/" RUNS_SHARE, account->name),
                  "relativeMountPath", MOUNT, "credentials");

    if (account->auth == STORAGE_AUTH_KEY)
        json_object_set_new(json_object_get(share, "credentials"), "accountKey",
                            json_string(account->secret));
    return share;
}

json_t *runs_job_body(const struct runs_job *job, const struct runs_place *place)
{
    json_t *properties = json_pack(
        "{s:{s:s}, s:I, s:s, s:{s:[o]}, s:[{s:s, s:s}], s:o*}", "cluster", "id",
        place->cluster_id, "nodeCount", (json_int_t)job->nodes, "stdOutErrPathPrefix", ROOT,
        "mountVolumes", "azureFileShares", share_of(place->account), "outputDirectories", "id",
        "OUT", "pathPrefix", ROOT, "environmentVariables", variables_of(job));

    if (job->image)
        json_object_set_new(properties, "containerSettings",
                            json_pack("{s:{s:s}}", "imageSourceRegistry", "image", job->image));
    if (job->procs > 1)
        json_object_set_new(properties, "customMpiSettings",
                            json_pack("{s:o, s:I}", "commandLine", command_of(job),
                                      "processCount", (json_int_t)job->procs));
    else
        json_object_set_new(properties, "customToolkitSettings",
                            json_pack("{s:o}", "commandLine", command_of(job)));
    return json_pack("{s:o}", "properties", properties);
}
