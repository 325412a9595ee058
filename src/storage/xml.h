/* xml.h - the XML of the storage protocol: short documents out, short documents in.
 *
 * Reading makes a small tree in an arena.  A document type or entity of its own, too deep a
 * nest or too many elements make the document invalid: nothing a client needs has them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_XML_H
#define STORAGE_XML_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct arena;
struct str;

/* --- writing --- */

/* <?xml ...?> */
void xml_begin(struct str *out);
/* Text with what XML forbids escaped; characters that no XML can hold become '?'. */
void xml_text(struct str *out, const char *text);
void xml_open(struct str *out, const char *name);
void xml_close(struct str *out, const char *name);
/* <name>text</name>; "" gives <name/>, NULL gives nothing. */
void xml_element(struct str *out, const char *name, const char *text);
void xml_number(struct str *out, const char *name, int64_t number);
void xml_bool(struct str *out, const char *name, bool value);
void xml_date(struct str *out, const char *name, int64_t wall_ms); /* as HTTP writes it */
/* <name>text</name>, or with Encoded="true" and percent-encoding when no XML can hold the text.
 */
void xml_name(struct str *out, const char *name, const char *text);

/* --- reading --- */

enum {
    XML_MOST_DEPTH = 16,
    XML_MOST_NODES = 200 * 1000, /* a block list may have 50,000 */
};

struct xml_node {
    const char *name;
    const char *text; /* never NULL; without blanks around it when there are children */
    const struct xml_node *child, *next;
};

/* ERR_INVALID, "InvalidXmlDocument". */
int xml_parse(const char *text,
              size_t len,
              struct arena *arena,
              const struct xml_node **ret_root,
              struct err *e);

/* The first child of that name; NULL when there is none, or node is NULL. */
const struct xml_node *xml_child(const struct xml_node *node, const char *name);
/* Its text; NULL likewise. */
const char *xml_child_text(const struct xml_node *node, const char *name);
/* Write a node and what is below it. */
void xml_write(struct str *out, const struct xml_node *node);

#endif
