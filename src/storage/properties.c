/* properties.c - what is said of an account's whole service: its properties, its kind, and the
 * keys that its users may sign with.
 *
 * The properties are kept as the XML they came in, part by part: a part that a client leaves
 * out stays as it was.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-proto.h"

#include "base/clock.h"
#include "base/mem.h"
#include "storage/xml.h"

#include <string.h>

static const int64_t most_key_life_ms = 7LL * 24 * 3600 * 1000;

/* In the order of the protocol, with what holds until somebody says otherwise. */
static const struct part {
    const char *name, *otherwise;
    bool is_blob_only;
} parts[] = {
    {"Logging",
     "<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read>"
     "<Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></"
     "Logging>",
     true},
    {"HourMetrics",
     "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>"
     "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>",
     false},
    {"MinuteMetrics",
     "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>"
     "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>",
     false},
    {"Cors", "<Cors></Cors>", false},
    {"DefaultServiceVersion", "", true},
    {"DeleteRetentionPolicy",
     "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>", true},
    {"StaticWebsite", "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>", true},
    {"ProtocolSettings",
     "<ProtocolSettings><SMB><Multichannel><Enabled>false</Enabled></Multichannel></SMB>"
     "</ProtocolSettings>",
     false},
};

static const char *note_name(const struct storage_call *call)
{
    return strcmp(call->table->service, "blob") == 0 ? "blob-properties" : "file-properties";
}

int storage_load_properties(struct storage_call *call,
                            const struct xml_node **ret_root,
                            struct err *e)
{
    auto_free char *text = NULL;

    if (blobs_get_note(call->service->config.blobs, call->account, note_name(call), &text, e) <
        0)
        return -1;
    *ret_root = NULL;
    return text ? xml_parse(text, strlen(text), call->arena, ret_root, e) : 0;
}

static void write_properties(struct storage_call *call,
                             const struct xml_node *newer,
                             const struct xml_node *older,
                             struct str *out)
{
    bool is_blob = strcmp(call->table->service, "blob") == 0;

    xml_begin(out);
    xml_open(out, "StorageServiceProperties");
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const struct xml_node *node = xml_child(newer, parts[i].name);

        if (!node)
            node = xml_child(older, parts[i].name);
        if (node)
            xml_write(out, node);
        else if (is_blob ? strcmp(parts[i].name, "ProtocolSettings") != 0
                         : !parts[i].is_blob_only)
            str_add(out, parts[i].otherwise);
    }
    xml_close(out, "StorageServiceProperties");
}

int storage_op_get_properties(struct storage_call *call, struct err *e)
{
    const struct xml_node *root;

    if (storage_load_properties(call, &root, e) < 0)
        return -1;
    write_properties(call, NULL, root, &call->out_body);
    return storage_reply_xml(call, 200);
}

static bool is_on(const struct xml_node *root, const char *part)
{
    const char *enabled = xml_child_text(xml_child(root, part), "Enabled");

    return enabled && str_equal_nocase(enabled, "true");
}

/* What would be accepted and never done is refused. */
static int check_properties(const struct xml_node *root, struct err *e)
{
    static const char *const missing[] = {"DeleteRetentionPolicy", "StaticWebsite"};
    const struct xml_node *cors = xml_child(root, "Cors");
    size_t rules = 0;

    if (strcmp(root->name, "StorageServiceProperties") != 0)
        return storage_refuse(e, ERR_INVALID, "InvalidXmlDocument",
                              "expected StorageServiceProperties");
    for (const struct xml_node *node = root->child; node; node = node->next) {
        size_t i = 0;

        while (i < ARRAY_SIZE(parts) && strcmp(parts[i].name, node->name) != 0)
            i++;
        if (i == ARRAY_SIZE(parts))
            return storage_refuse(e, ERR_INVALID, "InvalidXmlDocument",
                                  "%.64s is no property of a storage service", node->name);
    }
    for (size_t i = 0; i < ARRAY_SIZE(missing); i++)
        if (is_on(root, missing[i]))
            return storage_refuse(e, ERR_INVALID, "NotImplemented", "%s is not supported here",
                                  missing[i]);
    for (const struct xml_node *rule = cors ? cors->child : NULL; rule; rule = rule->next)
        if (strcmp(rule->name, "CorsRule") != 0 || ++rules > 5 ||
            !xml_child(rule, "AllowedOrigins") || !xml_child(rule, "AllowedMethods"))
            return storage_refuse(e, ERR_INVALID, "InvalidXmlDocument",
                                  "there may be at most five CORS rules, each with origins and "
                                  "methods");
    return 0;
}

