/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-side.h"

#include "base/str.h"
#include "base/text.h"
#include "cli/storage-account.h"
#include "cli/storage-wire.h"
#include "cli/table.h"
#include "cli/transfer-options.h"

#include <fnmatch.h>
#include <pthread.h>
#include <string.h>

enum {
    PIECE_BYTES = 8 * 1024 * 1024,
    PARALLEL = 16,
    PATIENCE_MS = 60 * 1000, /* long enough for a server that is started again */
};

struct side_memory {
    pthread_mutex_t lock;
    struct table *folders; /* known to be there */
    atomic_bool lacks_crc64;
};

void transfer_options_init(struct transfer_options *options)
{
    *options = (struct transfer_options){
        .parallel = PARALLEL,
        .piece_bytes = PIECE_BYTES,
        .overwrite = OVERWRITE_TRUE,
        .check_md5 = MD5_MUST_FIT,
        .check_length = true,
        .patience_ms = PATIENCE_MS,
    };
}

struct item *
item_new(enum item_what what, const char *path, const char *target, const struct facts *facts)
{
    struct item *item = xcalloc(1, sizeof(*item));

    item->what = what;
    item->path = xstrdup(path);
    item->target = xstrdup(target);
    if (facts)
        item->facts = *facts;
    return item;
}

void item_free(struct item *item)
{
    if (!item)
        return;
    free(item->path);
    free(item->target);
    free(item);
}

size_t parts_len(const struct parts *parts, size_t index)
{
    int64_t left = parts->item->facts.size_bytes - (int64_t)index * parts->piece_bytes;

    return (size_t)(left < parts->piece_bytes ? left : parts->piece_bytes);
}

/* --- sides --- */

static struct side *new_side(enum side_kind kind, const struct side_ops *ops, const char *root)
{
    struct side *side = xcalloc(1, sizeof(*side));

    side->kind = kind;
    side->ops = ops;
    side->root = xstrdup(root);
    side->memory = xcalloc(1, sizeof(*side->memory));
    pthread_mutex_init(&side->memory->lock, NULL);
    side->memory->folders = table_new(NULL);
    return side;
}

int side_new_local(const char *root, struct side **ret_side, struct err *e)
{
    if (!*root)
        return err_set(e, ERR_INVALID, "a path is empty");
    *ret_side = new_side(SIDE_LOCAL, &side_local_ops, root);
    return 0;
}

struct side *side_new_remote(enum side_kind kind,
                             const struct storage_account *account,
                             const char *container,
                             const char *root)
{
    struct side *side =
        new_side(kind, kind == SIDE_BLOB ? &side_blob_ops : &side_file_ops, root);

    side->account = account;
    side->container = xstrdup(container);
    return side;
}

void side_free(struct side *side)
{
    if (!side)
        return;
    if (side->memory) {
        table_free(side->memory->folders);
        pthread_mutex_destroy(&side->memory->lock);
        free(side->memory);
    }
    free(side->root);
    free(side->container);
    free(side);
}

char *side_path(const struct side *side, const char *path)
{
    bool has_slash = str_ends(side->root, "/") || !*side->root;

    if (!*path)
        return xstrdup(side->root);
    return xasprintf("%s%s%s", side->root, has_slash ? "" : "/", path);
}

char *side_show(const struct side *side, const char *path)
{
    auto_free char *whole = side_path(side, path);
    auto_str url = {0};

    if (side->kind == SIDE_LOCAL)
        return take_ptr(&whole);
    str_addf(&url, "%s/",
             side->account->endpoints[side->kind == SIDE_FILE ? STORAGE_FILE : STORAGE_BLOB]);
    text_percent_path(&url, side->container);
    if (*whole) {
        str_add_char(&url, '/');
        text_percent_path(&url, whole);
    }
    return str_take(&url);
}

bool side_fits(const char *pattern, const char *path)
{
    auto_free char *first = NULL;

    if (!pattern)
        return true;
    first = xstrndup(path, strcspn(path, "/"));
    return fnmatch(pattern, first, 0) == 0;
}

/* --- ports --- */

int port_open(const struct side *side,
              const struct port_config *config,
              struct port *ret_port,
              struct err *e)
{
    struct wire_config wire = {
        .account = side->account,
        .service = side->kind == SIDE_FILE ? STORAGE_FILE : STORAGE_BLOB,
        .patience_ms = config->patience_ms,
        .trace = config->trace,
        .stop = config->stop,
        .moved = config->moved,
        .context = config->context,
    };
    struct port port = {.side = side, .options = config->options};

    if (side->kind != SIDE_LOCAL && wire_new(&wire, &port.wire, e) < 0)
        return -1;
    *ret_port = port;
    return 0;
}

void port_close(struct port *port)
{
    wire_free(port->wire);
    *port = (struct port){0};
}

/* --- folders --- */

static bool is_known(struct side_memory *memory, const char *path)
{
    bool known;

    pthread_mutex_lock(&memory->lock);
    known = table_get(memory->folders, path) != NULL;
    pthread_mutex_unlock(&memory->lock);
    return known;
}

int side_need_folder(struct port *port, const char *path, struct err *e)
{
    struct side_memory *memory = port->side->memory;
    static char mark[] = "known";

    if (is_known(memory, path))
        return 0;
    if (*path && side_need_parent(port, path, e) < 0)
        return -1;
    /* Two threads may make the same one: the second finds it there. */
    if (port->side->ops->make_folder(port, path, e) < 0)
        return -1;
    pthread_mutex_lock(&memory->lock);
    table_set(memory->folders, path, mark);
    pthread_mutex_unlock(&memory->lock);
    return 0;
}

int side_need_parent(struct port *port, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    auto_free char *parent = xstrndup(path, slash ? (size_t)(slash - path) : 0);

    return side_need_folder(port, parent, e);
}

bool side_lacks_crc64(const struct side *side)
{
    return atomic_load(&side->memory->lacks_crc64);
}

void side_note_no_crc64(const struct side *side)
{
    atomic_store(&side->memory->lacks_crc64, true);
}
