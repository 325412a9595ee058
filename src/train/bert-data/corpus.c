/* corpus.c - see corpus.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/corpus.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void each_line(const char *text, size_t len, corpus_line_fn *fn, void *arg)
{
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t size = end ? (size_t)(end - text) - at : len - at;

        fn(arg, text + at, size);
        at += size + 1;
    }
}

int corpus_lines(const char *path, corpus_line_fn *fn, void *arg, struct err *e)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *text;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "\"%.200s\" is no file", path);
    if (st.st_size == 0)
        return 0;
    text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED)
        return err_sys(e, errno, "could not map \"%.200s\"", path);
    (void)madvise(text, (size_t)st.st_size, MADV_SEQUENTIAL);
    each_line(text, (size_t)st.st_size, fn, arg);
    munmap(text, (size_t)st.st_size);
    return 0;
}

void corpus_done(struct corpus *c)
{
    tokens_done(&c->tokens);
    free(c->sentences);
    free(c->documents);
    *c = (struct corpus){0};
}

/* Room for element `count` of a list. */
static void make_room(size_t **list, size_t count, size_t *room)
{
    if (count < *room)
        return;
    *room = *room ? *room * 2 : 256;
    *list = xreallocarray(*list, *room, sizeof **list);
}

/* A document begins with its first sentence, so none is empty. */
static void end_sentence(struct corpus *c)
{
    make_room(&c->sentences, c->sentence_count + 1, &c->sentence_room);
    make_room(&c->documents, c->document_count + 1, &c->document_room);
    if (c->sentence_count == 0)
        c->sentences[0] = c->documents[0] = 0;
    c->sentences[++c->sentence_count] = c->tokens.count;
    if (c->document_count == 0 || c->is_ended) {
        c->document_count++;
        make_room(&c->documents, c->document_count, &c->document_room);
    }
    c->is_ended = false;
    c->documents[c->document_count] = c->sentence_count;
}

void corpus_end_document(struct corpus *c)
{
    c->is_ended = true;
}

static bool is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (line[i] != ' ' && (line[i] < '\t' || line[i] > '\r'))
            return false;
    return true;
}

void corpus_add_line(
    struct corpus *c, const struct vocab *vocab, bool is_cased, const char *line, size_t len)
{
    size_t before = c->tokens.count;

    wordpiece_tokens(vocab, line, len, is_cased, &c->tokens);
    if (c->tokens.count > before)
        end_sentence(c);
    else if (is_blank(line, len))
        corpus_end_document(c);
}