int storage_op_set_properties(struct storage_call *call, struct err *e)
{
    const struct xml_node *newer, *older;
    auto_str text = {0};

    if (xml_parse(call->body, call->body_len, call->arena, &newer, e) < 0 ||
        check_properties(newer, e) < 0 || storage_load_properties(call, &older, e) < 0)
        return -1;
    write_properties(call, newer, older, &text);
    if (blobs_put_note(call->service->config.blobs, call->account, note_name(call),
                       str_text(&text), e) < 0)
        return -1;
    return storage_reply(call, 202);
}

int storage_op_account_info(struct storage_call *call, struct err *e)
{
    (void)e;
    storage_reply_header(call, "x-ms-sku-name", "Standard_LRS");
    storage_reply_header(call, "x-ms-account-kind", "StorageV2");
    storage_reply_header(call, "x-ms-is-hns-enabled", "false");
    return storage_reply(call, 200);
}

/* --- keys of users --- */

/* Whole seconds: clients read the time and write it again in their own way. */
static const char *whole_seconds(struct storage_call *call, int64_t ms)
{
    char text[CLOCK_ISO_BYTES];

    return arena_strdup(call->arena, clock_format_iso(ms / 1000 * 1000, text));
}

static int read_life(struct storage_call *call, struct sas_delegation *facts, struct err *e)
{
    const struct xml_node *root;
    const char *start, *expiry;
    int64_t from_ms = call->now_ms, until_ms;

    if (xml_parse(call->body, call->body_len, call->arena, &root, e) < 0)
        return -1;
    start = xml_child_text(root, "Start");
    expiry = xml_child_text(root, "Expiry");
    if (strcmp(root->name, "KeyInfo") != 0 || !expiry)
        return storage_refuse(e, ERR_INVALID, "InvalidXmlDocument",
                              "expected KeyInfo with an Expiry");
    if ((start && *start && clock_parse_iso(start, &from_ms, e) < 0) ||
        clock_parse_iso(expiry, &until_ms, e) < 0)
        return err_reason(e, "InvalidXmlNodeValue");
    if (until_ms <= call->now_ms || until_ms <= from_ms ||
        until_ms - from_ms > most_key_life_ms || until_ms - call->now_ms > most_key_life_ms)
        return storage_refuse(e, ERR_INVALID, "InvalidXmlNodeValue",
                              "a key's life must end within seven days");
    facts->key_start = whole_seconds(call, from_ms);
    facts->key_expiry = whole_seconds(call, until_ms);
    return 0;
}

int storage_op_delegation_key(struct storage_call *call, struct err *e)
{
    const struct storage_config *config = &call->service->config;
    struct sas_delegation facts = {
        .object_id = call->who,
        .tenant_id = config->tenant_id,
        .key_service = arena_strndup(call->arena, call->table->service, 1),
        .key_version = call->version,
    };
    struct str *out = &call->out_body;
    char key[SAS_SIGNATURE_BYTES];

    if (call->by != STORAGE_BY_BEARER)
        return storage_refuse(e, ERR_FORBIDDEN, "AuthenticationFailed",
                              "only a user, known by a token, can have a user delegation key");
    if (read_life(call, &facts, e) < 0)
        return -1;
    sas_delegation_key(&facts, call->account, config->delegation_secret,
                       sizeof(config->delegation_secret), key);
    xml_begin(out);
    xml_open(out, "UserDelegationKey");
    xml_element(out, "SignedOid", facts.object_id);
    xml_element(out, "SignedTid", facts.tenant_id);
    xml_element(out, "SignedStart", facts.key_start);
    xml_element(out, "SignedExpiry", facts.key_expiry);
    xml_element(out, "SignedService", facts.key_service);
    xml_element(out, "SignedVersion", facts.key_version);
    xml_element(out, "Value", key);
    xml_close(out, "UserDelegationKey");
    return storage_reply_xml(call, 200);
}
