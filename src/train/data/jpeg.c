/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/jpeg.h"

#include "base/mem.h"
#include "base/str.h"

#ifdef YARD_HAS_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

enum {
    MOST_PIXELS = 64 * 1000 * 1000, /* 192 MB of RGB */
    MOST_SCANS = 200,               /* of a progressive picture: more is meant to hurt */
};

/* Everything lives here, not in locals: a longjmp forgets locals that changed. */
struct decoder {
    struct jpeg_decompress_struct j;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf out;
    struct err *e;
    struct jpeg_box box; /* within the output, at its reduced size */
    JDIMENSION row_left; /* what jpeg_crop_scanline really gives */
    struct str row;
};

static void on_error(j_common_ptr common)
{
    struct decoder *d = (struct decoder *)(void *)common;
    char text[JMSG_LENGTH_MAX];

    common->err->format_message(common, text);
    err_set(d->e, ERR_INVALID, "corrupt JPEG: %s", text);
    longjmp(d->out, 1);
}

static void on_message(j_common_ptr common, int level)
{
    if (level < 0) /* a warning: the data are damaged */
        on_error(common);
}

static void on_progress(j_common_ptr common)
{
    struct decoder *d = (struct decoder *)(void *)common;

    if (d->j.input_scan_number <= MOST_SCANS)
        return;
    err_set(d->e, ERR_INVALID, "corrupt JPEG: more than %d scans", MOST_SCANS);
    longjmp(d->out, 1);
}

/* Reads the header; jumps out when there is none. */
static void begin(struct decoder *d, const void *bytes, size_t len)
{
    jpeg_create_decompress(&d->j);
    d->progress.progress_monitor = on_progress;
    d->j.progress = &d->progress;
    jpeg_mem_src(&d->j, bytes, (unsigned long)len);
    jpeg_read_header(&d->j, TRUE);
}

static void decoder_init(struct decoder *d, struct err *e)
{
    *d = (struct decoder){.e = e};
    d->j.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = on_error;
    d->errors.emit_message = on_message;
}

static void decoder_done(struct decoder *d)
{
    jpeg_destroy_decompress(&d->j);
    str_done(&d->row);
}

static int check_size(const struct decoder *d)
{
    JDIMENSION h = d->j.image_height, w = d->j.image_width;

    if (h > JPEG_MOST_SIDE || w > JPEG_MOST_SIDE || (uint64_t)h * w > MOST_PIXELS)
        return err_set(d->e, ERR_INVALID, "a JPEG of %u x %u pixels is too large", h, w);
    return 0;
}

int jpeg_size(const void *bytes, size_t len, int *ret_height, int *ret_width, struct err *e)
{
    struct decoder d;
    int rc;

    if (!len)
        return err_set(e, ERR_INVALID, "an empty JPEG");
    decoder_init(&d, e);
    if (setjmp(d.out)) {
        decoder_done(&d);
        return -1;
    }
    begin(&d, bytes, len);
    rc = check_size(&d);
    if (rc == 0) {
        *ret_height = (int)d.j.image_height;
        *ret_width = (int)d.j.image_width;
    }
    decoder_done(&d);
    return rc;
}

static void
choose_reduction(struct decoder *d, const struct jpeg_box *b, int least_h, int least_w)
{
    unsigned by = 1;

    while (least_h && by < 8 && b->height / (int)(2 * by) >= least_h &&
           b->width / (int)(2 * by) >= least_w)
        by *= 2;
    d->j.scale_num = 1;
    d->j.scale_denom = by;
    if (d->j.jpeg_color_space != JCS_CMYK && d->j.jpeg_color_space != JCS_YCCK)
        d->j.out_color_space = JCS_RGB;
    else
        d->j.out_color_space = JCS_CMYK;
}

static int scaled_end(int end, int by, int most)
{
    int scaled = (end + by - 1) / by;

    return scaled > most ? most : scaled;
}

/* The box in the output's pixels; not empty. */
static void scale_box(struct decoder *d, const struct jpeg_box *b)
{
    int by = (int)d->j.scale_denom;
    int h = (int)d->j.output_height, w = (int)d->j.output_width;
    int top = b->top / by, left = b->left / by;

    top = top < h ? top : h - 1;
    left = left < w ? left : w - 1;
    d->box = (struct jpeg_box){.top = top, .left = left};
    d->box.height = scaled_end(b->top + b->height, by, h) - top;
    d->box.width = scaled_end(b->left + b->width, by, w) - left;
}

