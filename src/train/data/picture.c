/* picture.c - what ImageNet's pictures go through on their way to a network.
 *
 * Training: a random part (5 to 100 % of the area, aspect 3:4 to 4:3, at least a tenth of one
 * of the labelled boxes in it), resized, mirrored half of the time, colours distorted when
 * asked.  Evaluation: the middle 1/1.145 of the shorter way.  Numbers are tf_cnn_benchmarks'.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data-internal.h"
#include "train/data/jpeg.h"

#include <math.h>
#include <string.h>

enum {
    MOST_TRIES = 100,
};

static const float least_covered = 0.1F;
static const float least_area = 0.05F, least_aspect = 0.75F, most_aspect = 1.33F;
static const float eval_margin = 1.145F;

static float between(struct rng *rng, float low, float high)
{
    return low + (high - low) * rng_uniform(rng);
}

static int at_most(int value, int most)
{
    return value > most ? most : value;
}

/* A part of the given size anywhere in the picture. */
static struct jpeg_box anywhere(struct rng *rng, int height, int width, int h, int w)
{
    return (struct jpeg_box){
        .top = (int)rng_below(rng, (uint32_t)(height - h + 1)),
        .left = (int)rng_below(rng, (uint32_t)(width - w + 1)),
        .height = h,
        .width = w,
    };
}

static float overlap(float a, float b, float c, float d)
{
    float begin = a > c ? a : c, end = b < d ? b : d;

    return end > begin ? end - begin : 0;
}

static bool
covers(const struct jpeg_box *part, const struct example_box *box, int height, int width)
{
    float top = box->ymin * (float)height, bottom = box->ymax * (float)height;
    float left = box->xmin * (float)width, right = box->xmax * (float)width;
    float area = (bottom - top) * (right - left);
    float both = overlap((float)part->top, (float)(part->top + part->height), top, bottom) *
                 overlap((float)part->left, (float)(part->left + part->width), left, right);

    return !(area > 0) || both >= least_covered * area;
}

/* One try; false when the shape does not fit into the picture. */
static bool try_part(struct rng *rng, int height, int width, struct jpeg_box *ret_part)
{
    float aspect = between(rng, least_aspect, most_aspect);
    float area = between(rng, least_area, 1) * (float)height * (float)width;
    int h = (int)lroundf(sqrtf(area / aspect)), w = (int)lroundf(sqrtf(area * aspect));

    if (h < 1 || w < 1 || h > height || w > width)
        return false;
    *ret_part = anywhere(rng, height, width, h, w);
    return true;
}

static struct jpeg_box
random_part(struct rng *rng, int height, int width, const struct example_box *boxes, int count)
{
    for (int i = 0; i < MOST_TRIES; i++) {
        struct jpeg_box part;
        const struct example_box *box = count ? &boxes[rng_below(rng, (uint32_t)count)] : NULL;

        if (try_part(rng, height, width, &part) && (!box || covers(&part, box, height, width)))
            return part;
    }
    return (struct jpeg_box){.height = height, .width = width};
}

static struct jpeg_box middle_part(int height, int width, const struct decode_options *o)
{
    float ratio_h = (float)o->height / (float)height, ratio_w = (float)o->width / (float)width;
    float ratio = (ratio_h > ratio_w ? ratio_h : ratio_w) * eval_margin;
    int h = at_most((int)lroundf((float)o->height / ratio), height);
    int w = at_most((int)lroundf((float)o->width / ratio), width);

    h = h < 1 ? 1 : h;
    w = w < 1 ? 1 : w;
    return (struct jpeg_box){
        .top = (height - h) / 2, .left = (width - w) / 2, .height = h, .width = w};
}

/* RESIZE_CROP: a part of the network's own size. */
static int cut_part(struct rng *rng,
                    int height,
                    int width,
                    const struct decode_options *o,
                    struct jpeg_box *ret_part,
                    struct err *e)
{
    int h = (int)o->height, w = (int)o->width;

    if (h > height || w > width)
        return err_set(e, ERR_INVALID, "%d x %d is smaller than the network's %d x %d", height,
                       width, h, w);
    if (o->is_training)
        *ret_part = anywhere(rng, height, width, h, w);
    else
        *ret_part = (struct jpeg_box){
            .top = (height - h) / 2, .left = (width - w) / 2, .height = h, .width = w};
    return 0;
}

static enum resize method_of(const struct decode_options *o, int64_t number)
{
    static const enum resize robin[] = {RESIZE_NEAREST, RESIZE_BILINEAR, RESIZE_BICUBIC,
                                        RESIZE_AREA};

    if (o->resize == RESIZE_ROUND_ROBIN)
        return robin[number % (int64_t)ARRAY_SIZE(robin)];
    return o->resize == RESIZE_CROP ? RESIZE_NEAREST : o->resize;
}

