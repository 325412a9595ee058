/* yardbench: the trainer and benchmark.  main and the choice of a subcommand, nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdio.h>

static const char help[] = "usage: yardbench --help | --version\n";

int main(int count, char **words)
{
    if (count == 2 && str_equal(words[1], "--version")) {
        printf("yardbench %s\n", YARD_VERSION);
        return 0;
    }
    if (count == 2 && str_equal(words[1], "--help")) {
        fputs(help, stdout);
        return 0;
    }
    if (count > 1)
        fprintf(stderr, "yardbench: \"%s\" is not understood\n", words[1]);
    fputs(help, stderr);
    return 2;
}
