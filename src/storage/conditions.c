/* The conditions of a request, judged against a blob or container as it is.
 *
 * Reads: (If-Match and If-Unmodified-Since) and (If-None-Match or If-Modified-Since); a failure
 * of the second pair means "you have it already".  Writes: an ETag condition beats the time of
 * its pair.  Times compare by the second, because that is all that Last-Modified says.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/str.h"

#include <string.h>

static const struct lease_words blob_words = {"LeaseIdMismatchWithBlobOperation",
                                              "LeaseNotPresentWithBlobOperation"};
static const struct lease_words container_words = {"LeaseIdMismatchWithContainerOperation",
                                                   "LeaseNotPresentWithContainerOperation"};

static bool is_any(const char *list)
{
    return str_equal(list, "*") || str_equal(list, "\"*\"");
}

/* Is the ETag one of the list, quoted or not? */
static bool list_has(const char *list, const char *etag)
{
    size_t len = strlen(etag);

    if (is_any(list))
        return true;
    for (const char *p = list; *p;) {
        const char *start, *end;

        p += strspn(p, ", \t");
        if (str_starts(p, "W/"))
            p += 2;
        start = *p == '"' ? p + 1 : p;
        end = start + strcspn(start, "\", \t");
        if ((size_t)(end - start) == len && memcmp(start, etag, len) == 0)
            return true;
        p = *end == '"' ? end + 1 : end;
    }
    return false;
}

static int64_t seconds(int64_t ms)
{
    return ms / 1000;
}

static int not_met(struct err *e)
{
    err_set(e, ERR_PRECONDITION, "a condition of the request is not met");
    return err_reason(e, "ConditionNotMet");
}

static bool modified_since(int64_t modified_ms, int64_t since_ms)
{
    return seconds(modified_ms) > seconds(since_ms);
}

/* --- x-ms-if-tags --- */

/* A name in double quotes or a value in single ones, doubled inside.  Returns what follows,
 * NULL when there is none. */
static const char *read_quoted(const char *p, char quote, struct str *out)
{
    p += strspn(p, " \t");
    if (*p++ != quote)
        return NULL;
    for (; *p; p++) {
        if (*p == quote && *++p != quote)
            return p;
        str_add_char(out, *p);
    }
    return NULL;
}

/* 1 they hold, 0 they do not, -1 not understood. */
static int tags_hold(const char *terms, const json_t *tags)
{
    bool all = true;

    for (const char *p = terms;;) {
        auto_str name = {0}, value = {0};
        const char *has;

        p += strspn(p, " \t");
        if (*p == '"') {
            p = read_quoted(p, '"', &name);
        } else {
            size_t len = strcspn(p, " \t=<>'");

            str_add_len(&name, p, len);
            p += len;
        }
        if (!p || name.len == 0)
            return -1;
        p += strspn(p, " \t");
        if (*p++ != '=')
            return -1;
        p = read_quoted(p, '\'', &value);
        if (!p)
            return -1;
        has = json_string_value(json_object_get(tags, str_text(&name)));
        all = all && has && strcmp(has, str_text(&value)) == 0;
        p += strspn(p, " \t");
        if (!*p)
            return all;
        if (!str_starts_nocase(p, "and "))
            return -1;
        p += 4;
    }
}

static int check_tags(const char *terms, const json_t *tags, struct err *e)
{
    int held = terms && *terms ? tags_hold(terms, tags) : 1;

    if (held > 0)
        return 0;
    if (held == 0)
        return not_met(e);
    err_set(e, ERR_INVALID, "x-ms-if-tags: expected \"name\" = 'value' terms joined by AND");
    return err_reason(e, "InvalidHeaderValue");
}

/* --- writes --- */

static int write_conditions(const struct conditions *c,
                            const char *etag,
                            int64_t modified_ms,
                            struct err *e)
{
    if (c->if_match ? !list_has(c->if_match, etag)
                    : c->if_unmodified_since_ms &&
                          modified_since(modified_ms, c->if_unmodified_since_ms))
        return not_met(e);
    if (c->if_none_match
            ? list_has(c->if_none_match, etag)
            : c->if_modified_since_ms && !modified_since(modified_ms, c->if_modified_since_ms))
        return not_met(e);
    return 0;
}

static int check_missing(const struct conditions *c, struct err *e)
{
    static const struct lease none = {0};

    if (c->if_match || (c->if_tags && *c->if_tags))
        return not_met(e);
    return lease_check_write(&none, c->lease_id, &blob_words, e);
}

int conditions_check_write(const struct conditions *c,
                           const struct blob *blob,
                           enum condition_kind kind,
                           struct err *e)
{
    static const struct conditions none = {0};

    if (!c)
        c = &none;
    if (!blob)
        return check_missing(c, e);
    if (kind == CONDITION_CREATE && c->if_none_match && is_any(c->if_none_match)) {
        err_set(e, ERR_CONFLICT, "the blob already exists");
        return err_reason(e, "BlobAlreadyExists");
    }
    if (write_conditions(c, blob->etag, blob->modified_ms, e) < 0 ||
        check_tags(c->if_tags, blob->tags, e) < 0)
        return -1;
    if (kind == CONDITION_FREE && !(c->lease_id && *c->lease_id))
        return 0;
    return lease_check_write(&blob->lease, c->lease_id, &blob_words, e);
}

int conditions_check_container(const struct conditions *c,
                               const struct container *container,
                               bool lease_counts,
                               struct err *e)
{
    static const struct conditions none = {0};

    if (!c)
        c = &none;
    if (write_conditions(c, container->etag, container->modified_ms, e) < 0)
        return -1;
    if (!lease_counts && !(c->lease_id && *c->lease_id))
        return 0;
    return lease_check_write(&container->lease, c->lease_id, &container_words, e);
}

/* --- reads --- */

/* Without an answer there: changed. */
static bool has_changed(const struct conditions *c, const struct blob *blob)
{
    bool none_match = c->if_none_match && !list_has(c->if_none_match, blob->etag);
    bool modified =
        c->if_modified_since_ms && modified_since(blob->modified_ms, c->if_modified_since_ms);

    if (!c->if_none_match && !c->if_modified_since_ms)
        return true;
    return none_match || modified;
}

int conditions_check_read(const struct conditions *c,
                          const struct blob *blob,
                          bool *ret_unchanged,
                          struct err *e)
{
    if (ret_unchanged)
        *ret_unchanged = false;
    if (!c)
        return 0;
    if (c->if_none_match && is_any(c->if_none_match)) {
        err_set(e, ERR_INVALID, "If-None-Match: * can never hold for a read");
        return err_reason(e, "UnsatisfiableCondition");
    }
    if ((c->if_match && !list_has(c->if_match, blob->etag)) ||
        (c->if_unmodified_since_ms &&
         modified_since(blob->modified_ms, c->if_unmodified_since_ms)))
        return not_met(e);
    if (check_tags(c->if_tags, blob->tags, e) < 0)
        return -1;
    if (c->lease_id && *c->lease_id &&
        lease_check_write(&blob->lease, c->lease_id, &blob_words, e) < 0)
        return -1;
    if (has_changed(c, blob))
        return 0;
    if (!ret_unchanged)
        return not_met(e);
    *ret_unchanged = true;
    return 0;
}
