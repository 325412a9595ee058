/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/mount.h"

#include "base/clock.h"
#include "base/log.h"
#include "mount/remote.h"

#include <errno.h>
#include <unistd.h>

static struct writing *writing_new(struct mount *mount, struct node *node)
{
    struct writing *w = xcalloc(1, sizeof(*w));

    pthread_mutex_init(&w->lock, NULL);
    w->node = node_ref(node);
    w->fd = -1;
    w->next = mount->writings;
    if (w->next)
        w->next->prev = w;
    mount->writings = w;
    node->writing = w;
    return w;
}

/* With the tree locked. */
static void unlink_writing(struct mount *mount, struct writing *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        mount->writings = w->next;
    if (w->next)
        w->next->prev = w->prev;
    w->node->writing = NULL;
    node_unref(&mount->tree, w->node, 1);
}

static void leave(struct mount *mount, struct writing *w)
{
    bool is_last;

    pthread_mutex_lock(&mount->tree.lock);
    is_last = --w->uses == 0;
    if (is_last)
        unlink_writing(mount, w);
    pthread_mutex_unlock(&mount->tree.lock);
    if (!is_last)
        return;
    mount->side->close(w);
    pthread_mutex_destroy(&w->lock);
    free(w->based_on);
    free(w->bytes);
    if (w->fd >= 0)
        close(w->fd);
    free(w);
}

static struct writing *enter(struct mount *mount, struct node *node, bool makes)
{
    struct writing *w;

    pthread_mutex_lock(&mount->tree.lock);
    w = node->writing;
    if (!w && makes)
        w = writing_new(mount, node);
    if (w)
        w->uses++;
    pthread_mutex_unlock(&mount->tree.lock);
    if (w)
        pthread_mutex_lock(&w->lock);
    return w;
}

struct writing *writing_enter(struct mount *mount, struct node *node)
{
    return enter(mount, node, false);
}

void writing_leave(struct mount *mount, struct node *node, struct writing *w)
{
    (void)node;
    pthread_mutex_unlock(&w->lock);
    leave(mount, w);
}

int writing_begin(
    struct mount *mount, struct node *node, bool is_new, bool truncates, struct err *e)
{
    struct writing *w = enter(mount, node, true);
    int rc = mount->side->open(mount, node, is_new, truncates, e);

    pthread_mutex_unlock(&w->lock);
    if (rc < 0)
        leave(mount, w);
    return rc;
}

void writing_end(struct mount *mount, struct node *node)
{
    leave(mount, node->writing);
}

int writing_flush(struct mount *mount, struct node *node, struct err *e)
{
    struct writing *w = writing_enter(mount, node);
    int rc = 0;

    if (!w)
        return 0;
    rc = mount->side->flush(mount, node, e);
    if (rc == 0 && w->errno_value) {
        rc = err_sys(e, w->errno_value, "an earlier write failed");
        w->errno_value = 0;
    }
    writing_leave(mount, node, w);
    return rc;
}

/* All whose bytes came before then, in use; the caller frees the array. */
static struct writing **find_old(struct mount *mount, int64_t since_ms, size_t *ret_count)
{
    struct writing **found = NULL;
    size_t count = 0;

    pthread_mutex_lock(&mount->tree.lock);
    for (struct writing *w = mount->writings; w; w = w->next) {
        int64_t ms = atomic_load(&w->since_ms);

        if (!ms || ms > since_ms)
            continue;
        found = xreallocarray(found, count + 1, sizeof(struct writing *));
        found[count++] = w;
        w->uses++;
    }
    pthread_mutex_unlock(&mount->tree.lock);
    *ret_count = count;
    return found;
}

void writing_flush_old(struct mount *mount, int64_t least_age_ms)
{
    size_t count;
    auto_free struct writing **old = find_old(mount, clock_mono_ms() - least_age_ms, &count);

    for (size_t i = 0; i < count; i++) {
        struct writing *w = old[i];
        struct err e = {0};

        pthread_mutex_lock(&w->lock);
        if (mount->side->flush(mount, w->node, &e) < 0) {
            auto_free char *name = mount_name(mount, w->node);

            log_error("event=write-failed name=\"%s\" error=\"%s\"", name, e.msg);
            w->errno_value = remote_errno(&e);
        }
        pthread_mutex_unlock(&w->lock);
        leave(mount, w);
    }
}
