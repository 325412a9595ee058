/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-filter.h"

#include "base/str.h"

#include <fnmatch.h>
#include <string.h>

static bool is_given(const char *list)
{
    return list && *list;
}

static bool any_pattern(const char *list, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    for (const char *p = list; *p; p += *p == ';') {
        size_t len = strcspn(p, ";");
        auto_free char *pattern = xstrndup(p, len);

        if (len && fnmatch(pattern, name, 0) == 0)
            return true;
        p += len;
    }
    return false;
}

/* Is it one of them, or below one of them? */
static bool any_path(const char *list, const char *path)
{
    for (const char *p = list; *p; p += *p == ';') {
        size_t len = strcspn(p, ";"), end = len;

        while (end && p[end - 1] == '/')
            end--;
        if (end && strncmp(path, p, end) == 0 && (path[end] == '\0' || path[end] == '/'))
            return true;
        p += len;
    }
    return false;
}

static bool takes_path(const struct filter *f, const char *path)
{
    if (is_given(f->include_path) && !any_path(f->include_path, path))
        return false;
    return !is_given(f->exclude_path) || !any_path(f->exclude_path, path);
}

bool filter_takes(const struct filter *f, const char *path)
{
    if (!takes_path(f, path))
        return false;
    if (is_given(f->include_pattern) && !any_pattern(f->include_pattern, path))
        return false;
    if (is_given(f->exclude_pattern) && any_pattern(f->exclude_pattern, path))
        return false;
    return !f->whole_pattern || fnmatch(f->whole_pattern, path, 0) == 0;
}

bool filter_takes_folder(const struct filter *f, const char *path)
{
    return !is_given(f->include_pattern) && !f->whole_pattern && takes_path(f, path);
}
