/* command.c - `yardbench bert-data`: texts to shards.
 *
 * Texts are read once for the vocabulary, when one is to be made, and once for their tokens;
 * examples are written as they are made, to the shards in turn.  Shards get their names when
 * all of them are whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/bert-data-internal.h"
#include "train/bert-data/corpus.h"
#include "train/bert-data/examples.h"
#include "train/bert-data/options.h"
#include "train/bert-data/vocab-make.h"
#include "train/bert-data/vocab.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    WRONG_COMMAND_LINE = 2,
};

struct job {
    struct data_options o;
    char **files; /* the texts */
    int file_count;
    struct vocab *vocab;
    struct corpus corpus;
    struct bert_writer **writers;
    int64_t records, masked, elsewhere;
    int64_t next_ns; /* when to say something again */
};

/* --- progress: on a terminal once a second ---------------------------------------------------
 */

static void say(struct job *j, const char *what, int64_t done, int64_t of)
{
    struct timespec now;
    int64_t ns;

    if (!isatty(STDERR_FILENO))
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (ns < j->next_ns && done < of)
        return;
    j->next_ns = ns + 1000000000;
    fprintf(stderr, "\r%s %lld of %lld%s", what, (long long)done, (long long)of,
            done == of ? "\n" : " ");
}

/* --- the texts -------------------------------------------------------------------------------
 */

static void add_file(struct job *j, char *path)
{
    j->files =
        (char **)xreallocarray((void *)j->files, (size_t)j->file_count + 1, sizeof *j->files);
    j->files[j->file_count++] = path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_folder(struct job *j, const char *folder, struct err *e)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int before = j->file_count;

    if (!dir)
        return err_sys(e, errno, "could not open the folder \"%.200s\"", folder);
    while ((entry = readdir(dir)))
        if (str_ends(entry->d_name, ".txt") && entry->d_name[0] != '.')
            add_file(j, xasprintf("%s/%s", folder, entry->d_name));
    closedir(dir);
    if (j->file_count == before)
        return err_set(e, ERR_NOT_FOUND, "there are no texts (*.txt) in \"%.200s\"", folder);
    qsort((void *)(j->files + before), (size_t)(j->file_count - before), sizeof *j->files,
          by_name);
    return 0;
}

static int find_files(struct job *j, struct err *e)
{
    for (int i = 0; i < j->o.input_count; i++) {
        struct stat st;

        if (stat(j->o.inputs[i], &st) < 0)
            return err_sys(e, errno, "could not open \"%.200s\"", j->o.inputs[i]);
        if (!S_ISDIR(st.st_mode))
            add_file(j, xstrdup(j->o.inputs[i]));
        else if (add_folder(j, j->o.inputs[i], e) < 0)
            return -1;
    }
    return 0;
}

/* --- the vocabulary --------------------------------------------------------------------------
 */

static void count_line(void *arg, const char *line, size_t len)
{
    vocab_maker_add(arg, line, len);
}

static int make_vocab(struct job *j, struct err *e)
{
    struct vocab_maker *maker = vocab_maker_new(j->o.is_cased);
    auto_str text = {0};
    int rc = 0;

    for (int i = 0; i < j->file_count && rc == 0; i++) {
        rc = corpus_lines(j->files[i], count_line, maker, e);
        say(j, "words of file", i + 1, j->file_count);
    }
    if (rc == 0) {
        vocab_maker_finish(maker, (int32_t)j->o.make_vocab, &text);
        rc = vocab_parse(str_text(&text), text.len, &j->vocab, e);
    }
    vocab_maker_free(maker);
    return rc;
}

/* The data are of no use without the vocabulary: it goes beside them. */
static int keep_vocab(const struct job *j, struct err *e)
{
    auto_free char *path = xasprintf("%s/vocab.txt", j->o.output);
    auto_str text = {0};

    vocab_format(j->vocab, &text);
    return fs_write_durably(path, str_text(&text), text.len, 0644, e);
}

static int take_vocab(struct job *j, struct err *e)
{
    return j->o.vocab ? vocab_read(j->o.vocab, &j->vocab, e) : make_vocab(j, e);
}

/* --- tokens ----------------------------------------------------------------------------------
 */

static void take_line(void *arg, const char *line, size_t len)
{
    struct job *j = arg;

    corpus_add_line(&j->corpus, j->vocab, j->o.is_cased, line, len);
}

static int read_texts(struct job *j, struct err *e)
{
    for (int i = 0; i < j->file_count; i++) {
        if (corpus_lines(j->files[i], take_line, j, e) < 0)
            return -1;
        corpus_end_document(&j->corpus);
        say(j, "tokens of file", i + 1, j->file_count);
    }
    if (j->corpus.sentence_count == 0)
        return err_set(e, ERR_INVALID, "there are no sentences in the %s",
                       j->file_count == 1 ? "text" : "texts");
    if (j->corpus.document_count == 1)
        fprintf(stderr, "yardbench: the text is one document (a blank line would part two): "
                        "sentences that do not follow are taken from it as well\n");
    return 0;
}

/* --- shards ----------------------------------------------------------------------------------
 */

static char *shard_name(const struct job *j, int64_t number)
{
    return xasprintf("shard-%05lld-of-%05lld" SHARD_SUFFIX, (long long)number,
                     (long long)j->o.shards);
}

