/* replay.c - main() of a fuzz target without libFuzzer: feeds it every file of the folders
 * given.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum {
    MOST_BYTES = 1 << 20,
};

static uint8_t input[MOST_BYTES];

static int replay_file(const char *folder, const char *name)
{
    char path[4096];
    FILE *file;
    uint8_t *copy;
    size_t len;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    len = fread(input, 1, sizeof(input), file);
    fclose(file);
    /* A copy of the exact size, so that a sanitizer sees a step beyond its end. */
    copy = malloc(len ? len : 1);
    if (!copy)
        return -1;
    for (size_t i = 0; i < len; i++)
        copy[i] = input[i];
    fprintf(stderr, "%s\n", name); /* the last name before a crash is the culprit */
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
    return 0;
}

static int replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int count = 0;

    if (!dir) {
        perror(folder);
        return -1;
    }
    while (count >= 0 && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            count = replay_file(folder, entry->d_name) < 0 ? -1 : count + 1;
    closedir(dir);
    return count;
}

/* An empty corpus proves nothing and fails. */
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);

        if (count <= 0) {
            fprintf(stderr, "%s: nothing to replay\n", argv[i]);
            return 1;
        }
        printf("%s: %d inputs\n", argv[i], count);
    }
    return argc > 1 ? 0 : 2;
}
