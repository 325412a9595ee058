/* jpeg.c - fuzz target: pictures, whole, in part and reduced.
 *
 * What must hold beyond not crashing: a picture that was decoded has the size it said.  Large
 * ones are left out, since they only cost time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/jpeg.h"

#include "base/str.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum {
    MOST_SIDE = 256,
};

static void
try_part(const uint8_t *bytes, size_t len, const struct jpeg_box *box, int least, int most_h)
{
    auto_str rgb = {0};
    int h, w;

    if (jpeg_decode(bytes, len, box, least, least, &rgb, &h, &w, NULL) < 0)
        return;
    if (h < 1 || w < 1 || h > most_h || rgb.len != (size_t)h * (size_t)w * 3)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    int h, w;

    if (jpeg_size(bytes, len, &h, &w, NULL) < 0 || h > MOST_SIDE || w > MOST_SIDE)
        return 0;
    try_part(bytes, len, NULL, 0, h);
    try_part(bytes, len, NULL, 4, h);
    try_part(bytes, len,
             &(struct jpeg_box){
                 .top = h / 3, .left = w / 3, .height = h - h / 2, .width = w - w / 2},
             0, h);
    try_part(bytes, len,
             &(struct jpeg_box){.top = h - 1, .left = w / 2, .height = 1, .width = w - w / 2},
             1, h);
    return 0;
}
