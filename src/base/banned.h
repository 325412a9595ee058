/* banned.h - functions that this project does not use, made impossible to use.
 *
 * Force-included into every file of ours by cmake/layers.cmake.  The system headers come first,
 * so that their own declarations are not hit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Unbounded copies: use struct str, snprintf or memcpy. */
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets
/* A shell around foreign strings: use argv arrays. */
#pragma GCC poison system popen
/* Hidden static state: use the _r forms. */
#pragma GCC poison strtok gmtime localtime ctime asctime
/* Predictable names and numbers: use mkostemp and crypt_random. */
#pragma GCC poison tmpnam tempnam mktemp

#endif
