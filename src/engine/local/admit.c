/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/admit.h"

#include "base/crypt.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SALT_BYTES = 16,
    MOST_BYTES = 1 << 20,
};

/* "sha256:0a1b..." and "0a1b..." are the same. */
static char *file_of(const char *folder, const char *image_id)
{
    const char *colon = strchr(image_id, ':');
    const char *digits = colon ? colon + 1 : image_id;

    return xasprintf("%s/%.*s", folder, (int)strspn(digits, "0123456789abcdef"), digits);
}

/* Appended: what a salt makes of them. */
static void add_digest(const struct credentials *who, const char *salt, struct str *out)
{
    unsigned char digest[CRYPT_SHA256_BYTES];
    auto_str all = {0};

    str_addf(&all, "%s\n%s\n%s", who->server ? who->server : "", who->user,
             who->password ? who->password : "");
    crypt_hmac_sha256(salt, strlen(salt), all.data, all.len, digest);
    explicit_bzero(all.data, all.len);
    text_hex(out, digest, sizeof(digest));
}

static bool is_of(const char *line, const struct credentials *who)
{
    char salt[2 * SALT_BYTES + 1], noted[2 * CRYPT_SHA256_BYTES + 1];
    auto_str digest = {0};

    if (sscanf(line, "%32s %64s", salt, noted) != 2)
        return false;
    add_digest(who, salt, &digest);
    return digest.len == strlen(noted) && crypt_equal(digest.data, noted, digest.len);
}

bool admit_is_known(const char *folder, const char *image_id, const struct credentials *who)
{
    auto_free char *path = file_of(folder, image_id);
    auto_str text = {0};
    struct err why = {0};
    char *rest = NULL;

    if (fs_read(path, MOST_BYTES, &text, &why) < 0)
        return why.code == ERR_NOT_FOUND;
    for (char *line = who->user ? strtok_r(text.data, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        if (is_of(line, who))
            return true;
    }
    return false;
}

int admit_note(const char *folder,
               const char *image_id,
               const struct credentials *who,
               struct err *e)
{
    auto_free char *path = file_of(folder, image_id);
    unsigned char random[SALT_BYTES];
    auto_str salt = {0}, lines = {0};

    if (!who->user)
        return fs_remove(path, e);
    if (admit_is_known(folder, image_id, who) && access(path, F_OK) == 0)
        return 0;
    if (fs_make_folders(folder, 0700, e) < 0)
        return -1;
    crypt_random(random, sizeof(random));
    text_hex(&salt, random, sizeof(random));
    /* Those of before, unless they are too many: they are asked for once more then. */
    fs_read(path, MOST_BYTES / 2, &lines, NULL);
    str_addf(&lines, "%s ", str_text(&salt));
    add_digest(who, str_text(&salt), &lines);
    str_add(&lines, "\n");
    return fs_write_durably(path, lines.data, lines.len, 0600, e);
}

static char *mark_of(const char *folder, const char *name)
{
    unsigned char digest[CRYPT_SHA256_BYTES];
    auto_str hex = {0};

    crypt_sha256(name, strlen(name), digest);
    text_hex(&hex, digest, sizeof(digest));
    return xasprintf("%s/%s.coming", folder, str_text(&hex));
}

int admit_expect(const char *folder, const char *name, struct err *e)
{
    auto_free char *path = mark_of(folder, name);

    if (fs_make_folders(folder, 0700, e) < 0)
        return -1;
    return fs_write_durably(path, "", 0, 0600, e);
}

bool admit_is_expected(const char *folder, const char *name)
{
    auto_free char *path = mark_of(folder, name);

    return access(path, F_OK) == 0;
}

void admit_settle(const char *folder, const char *name)
{
    auto_free char *path = mark_of(folder, name);

    fs_remove(path, NULL);
}