static bool is_of_run(const struct job *j, const char *name)
{
    for (int64_t i = 0; i < j->o.shards; i++) {
        auto_free char *own = shard_name(j, i);

        if (str_equal(own, name))
            return true;
    }
    return false;
}

/* Shards of an earlier run: refused, or removed when they would be left beside ours. */
static int look_for_old(const struct job *j, bool removes, struct err *e)
{
    DIR *dir = opendir(j->o.output);
    const struct dirent *entry;
    int rc = 0;

    if (!dir)
        return err_sys(e, errno, "could not open the folder \"%.200s\"", j->o.output);
    while (rc == 0 && (entry = readdir(dir))) {
        auto_free char *path = xasprintf("%s/%s", j->o.output, entry->d_name);

        if (!str_ends(entry->d_name, SHARD_SUFFIX))
            continue;
        if (!j->o.overwrites)
            rc = err_set(e, ERR_CONFLICT,
                         "\"%.200s\" holds shards already; --overwrite replaces them",
                         j->o.output);
        else if (removes && !is_of_run(j, entry->d_name))
            rc = fs_remove(path, e);
    }
    closedir(dir);
    return rc;
}

static int open_writers(struct job *j, struct err *e)
{
    struct bert_shape shape = {j->o.sequence, j->o.predictions, vocab_count(j->vocab)};

    j->writers = (struct bert_writer **)xcalloc((size_t)j->o.shards, sizeof(void *));
    for (int64_t i = 0; i < j->o.shards; i++) {
        auto_free char *name = shard_name(j, i);
        auto_free char *path = xasprintf("%s/%s", j->o.output, name);

        if (bert_writer_new(path, &shape, &j->writers[i], e) < 0)
            return -1;
    }
    return 0;
}

static int close_writers(struct job *j, struct err *e)
{
    for (int64_t i = 0; i < j->o.shards; i++)
        if (bert_writer_close(j->writers[i], e) < 0)
            return -1;
    return 0;
}

static int write_example(void *arg, const struct bert_record *record, struct err *e)
{
    struct job *j = arg;

    j->masked += record->masked;
    j->elsewhere += record->next;
    return bert_writer_add(j->writers[j->records++ % j->o.shards], record, e);
}

static int write_examples(struct job *j, struct err *e)
{
    struct examples_options o = {
        .shape = {j->o.sequence, j->o.predictions, vocab_count(j->vocab)},
        .masked_share = j->o.masked_share,
        .short_share = j->o.short_share,
        .seed = (uint64_t)j->o.seed};
    int64_t all = j->o.copies * (int64_t)j->corpus.document_count, done = 0;

    for (int64_t copy = 0; copy < j->o.copies; copy++)
        for (size_t i = 0; i < j->corpus.document_count; i++) {
            if (examples_make(&j->corpus, j->vocab, &o, i, (int)copy, write_example, j, e) < 0)
                return -1;
            say(j, "examples of document", ++done, all);
        }
    return 0;
}

static int run(struct job *j, struct err *e)
{
    if (find_files(j, e) < 0 || fs_make_folders(j->o.output, 0755, e) < 0 ||
        look_for_old(j, false, e) < 0 || take_vocab(j, e) < 0 || read_texts(j, e) < 0 ||
        open_writers(j, e) < 0 || write_examples(j, e) < 0 || keep_vocab(j, e) < 0)
        return -1;
    if (look_for_old(j, true, e) < 0)
        return -1;
    return close_writers(j, e);
}

static void job_done(struct job *j)
{
    for (int64_t i = 0; j->writers && i < j->o.shards; i++)
        bert_writer_free(j->writers[i]);
    for (int i = 0; i < j->file_count; i++)
        free(j->files[i]);
    free((void *)j->writers);
    free((void *)j->files);
    vocab_free(j->vocab);
    corpus_done(&j->corpus);
    data_options_done(&j->o);
}

static void summary(const struct job *j)
{
    printf("%s: %lld examples in %lld %s of %lld tokens\n", j->o.output, (long long)j->records,
           (long long)j->o.shards, j->o.shards == 1 ? "shard" : "shards",
           (long long)j->o.sequence);
    printf("  from %zu sentences of %zu tokens in %zu %s, vocabulary of %d\n",
           j->corpus.sentence_count, j->corpus.tokens.count, j->corpus.document_count,
           j->corpus.document_count == 1 ? "document" : "documents", vocab_count(j->vocab));
    printf("  %.2f masked an example, %.1f %% of the second parts from elsewhere\n",
           (double)j->masked / (double)j->records,
           100 * (double)j->elsewhere / (double)j->records);
}

int bert_data_main(int argc, char **argv)
{
    struct job j = {0};
    struct err e = {0};
    int status = 0;

    if (data_options_parse(&j.o, argc, argv, &e) < 0) {
        status = WRONG_COMMAND_LINE;
        fprintf(stderr, "yardbench bert-data: %s\n", e.msg);
    } else if (j.o.wants_help) {
        data_options_print_help(stdout);
    } else if (run(&j, &e) < 0) {
        status = err_info(e.code)->exit_status;
        fprintf(stderr, "yardbench bert-data: %s\n", e.msg);
    } else {
        summary(&j);
    }
    job_done(&j);
    if (fflush(stdout) != 0) {
        perror("yardbench bert-data: stdout");
        return EXIT_FAILURE;
    }
    return status;
}