/* Inverted when Adobe wrote it, which is nearly always. */
static void cmyk_to_rgb(const struct decoder *d, const uint8_t *from, uint8_t *to)
{
    for (int x = 0; x < d->box.width; x++, from += 4, to += 3)
        for (int c = 0; c < 3; c++)
            to[c] = d->j.saw_Adobe_marker ? (uint8_t)(from[c] * from[3] / 255)
                                          : (uint8_t)((255 - from[c]) * (255 - from[3]) / 255);
}

static void take_row(struct decoder *d, struct str *out)
{
    size_t skip = (size_t)d->box.left - d->row_left;
    size_t channels = (size_t)d->j.output_components, width = (size_t)d->box.width;
    JSAMPROW row = (JSAMPROW)d->row.data;
    const uint8_t *from = (const uint8_t *)d->row.data + skip * channels;

    if (jpeg_read_scanlines(&d->j, &row, 1) != 1) {
        err_set(d->e, ERR_INVALID, "corrupt JPEG: cut short");
        longjmp(d->out, 1);
    }
    str_reserve(out, width * 3);
    if (channels == 4)
        cmyk_to_rgb(d, from, (uint8_t *)out->data + out->len);
    else
        memcpy(out->data + out->len, from, width * 3);
    out->len += width * 3;
}

static void decode_box(struct decoder *d, const struct jpeg_box *b, struct str *out)
{
    JDIMENSION left, width;

    jpeg_start_decompress(&d->j);
    scale_box(d, b);
    str_reserve(&d->row, (size_t)d->j.output_width * (size_t)d->j.output_components);
    left = (JDIMENSION)d->box.left;
    width = (JDIMENSION)d->box.width;
    if (width < d->j.output_width)
        jpeg_crop_scanline(&d->j, &left, &width);
    d->row_left = left;
    if (d->box.top)
        jpeg_skip_scanlines(&d->j, (JDIMENSION)d->box.top);
    for (int y = 0; y < d->box.height; y++)
        take_row(d, out);
    jpeg_abort_decompress(&d->j); /* what lies below the box is not looked at */
}

static int clip_box(struct decoder *d, const struct jpeg_box *box, struct jpeg_box *ret_box)
{
    int h = (int)d->j.image_height, w = (int)d->j.image_width;

    *ret_box = box ? *box : (struct jpeg_box){.height = h, .width = w};
    if (ret_box->top < 0 || ret_box->left < 0 || ret_box->height < 1 || ret_box->width < 1 ||
        ret_box->top > h - ret_box->height || ret_box->left > w - ret_box->width)
        return err_set(d->e, ERR_INVALID, "the part lies outside the picture");
    return 0;
}

int jpeg_decode(const void *bytes,
                size_t len,
                const struct jpeg_box *box,
                int least_height,
                int least_width,
                struct str *out,
                int *ret_height,
                int *ret_width,
                struct err *e)
{
    struct jpeg_box part;
    struct decoder d;

    if (!len)
        return err_set(e, ERR_INVALID, "an empty JPEG");
    str_truncate(out, 0);
    decoder_init(&d, e);
    if (setjmp(d.out)) {
        decoder_done(&d);
        return -1;
    }
    begin(&d, bytes, len);
    if (check_size(&d) < 0 || clip_box(&d, box, &part) < 0) {
        decoder_done(&d);
        return -1;
    }
    choose_reduction(&d, &part, least_height, least_width);
    decode_box(&d, &part, out);
    *ret_height = d.box.height;
    *ret_width = d.box.width;
    decoder_done(&d);
    return 0;
}

#else /* a build of the trainer alone, on a machine without libjpeg */

int jpeg_size(const void *bytes, size_t len, int *ret_height, int *ret_width, struct err *e)
{
    (void)bytes, (void)len, (void)ret_height, (void)ret_width;
    return err_set(e, ERR_METHOD, "this yardbench was built without libjpeg");
}

int jpeg_decode(const void *bytes,
                size_t len,
                const struct jpeg_box *box,
                int least_height,
                int least_width,
                struct str *out,
                int *ret_height,
                int *ret_width,
                struct err *e)
{
    (void)box, (void)least_height, (void)least_width, (void)out;
    return jpeg_size(bytes, len, ret_height, ret_width, e);
}

#endif
