/* YAML in the block style of PyYAML's safe_dump, which az uses, through libyaml.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/output-internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <regex.h>
#include <string.h>
#include <yaml.h>

/* What YAML 1.1 would read as something else than a string, so that a string of that form needs
 * quotes. The forms are those of the specification's types bool, float, int, null, timestamp,
 * merge, value. */
static const char *const other_types[] = {
    "^(yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$",
    "^([-+]?([0-9][0-9_]*)\\.[0-9_]*([eE][-+][0-9]+)?|\\.[0-9][0-9_]*([eE][-+][0-9]+)?|"
    "[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\\.[0-9_]*|[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN))$",
    "^([-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|"
    "[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+)$",
    "^(~|null|Null|NULL|)$",
    "^([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ "
    "\t]+)[0-9]{1,2}:[0-9]{2}:"
    "[0-9]{2}(\\.[0-9]*)?([ \t]*(Z|[-+][0-9]{1,2}(:[0-9]{2})?))?)$",
    "^(<<|=)$",
};

struct writer {
    yaml_emitter_t emitter;
    regex_t types[ARRAY_SIZE(other_types)];
    struct str *out;
};

static int write_bytes(void *context, unsigned char *bytes, size_t len)
{
    str_add_len(((struct writer *)context)->out, bytes, len);
    return 1;
}

static bool reads_as_string(const struct writer *w, const char *text)
{
    for (size_t i = 0; i < ARRAY_SIZE(other_types); i++) {
        if (regexec(&w->types[i], text, 0, NULL, 0) == 0)
            return false;
    }
    return true;
}

static int emit_scalar(struct writer *w, const char *text, size_t len, bool is_string)
{
    yaml_event_t event;
    int plain = !is_string || reads_as_string(w, text);
    /* Multi-line text is quoted, as safe_dump does, not laid out in a block. */
    yaml_scalar_style_t style = is_string && memchr(text, '\n', len)
                                    ? YAML_SINGLE_QUOTED_SCALAR_STYLE
                                    : YAML_ANY_SCALAR_STYLE;

    if (!yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)len,
                                      plain, 1, style))
        return 0;
    return yaml_emitter_emit(&w->emitter, &event);
}

static int emit(struct writer *w, json_t *value);

static int emit_array(struct writer *w, json_t *array)
{
    yaml_event_t event;
    json_t *item;
    size_t i;

    if (!yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                              YAML_BLOCK_SEQUENCE_STYLE) ||
        !yaml_emitter_emit(&w->emitter, &event))
        return 0;
    json_array_foreach(array, i, item)
    {
        if (!emit(w, item))
            return 0;
    }
    return yaml_sequence_end_event_initialize(&event) && yaml_emitter_emit(&w->emitter, &event);
}

static int emit_object(struct writer *w, json_t *object)
{
    const char **keys = output_sorted_keys(object);
    yaml_event_t event;
    int ok;

    ok = yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE) &&
         yaml_emitter_emit(&w->emitter, &event);
    for (size_t i = 0; ok && keys[i]; i++)
        ok = emit_scalar(w, keys[i], strlen(keys[i]), true) &&
             emit(w, json_object_get(object, keys[i]));
    free(keys);
    return ok && yaml_mapping_end_event_initialize(&event) &&
           yaml_emitter_emit(&w->emitter, &event);
}

/* YAML 1.1 reads 1e+16 as a string; 1.0e+16 is a number. */
static void add_yaml_number(struct str *text, const json_t *number)
{
    auto_str plain = {0};
    const char *e;

    output_number(&plain, number);
    e = strchr(str_text(&plain), 'e');
    if (!e || strchr(str_text(&plain), '.')) {
        str_add(text, str_text(&plain));
        return;
    }
    str_add_len(text, str_text(&plain), (size_t)(e - str_text(&plain)));
    str_addf(text, ".0%s", e);
}

static int emit(struct writer *w, json_t *value)
{
    auto_str text = {0};

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return emit_object(w, value);
    case JSON_ARRAY:
        return emit_array(w, value);
    case JSON_STRING:
        return emit_scalar(w, json_string_value(value), json_string_length(value), true);
    case JSON_INTEGER:
    case JSON_REAL:
        add_yaml_number(&text, value);
        return emit_scalar(w, str_text(&text), text.len, false);
    case JSON_TRUE:
        return emit_scalar(w, "true", 4, false);
    case JSON_FALSE:
        return emit_scalar(w, "false", 5, false);
    case JSON_NULL:
        return emit_scalar(w, "null", 4, false);
    }
    return 0;
}

static int emit_document(struct writer *w, json_t *value)
{
    yaml_event_t event;

    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(&w->emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(&w->emitter, &event) && emit(w, value) &&
           yaml_document_end_event_initialize(&event, 1) &&
           yaml_emitter_emit(&w->emitter, &event) && yaml_stream_end_event_initialize(&event) &&
           yaml_emitter_emit(&w->emitter, &event);
}

/* Colour the keys of block lines: "  key: value".  Good enough for reading; never used in a
 * pipe. */
static void add_coloured(struct str *out, const char *text)
{
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, "\n");
        size_t lead = strspn(p, " -");
        size_t key = strcspn(p, ":\n'\"");
        bool has_key = p[key] == ':' && (p[key + 1] == ' ' || p[key + 1] == '\n') && lead < key;

        if (has_key) {
            str_add_len(out, p, lead);
            output_ink(out, true, INK_KEY);
            str_add_len(out, p + lead, key - lead);
            output_ink(out, true, INK_OFF);
            str_add_len(out, p + key, len - key);
        } else {
            str_add_len(out, p, len);
        }
        p += len;
        if (*p == '\n')
            str_add_char(out, *p++);
    }
}

int output_yaml(struct str *out, json_t *value, bool colour, struct err *e)
{
    auto_str text = {0};
    struct writer w = {.out = &text};
    int ok;

    if (!yaml_emitter_initialize(&w.emitter))
        return err_set(e, ERR_INTERNAL, "could not set up YAML");
    for (size_t i = 0; i < ARRAY_SIZE(other_types); i++) {
        if (regcomp(&w.types[i], other_types[i], REG_EXTENDED | REG_NOSUB) != 0)
            abort(); /* the patterns are our own */
    }
    yaml_emitter_set_output(&w.emitter, write_bytes, &w);
    yaml_emitter_set_unicode(&w.emitter, 1);
    ok = emit_document(&w, value);
    for (size_t i = 0; i < ARRAY_SIZE(other_types); i++)
        regfree(&w.types[i]);
    yaml_emitter_delete(&w.emitter);
    if (!ok)
        return err_set(e, ERR_INTERNAL, "could not write YAML");
    if (!json_is_object(value) && !json_is_array(value) &&
        !str_ends(str_text(&text), "...\n") && !strchr("'\"", str_text(&text)[0]))
        str_add(&text, "...\n");
    if (colour)
        add_coloured(out, str_text(&text));
    else
        str_add(out, str_text(&text));
    return 0;
}
