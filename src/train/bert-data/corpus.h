/* corpus.h - the texts that training data are made of: sentences of tokens, in documents.
 *
 * A file has one sentence a line and a blank line between documents; the end of a file ends a
 * document too.  All of it is kept as numbers, four bytes a token.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_CORPUS_H
#define TRAIN_BERT_DATA_CORPUS_H

#include "base/err.h"
#include "train/bert-data/wordpiece.h"

struct vocab;

/* The lines of a file, without their ends. */
typedef void corpus_line_fn(void *arg, const char *line, size_t len);
int corpus_lines(const char *path, corpus_line_fn *fn, void *arg, struct err *e);

struct corpus {
    struct tokens tokens;  /* of all sentences */
    size_t *sentences;     /* where each begins in tokens; one more: the end */
    size_t sentence_count; /* none of them is empty */
    size_t *documents;     /* where each begins in sentences; one more: the end */
    size_t document_count; /* likewise */
    size_t sentence_room, document_room;
    bool is_ended; /* the next sentence begins a document */
};

void corpus_done(struct corpus *corpus);
/* One more sentence; a blank line ends the document, one without tokens is passed over. */
void corpus_add_line(struct corpus *corpus,
                     const struct vocab *vocab,
                     bool is_cased,
                     const char *line,
                     size_t len);
/* What comes now belongs to another document. */
void corpus_end_document(struct corpus *corpus);

static inline size_t corpus_length(const struct corpus *c, size_t sentence)
{
    return c->sentences[sentence + 1] - c->sentences[sentence];
}

#endif
