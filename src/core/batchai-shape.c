/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai-internal.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void reader_done(struct reader *r)
{
    str_done(&r->path);
    str_done(&r->pointer);
    json_decref(r->secrets);
}

/* Name in parentheses: the header has a macro of the same name. */
int(reader_fail)(struct reader *r, const char *member, const char *format, ...)
{
    auto_str place = {0}, text = {0};
    va_list args;

    str_add(&place, str_text(&r->path));
    if (member && *member != '[')
        str_add_char(&place, '.');
    if (member)
        str_add(&place, member);
    va_start(args, format);
    str_vaddf(&text, format, args);
    va_end(args);
    err_set(r->e, ERR_INVALID, "%s: %s", str_text(&place), str_text(&text));
    err_reason(r->e, "InvalidParameterValue");
    return err_target(r->e, str_text(&place));
}

/* --- going down and up again --- */

struct place {
    size_t path_len, pointer_len;
};

static struct place enter(struct reader *r, const char *name)
{
    struct place above = {r->path.len, r->pointer.len};

    str_addf(&r->path, ".%s", name);
    str_addf(&r->pointer, "/%s", name);
    return above;
}

static struct place enter_element(struct reader *r, size_t index)
{
    struct place above = {r->path.len, r->pointer.len};

    str_addf(&r->path, "[%zu]", index);
    str_addf(&r->pointer, "/%zu", index);
    return above;
}

static void leave(struct reader *r, struct place above)
{
    str_truncate(&r->path, above.path_len);
    str_truncate(&r->pointer, above.pointer_len);
}

/* --- values --- */

static int
read_object(struct reader *r, const struct shape *row, const json_t *given, json_t **ret_kept);

static int wrong_type(struct reader *r, const char *want, const json_t *got)
{
    return reader_fail(r, NULL, "expected %s, got %s", want, json_type_name(got));
}

static int check_text(struct reader *r, const struct shape *row, const json_t *given)
{
    const char *text = json_string_value(given), *problem;
    size_t len = json_string_length(given);
    size_t most = row->most ? (size_t)row->most : SHAPE_MOST_TEXT;
    bool is_secret = row->kind == SHAPE_SECRET;

    if (!json_is_string(given))
        return wrong_type(r, "a string", given);
    if (len == 0 && !row->may_be_empty)
        return reader_fail(r, NULL, "is empty; give %s", row->hint ? row->hint : "a value");
    if (len > most)
        return reader_fail(r, NULL, "has %zu bytes; at most %zu are taken", len, most);
    if (strlen(text) != len)
        return reader_fail(r, NULL, "has a NUL character; leave it out");
    problem = row->problem ? row->problem(text) : NULL;
    if (problem && is_secret)
        return reader_fail(r, NULL, "is not allowed: %s", problem);
    if (problem)
        return reader_fail(r, NULL, "\"%.100s\" is not allowed: %s", text, problem);
    return 0;
}

static int read_secret(struct reader *r, const struct shape *row, const json_t *given)
{
    if (check_text(r, row, given) < 0)
        return -1;
    json_object_set_new(r->secrets, str_text(&r->pointer), json_copy((json_t *)given));
    return 0;
}

static int
read_int(struct reader *r, const struct shape *row, const json_t *given, json_t **ret_kept)
{
    json_int_t number = json_integer_value(given);

    if (!json_is_integer(given))
        return wrong_type(r, "an integer", given);
    if (number < row->least || number > row->most)
        return reader_fail(r, NULL, "%lld is out of range; take %lld to %lld",
                           (long long)number, (long long)row->least, (long long)row->most);
    *ret_kept = json_integer(number);
    return 0;
}

static int
read_word(struct reader *r, const struct shape *row, const json_t *given, json_t **ret_kept)
{
    const char *text = json_string_value(given);
    auto_str known = {0};

    if (!json_is_string(given))
        return wrong_type(r, "a string", given);
    for (size_t i = 0; row->words[i]; i++) {
        if (str_equal_nocase(text, row->words[i])) {
            *ret_kept = json_string(row->words[i]);
            return 0;
        }
        str_addf(&known, "%s%s",
                 i == 0              ? ""
                 : row->words[i + 1] ? ", "
                                     : " or ",
                 row->words[i]);
    }
    return reader_fail(r, NULL, "\"%.100s\" is unknown; take %s", text, str_text(&known));
}

static int
read_element(struct reader *r, const struct shape *row, const json_t *given, json_t **ret_kept)
{
    if (row->kind == SHAPE_LIST)
        return read_object(r, row, given, ret_kept);
    if (check_text(r, row, given) < 0)
        return -1;
    *ret_kept = json_copy((json_t *)given);
    return 0;
}

