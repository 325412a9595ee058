/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs-ignore.h"

#include "base/fs.h"
#include "base/str.h"

#include <fnmatch.h>
#include <string.h>

enum {
    MOST_BYTES = 1024 * 1024,
};

struct rule {
    char *pattern;
    bool is_negated, is_folder, is_anchored;
};

struct ignore {
    struct rule *rules;
    size_t count;
};

void ignore_free(struct ignore *ignore)
{
    if (!ignore)
        return;
    for (size_t i = 0; i < ignore->count; i++)
        free(ignore->rules[i].pattern);
    free(ignore->rules);
    free(ignore);
}

static void add_rule(struct ignore *ignore, const char *line, size_t len)
{
    struct rule rule = {0};

    while (len && (line[len - 1] == ' ' || line[len - 1] == '\r' || line[len - 1] == '\t'))
        len--;
    if (!len || line[0] == '#')
        return;
    if (line[0] == '!') {
        rule.is_negated = true;
        line++, len--;
    }
    if (len && line[len - 1] == '/') {
        rule.is_folder = true;
        len--;
    }
    rule.is_anchored = memchr(line, '/', len) != NULL;
    if (len && line[0] == '/')
        line++, len--;
    if (!len)
        return;
    rule.pattern = xstrndup(line, len);
    ignore->rules = xreallocarray(ignore->rules, ignore->count + 1, sizeof(*ignore->rules));
    ignore->rules[ignore->count++] = rule;
}

struct ignore *ignore_parse(const char *text)
{
    struct ignore *ignore = xcalloc(1, sizeof(*ignore));

    add_rule(ignore, ".git/", 5);
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, "\n");

        add_rule(ignore, p, len);
        p += len + (p[len] == '\n');
    }
    return ignore;
}

int ignore_read(const char *folder, struct ignore **ret_ignore, struct err *e)
{
    static const char *const names[] = {".yardignore", ".gitignore"};
    auto_str text = {0};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        auto_free char *path = xasprintf("%s/%s", folder, names[i]);
        struct err why = {0};

        if (fs_read(path, MOST_BYTES, &text, &why) == 0)
            break;
        if (why.code != ERR_NOT_FOUND) {
            *e = why;
            return -1;
        }
    }
    *ret_ignore = ignore_parse(str_text(&text));
    return 0;
}

/* From the top.  Two stars and a slash stand for any number of folders, none included: the rest
 * is tried at each of them. */
static bool fits_whole(const char *pattern, const char *path)
{
    if (str_starts(pattern, "**/")) {
        for (const char *p = path; p; p = strchr(p, '/')) {
            p += *p == '/';
            if (fits_whole(pattern + 3, p))
                return true;
        }
        return false;
    }
    if (str_ends(pattern, "/**")) {
        size_t len = strlen(pattern) - 3;
        auto_free char *above = xstrndup(pattern, len);

        return strchr(path, '/') && fnmatch(above, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0 &&
               fnmatch(above, path, FNM_PATHNAME) != 0;
    }
    return fnmatch(pattern, path, FNM_PATHNAME) == 0;
}

static bool fits(const struct rule *rule, const char *path)
{
    const char *slash = strrchr(path, '/');

    if (rule->is_anchored)
        return fits_whole(rule->pattern, path);
    return fnmatch(rule->pattern, slash ? slash + 1 : path, 0) == 0;
}

bool ignore_skips(const struct ignore *ignore, const char *path, bool is_folder)
{
    for (size_t i = ignore->count; i-- > 0;) {
        const struct rule *rule = &ignore->rules[i];

        if ((!rule->is_folder || is_folder) && fits(rule, path))
            return !rule->is_negated;
    }
    return false;
}
