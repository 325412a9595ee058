/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data-internal.h"
#include "train/data/jpeg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <cmocka.h>

enum {
    HEIGHT = 96,
    WIDTH = 128,
};

/* The top half red, the bottom half blue; rows from x = 64 on green in channel 1. */
static void colour_at(int y, int x, uint8_t *rgb)
{
    rgb[0] = y < HEIGHT / 2 ? 200 : 20;
    rgb[1] = x < WIDTH / 2 ? 30 : 180;
    rgb[2] = y < HEIGHT / 2 ? 20 : 200;
}

static void make_jpeg(unsigned char **ret_bytes, unsigned long *ret_len, bool is_grey)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    uint8_t row[3 * WIDTH];
    JSAMPROW rows[] = {row};

    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    *ret_bytes = NULL;
    *ret_len = 0;
    jpeg_mem_dest(&c, ret_bytes, ret_len);
    c.image_width = WIDTH;
    c.image_height = HEIGHT;
    c.input_components = is_grey ? 1 : 3;
    c.in_color_space = is_grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 95, TRUE);
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            if (is_grey)
                row[x] = (uint8_t)(2 * y);
            else
                colour_at(y, x, row + 3 * x);
        }
        jpeg_write_scanlines(&c, rows, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
}

/* Within what quality 95 does to a flat colour. */
static void assert_near(const uint8_t *have, const uint8_t *want)
{
    for (int c = 0; c < 3; c++)
        assert_in_range(have[c], want[c] > 8 ? want[c] - 8 : 0, want[c] + 8);
}

static void the_whole_picture_is_decoded(void **state)
{
    unsigned char *bytes;
    unsigned long len;
    auto_str rgb = {0};
    int h, w;

    (void)state;
    make_jpeg(&bytes, &len, false);
    assert_int_equal(jpeg_size(bytes, len, &h, &w, NULL), 0);
    assert_int_equal(h, HEIGHT);
    assert_int_equal(w, WIDTH);
    assert_int_equal(jpeg_decode(bytes, len, NULL, 0, 0, &rgb, &h, &w, NULL), 0);
    assert_int_equal(rgb.len, HEIGHT * WIDTH * 3);
    for (int y = 8; y < HEIGHT; y += 16) {
        uint8_t want[3];

        colour_at(y, 40, want);
        assert_near((uint8_t *)rgb.data + 3 * (y * WIDTH + 40), want);
    }
    free(bytes);
}

static void a_part_is_that_part(void **state)
{
    static const struct jpeg_box boxes[] = {
        {.top = 30, .left = 37, .height = 40, .width = 50},
        {.top = 0, .left = 0, .height = 1, .width = 1},
        {.top = 95, .left = 127, .height = 1, .width = 1},
        {.top = 5, .left = 100, .height = 91, .width = 28},
    };
    unsigned char *bytes;
    unsigned long len;

    (void)state;
    make_jpeg(&bytes, &len, false);
    for (size_t i = 0; i < ARRAY_SIZE(boxes); i++) {
        const struct jpeg_box *b = &boxes[i];
        auto_str rgb = {0};
        uint8_t want[3];
        int h, w;

        assert_int_equal(jpeg_decode(bytes, len, b, 0, 0, &rgb, &h, &w, NULL), 0);
        assert_int_equal(h, b->height);
        assert_int_equal(w, b->width);
        colour_at(b->top, b->left, want);
        assert_near((uint8_t *)rgb.data, want);
        colour_at(b->top + h - 1, b->left + w - 1, want);
        assert_near((uint8_t *)rgb.data + 3 * (h * w - 1), want);
    }
    free(bytes);
}

static void reductions_keep_what_is_needed(void **state)
{
    unsigned char *bytes;
    unsigned long len;
    auto_str rgb = {0};
    int h, w;

    (void)state;
    make_jpeg(&bytes, &len, false);
    assert_int_equal(jpeg_decode(bytes, len, NULL, 24, 32, &rgb, &h, &w, NULL), 0);
    assert_int_equal(h, 24); /* a quarter: exactly enough */
    assert_int_equal(w, 32);
    assert_int_equal(jpeg_decode(bytes, len, NULL, 25, 32, &rgb, &h, &w, NULL), 0);
    assert_int_equal(h, 48);
    assert_int_equal(jpeg_decode(bytes, len, NULL, 1, 1, &rgb, &h, &w, NULL), 0);
    assert_int_equal(h, 12); /* an eighth is the most */
    free(bytes);
}

static void damaged_ones_are_refused(void **state)
{
    unsigned char *bytes;
    unsigned long len;
    auto_str rgb = {0};
    struct err e;
    int h, w;

    (void)state;
    make_jpeg(&bytes, &len, false);
    assert_int_equal(jpeg_decode(bytes, len / 2, NULL, 0, 0, &rgb, &h, &w, &e), -1);
    assert_non_null(strstr(e.msg, "corrupt JPEG"));
    assert_int_equal(jpeg_size(bytes, 0, &h, &w, &e), -1);
    assert_int_equal(jpeg_size(bytes, 10, &h, &w, &e), -1);
    assert_int_equal(jpeg_size("no picture", 10, &h, &w, &e), -1);
    assert_int_equal(jpeg_decode(bytes, len,
                                 &(struct jpeg_box){.height = HEIGHT + 1, .width = 1}, 0, 0,
                                 &rgb, &h, &w, &e),
                     -1);
    free(bytes);
}

