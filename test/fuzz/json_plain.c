/* json_plain.c - fuzz target: the trainer's own JSON reader.
 *
 * What must hold beyond not crashing: what was read, written again, reads the same.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/record/json-plain.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum {
    MOST_DEPTH = JSONW_MOST_DEPTH - 4, /* the writer's bound is below the reader's */
};

static int depth(const struct jsonr *value)
{
    int most = 0;

    for (const struct jsonr *c = value->first; c; c = c->next) {
        int inner = depth(c);

        most = inner > most ? inner : most;
    }
    return most + 1;
}

static void write_value(struct jsonw *w, const char *key, const struct jsonr *value)
{
    switch (value->type) {
    case JSONR_NULL:
        jsonw_text(w, key, NULL);
        return;
    case JSONR_BOOL:
        jsonw_bool(w, key, value->boolean);
        return;
    case JSONR_NUMBER:
        jsonw_double(w, key, value->number);
        return;
    case JSONR_TEXT:
        jsonw_text(w, key, value->text);
        return;
    case JSONR_ARRAY:
        jsonw_open_array(w, key);
        break;
    case JSONR_OBJECT:
        jsonw_open_object(w, key);
        break;
    }
    for (const struct jsonr *c = value->first; c; c = c->next)
        write_value(w, value->type == JSONR_ARRAY ? NULL : c->key, c);
    jsonw_close(w);
}

static void write_all(struct str *out, const struct jsonr *value)
{
    struct jsonw w;

    jsonw_begin(&w, out);
    write_value(&w, "value", value);
    jsonw_end(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    autoptr(arena) arena = arena_new();
    const struct jsonr *value, *again;
    auto_str once = {0}, twice = {0};

    if (jsonr_parse(arena, (const char *)bytes, len, &value, NULL) < 0 ||
        depth(value) > MOST_DEPTH)
        return 0;
    write_all(&once, value);
    if (jsonr_parse(arena, once.data, once.len, &again, NULL) < 0)
        abort();
    write_all(&twice, jsonr_get(again, "value"));
    if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
        abort();
    return 0;
}
