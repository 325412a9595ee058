/* clones.h - loops that are compiled for what the machine may have, one of which is chosen when
 * the program starts: CLONES before a function makes it one of these.
 *
 * In files that CMakeLists.txt names in yard_clones(), where the compiler can; elsewhere it is
 * nothing.  Not under sanitizers, whose own start comes after that choice.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_NUM_CLONES_H
#define TRAIN_NUM_CLONES_H

#ifdef YARD_CLONES
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

#endif
