/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/str.h"
#include "base/text.h"

#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <wctype.h>

/* Azure's limits: 2,048 characters, 250 directories.  A name is at most 255 bytes here, the
 * limit of the file systems below; Azure's is 255 characters. */
enum {
    MOST_PATH_CHARACTERS = 2048,
    MOST_NAME_BYTES = 255,
    MOST_SEGMENTS = 251,
};

static int invalid_name(struct err *e)
{
    return files_fail(e, ERR_INVALID, "InvalidResourceName",
                      "the path has a name with characters that are not allowed, or an empty "
                      "one");
}

static int invalid_path(struct err *e)
{
    return files_fail(e, ERR_INVALID, "InvalidFileOrDirectoryPathName",
                      "the path is too long or has too many directories");
}

/* Never, wherever the name came from: it could be taken for something else. */
static bool has_bad_bytes(const char *name)
{
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        if (*p < 0x20 || *p == 0x7f || *p == '\\')
            return true;
    }
    return false;
}

static int
add_segment(struct str *out, const char *segment, size_t len, bool trailing_dots, struct err *e)
{
    bool only_dots = strspn(segment, ".") >= len;

    while (!trailing_dots && len > 0 && segment[len - 1] == '.')
        len--;
    /* "." and ".." are never names, "..." is one where trailing dots are. */
    if (len == 0 || (only_dots && len <= 2))
        return invalid_name(e);
    if (len > MOST_NAME_BYTES)
        return invalid_path(e);
    if (out->len > 0)
        str_add_char(out, '/');
    str_add_len(out, segment, len);
    return 0;
}

static size_t count_characters(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

int file_path_normalize(const char *path, bool trailing_dots, char **ret_path, struct err *e)
{
    auto_str out = {0};
    size_t segments = 0;

    if (!text_is_utf8(path, strlen(path)) || has_bad_bytes(path))
        return invalid_name(e);
    if (count_characters(path) > MOST_PATH_CHARACTERS)
        return invalid_path(e);
    path += strspn(path, "/") > 0;
    while (*path) {
        size_t len = strcspn(path, "/");

        if (add_segment(&out, path, len, trailing_dots, e) < 0)
            return -1;
        if (++segments > MOST_SEGMENTS)
            return invalid_path(e);
        path += len;
        path += *path == '/';
    }
    *ret_path = str_take(&out);
    return 0;
}

bool file_name_is_allowed(const char *name)
{
    return strpbrk(name, ":*?\"<>|") == NULL && !has_bad_bytes(name);
}

bool file_name_is_visible(const char *name)
{
    size_t len = strlen(name);

    return len <= MOST_NAME_BYTES && text_is_utf8(name, len) && !has_bad_bytes(name);
}

/* --- case --- */

static locale_t unicode; /* (locale_t)0 where the C library has none: then ASCII only */
static pthread_once_t unicode_once = PTHREAD_ONCE_INIT;

static void load_unicode(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* The next character of valid UTF-8, in upper case; what is not valid counts byte by byte. */
static uint32_t next_folded(const char **text)
{
    const unsigned char *p = (const unsigned char *)*text;
    size_t len = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
    uint32_t c;

    if (*p < 0x80) {
        *text += *p != '\0';
        return *p >= 'a' && *p <= 'z' ? (uint32_t)(*p - 'a' + 'A') : *p;
    }
    if (strnlen(*text, len) < len || !text_is_utf8(*text, len)) {
        *text += 1;
        return 0x110000u + *p;
    }
    c = *p & (0x7fu >> len);
    for (size_t i = 1; i < len; i++)
        c = (c << 6) | (p[i] & 0x3f);
    *text += len;
    pthread_once(&unicode_once, load_unicode);
    return unicode ? (uint32_t)towupper_l((wint_t)c, unicode) : c;
}

bool file_names_equal(const char *a, const char *b)
{
    for (;;) {
        uint32_t x = next_folded(&a), y = next_folded(&b);

        if (x != y)
            return false;
        if (x == 0)
            return true;
    }
}

bool file_name_starts(const char *name, const char *prefix)
{
    while (*prefix) {
        if (next_folded(&name) != next_folded(&prefix))
            return false;
    }
    return true;
}

uint64_t file_name_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a, a character at a time */
    uint32_t c;

    while ((c = next_folded(&name)) != 0)
        hash = (hash ^ c) * 0x100000001b3ull;
    return hash;
}
