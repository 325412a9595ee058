/* flags-help.c - the text of --help, made from the table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "train/flags/flags-internal.h"

#include <string.h>

enum {
    INDENT = 6,
    WIDTH = 80,
};

static const char head[] =
    "usage: yardbench [--FLAG=VALUE]...\n"
    "       yardbench scale --max-ranks N [--FLAG=VALUE]...\n"
    "\n"
    "Trains or measures a network of tf_cnn_benchmarks, with its flags and its output.\n"
    "\n"
    "Examples:\n"
    "  yardbench --model=resnet50 --batch_size=32 --num_batches=20\n"
    "      speed of ResNet-50 on this machine, with synthetic data\n"
    "  mpirun -n 4 yardbench --model resnet101 --batch_size 64 --variable_update horovod\n"
    "      the recipe's line, on four ranks\n"
    "  yardbench --model=lenet --data_dir=mnist --num_epochs=5 --optimizer=momentum \\\n"
    "          --init_learning_rate=0.01 --train_dir=out --summary_verbosity=1 \\\n"
    "          --eval_during_training_every_n_epochs=1\n"
    "      train on MNIST, evaluate each epoch, keep checkpoints and events in out\n"
    "  yardbench --model=lenet --data_dir=mnist --train_dir=out --eval\n"
    "      evaluate the newest checkpoint\n"
    "  yardbench --model=resnet50 --profile --trace_file=step.json --json=run.json\n"
    "      where the time goes: a table, a Chrome trace, every figure\n"
    "\n"
    "Flags take --name=value or --name value; booleans --name, --noname, --name=true.\n";

/* Words of text, wrapped and indented. */
static void print_wrapped(FILE *out, const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t len = strcspn(text, " ");

        if (!column || column + 1 + len > WIDTH) {
            fprintf(out, "%s%*s", column ? "\n" : "", INDENT, "");
            column = INDENT;
        } else {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)len, text);
        column += len;
        text += len + (text[len] == ' ');
    }
    fputc('\n', out);
}

static const char *kind_of(const struct flag_row *row)
{
    switch (row->type) {
    case FLAG_INT:
        return "=N";
    case FLAG_REAL:
        return "=X";
    case FLAG_LIST:
        return "=X,X,...";
    case FLAG_TEXT:
        return "=TEXT";
    case FLAG_WORD:
        return "=";
    case FLAG_BOOL:
        break;
    }
    return "";
}

static void print_row(FILE *out, const struct flag_row *row)
{
    auto_str text = {0};

    fprintf(out, "  --%s%s%s\n", row->name, kind_of(row),
            row->type == FLAG_WORD ? row->words + (row->words[0] == '|') : "");
    str_add(&text, row->why ? row->why : row->help);
    if (!row->why && row->initial && row->initial[0] &&
        (row->type != FLAG_BOOL || str_equal(row->initial, "true")))
        str_addf(&text, " (default %s)", row->initial);
    print_wrapped(out, str_text(&text));
}

static void print_rows(FILE *out, const char *title, bool is_ours, bool without_effect)
{
    fprintf(out, "\n%s\n", title);
    for (int i = 0; i < flag_row_count; i++) {
        const struct flag_row *row = &flag_rows[i];

        if (row->is_ours == is_ours && !row->why == !without_effect)
            print_row(out, row);
    }
}

void flags_print_help(FILE *out, bool all)
{
    fputs(head, out);
    print_rows(out, "Flags of tf_cnn_benchmarks:", false, false);
    print_rows(out, "Flags of our own:", true, false);
    if (all)
        print_rows(out, "Flags of tf_cnn_benchmarks that do nothing here, and why:", false,
                   true);
    else
        fputs("\nThe other flags of tf_cnn_benchmarks are taken and do nothing here;\n"
              "--helpfull lists them with the reason.\n",
              out);
}
