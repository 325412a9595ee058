/* half.h - fp16 and bf16 as storage: conversions to and from float, nearest even.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_NUM_HALF_H
#define TRAIN_NUM_HALF_H

#include <stddef.h>
#include <stdint.h>

uint16_t half_from_float(float value); /* overflow becomes infinity, NaN stays NaN */
float half_to_float(uint16_t half);
uint16_t bf16_from_float(float value);
float bf16_to_float(uint16_t bf16);

void half_from_floats(uint16_t *to, const float *from, size_t count);
void half_to_floats(float *to, const uint16_t *from, size_t count);
void bf16_from_floats(uint16_t *to, const float *from, size_t count);
void bf16_to_floats(float *to, const uint16_t *from, size_t count);

#endif
