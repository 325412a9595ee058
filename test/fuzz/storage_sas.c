/* storage_sas.c - fuzz target: the query of a storage request, as a SAS and as what SharedKey
 * signs.
 *
 * What must hold beyond not crashing: no SAS is accepted (the key is not known to the fuzzer)
 * but those of the corpus, whose parameters are unchanged then; every refusal is a 403.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "core/sas.h"
#include "core/sharedkey.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const char key[] =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* The permissions that the corpus was signed with. */
static bool is_known(const struct sas *sas)
{
    const char *sp = sas->service.permissions;

    return sp &&
           (strcmp(sp, "rwdlac") == 0 || strcmp(sp, "rcw") == 0 || strcmp(sp, "rcwl") == 0);
}

static void try_sas(const char *query)
{
    const struct sas_ask ask = {
        .service = "blob",
        .account = "devstoreaccount1",
        .container = "con",
        .object = "dir/a b.txt",
        .levels = "o",
        .permissions = "r",
        .is_service_ok = true,
        .peer = "127.0.0.1",
        .now_ms = 1767225600000,
    };
    autoptr(arena) arena = arena_new();
    char letters[SAS_LETTERS_BYTES];
    struct err e = {0};
    struct sas sas;

    if (sas_parse(query, arena, &sas, &e) == 0 &&
        sas_verify(&sas, &ask, key, "", NULL, letters, &e) == 0)
        require(is_known(&sas));
    else
        require(e.code == ERR_FORBIDDEN && e.reason);
}

static void try_sharedkey(const char *query)
{
    static const struct sharedkey_header headers[] = {
        {"x-ms-date", "Thu, 01 Jan 2026 00:00:00 GMT"}};
    const struct sharedkey_request r = {
        .verb = "GET",
        .headers = headers,
        .header_count = 1,
        .raw_path = "/devstoreaccount1/con",
        .raw_query = query,
        .account = "devstoreaccount1",
    };
    struct err e = {0};

    require(sharedkey_verify(&r, query, key, key, 1767225600000, &e) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    auto_free char *query = xstrndup((const char *)bytes, len);

    try_sas(query);
    try_sharedkey(query);
    return 0;
}
