/* Copies within the yard, complete when acknowledged.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blocks.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/str.h"
#include "store/blob.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct copy {
    struct blobs *blobs;
    struct folder *from, *to;
    const struct blob_address *to_address;
    const char *source_url;
    struct found source;
    struct blob *source_blob;
    struct block_list list;
    char tmp[TMP_NAME_BYTES];
    struct facts facts; /* of the new file */
};

static void copy_done(struct copy *c)
{
    if (c->tmp[0])
        unlinkat(c->to->fd, c->tmp, 0);
    found_done(&c->source);
    blob_free(c->source_blob);
    free(c->list.bytes);
    folder_drop(c->blobs, c->from);
    folder_drop(c->blobs, c->to);
}

static int open_source(struct copy *c,
                       const struct blob_address *from,
                       const struct conditions *conditions,
                       struct err *e)
{
    int there;

    if (folder_take(c->blobs, from->account, from->container, &c->from, e) < 0 ||
        name_check(from->name, e) < 0)
        return -1;
    there = blob_look(c->blobs, c->from, from->name, from->snapshot, O_RDONLY, &c->source, e);
    if (there <= 0)
        return there < 0 ? -1 : not_found(e);
    c->source_blob = blob_of_found(&c->source, from->name, from->snapshot);
    if (conditions_check_read(conditions, c->source_blob, NULL, e) < 0)
        return err_reason(e, e && e->code == ERR_PRECONDITION ? "SourceConditionNotMet" : NULL);
    return block_list_read(c->blobs, c->from, from->name, from->snapshot, &c->source, &c->list,
                           e);
}

static const char *either(const char *wanted, const char *otherwise)
{
    return wanted ? wanted : otherwise;
}

/* What the request says, and the source's word where it says nothing. */
static struct blob_put facts_for(const struct blob_put *put, const struct blob *source)
{
    struct blob_put all = put ? *put : (struct blob_put){0};
    struct blob_headers *h = &all.headers;
    const struct blob_headers *s = &source->headers;

    h->content_type = (char *)either(h->content_type, s->content_type);
    h->content_encoding = (char *)either(h->content_encoding, s->content_encoding);
    h->content_language = (char *)either(h->content_language, s->content_language);
    h->content_disposition = (char *)either(h->content_disposition, s->content_disposition);
    h->cache_control = (char *)either(h->cache_control, s->cache_control);
    h->content_md5 = (char *)either(h->content_md5, s->content_md5);
    if (!all.metadata)
        all.metadata = source->metadata;
    return all;
}

static struct blob_row *
row_for(struct copy *c, const struct blob_put *put, const struct found *old)
{
    struct blob_put all = facts_for(put, c->source_blob);
    struct blob_row *row =
        row_new_for(c->blobs, c->to_address->name, c->source_blob->type, &all, old);
    char uuid[CRYPT_UUID_BYTES];

    row_set_facts(row, &c->facts);
    row->sequence = c->source_blob->sequence;
    row->block_count = c->source_blob->block_count;
    if (c->source_url) {
        row->copy_id = xstrdup(crypt_uuid(uuid));
        row->copy_source = xstrdup(c->source_url);
        row->copied_ms = clock_wall_ms();
    }
    return row;
}

static int take_name(struct copy *c,
                     const struct blob_put *put,
                     const struct conditions *conditions,
                     struct blob **ret_blob,
                     struct err *e)
{
    struct swap swap = {
        .folder = c->to,
        .name = c->to_address->name,
        .tmp = c->tmp,
        .block_list = c->list.bytes,
        .block_list_len = c->list.len,
    };
    auto_found old = FOUND_NONE;
    autoptr(blob_row) row = NULL;
    auto_name_lock pthread_mutex_t *lock = name_lock(c->blobs, c->to, swap.name);

    if (look_to_replace(c->blobs, c->to, swap.name, conditions, &old, e) < 0)
        return -1;
    row = row_for(c, put, &old);
    swap.row = row;
    if (blob_swap(c->blobs, &swap, e) < 0)
        return -1;
    c->tmp[0] = '\0';
    if (ret_blob)
        *ret_blob = blob_of_row(row, &c->facts, false, swap.name, "");
    return 0;
}

int blobs_copy(struct blobs *blobs,
               const struct blob_address *from,
               const struct conditions *from_conditions,
               const char *source_url,
               const struct blob_address *to,
               const struct blob_put *put,
               const struct conditions *conditions,
               struct blob **ret_blob,
               struct err *e)
{
    struct copy c = {
        .blobs = blobs,
        .to_address = to,
        .source_url = source_url,
        .source = FOUND_NONE,
    };
    int rc = -1;

    if (folder_take(blobs, to->account, to->container, &c.to, e) == 0 &&
        name_check(to->name, e) == 0 && open_source(&c, from, from_conditions, e) == 0 &&
        copy_whole(c.to, c.source.fd, c.source.facts.size_bytes, c.tmp, &c.facts, e) == 0)
        rc = take_name(&c, put, conditions, ret_blob, e);
    copy_done(&c);
    return rc;
}
