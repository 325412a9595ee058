/* blob-blocks.c - block blobs in parts: blocks are staged, a list of them becomes the blob.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"
#include "base/text.h"
#include "storage/xml.h"

#include <string.h>
#include <strings.h>

enum {
    MOST_ID_BYTES = 64,
    MOST_BLOCKS = 50 * 1000,
};
static const int64_t most_block_bytes = 4000LL * 1024 * 1024;

/* --- blocks --- */

static int read_id(struct storage_call *call, const char **ret_id, struct err *e)
{
    const char *id = storage_query(call, "blockid");
    auto_str raw = {0};

    if (!id || !*id) {
        storage_refuse(e, ERR_INVALID, "MissingRequiredQueryParameter", "blockid is missing");
        return err_target(e, "blockid");
    }
    if (text_base64_decode(&raw, id, NULL) < 0 || !raw.len || raw.len > MOST_ID_BYTES) {
        storage_refuse(e, ERR_INVALID, "InvalidQueryParameterValue",
                       "a block id is the base64 of 1 to 64 bytes");
        return err_target(e, "blockid");
    }
    *ret_id = id;
    return 0;
}

int blob_begin_block(struct storage_call *call, struct err *e)
{
    const char *id;

    if (read_id(call, &id, e) < 0)
        return -1;
    return blob_begin_upload(call, most_block_bytes, false, e);
}

static int stage(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    struct conditions conditions;
    const char *id;

    if (read_id(call, &id, e) < 0 || storage_conditions(call, "", &conditions, e) < 0)
        return -1;
    if (upload_size(call->upload) == 0) {
        storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "a block is never empty");
        return err_target(e, "Content-Length");
    }
    if (blobs_stage_block(blobs_of(call), &at, id, call->upload, conditions.lease_id, e) < 0)
        return -1;
    blob_reply_hashes(call);
    storage_reply_header(call, "x-ms-request-server-encrypted", "true");
    return storage_reply(call, 201);
}

int blob_op_put_block(struct storage_call *call, struct err *e)
{
    return blob_check_upload(call, e) < 0 ? -1 : stage(call, e);
}

int blob_op_put_block_from_url(struct storage_call *call, struct err *e)
{
    return blob_upload_from_source(call, most_block_bytes, e) < 0 ? -1 : stage(call, e);
}

/* --- lists --- */

static int bad_list(struct err *e, const char *why)
{
    return storage_refuse(e, ERR_INVALID, "InvalidXmlDocument", "%s", why);
}

static int read_ref(const struct xml_node *node, struct block_ref *ret, struct err *e)
{
    static const struct {
        const char *name;
        enum block_source source;
    } kinds[] = {{"Latest", BLOCK_LATEST},
                 {"Committed", BLOCK_COMMITTED},
                 {"Uncommitted", BLOCK_UNCOMMITTED}};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(node->name, kinds[i].name) == 0) {
            *ret = (struct block_ref){node->text, kinds[i].source};
            return 0;
        }
    return bad_list(e, "a block list holds Latest, Committed and Uncommitted");
}

static int read_list(struct storage_call *call,
                     struct block_ref **ret_blocks,
                     size_t *ret_count,
                     struct err *e)
{
    const struct xml_node *root;
    struct block_ref *blocks;
    size_t count = 0, at = 0;

    if (xml_parse(call->body, call->body_len, call->arena, &root, e) < 0)
        return -1;
    if (strcmp(root->name, "BlockList") != 0)
        return bad_list(e, "expected BlockList");
    for (const struct xml_node *node = root->child; node; node = node->next)
        count++;
    if (count > MOST_BLOCKS)
        return storage_refuse(e, ERR_CONFLICT, "BlockCountExceedsLimit",
                              "a blob has at most %d blocks", MOST_BLOCKS);
    blocks = arena_alloc(call->arena, (count + 1) * sizeof(*blocks));
    for (const struct xml_node *node = root->child; node; node = node->next)
        if (read_ref(node, &blocks[at++], e) < 0)
            return -1;
    *ret_blocks = blocks;
    *ret_count = count;
    return 0;
}

/* The hashes of this request are those of the list, not of the blob. */
static int check_body(struct storage_call *call, struct err *e)
{
    const char *md5, *crc64;

    if (storage_hashes(call, &md5, &crc64, e) < 0)
        return -1;
    return storage_check_body(call, md5, crc64, e);
}

int blob_op_put_block_list(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    autoptr(blob) blob = NULL;
    struct block_ref *blocks;
    struct conditions conditions;
    struct blob_put put;
    size_t count;

    if (check_body(call, e) < 0 || read_list(call, &blocks, &count, e) < 0 ||
        blob_create_conditions(call, &conditions, e) < 0 ||
        blob_read_put(call, false, &put, e) < 0)
        return -1;
    if (blobs_commit_blocks(blobs_of(call), &at, blocks, count, &put, &conditions, &blob, e) <
        0)
        return blob_create_failed(call, e);
    return blob_reply_written(call, blob, 201);
}

struct block_lists {
    struct str committed, uncommitted;
};

static void on_block(const char *id, int64_t size, bool committed, void *context)
{
    struct block_lists *lists = context;
    struct str *out = committed ? &lists->committed : &lists->uncommitted;

    xml_open(out, "Block");
    xml_element(out, "Name", id);
    xml_number(out, "Size", size);
    xml_close(out, "Block");
}

static void write_lists(struct storage_call *call, const struct block_lists *lists, int which)
{
    struct str *out = &call->out_body;

    xml_begin(out);
    xml_open(out, "BlockList");
    if (which & 1) {
        xml_open(out, "CommittedBlocks");
        str_add_len(out, str_text(&lists->committed), lists->committed.len);
        xml_close(out, "CommittedBlocks");
    }
    if (which & 2) {
        xml_open(out, "UncommittedBlocks");
        str_add_len(out, str_text(&lists->uncommitted), lists->uncommitted.len);
        xml_close(out, "UncommittedBlocks");
    }
    xml_close(out, "BlockList");
}

/* 1 committed, 2 uncommitted, 3 both. */
static int read_which(struct storage_call *call, struct err *e)
{
    static const char *const names[] = {NULL, "committed", "uncommitted", "all"};
    const char *text = storage_query(call, "blocklisttype");

    if (!text || !*text)
        return 1;
    for (int i = 1; i < (int)ARRAY_SIZE(names); i++)
        if (strcasecmp(text, names[i]) == 0)
            return i;
    storage_refuse(e, ERR_INVALID, "InvalidQueryParameterValue",
                   "blocklisttype is committed, uncommitted or all");
    return err_target(e, "blocklisttype");
}

int blob_op_get_block_list(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    struct block_lists lists = {0};
    autoptr(blob) blob = NULL;
    int which = read_which(call, e);
    int rc;

    if (which < 0)
        return -1;
    rc = blobs_list_blocks(blobs_of(call), &at, on_block, &lists, &blob, e);
    if (rc == 0)
        write_lists(call, &lists, which);
    str_done(&lists.committed);
    str_done(&lists.uncommitted);
    if (rc < 0)
        return -1;
    if (blob)
        storage_reply_etag(call, blob->etag, blob->modified_ms);
    storage_reply_headerf(call, "x-ms-blob-content-length", "%lld",
                          (long long)(blob ? blob->size_bytes : 0));
    return storage_reply_xml(call, 200);
}
