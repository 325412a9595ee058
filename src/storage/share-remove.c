/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/fault.h"
#include "base/fs.h"
#include "db/db.h"
#include "loop/work.h"
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int apply_purge(void *context, struct db *db, struct err *e)
{
    return store_purge_doomed_shares(db, context, e);
}

static void purge(void *arg)
{
    struct blobs *blobs = arg;
    bool more = true;

    while (more && !blobs->is_stopping && blobs_write(blobs, apply_purge, &more, NULL) == 0)
        continue;
}

void shares_purge_later(struct files *files)
{
    work_submit(files->blobs->cleaner, purge, files->blobs);
}

static int apply_doom(void *context, struct db *db, struct err *e)
{
    const int64_t *id = context;

    return store_doom_share(db, *id, e);
}

static int apply_doom_account(void *context, struct db *db, struct err *e)
{
    return store_doom_shares_of(db, context, e);
}

/* The folder goes first: without it there is no share, whatever the rows say. */
static int
remove_folder(struct files *files, const char *parent, const char *name, struct err *e)
{
    auto_close int fd = -1;

    if (fs_open_beneath(files->blobs->root_fd, parent, O_RDONLY | O_DIRECTORY, 0, &fd, NULL) <
        0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "could not open \"%s\"", parent);
    if (trash_move(files->blobs, fd, name, e) < 0)
        return -1;
    FAULT("shares.after-removal");
    return fsync(fd) < 0 ? err_sys(e, errno, "could not sync \"%s\"", parent) : 0;
}

static int delete_locked(struct files *files,
                         const char *account,
                         const char *name,
                         const char *lease_id,
                         struct err *e)
{
    auto_free char *parent = xasprintf("%s/file", account);
    auto_place place = SHARE_NOWHERE;
    struct lease lease;

    if (share_place_open(files, account, name, &place, e) < 0)
        return -1;
    lease = lease_from_row(&place.row->lease);
    if (lease_check_write(&lease, lease_id, &share_words, e) < 0 ||
        remove_folder(files, parent, name, e) < 0)
        return -1;
    return blobs_write(files->blobs, apply_doom, &place.row->id, e);
}

int files_delete_share(struct files *files,
                       const char *account,
                       const char *name,
                       const char *lease_id,
                       struct err *e)
{
    int rc;

    pthread_mutex_lock(&files->shares_lock);
    rc = delete_locked(files, account, name, lease_id, e);
    pthread_mutex_unlock(&files->shares_lock);
    shares_purge_later(files);
    return rc;
}

int files_remove_account(struct files *files, const char *account, struct err *e)
{
    int rc;

    if (!account_is_valid(account))
        return 0;
    pthread_mutex_lock(&files->shares_lock);
    rc = remove_folder(files, account, "file", e);
    if (rc == 0)
        rc = blobs_write(files->blobs, apply_doom_account, (void *)account, e);
    pthread_mutex_unlock(&files->shares_lock);
    shares_purge_later(files);
    return rc;
}
