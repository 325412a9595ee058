/* resize.c - every method as two passes of weighted sums: rows, then columns.
 *
 * Coordinates are TensorFlow's of that time (align_corners=False, no half pixels): output x
 * looks at x * in/out.  Bicubic is its kernel too (a = -0.75).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data-internal.h"

#include <math.h>
#include <string.h>

struct taps { /* output i = sum over j < k of weight[i*k+j] * input[index[i*k+j]] */
    int k;
    int *index;
    float *weight;
};

static void taps_done(struct taps *taps)
{
    free(taps->index);
    free(taps->weight);
}
#define auto_taps __attribute__((cleanup(taps_done))) struct taps

static int most_taps(enum resize method, int in, int out)
{
    switch (method) {
    case RESIZE_NEAREST:
        return 1;
    case RESIZE_BICUBIC:
        return 4;
    case RESIZE_AREA:
        return in / out + 2;
    case RESIZE_BILINEAR:
    case RESIZE_CROP:
    case RESIZE_ROUND_ROBIN:
        break;
    }
    return 2;
}

static int within(int at, int in)
{
    return at < 0 ? 0 : at >= in ? in - 1 : at;
}

static float cubic(float t)
{
    const float a = -0.75F;

    t = fabsf(t);
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

static void set_tap(struct taps *taps, int i, int j, int at, int in, float weight)
{
    taps->index[i * taps->k + j] = within(at, in);
    taps->weight[i * taps->k + j] = weight;
}

/* How much of [from, to) lies in the pixel at. */
static float covered(int at, float from, float to)
{
    float begin = (float)at > from ? (float)at : from;
    float end = (float)at + 1 < to ? (float)at + 1 : to;

    return end > begin ? (end - begin) / (to - from) : 0;
}

static void fill_taps(struct taps *taps, enum resize method, int i, int in, float scale)
{
    float x = (float)i * scale;
    int at = (int)x;

    for (int j = 0; j < taps->k; j++) {
        if (method == RESIZE_NEAREST)
            set_tap(taps, i, j, at, in, 1);
        else if (method == RESIZE_BICUBIC)
            set_tap(taps, i, j, at + j - 1, in, cubic(x - (float)(at + j - 1)));
        else if (method == RESIZE_AREA)
            set_tap(taps, i, j, at + j, in, covered(at + j, x, x + scale));
        else
            set_tap(taps, i, j, at + j, in, j ? x - (float)at : 1 - (x - (float)at));
    }
}

static void taps_init(struct taps *taps, enum resize method, int in, int out, bool is_mirrored)
{
    float scale = (float)in / (float)out;

    taps->k = most_taps(method, in, out);
    taps->index = xcalloc((size_t)(out * taps->k), sizeof(*taps->index));
    taps->weight = xcalloc((size_t)(out * taps->k), sizeof(*taps->weight));
    for (int i = 0; i < out; i++)
        fill_taps(taps, method, i, in, scale);
    for (int i = 0; is_mirrored && i < out * taps->k; i++)
        taps->index[i] = in - 1 - taps->index[i];
}

/* One input row, resized to the output's width. */
static void
resize_row(const uint8_t *from, const struct taps *taps, int width, int channels, float *to)
{
    for (int x = 0; x < width; x++) {
        for (int c = 0; c < channels; c++) {
            float sum = 0;

            for (int j = 0; j < taps->k; j++)
                sum += taps->weight[x * taps->k + j] *
                       (float)from[taps->index[x * taps->k + j] * channels + c];
            to[x * channels + c] = sum;
        }
    }
}

static uint8_t to_byte(float value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5F);
}

static void
mix_rows(const float *rows, const struct taps *taps, int y, size_t len, float *sum, uint8_t *to)
{
    memset(sum, 0, len * sizeof(*sum));
    for (int j = 0; j < taps->k; j++) {
        const float *row = rows + (size_t)taps->index[y * taps->k + j] * len;
        float weight = taps->weight[y * taps->k + j];

        for (size_t i = 0; i < len; i++)
            sum[i] += weight * row[i];
    }
    for (size_t i = 0; i < len; i++)
        to[i] = to_byte(sum[i]);
}

static void resize_all(const struct picture *from,
                       enum resize method,
                       bool is_mirrored,
                       int height,
                       int width,
                       uint8_t *to)
{
    size_t len = (size_t)(width * from->channels);
    auto_free float *rows = xreallocarray(NULL, (size_t)from->height * len, sizeof(*rows));
    auto_free float *sum = xreallocarray(NULL, len, sizeof(*sum));
    auto_free bool *is_done = xcalloc((size_t)from->height, sizeof(*is_done));
    auto_taps across = {0}, down = {0};

    taps_init(&across, method, from->width, width, is_mirrored);
    taps_init(&down, method, from->height, height, false);
    for (int y = 0; y < height; y++) {
        for (int j = 0; j < down.k; j++) {
            int row = down.index[y * down.k + j];

            if (!is_done[row])
                resize_row(from->pixels + (size_t)(row * from->width * from->channels), &across,
                           width, from->channels, rows + (size_t)row * len);
            is_done[row] = true;
        }
        mix_rows(rows, &down, y, len, sum, to + (size_t)y * len);
    }
}

/* Grey becomes three equal channels, colours become their brightness. */
static void convert(const uint8_t *from, int channels, uint8_t *to, int wanted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = from + i * (size_t)channels;
        uint8_t grey =
            channels < 3
                ? p[0]
                : to_byte(0.299F * (float)p[0] + 0.587F * (float)p[1] + 0.114F * (float)p[2]);

        for (int c = 0; c < wanted; c++)
            to[i * (size_t)wanted + (size_t)c] = grey;
    }
}

void resize_picture(const struct picture *from,
                    enum resize method,
                    bool is_mirrored,
                    const struct decode_options *o,
                    uint8_t *pixels)
{
    int height = (int)o->height, width = (int)o->width;
    size_t count = (size_t)height * (size_t)width;
    auto_free uint8_t *same = NULL;

    if (from->channels == (int)o->channels) {
        if (from->height == height && from->width == width && !is_mirrored)
            memcpy(pixels, from->pixels, count * (size_t)from->channels);
        else
            resize_all(from, method, is_mirrored, height, width, pixels);
        return;
    }
    same = xmalloc(count * (size_t)from->channels);
    resize_all(from, method, is_mirrored, height, width, same);
    convert(same, from->channels, pixels, (int)o->channels, count);
}
