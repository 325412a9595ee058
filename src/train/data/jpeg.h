/* jpeg.h - JPEG to RGB, whole or a part, at full or reduced size, through libjpeg-turbo.
 *
 * libjpeg's errors come back as struct err by its own error manager (setjmp within jpeg.c);
 * its warnings about corrupt data are errors too: a half grey picture is not an example.
 * Greyscale, CMYK and YCCK become RGB.  Sizes are bounded before memory is taken.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_DATA_JPEG_H
#define TRAIN_DATA_JPEG_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct str;

enum {
    JPEG_MOST_SIDE = 16384,
};

struct jpeg_box { /* in pixels of the whole picture */
    int top, left, height, width;
};

/* Size without decoding. */
int jpeg_size(const void *bytes, size_t len, int *ret_height, int *ret_width, struct err *e);

/* Decode the box (NULL = all) at the largest reduction 1/1, 1/2, 1/4, 1/8 that still gives at
 * least least_height x least_width (0 = full size).  Pixels (RGB, rows without gaps) are put
 * into out, which is emptied first. */
int jpeg_decode(const void *bytes,
                size_t len,
                const struct jpeg_box *box,
                int least_height,
                int least_width,
                struct str *out,
                int *ret_height,
                int *ret_width,
                struct err *e);

#endif
