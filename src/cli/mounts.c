/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mounts.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

enum {
    MOST_BYTES = 16 * 1024 * 1024,
};

/* A word up to the next blank, which is \040 within words. */
static char *take_word(const char **p)
{
    auto_str word = {0};
    const char *at = *p;

    for (; *at && *at != ' '; at++) {
        if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' &&
            at[3] >= '0' && at[3] <= '7') {
            str_add_char(&word, (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0')));
            at += 3;
        } else {
            str_add_char(&word, *at);
        }
    }
    *p = at + (*at == ' ');
    return str_take(&word);
}

static bool takes(const char **p, const char *prefix)
{
    bool is_so = str_starts(*p, prefix);

    if (is_so)
        *p += strlen(prefix);
    return is_so;
}

static bool takes_name(const char **p)
{
    size_t len = strcspn(*p, "/");

    *p += len;
    return len > 0;
}

/* ".../storage/<account>/blob/<container>/tree", or a folder below it; file for shares. */
static bool is_tree(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/storage/")); at++) {
        const char *p = at + strlen("/storage/");

        if (takes_name(&p) && (takes(&p, "/blob/") || takes(&p, "/file/")) && takes_name(&p) &&
            takes(&p, "/tree") && (!*p || *p == '/'))
            return true;
    }
    return false;
}

/* "36 35 98:0 /root /folder ro,nosuid optional... - type source options"; NULL: neither of
 * yardfs nor a tree. */
static json_t *parse_line(const char *line)
{
    const char *p = line, *dash = strstr(line, " - ");
    auto_free char *root = NULL, *folder = NULL, *options = NULL, *type = NULL, *source = NULL;
    bool is_bind;

    for (int i = 0; i < 3; i++)
        free(take_word(&p));
    root = take_word(&p);
    folder = take_word(&p);
    options = take_word(&p);
    if (!dash)
        return NULL;
    p = dash + 3;
    type = take_word(&p);
    source = take_word(&p);
    is_bind = is_tree(root);
    if (!is_bind && !str_equal(type, "fuse.yardfs"))
        return NULL;
    return json_pack("{s:s, s:s, s:b, s:s}", "folder", folder, "source",
                     is_bind ? root : source, "readOnly",
                     str_equal(options, "ro") || str_starts(options, "ro,"), "type",
                     is_bind ? "bind" : "yardfs");
}

json_t *mounts_parse(const char *text)
{
    json_t *mounts = json_array();

    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        auto_free char *line = xstrndup(p, strcspn(p, "\n"));
        json_t *row = parse_line(line);

        if (row)
            json_array_append_new(mounts, row);
    }
    return mounts;
}

int mounts_list(json_t **ret_mounts, struct err *e)
{
    auto_str text = {0};

    if (fs_read("/proc/self/mountinfo", MOST_BYTES, &text, e) < 0)
        return -1;
    *ret_mounts = mounts_parse(str_text(&text));
    return 0;
}

bool mounts_find(const char *folder, json_t **ret_mount)
{
    auto_json json_t *mounts = NULL;
    json_t *row;
    size_t i;

    if (mounts_list(&mounts, NULL) < 0)
        return false;
    json_array_foreach(mounts, i, row)
    {
        const char *where = json_string_value(json_object_get(row, "folder"));

        if (!where || strcmp(where, folder) != 0)
            continue;
        if (ret_mount)
            *ret_mount = json_incref(row);
        return true;
    }
    return false;
}
