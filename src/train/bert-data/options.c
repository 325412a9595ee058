/* options.c - see options.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/options.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/bert-data.h"
#include "train/bert-data/examples.h"
#include "train/bert-data/vocab-make.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum kind {
    KIND_TEXT,
    KIND_INPUT,
    KIND_COUNT,
    KIND_SHARE,
    KIND_SWITCH,
};

enum {
    MOST_SHARDS = 10000,
    MOST_COPIES = 10000,
};

#define AT(member) offsetof(struct data_options, member)

static const struct option_row {
    const char *name, *value;
    enum kind kind;
    size_t at;
    int64_t least, most; /* of a count */
    const char *help;
} rows[] = {
    {"input", "FILE", KIND_INPUT, 0, 0, 0, "a text, or a folder of *.txt; as a plain word too"},
    {"output", "FOLDER", KIND_TEXT, AT(output), 0, 0, "where shards and vocab.txt go"},
    {"vocab", "FILE", KIND_TEXT, AT(vocab), 0, 0, "WordPiece vocabulary, a piece a line"},
    {"make-vocab", "N", KIND_COUNT, AT(make_vocab), VOCAB_MAKE_LEAST, BERT_DATA_MOST_VOCABULARY,
     "or make one of at most N pieces from the texts"},
    {"max-seq-length", "T", KIND_COUNT, AT(sequence), EXAMPLES_LEAST_SEQUENCE,
     BERT_DATA_MOST_SEQUENCE, "tokens of an example (128)"},
    {"max-predictions-per-seq", "P", KIND_COUNT, AT(predictions), 0, BERT_DATA_MOST_SEQUENCE,
     "most of them that are masked (5 of 32: 20 of 128)"},
    {"masked-lm-prob", "X", KIND_SHARE, AT(masked_share), 0, 0, "share that is masked (0.15)"},
    {"dupe-factor", "N", KIND_COUNT, AT(copies), 1, MOST_COPIES,
     "times each text is used, with other masks and pairs (10)"},
    {"dup-factor", "N", KIND_COUNT, AT(copies), 1, MOST_COPIES, NULL},
    {"short-seq-prob", "X", KIND_SHARE, AT(short_share), 0, 0,
     "share of examples that are made shorter than T (0.1)"},
    {"shards", "N", KIND_COUNT, AT(shards), 1, MOST_SHARDS, "files to write (1)"},
    {"seed", "N", KIND_COUNT, AT(seed), 0, INT64_MAX, "of all that is random (12345)"},
    {"cased", NULL, KIND_SWITCH, AT(is_cased), 0, 0, "keep capitals and accents"},
    {"overwrite", NULL, KIND_SWITCH, AT(overwrites), 0, 0,
     "replace the shards that are there already"},
    {"help", NULL, KIND_SWITCH, AT(wants_help), 0, 0, "this"},
};

static const char head[] =
    "usage: yardbench bert-data --output FOLDER (--vocab FILE | --make-vocab N) TEXT...\n"
    "\n"
    "Make training data for `yardbench bert` from texts: one sentence a line, a blank line\n"
    "between documents.  The same texts, options and seed give the same bytes.\n"
    "\n";

static const char tail[] =
    "\n"
    "examples:\n"
    "  yardbench bert-data --make-vocab 8000 --output data novel.txt letters.txt\n"
    "  yardbench bert-data --vocab vocab.txt --max-seq-length 512 \\\n"
    "      --max-predictions-per-seq 80 --shards 64 --output wiki-512 wiki/\n"
    "  yardbench bert --train_data_dir data --max_seq_length 128 ...\n";

void data_options_print_help(FILE *to)
{
    fputs(head, to);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char left[64];

        if (!rows[i].help)
            continue;
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].value ? " " : "",
                 rows[i].value ? rows[i].value : "");
        fprintf(to, "  %-29s %s\n", left, rows[i].help);
    }
    fputs(tail, to);
}

