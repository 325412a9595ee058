/* cors.c - what a browser may do from a page elsewhere: nothing, until the account's service
 * properties have rules.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-proto.h"

#include "base/mem.h"
#include "storage/xml.h"

#include <string.h>
#include <strings.h>

/* Does a comma list hold the word?  "*" holds all, "x-ms-*" all that begin so. */
static bool list_has(const char *list, const char *word, size_t word_len)
{
    while (list && *list) {
        size_t len;

        list += strspn(list, ", ");
        len = strcspn(list, ", ");
        if (len && list[len - 1] == '*' && word_len >= len - 1 &&
            strncasecmp(list, word, len - 1) == 0)
            return true;
        if (len == word_len && strncasecmp(list, word, len) == 0)
            return true;
        list += len;
    }
    return false;
}

static bool has_all(const char *list, const char *words)
{
    while (words && *words) {
        size_t len;

        words += strspn(words, ", ");
        len = strcspn(words, ", ");
        if (len && !list_has(list, words, len))
            return false;
        words += len;
    }
    return true;
}

/* The first rule that allows this origin and method (and, for a preflight, these headers). */
static const struct xml_node *find_rule(struct storage_call *call,
                                        const char *origin,
                                        const char *method,
                                        const char *headers)
{
    const struct xml_node *root = NULL, *cors;

    if (storage_load_properties(call, &root, NULL) < 0)
        return NULL;
    cors = xml_child(root, "Cors");
    for (const struct xml_node *rule = cors ? cors->child : NULL; rule; rule = rule->next)
        if (list_has(xml_child_text(rule, "AllowedOrigins"), origin, strlen(origin)) &&
            list_has(xml_child_text(rule, "AllowedMethods"), method, strlen(method)) &&
            has_all(xml_child_text(rule, "AllowedHeaders"), headers))
            return rule;
    return NULL;
}

static void reply_origin(struct storage_call *call, const struct xml_node *rule)
{
    bool is_any = strcmp(xml_child_text(rule, "AllowedOrigins"), "*") == 0;

    storage_reply_header(call, "Access-Control-Allow-Origin",
                         is_any ? "*" : storage_header(call, "Origin"));
    if (!is_any)
        storage_reply_header(call, "Vary", "Origin");
}

int storage_preflight(struct storage_call *call, struct err *e)
{
    const char *origin = storage_header(call, "Origin");
    const char *method = storage_header(call, "Access-Control-Request-Method");
    const char *headers = storage_header(call, "Access-Control-Request-Headers");
    const struct xml_node *rule;

    if (!origin || !*origin || !method || !*method)
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "a preflight needs Origin and Access-Control-Request-Method");
    rule = find_rule(call, origin, method, headers);
    if (!rule)
        return storage_refuse(e, ERR_FORBIDDEN, "CorsPreflightFailure",
                              "no rule of the service's properties allows this");
    reply_origin(call, rule);
    storage_reply_header(call, "Access-Control-Allow-Methods", method);
    storage_reply_header(call, "Access-Control-Allow-Headers", headers);
    storage_reply_header(call, "Access-Control-Max-Age",
                         xml_child_text(rule, "MaxAgeInSeconds"));
    return storage_reply(call, 200);
}

void storage_reply_cors(struct storage_call *call)
{
    const struct xml_node *rule;
    const char *exposed;

    if (!call->account || strcmp(call->method, "OPTIONS") == 0)
        return;
    rule = find_rule(call, storage_header(call, "Origin"), call->method, NULL);
    if (!rule)
        return;
    reply_origin(call, rule);
    exposed = xml_child_text(rule, "ExposedHeaders");
    if (exposed && *exposed)
        storage_reply_header(call, "Access-Control-Expose-Headers", exposed);
}
