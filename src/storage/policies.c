/* policies.c - stored access policies: what a SAS may point to instead of saying it itself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-proto.h"

#include "base/clock.h"
#include "base/mem.h"
#include "storage/xml.h"

#include <string.h>

enum {
    MOST_POLICIES = 5, /* as Azure has it */
    MOST_ID_BYTES = 64,
};

static int bad_document(struct err *e, const char *why)
{
    return storage_refuse(e, ERR_INVALID, "InvalidXmlDocument", "%s", why);
}

static int copy_time(json_t *to, const char *key, const char *text, struct err *e)
{
    int64_t ms;

    if (!text || !*text)
        return 0;
    if (clock_parse_iso(text, &ms, e) < 0)
        return err_reason(e, "InvalidXmlNodeValue");
    json_object_set_new(to, key, json_string(text));
    return 0;
}

static int read_policy(json_t *policies, const struct xml_node *node, struct err *e)
{
    const struct xml_node *policy = xml_child(node, "AccessPolicy");
    const char *id = xml_child_text(node, "Id");
    const char *permission = xml_child_text(policy, "Permission");
    json_t *row, *other;
    size_t i;

    if (strcmp(node->name, "SignedIdentifier") != 0 || !id || !*id ||
        strlen(id) > MOST_ID_BYTES)
        return bad_document(e, "a stored access policy needs an Id of 1 to 64 characters");
    json_array_foreach(
        policies, i,
        other) if (strcmp(json_string_value(json_object_get(other, "id")), id) ==
                   0) return bad_document(e, "two stored access policies have the same Id");
    row = json_pack("{s:s}", "id", id);
    json_array_append_new(policies, row);
    if (copy_time(row, "start", xml_child_text(policy, "Start"), e) < 0 ||
        copy_time(row, "expiry", xml_child_text(policy, "Expiry"), e) < 0)
        return -1;
    if (permission && *permission)
        json_object_set_new(row, "permission", json_string(permission));
    return 0;
}

int storage_read_policies(struct storage_call *call, json_t **ret_policies, struct err *e)
{
    auto_json json_t *policies = json_array();
    const struct xml_node *root;

    if (call->body_len) {
        if (xml_parse(call->body, call->body_len, call->arena, &root, e) < 0)
            return -1;
        if (strcmp(root->name, "SignedIdentifiers") != 0)
            return bad_document(e, "expected SignedIdentifiers");
        for (const struct xml_node *node = root->child; node; node = node->next)
            if (read_policy(policies, node, e) < 0)
                return -1;
    }
    if (json_array_size(policies) > MOST_POLICIES)
        return bad_document(e, "there may be at most five stored access policies");
    *ret_policies = take_ptr(&policies);
    return 0;
}

void storage_write_policies(struct str *out, const json_t *policies)
{
    json_t *row;
    size_t i;

    xml_begin(out);
    xml_open(out, "SignedIdentifiers");
    json_array_foreach(policies, i, row)
    {
        xml_open(out, "SignedIdentifier");
        xml_element(out, "Id", json_string_value(json_object_get(row, "id")));
        xml_open(out, "AccessPolicy");
        xml_element(out, "Start", json_string_value(json_object_get(row, "start")));
        xml_element(out, "Expiry", json_string_value(json_object_get(row, "expiry")));
        xml_element(out, "Permission", json_string_value(json_object_get(row, "permission")));
        xml_close(out, "AccessPolicy");
        xml_close(out, "SignedIdentifier");
    }
    xml_close(out, "SignedIdentifiers");
}