static int
parse_count(const struct option_row *row, const char *text, int64_t *to, struct err *e)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < row->least || value > row->most)
        return err_set(e, ERR_INVALID, "--%s %.40s: a number from %lld to %lld", row->name,
                       text, (long long)row->least, (long long)row->most);
    *to = value;
    return 0;
}

static int
parse_share(const struct option_row *row, const char *text, double *to, struct err *e)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value >= 0 && value <= 1))
        return err_set(e, ERR_INVALID, "--%s %.40s: a share from 0 to 1", row->name, text);
    *to = value;
    return 0;
}

static void add_input(struct data_options *o, const char *path)
{
    o->inputs = (const char **)xreallocarray((void *)o->inputs, (size_t)o->input_count + 1,
                                             sizeof *o->inputs);
    o->inputs[o->input_count++] = path;
}

static int
set(struct data_options *o, const struct option_row *row, const char *value, struct err *e)
{
    char *at = (char *)o + row->at;

    switch (row->kind) {
    case KIND_TEXT:
        *(const char **)(void *)at = value;
        return 0;
    case KIND_INPUT:
        add_input(o, value);
        return 0;
    case KIND_COUNT:
        return parse_count(row, value, (int64_t *)(void *)at, e);
    case KIND_SHARE:
        return parse_share(row, value, (double *)(void *)at, e);
    case KIND_SWITCH:
        *(bool *)at = true;
        return 0;
    }
    return 0;
}

/* "max_seq_length=5" is max-seq-length: names are compared up to '='. */
static bool is_name(const char *word, const char *name)
{
    for (; *name; word++, name++)
        if ((*word == '_' ? '-' : *word) != *name)
            return false;
    return *word == '\0' || *word == '=';
}

static int parse_word(struct data_options *o, int count, char **words, int *at, struct err *e)
{
    const char *word = words[*at];

    if (!str_starts(word, "--")) {
        add_input(o, word);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *value = strchr(word, '=');

        if (!is_name(word + 2, rows[i].name))
            continue;
        if (rows[i].kind == KIND_SWITCH && value)
            return err_set(e, ERR_INVALID, "--%s takes no value", rows[i].name);
        if (rows[i].kind != KIND_SWITCH && !value && *at + 1 == count)
            return err_set(e, ERR_INVALID, "--%s needs a value", rows[i].name);
        if (rows[i].kind != KIND_SWITCH)
            value = value ? value + 1 : words[++*at];
        return set(o, &rows[i], value, e);
    }
    return err_set(e, ERR_INVALID, "\"%.60s\" is not understood; see --help", word);
}

static int check(const struct data_options *o, struct err *e)
{
    if (o->input_count == 0)
        return err_set(e, ERR_INVALID, "which texts?  See --help");
    if (!o->output)
        return err_set(e, ERR_INVALID, "--output FOLDER is missing");
    if (!o->vocab == !o->make_vocab)
        return err_set(e, ERR_INVALID, "either --vocab FILE or --make-vocab N");
    if (o->predictions > o->sequence)
        return err_set(e, ERR_INVALID,
                       "--max-predictions-per-seq %lld is more than --max-seq-length %lld",
                       (long long)o->predictions, (long long)o->sequence);
    return 0;
}

int data_options_parse(struct data_options *o, int count, char **words, struct err *e)
{
    *o = (struct data_options){.sequence = 128,
                               .predictions = -1,
                               .copies = 10,
                               .shards = 1,
                               .seed = 12345,
                               .short_share = 0.1,
                               .masked_share = 0.15};
    for (int i = 0; i < count; i++)
        if (parse_word(o, count, words, &i, e) < 0)
            return -1;
    if (o->predictions < 0) /* a little more than 15 % */
        o->predictions = o->sequence * 5 / 32 > 1 ? o->sequence * 5 / 32 : 1;
    return o->wants_help ? 0 : check(o, e);
}

void data_options_done(struct data_options *o)
{
    free((void *)o->inputs);
}
