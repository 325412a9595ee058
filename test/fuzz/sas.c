/* sas.c - fuzz target: the fields of a request for a shared access signature, a line each.
 *
 * What must hold beyond not crashing: the token says each field that was given, and decoded it
 * says what was given; the signature is its last part and does not depend on how often it is
 * made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/sas.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum {
    FIELDS = 16,
};

static const char KEY[] = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* "name=value" of a token, decoded, is what was given; absent and empty are not there. */
static void require_part(const char *token, const char *name, const char *value)
{
    auto_free char *wanted = xasprintf("%s=", name);
    auto_str decoded = {0};
    const char *part = token;

    while (part && !str_starts(part, wanted)) {
        part = strchr(part, '&');
        part = part ? part + 1 : NULL;
    }
    if (!value || !*value) {
        require(!part);
        return;
    }
    require(part);
    part += strlen(wanted);
    require(text_percent_decode(&decoded, part, strcspn(part, "&"), false, NULL) == 0);
    require(str_equal(str_text(&decoded), value));
}

static void account(char *const fields[FIELDS])
{
    const struct sas_account sas = {
        .account = fields[0],
        .permissions = fields[1],
        .services = fields[2],
        .levels = fields[3],
        .start = fields[4],
        .expiry = fields[5],
        .ip = fields[6],
        .protocol = fields[7],
        .version = fields[8],
        .scope = fields[9],
    };
    char signature[SAS_SIGNATURE_BYTES];
    auto_str token = {0};

    require(sas_account_token(&sas, KEY, &token, NULL) == 0);
    require(sas_sign_account(&sas, KEY, signature, NULL) == 0);
    require_part(token.data, "sig", signature);
    require_part(token.data, "sp", sas.permissions);
    require_part(token.data, "se", sas.expiry);
    require_part(token.data, "sip", sas.ip);
    require_part(token.data, "sv", sas.version);
    require(!strpbrk(token.data, " \r\n?#"));
}

static void service(char *const fields[FIELDS])
{
    const struct sas_service sas = {
        .resource = fields[0] ? fields[0] : "",
        .kind = fields[1],
        .permissions = fields[2],
        .start = fields[3],
        .expiry = fields[4],
        .identifier = fields[5],
        .ip = fields[6],
        .protocol = fields[7],
        .version = fields[8],
        .snapshot = fields[9],
        .scope = fields[10],
        .cache_control = fields[11],
        .disposition = fields[12],
        .encoding = fields[13],
        .language = fields[14],
        .type = fields[15],
    };
    char signature[SAS_SIGNATURE_BYTES];
    auto_str token = {0};

    require(sas_service_token(&sas, KEY, &token, NULL) == 0);
    require(sas_sign_service(&sas, KEY, signature, NULL) == 0);
    require_part(token.data, "sig", signature);
    require_part(token.data, "sr", sas.kind);
    require_part(token.data, "si", sas.identifier);
    require_part(token.data, "rsct", sas.type);
    require(!strpbrk(token.data, " \r\n?#"));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    auto_free char *text = xstrndup((const char *)bytes, len);
    char *fields[FIELDS] = {0}, *line = text;
    size_t count = 0;

    for (; line && count < FIELDS; count++) {
        fields[count] = line;
        line = strchr(line, '\n');
        if (line)
            *line++ = '\0';
    }
    account(fields);
    service(fields);
    return 0;
}