static void grey_becomes_rgb(void **state)
{
    unsigned char *bytes;
    unsigned long len;
    auto_str rgb = {0};
    int h, w;

    (void)state;
    make_jpeg(&bytes, &len, true);
    assert_int_equal(jpeg_decode(bytes, len, NULL, 0, 0, &rgb, &h, &w, NULL), 0);
    assert_int_equal(rgb.len, HEIGHT * WIDTH * 3);
    assert_near((uint8_t *)rgb.data + (size_t)(3 * WIDTH * 60),
                (const uint8_t[]){120, 120, 120});
    free(bytes);
}

static void resizing_keeps_flat_colours_and_ramps(void **state)
{
    static const enum resize methods[] = {RESIZE_BILINEAR, RESIZE_NEAREST, RESIZE_BICUBIC,
                                          RESIZE_AREA};
    uint8_t from[8 * 8], to[4 * 4], large[16 * 16];
    struct picture picture = {from, 8, 8, 1};
    struct decode_options half = {.height = 4, .width = 4, .channels = 1};
    struct decode_options twice = {.height = 16, .width = 16, .channels = 1};

    (void)state;
    for (size_t m = 0; m < ARRAY_SIZE(methods); m++) {
        memset(from, 77, sizeof(from));
        resize_picture(&picture, methods[m], false, &half, to);
        resize_picture(&picture, methods[m], true, &twice, large);
        for (size_t i = 0; i < sizeof(to); i++)
            assert_int_equal(to[i], 77);
        for (size_t i = 0; i < sizeof(large); i++)
            assert_int_equal(large[i], 77);
    }
    for (int i = 0; i < 64; i++)
        from[i] = (uint8_t)(10 * (i % 8));
    resize_picture(&picture, RESIZE_BILINEAR, false, &half, to);
    assert_memory_equal(to, ((const uint8_t[]){0, 20, 40, 60}), 4); /* x * 2, not x * 2 + 0.5 */
    resize_picture(&picture, RESIZE_AREA, false, &half, to);
    assert_memory_equal(to, ((const uint8_t[]){5, 25, 45, 65}), 4);
    resize_picture(&picture, RESIZE_NEAREST, true, &half, to);
    assert_memory_equal(to, ((const uint8_t[]){70, 50, 30, 10}), 4);
}

static void the_same_seed_gives_the_same_picture(void **state)
{
    struct decode_options o = {.height = 32,
                               .width = 32,
                               .channels = 3,
                               .is_training = true,
                               .distorts = true,
                               .fuses_crop = true};
    uint8_t first[32 * 32 * 3], second[32 * 32 * 3];
    unsigned char *bytes;
    unsigned long len;
    struct rng rng;

    (void)state;
    make_jpeg(&bytes, &len, false);
    rng_init(&rng, 1, 2);
    assert_int_equal(picture_from_jpeg(bytes, len, NULL, 0, 7, &o, &rng, first, NULL), 0);
    rng_init(&rng, 1, 2);
    assert_int_equal(picture_from_jpeg(bytes, len, NULL, 0, 7, &o, &rng, second, NULL), 0);
    assert_memory_equal(first, second, sizeof(first));
    rng_init(&rng, 1, 3);
    assert_int_equal(picture_from_jpeg(bytes, len, NULL, 0, 7, &o, &rng, second, NULL), 0);
    assert_memory_not_equal(first, second, sizeof(first));
    free(bytes);
}

static void an_evaluation_sees_the_middle(void **state)
{
    struct decode_options o = {.height = 16, .width = 16, .channels = 3, .fuses_crop = true};
    uint8_t pixels[16 * 16 * 3], want[3];
    unsigned char *bytes;
    unsigned long len;
    struct rng rng;

    (void)state;
    make_jpeg(&bytes, &len, false);
    rng_init(&rng, 1, 2);
    assert_int_equal(picture_from_jpeg(bytes, len, NULL, 0, 0, &o, &rng, pixels, NULL), 0);
    colour_at(0, 0, want);
    assert_near(pixels, want); /* the four corners have the four colours */
    colour_at(HEIGHT - 1, WIDTH - 1, want);
    assert_near(pixels + sizeof(pixels) - 3, want);
    free(bytes);
}

static void permutations_are_permutations(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 5, 64, 1000};
    bool seen[1000];

    (void)state;
    for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
        memset(seen, 0, sizeof(seen));
        for (uint64_t i = 0; i < counts[c]; i++) {
            uint64_t to = permute(i, counts[c], 42, c);

            assert_true(to < counts[c] && !seen[to]);
            seen[to] = true;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_picture_is_decoded),
        cmocka_unit_test(a_part_is_that_part),
        cmocka_unit_test(reductions_keep_what_is_needed),
        cmocka_unit_test(damaged_ones_are_refused),
        cmocka_unit_test(grey_becomes_rgb),
        cmocka_unit_test(resizing_keeps_flat_colours_and_ramps),
        cmocka_unit_test(the_same_seed_gives_the_same_picture),
        cmocka_unit_test(an_evaluation_sees_the_middle),
        cmocka_unit_test(permutations_are_permutations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