static float clamped(float value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

static void change_contrast(float *rgb, size_t count, float factor)
{
    for (size_t c = 0; c < 3; c++) {
        double mean = 0;

        for (size_t i = 0; i < count; i++)
            mean += (double)rgb[3 * i + c];
        mean /= (double)count;
        for (size_t i = 0; i < count; i++)
            rgb[3 * i + c] = (rgb[3 * i + c] - (float)mean) * factor + (float)mean;
    }
}

/* Hue is an angle and saturation a length in YIQ's plane of colours. */
static void change_colours(float *rgb, size_t count, float angle, float saturation)
{
    float u = saturation * cosf(angle), w = saturation * sinf(angle);

    for (size_t k = 0; k < count; k++) {
        float *p = rgb + 3 * k;
        float y = 0.299F * p[0] + 0.587F * p[1] + 0.114F * p[2];
        float i = 0.596F * p[0] - 0.274F * p[1] - 0.322F * p[2];
        float q = 0.211F * p[0] - 0.523F * p[1] + 0.312F * p[2];
        float turned_i = u * i - w * q, turned_q = w * i + u * q;

        p[0] = y + 0.956F * turned_i + 0.621F * turned_q;
        p[1] = y - 0.272F * turned_i - 0.647F * turned_q;
        p[2] = y - 1.106F * turned_i + 1.703F * turned_q;
    }
}

static void distort(uint8_t *pixels, size_t count, bool contrast_first, struct rng *rng)
{
    auto_free float *rgb = xreallocarray(NULL, 3 * count, sizeof(*rgb));
    float brightness = between(rng, -32.0F / 255, 32.0F / 255);
    float angle = between(rng, -0.2F * (float)M_PI, 0.2F * (float)M_PI);
    float saturation = between(rng, 0.5F, 1.5F), contrast = between(rng, 0.5F, 1.5F);

    for (size_t i = 0; i < 3 * count; i++)
        rgb[i] = (float)pixels[i] / 255 + brightness;
    if (contrast_first)
        change_contrast(rgb, count, contrast);
    change_colours(rgb, count, angle, saturation);
    if (!contrast_first)
        change_contrast(rgb, count, contrast);
    for (size_t i = 0; i < 3 * count; i++)
        pixels[i] = (uint8_t)(clamped(rgb[i]) * 255 + 0.5F);
}

/* Cut the part out of a whole picture, in place. */
static void cut(struct str *rgb, int width, const struct jpeg_box *part)
{
    for (int y = 0; y < part->height; y++)
        memmove(rgb->data + (size_t)(y * part->width) * 3,
                rgb->data + ((size_t)(part->top + y) * (size_t)width + (size_t)part->left) * 3,
                (size_t)part->width * 3);
}

static int decode_part(const void *bytes,
                       size_t len,
                       const struct jpeg_box *part,
                       const struct decode_options *o,
                       struct str *rgb,
                       struct picture *ret_picture,
                       struct err *e)
{
    bool scales = o->fuses_crop && o->resize != RESIZE_CROP;
    int height, width;

    if (jpeg_decode(bytes, len, o->fuses_crop ? part : NULL, scales ? (int)o->height : 0,
                    scales ? (int)o->width : 0, rgb, &height, &width, e) < 0)
        return -1;
    if (!o->fuses_crop) {
        cut(rgb, width, part);
        height = part->height;
        width = part->width;
    }
    *ret_picture = (struct picture){(const uint8_t *)rgb->data, height, width, 3};
    return 0;
}

int picture_from_jpeg(const void *bytes,
                      size_t len,
                      const struct example_box *boxes,
                      int box_count,
                      int64_t number,
                      const struct decode_options *o,
                      struct rng *rng,
                      uint8_t *pixels,
                      struct err *e)
{
    auto_str rgb = {0};
    struct picture picture;
    struct jpeg_box part;
    int height, width;

    if (jpeg_size(bytes, len, &height, &width, e) < 0)
        return -1;
    if (o->resize == RESIZE_CROP) {
        if (cut_part(rng, height, width, o, &part, e) < 0)
            return -1;
    } else {
        part = o->is_training ? random_part(rng, height, width, boxes, box_count)
                              : middle_part(height, width, o);
    }
    if (decode_part(bytes, len, &part, o, &rgb, &picture, e) < 0)
        return -1;
    resize_picture(&picture, method_of(o, number), o->is_training && (rng_u32(rng) & 1), o,
                   pixels);
    if (o->is_training && o->distorts && o->channels == 3)
        distort(pixels, (size_t)(o->height * o->width), number & 1, rng);
    return 0;
}

/* The picture moved by (dy, dx), black where nothing is. */
static void shift(const struct picture *from, int dy, int dx, uint8_t *to)
{
    size_t c = (size_t)from->channels;

    memset(to, 0, (size_t)(from->height * from->width) * c);
    for (int y = 0; y < from->height; y++) {
        int fy = y + dy, begin = dx < 0 ? -dx : 0;
        int end = dx > 0 ? from->width - dx : from->width;

        if (fy < 0 || fy >= from->height || end <= begin)
            continue;
        memcpy(to + (size_t)(y * from->width + begin) * c,
               from->pixels + (size_t)(fy * from->width + begin + dx) * c,
               (size_t)(end - begin) * c);
    }
}

void picture_from_pixels(const struct picture *from,
                         int pad,
                         bool mirrors,
                         const struct decode_options *o,
                         struct rng *rng,
                         uint8_t *pixels)
{
    struct picture picture = *from;
    auto_free uint8_t *shifted = NULL;
    bool is_mirrored = false;
    enum resize method = o->resize == RESIZE_ROUND_ROBIN || o->resize == RESIZE_CROP
                             ? RESIZE_BILINEAR
                             : o->resize;

    if (o->is_training && pad) {
        int dy = (int)rng_below(rng, (uint32_t)(2 * pad + 1)) - pad;
        int dx = (int)rng_below(rng, (uint32_t)(2 * pad + 1)) - pad;

        shifted = xmalloc((size_t)(from->height * from->width * from->channels));
        shift(from, dy, dx, shifted);
        picture.pixels = shifted;
    }
    if (o->is_training && mirrors)
        is_mirrored = rng_u32(rng) & 1;
    resize_picture(&picture, method, is_mirrored, o, pixels);
}