static int
read_list(struct reader *r, const struct shape *row, const json_t *given, json_t **ret_kept)
{
    size_t most = row->most && row->kind == SHAPE_LIST ? (size_t)row->most : SHAPE_MOST_LIST;
    auto_json json_t *list = json_array();
    json_t *element;
    size_t i;

    if (!json_is_array(given))
        return wrong_type(r, "an array", given);
    if (json_array_size(given) > most)
        return reader_fail(r, NULL, "has %zu elements; at most %zu are taken",
                           json_array_size(given), most);
    json_array_foreach(given, i, element)
    {
        struct place above = enter_element(r, i);
        json_t *kept = NULL;

        if (read_element(r, row, element, &kept) < 0)
            return -1;
        json_array_append_new(list, kept);
        leave(r, above);
    }
    *ret_kept = json_incref(list);
    return 0;
}

/* *ret_kept stays NULL for what is not to be kept. */
static int
read_value(struct reader *r, const struct shape *row, const json_t *given, json_t **ret_kept)
{
    switch (row->kind) {
    case SHAPE_TEXT:
        if (check_text(r, row, given) < 0)
            return -1;
        *ret_kept = json_copy((json_t *)given);
        return 0;
    case SHAPE_SECRET:
        return read_secret(r, row, given);
    case SHAPE_INT:
        return read_int(r, row, given, ret_kept);
    case SHAPE_WORD:
        return read_word(r, row, given, ret_kept);
    case SHAPE_OBJECT:
        return read_object(r, row, given, ret_kept);
    case SHAPE_LIST:
    case SHAPE_TEXTS:
        return read_list(r, row, given, ret_kept);
    case SHAPE_REFUSED:
        return reader_fail(r, NULL, "is not taken; %s", row->hint);
    }
    return 0;
}

static const char *kind_name(const struct shape *row)
{
    switch (row->kind) {
    case SHAPE_INT:
        return "an integer";
    case SHAPE_OBJECT:
        return "an object";
    case SHAPE_LIST:
    case SHAPE_TEXTS:
        return "an array";
    case SHAPE_TEXT:
    case SHAPE_SECRET:
    case SHAPE_WORD:
    case SHAPE_REFUSED:
        break;
    }
    return "a text";
}

static int read_absent(struct reader *r, const struct shape *row, json_t **ret_kept)
{
    auto_json json_t *nothing = NULL;

    if (row->is_required)
        return reader_fail(r, NULL, "is missing; give %s",
                           row->hint ? row->hint : kind_name(row));
    if (row->otherwise)
        *ret_kept = json_string(row->otherwise);
    if (!row->is_always)
        return 0;
    nothing = json_object();
    return read_object(r, row, nothing, ret_kept);
}

/* A member that is null is not there. */
static int
read_member(struct reader *r, const struct shape *row, const json_t *given, json_t *object)
{
    struct place above = enter(r, row->name);
    json_t *value = json_object_get(given, row->name), *kept = NULL;
    bool is_there = value && !json_is_null(value);

    if ((is_there ? read_value(r, row, value, &kept) : read_absent(r, row, &kept)) < 0)
        return -1;
    if (kept)
        json_object_set_new(object, row->name, kept);
    leave(r, above);
    return 0;
}

static int
read_object(struct reader *r, const struct shape *row, const json_t *given, json_t **ret_kept)
{
    auto_json json_t *object = json_object();

    if (!json_is_object(given))
        return wrong_type(r, "an object", given);
    for (const struct shape *member = row->members; member->name; member++) {
        if (read_member(r, member, given, object) < 0)
            return -1;
    }
    if (row->check && row->check(r, object) < 0)
        return -1;
    *ret_kept = json_incref(object);
    return 0;
}

int shape_read_body(struct reader *r,
                    const json_t *body,
                    const struct shape *members,
                    json_t **ret_kept)
{
    const struct shape row = {.name = "properties", .members = members};
    const json_t *properties = json_object_get(body, "properties");

    if (!json_is_object(body)) {
        err_set(r->e, ERR_INVALID, "the body: expected an object, got %s",
                json_type_name(body));
        return err_reason(r->e, "InvalidRequestContent");
    }
    str_add(&r->path, "properties");
    str_add(&r->pointer, "");
    if (!properties || json_is_null(properties))
        return reader_fail(r, NULL, "is missing; give an object with what is wanted");
    return read_object(r, &row, properties, ret_kept);
}

const char *shape_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

int shape_int(const json_t *object, const char *name)
{
    return (int)json_integer_value(json_object_get(object, name));
}
