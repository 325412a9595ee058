/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/xml.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <ctype.h>
#include <expat.h>
#include <string.h>

/* --- writing --- */

void xml_begin(struct str *out)
{
    str_add(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>");
}

/* U+FFFE and U+FFFF are three bytes: EF BF BE, EF BF BF. */
static bool is_noncharacter(const unsigned char *p)
{
    return p[0] == 0xef && p[1] == 0xbf && (p[2] == 0xbe || p[2] == 0xbf);
}

static bool can_hold(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if ((*p < 0x20 && *p != '\t' && *p != '\n' && *p != '\r') || is_noncharacter(p))
            return false;
    return text_is_utf8(text, strlen(text));
}

/* How many bytes from p on need no escaping. */
static size_t plain_span(const char *p)
{
    size_t len = 0;

    while ((unsigned char)p[len] >= 0x20 && p[len] != '<' && p[len] != '>' && p[len] != '&' &&
           p[len] != '"' && !is_noncharacter((const unsigned char *)p + len))
        len++;
    return len;
}

static void add_text(struct str *out, const char *p)
{
    while (*p) {
        size_t len = plain_span(p);

        str_add_len(out, p, len);
        p += len;
        if (!*p)
            break;
        switch (*p) {
        case '<':
            str_add(out, "&lt;");
            break;
        case '>':
            str_add(out, "&gt;");
            break;
        case '&':
            str_add(out, "&amp;");
            break;
        case '"':
            str_add(out, "&quot;");
            break;
        case '\t':
        case '\n':
        case '\r': /* a reader would make other blanks of it */
            str_addf(out, "&#%d;", *p);
            break;
        default:
            str_add_char(out, '?');
            p += is_noncharacter((const unsigned char *)p) ? 2 : 0;
        }
        p++;
    }
}

void xml_text(struct str *out, const char *text)
{
    size_t len = plain_span(text);

    if (!text[len] && text_is_utf8(text, len))
        str_add_len(out, text, len);
    else if (text_is_utf8(text, strlen(text)))
        add_text(out, text);
    else
        str_add_char(out, '?');
}

void xml_open(struct str *out, const char *name)
{
    str_add_char(out, '<');
    str_add(out, name);
    str_add_char(out, '>');
}

void xml_close(struct str *out, const char *name)
{
    str_add_len(out, "</", 2);
    str_add(out, name);
    str_add_char(out, '>');
}

void xml_element(struct str *out, const char *name, const char *text)
{
    if (!text)
        return;
    if (!*text) {
        str_add_char(out, '<');
        str_add(out, name);
        str_add_len(out, "/>", 2);
        return;
    }
    xml_open(out, name);
    xml_text(out, text);
    xml_close(out, name);
}

/* By hand: a listing has thousands of these, and printf would be a good part of its cost. */
void xml_number(struct str *out, const char *name, int64_t number)
{
    uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
    char digits[24], *p = digits + sizeof(digits);

    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0)
        *--p = '-';
    xml_open(out, name);
    str_add_len(out, p, (size_t)(digits + sizeof(digits) - p));
    xml_close(out, name);
}

void xml_bool(struct str *out, const char *name, bool value)
{
    xml_element(out, name, value ? "true" : "false");
}

void xml_date(struct str *out, const char *name, int64_t wall_ms)
{
    char text[CLOCK_HTTP_BYTES];

    xml_element(out, name, clock_format_http(wall_ms, text));
}

void xml_name(struct str *out, const char *name, const char *text)
{
    if (can_hold(text)) {
        xml_element(out, name, text);
        return;
    }
    str_addf(out, "<%s Encoded=\"true\">", name);
    text_percent(out, text);
    xml_close(out, name);
}

void xml_write(struct str *out, const struct xml_node *node)
{
    xml_open(out, node->name);
    if (node->child)
        for (const struct xml_node *child = node->child; child; child = child->next)
            xml_write(out, child);
    else
        xml_text(out, node->text);
    xml_close(out, node->name);
}

/* --- reading --- */

struct open_node {
    struct xml_node *node;
    struct xml_node **last; /* where its next child goes */
    struct str text;
};

struct reader {
    XML_Parser parser;
    struct arena *arena;
    struct open_node stack[XML_MOST_DEPTH];
    size_t depth, nodes;
    struct xml_node *root;
    const char *why; /* NULL = well so far */
};

static void refuse(struct reader *r, const char *why)
{
    if (!r->why)
        r->why = why;
    XML_StopParser(r->parser, XML_FALSE);
}

static void XMLCALL on_open(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *r = context;
    struct xml_node *node;
    struct open_node *open;

    (void)attributes;
    if (r->depth == XML_MOST_DEPTH) {
        refuse(r, "it is too deep");
        return;
    }
    if (++r->nodes > XML_MOST_NODES) {
        refuse(r, "it has too many elements");
        return;
    }
    node = arena_alloc(r->arena, sizeof(*node));
    node->name = arena_strdup(r->arena, name);
    node->text = "";
    if (r->depth) {
        struct open_node *parent = &r->stack[r->depth - 1];

        *parent->last = node;
        parent->last = (struct xml_node **)&node->next;
    } else {
        r->root = node;
    }
    open = &r->stack[r->depth++];
    open->node = node;
    open->last = (struct xml_node **)&node->child;
    str_truncate(&open->text, 0);
}

static void XMLCALL on_text(void *context, const XML_Char *text, int len)
{
    struct reader *r = context;

    if (r->depth)
        str_add_len(&r->stack[r->depth - 1].text, text, (size_t)len);
}

static void XMLCALL on_close(void *context, const XML_Char *name)
{
    struct reader *r = context;
    struct open_node *open = &r->stack[r->depth - 1];
    const char *text = str_text(&open->text);
    size_t len = open->text.len;

    (void)name;
    if (open->node->child) { /* only the layout of the document */
        for (; len && isspace((unsigned char)*text); len--)
            text++;
        while (len && isspace((unsigned char)text[len - 1]))
            len--;
    }
    if (memchr(text, '\0', len))
        refuse(r, "it holds a NUL");
    else if (len)
        open->node->text = arena_strndup(r->arena, text, len);
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
    refuse(context, "a document type is not allowed");
}

int xml_parse(const char *text,
              size_t len,
              struct arena *arena,
              const struct xml_node **ret_root,
              struct err *e)
{
    struct reader r = {.arena = arena, .parser = XML_ParserCreate(NULL)};
    enum XML_Status status = XML_STATUS_ERROR;

    if (!r.parser)
        abort();
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_open, on_close);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    if (len < INT32_MAX)
        status = XML_Parse(r.parser, text, (int)len, 1);
    if (status != XML_STATUS_OK && !r.why)
        r.why = XML_ErrorString(XML_GetErrorCode(r.parser));
    XML_ParserFree(r.parser);
    for (size_t i = 0; i < XML_MOST_DEPTH; i++)
        str_done(&r.stack[i].text);
    if (r.why) {
        err_set(e, ERR_INVALID, "the XML of the request is not valid: %s", r.why);
        return err_reason(e, "InvalidXmlDocument");
    }
    *ret_root = r.root;
    return 0;
}

const struct xml_node *xml_child(const struct xml_node *node, const char *name)
{
    for (const struct xml_node *child = node ? node->child : NULL; child; child = child->next)
        if (strcmp(child->name, name) == 0)
            return child;
    return NULL;
}

const char *xml_child_text(const struct xml_node *node, const char *name)
{
    const struct xml_node *child = xml_child(node, name);

    return child ? child->text : NULL;
}
