/* batchai-values.c - what single texts of a body may look like.
 *
 * Paths are not made safe here, the kernel does that when they are opened; but what can never
 * be meant well is said to its sender now, and not by a job that fails later.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai-internal.h"

#include "base/mem.h"
#include "core/names.h"

#include <ctype.h>
#include <string.h>

static bool has_control(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p < ' ' || *p == 0x7f)
            return true;
    }
    return false;
}

/* Are all bytes ASCII letters, digits or of `also`? */
static bool made_of(const char *text, size_t len, const char *also)
{
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr(also, text[i]))
            return false;
    }
    return true;
}

const char *value_single_line(const char *text)
{
    return has_control(text) ? "it has control characters; take one line of text" : NULL;
}

/* --- paths --- */

/* Is one of the segments ".."? */
static bool goes_up(const char *path)
{
    for (const char *p = path; *p; p += strspn(p, "/")) {
        size_t len = strcspn(p, "/");

        if (len == 2 && strncmp(p, "..", 2) == 0)
            return true;
        p += len;
    }
    return false;
}

/* Variables that hold a folder, without AZ_BATCHAI_; those with a '_' at the end begin a name.
 */
static const char *const folders[] = {
    "MOUNT_ROOT",      "JOB_MOUNT_ROOT", "JOB_TEMP",      "JOB_TEMP_DIR",
    "SHARED_JOB_TEMP", "JOB_WORK_DIR",   "ROOT",          "INPUT_",
    "OUTPUT_",         "PREV_OUTPUT_",   "STDOUTERR_DIR",
};

static bool starts_with_folder(const char *text)
{
    const char *name = text[0] == '$' ? text + 1 : "";
    size_t len;

    name += *name == '{';
    if (!str_starts(name, "AZ_BATCHAI_"))
        return false;
    name += strlen("AZ_BATCHAI_");
    for (len = 0; isalnum((unsigned char)name[len]) || name[len] == '_'; len++)
        continue;
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        size_t known = strlen(folders[i]);

        if (len >= known && strncmp(name, folders[i], known) == 0 &&
            (len == known || str_ends(folders[i], "_")))
            return true;
    }
    return false;
}

const char *value_node_path(const char *text)
{
    if (has_control(text))
        return "it has control characters";
    if (goes_up(text))
        return "it has a \"..\"; say where it leads";
    if (text[0] != '/' && !starts_with_folder(text))
        return "take an absolute path, or one that starts with $AZ_BATCHAI_JOB_MOUNT_ROOT, "
               "$AZ_BATCHAI_MOUNT_ROOT, $AZ_BATCHAI_JOB_TEMP or another folder of the service";
    return NULL;
}

const char *value_beneath(const char *text)
{
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, "/");

        if (len == 0 || len > 255 || (len == 1 && *p == '.') ||
            (len == 2 && strncmp(p, "..", 2) == 0))
            return "take a relative path such as \"data\" or \"data/images\", without \".\" "
                   "and "
                   "\"..\"";
        p += len;
        if (!*p)
            break;
    }
    return has_control(text) ? "it has control characters" : NULL;
}

const char *value_server_folder(const char *text)
{
    text += strspn(text, "/");
    return *text ? value_beneath(text) : NULL;
}

/* --- names --- */

const char *value_variable_name(const char *text)
{
    if (!made_of(text, strlen(text), "_.-") || isdigit((unsigned char)text[0]) ||
        text[0] == '-' || text[0] == '.')
        return "take letters, digits, '_', '.' and '-', not beginning with a digit";
    if (str_starts(text, "AZ_BATCH"))
        return "names that begin with AZ_BATCH are set by the service; take another";
    return NULL;
}

const char *value_directory_id(const char *text)
{
    return made_of(text, strlen(text), "_")
               ? NULL
               : "it becomes part of a variable's name: take letters, digits and '_'";
}

const char *value_image(const char *text)
{
    if (!made_of(text, strlen(text), "._-/:@") || !isalnum((unsigned char)text[0]))
        return "take the name of an image such as \"ubuntu\", \"tensorflow/tensorflow:1.8.0\" "
               "or "
               "\"registry.example.com:5000/team/image@sha256:...\"";
    return NULL;
}

/* The host becomes an argument of the runtime: it must not look like an option. */
const char *value_registry(const char *text)
{
    const char *scheme = strstr(text, "://");
    const char *host = scheme ? scheme + 3 : text;

    if (!made_of(text, strlen(text), "._-/:[]") || !*host || strchr("-/", *host))
        return "take the URL or host of a registry such as \"registry.example.com:5000\"";
    return NULL;
}

const char *value_registry_user(const char *text)
{
    return has_control(text) || text[0] == '-' || strchr(text, ':')
               ? "take a name without ':', not beginning with '-'"
               : NULL;
}

const char *value_user_name(const char *text)
{
    size_t len = strlen(text);

    if (len > 32 || !made_of(text, len, "_-.") ||
        (!isalpha((unsigned char)text[0]) && text[0] != '_'))
        return "take 1 to 32 letters, digits, '_', '-' and '.', beginning with a letter or '_'";
    return NULL;
}

/* One line of an authorized_keys file, and nothing before the kind of key: options there run
 * commands. */
const char *value_ssh_key(const char *text)
{
    size_t len = strlen(text), kind = strcspn(text, " ");

    while (len > 0 && isspace((unsigned char)text[len - 1])) /* the end of a file's line */
        len--;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ')
            return "take one key, on one line";
    }
    if ((!str_starts(text, "ssh-") && !str_starts(text, "ecdsa-") &&
         !str_starts(text, "sk-")) ||
        kind >= len || !made_of(text, kind, "-@.") || text[kind + 1] == ' ')
        return "take the content of a public key file such as ~/.ssh/id_rsa.pub: \"ssh-rsa "
               "AAAA...\"";
    return NULL;
}

