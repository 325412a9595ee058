/* flags-help.c - the text of --help, made from the table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/flags/flags-internal.h"

static const char head[] =
    "usage: yardbench [--FLAG=VALUE]...\n"
    "       yardbench scale --max-ranks N [--FLAG=VALUE]...\n"
    "       yardbench bert | bert-data | preflight   (each has its own --help)\n"
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

void flags_print_help(FILE *out, bool all)
{
    fputs(head, out);
    flag_table_print(out, &flags_table, "Flags of tf_cnn_benchmarks:", false, false);
    flag_table_print(out, &flags_table, "Flags of our own:", true, false);
    if (all)
        flag_table_print(out, &flags_table,
                         "Flags of tf_cnn_benchmarks that do nothing here, and why:", false,
                         true);
    else
        fputs("\nThe other flags of tf_cnn_benchmarks are taken and do nothing here;\n"
              "--helpfull lists them with the reason.\n",
              out);
}
