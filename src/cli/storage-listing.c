/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-listing.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/storage-wire.h"

#include <expat.h>
#include <string.h>

enum {
    MOST_DEPTH = 16,
    MOST_PAGES = 1000 * 1000, /* a server that never ends its list is not followed for ever */
};

struct listing_pair {
    size_t path, text; /* offsets into the entry's bytes */
};

struct listing_entry {
    const char *kind;
    struct str bytes;
    struct listing_pair *pairs;
    size_t count, room;
};

struct reader {
    XML_Parser parser;
    listing_see *see;
    void *context;
    struct listing_entry entry;
    size_t depth, entry_depth; /* 0 = outside of any entry */
    size_t path_ends[MOST_DEPTH + 1];
    struct str path, text, marker;
    bool is_encoded; /* the name is percent-encoded, for no XML can hold it */
    int result;
    struct err *e;
};

static const char *const kinds[] = {"Blob",  "BlobPrefix", "Container", "Share",
                                    "File", "Directory",  "Block"};

const char *listing_kind(const struct listing_entry *entry)
{
    return entry->kind;
}

bool listing_at(const struct listing_entry *entry,
                size_t index,
                const char **ret_path,
                const char **ret_text)
{
    if (index >= entry->count)
        return false;
    *ret_path = entry->bytes.data + entry->pairs[index].path;
    *ret_text = entry->bytes.data + entry->pairs[index].text;
    return true;
}

const char *listing_get(const struct listing_entry *entry, const char *path)
{
    const char *found, *text;

    for (size_t i = 0; listing_at(entry, i, &found, &text); i++) {
        if (strcmp(found, path) == 0)
            return text;
    }
    return NULL;
}

const char *listing_name(const struct listing_entry *entry)
{
    const char *name = listing_get(entry, "Name");

    return name ? name : "";
}

int64_t listing_size(const struct listing_entry *entry)
{
    const char *text = listing_get(entry, "Properties/Content-Length");

    if (!text)
        text = listing_get(entry, "Size"); /* of a block */
    return text ? strtoll(text, NULL, 10) : 0;
}

int64_t listing_modified_ms(const struct listing_entry *entry)
{
    const char *text = listing_get(entry, "Properties/Last-Modified");
    int64_t ms;

    return text && clock_parse_http(text, &ms, NULL) == 0 ? ms : -1;
}

/* --- reading --- */

static void stop(struct reader *r, int result)
{
    r->result = result;
    XML_StopParser(r->parser, XML_FALSE);
}

static void refuse(struct reader *r, const char *why)
{
    stop(r, err_set(r->e, ERR_INTERNAL, "the list is not understood: %s", why));
}

static void begin_entry(struct reader *r, const char *kind)
{
    r->entry.kind = kind;
    r->entry.count = 0;
    str_truncate(&r->entry.bytes, 0);
    r->entry_depth = r->depth;
    str_truncate(&r->path, 0);
}

static void XMLCALL on_open(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *r = context;

    if (++r->depth > MOST_DEPTH) {
        refuse(r, "it is too deep");
        return;
    }
    str_truncate(&r->text, 0);
    r->is_encoded = false;
    for (size_t i = 0; attributes[i]; i += 2)
        r->is_encoded |= str_equal(attributes[i], "Encoded") && str_equal(attributes[i + 1], "true");
    if (!r->entry_depth) {
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
            if (strcmp(name, kinds[i]) == 0)
                begin_entry(r, kinds[i]);
        }
        return;
    }
    r->path_ends[r->depth] = r->path.len;
    if (r->path.len)
        str_add_char(&r->path, '/');
    str_add(&r->path, name);
}

static void XMLCALL on_text(void *context, const XML_Char *text, int len)
{
    struct reader *r = context;

    str_add_len(&r->text, text, (size_t)len);
}

static void add_pair(struct reader *r)
{
    struct listing_entry *entry = &r->entry;
    struct listing_pair pair = {.path = entry->bytes.len};

    if (entry->count == entry->room) {
        entry->room = entry->room ? entry->room * 2 : 32;
        entry->pairs = xreallocarray(entry->pairs, entry->room, sizeof(*entry->pairs));
    }
    str_add_len(&entry->bytes, str_text(&r->path), r->path.len + 1);
    pair.text = entry->bytes.len;
    if (!r->is_encoded || text_percent_decode(&entry->bytes, str_text(&r->text), r->text.len,
                                              false, NULL) < 0)
        str_add_len(&entry->bytes, str_text(&r->text), r->text.len);
    str_add_char(&entry->bytes, '\0');
    entry->pairs[entry->count++] = pair;
}

static void XMLCALL on_close(void *context, const XML_Char *name)
{
    struct reader *r = context;
    int rc;

    if (r->entry_depth && r->depth == r->entry_depth) {
        r->entry_depth = 0;
        rc = r->see(r->context, &r->entry, r->e);
        if (rc != 0)
            stop(r, rc);
    } else if (r->entry_depth) {
        add_pair(r);
        str_truncate(&r->path, r->path_ends[r->depth]);
    } else if (str_equal(name, "NextMarker")) {
        str_add_len(&r->marker, str_text(&r->text), r->text.len);
    }
    str_truncate(&r->text, 0);
    r->depth--;
}

static void XMLCALL on_doctype(void *context,
                               const XML_Char *name,
                               const XML_Char *system_id,
                               const XML_Char *public_id,
                               int has_subset)
{
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    refuse(context, "it has a document type");
}

int listing_parse(const char *text,
                  size_t len,
                  listing_see *see,
                  void *context,
                  char **ret_marker,
                  struct err *e)
{
    struct reader r = {.parser = XML_ParserCreate(NULL), .see = see, .context = context, .e = e};

    if (!r.parser)
        abort();
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_open, on_close);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    if (XML_Parse(r.parser, text, (int)len, 1) != XML_STATUS_OK && r.result == 0)
        r.result = err_set(e, ERR_INTERNAL, "the list is not understood: %s",
                           XML_ErrorString(XML_GetErrorCode(r.parser)));
    XML_ParserFree(r.parser);
    str_done(&r.entry.bytes);
    free(r.entry.pairs);
    str_done(&r.path);
    str_done(&r.text);
    *ret_marker = r.result == 0 && r.marker.len ? xstrdup(str_text(&r.marker)) : NULL;
    str_done(&r.marker);
    return r.result;
}

int listing_walk(struct wire *wire,
                 const char *container,
                 const char *path,
                 const char *query,
                 listing_see *see,
                 void *context,
                 struct err *e)
{
    auto_free char *marker = NULL;

    for (int pages = 0; pages < MOST_PAGES; pages++) {
        auto_answer answer = {0};
        auto_str whole = {0};
        struct wire_request request = {.method = "GET", .container = container, .path = path};
        int rc;

        str_add(&whole, query);
        if (marker) {
            str_add(&whole, "&marker=");
            text_percent(&whole, marker);
        }
        request.query = str_text(&whole);
        if (wire_call(wire, &request, &answer, e) < 0)
            return -1;
        free(take_ptr(&marker));
        rc = listing_parse(str_text(&answer.body), answer.body.len, see, context, &marker, e);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        if (!marker)
            return 0;
    }
    return err_set(e, ERR_INTERNAL, "the list has more than %d pages", MOST_PAGES);
}