const char *value_mode(const char *text)
{
    size_t len = strlen(text);

    return len < 3 || len > 4 || strspn(text, "01234567") != len
               ? "take an octal mode such as \"0777\""
               : NULL;
}

/* As docker has it: a number above 0, k m g t or p, perhaps "b" or "ib". */
const char *value_size(const char *text)
{
    size_t digits = strspn(text, "0123456789."), zeros = strspn(text, "0.");
    const char *dot = strchr(text, '.'), *p = text + digits;
    bool is_number = isdigit((unsigned char)text[0]) && digits <= 15 && zeros < digits &&
                     (!dot || (isdigit((unsigned char)dot[1]) && !strchr(dot + 1, '.')));

    if (*p && strchr("kKmMgGtTpP", *p)) {
        p++;
        if (str_equal_nocase(p, "ib"))
            p++;
    }
    if (*p == 'b' || *p == 'B')
        p++;
    return is_number && !*p ? NULL : "take a size such as \"64m\", \"2g\" or \"16gb\"";
}

const char *value_address_range(const char *text)
{
    if (str_equal(text, "*"))
        return NULL;
    if (strlen(text) > 64 || strspn(text, "0123456789abcdefABCDEF.:/") != strlen(text) ||
        !strpbrk(text, ".:"))
        return "take addresses such as \"10.0.0.0/8\", or \"*\" for all";
    return NULL;
}

/* --- ids --- */

/* The next segment of an id: its length, 0 when there is none. */
static size_t next_segment(const char **p)
{
    if (**p != '/')
        return 0;
    (*p)++;
    return strcspn(*p, "/");
}

const char *value_resource_id(const char *text)
{
    const char *p = text;
    size_t segments = 0;

    while (*p) {
        size_t len = next_segment(&p);

        if (len == 0)
            break;
        p += len;
        segments++;
    }
    if (*p || segments < 2 || segments % 2 != 0 || has_control(text) ||
        !str_starts_nocase(text, "/subscriptions/"))
        return "take the id of a resource: \"/subscriptions/.../resourceGroups/...\"";
    return NULL;
}

/* Is it .../workspaces/W/<kind>/X of the provider? */
static bool is_of_workspace(const char *text, const char *kind)
{
    const char *const words[] = {"subscriptions",
                                 NULL,
                                 "resourceGroups",
                                 NULL,
                                 "providers",
                                 "Microsoft.BatchAI",
                                 "workspaces",
                                 NULL,
                                 kind,
                                 NULL};
    const char *p = text;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t len = next_segment(&p);

        if (len == 0 ||
            (words[i] && (len != strlen(words[i]) || strncasecmp(p, words[i], len) != 0)))
            return false;
        p += len;
    }
    return *p == '\0' && !has_control(text);
}

const char *value_cluster_id(const char *text)
{
    return is_of_workspace(text, "clusters")
               ? NULL
               : "take the id of a cluster: \"/subscriptions/.../resourceGroups/.../providers/"
                 "Microsoft.BatchAI/workspaces/.../clusters/...\"";
}

const char *value_file_server_id(const char *text)
{
    return is_of_workspace(text, "fileservers")
               ? NULL
               : "take the id of a file server: \"/subscriptions/.../resourceGroups/.../"
                 "providers/Microsoft.BatchAI/workspaces/.../fileservers/...\"";
}

/* --- storage --- */

const char *value_account(const char *text)
{
    return names_account_problem(text)
               ? "the name of a storage account has 3 to 24 lower-case letters and digits"
               : NULL;
}

static bool is_container(const char *text, size_t len)
{
    if (len < 3 || len > 63)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!islower((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) &&
            text[i] != '-' && !(i == 0 && text[i] == '$'))
            return false;
    }
    return true;
}

const char *value_container(const char *text)
{
    return is_container(text, strlen(text))
               ? NULL
               : "the name of a container has 3 to 63 lower-case letters, digits and '-'";
}

static bool is_account(const char *text, size_t len)
{
    return len >= 3 && len <= 24 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") >= len;
}

/* ACCOUNT.file.SUFFIX has the account in its name; any other host has it in the path. */
bool share_url_parse(const char *url, struct share_url *ret_url)
{
    struct share_url parts = {0};
    const char *host, *path;
    size_t label;

    if (!str_starts_nocase(url, "https://") && !str_starts_nocase(url, "http://"))
        return false;
    host = strstr(url, "//") + 2;
    path = host + strcspn(host, "/");
    if (path == host || !made_of(host, (size_t)(path - host), ".-:[]") || *path != '/')
        return false;
    path++;
    label = strcspn(host, ".:/");
    if (str_starts_nocase(host + label, ".file.")) {
        parts.account = host;
        parts.account_len = label;
    } else {
        parts.account = path;
        parts.account_len = strcspn(path, "/");
        path += parts.account_len;
        path += *path == '/';
    }
    parts.share = path;
    parts.share_len = strcspn(path, "/");
    path += parts.share_len;
    path += *path == '/';
    if (*path || !is_account(parts.account, parts.account_len) ||
        !is_container(parts.share, parts.share_len))
        return false;
    *ret_url = parts;
    return true;
}

const char *value_share_url(const char *text)
{
    struct share_url url;

    return share_url_parse(text, &url) ? NULL
                                       : "take https://ACCOUNT.file.core.windows.net/SHARE or "
                                         "http://127.0.0.1:10004/ACCOUNT/SHARE, without a "
                                         "folder and without a signature";
}
