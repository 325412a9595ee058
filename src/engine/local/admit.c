/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/admit.h"

#include "base/crypt.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
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
    auto_str salt = {0}, line = {0};
    auto_close int fd = -1;

    if (!who->user)
        return fs_remove(path, e);
    if (admit_is_known(folder, image_id, who) && access(path, F_OK) == 0)
        return 0;
    if (fs_make_folders(folder, 0700, e) < 0)
        return -1;
    crypt_random(random, sizeof(random));
    text_hex(&salt, random, sizeof(random));
    str_addf(&line, "%s ", str_text(&salt));
    add_digest(who, str_text(&salt), &line);
    str_add(&line, "\n");
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, errno, "could not note who may use the image");
    return fs_write_all(fd, line.data, line.len, e);
}
