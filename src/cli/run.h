/* run.h - one run of the program, from the words to the exit status.
 *
 * Exit status, as az has it: 0 all went well, 1 a failure, 2 a usage error, 3 something is
 * missing. Results go to stdout, everything else to stderr.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

int run_main(int argc, char *argv[]);

#endif
