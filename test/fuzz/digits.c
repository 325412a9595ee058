/* digits.c - fuzz target: the files of MNIST (idx) and CIFAR-10.
 *
 * The input becomes both files of a dataset in a folder, and every example is decoded.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/data/dataset.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum {
    SIDE = 8,
    MOST_EXAMPLES = 16,
};

static void put(const char *folder, const char *name, const uint8_t *bytes, size_t len)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "we");

    if (!file || fwrite(bytes, 1, len, file) != len || fclose(file) != 0)
        abort();
}

static void try_folder(const char *folder)
{
    struct dataset_options o = {.folder = folder, .split = DATASET_EVAL};
    struct decode_options d = {.height = SIDE, .width = SIDE, .channels = 3};
    struct dataset *dataset;
    struct dataset_facts facts;

    if (dataset_open(&o, &dataset, NULL) < 0)
        return;
    dataset_facts(dataset, &facts);
    for (int64_t i = 0; i < facts.count && i < MOST_EXAMPLES; i++) {
        uint8_t pixels[SIDE * SIDE * 3];
        int32_t label;

        if (dataset_decode(dataset, i, 0, &d, pixels, &label, NULL) == 0 &&
            (label < 0 || label >= facts.classes))
            abort();
    }
    dataset_free(dataset);
}

static void take_away(const char *folder, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);

    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char images[] = "t10k-images-idx3-ubyte", labels[] = "t10k-labels-idx1-ubyte";
    char folder[] = "/dev/shm/yard-fuzz-XXXXXX"; /* in memory: thousands of files */
    size_t cut = len ? bytes[0] % len : 0;

    if (!mkdtemp(folder))
        abort();
    put(folder, "test_batch.bin", bytes, len);
    try_folder(folder);
    take_away(folder, "test_batch.bin");
    if (len) { /* the first byte says where the images end and the labels begin */
        put(folder, images, bytes + 1, cut);
        put(folder, labels, bytes + 1 + cut, len - 1 - cut);
        try_folder(folder);
    }
    take_away(folder, images);
    take_away(folder, labels);
    rmdir(folder);
    return 0;
}
